"""Sets of numbers as people write them: ``0-4,7``."""

from collections.abc import Iterable


def to_ranges(numbers: Iterable[int]) -> str:
    """Write a set of numbers as ``0-4,7``."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def from_ranges(text: str) -> list[int]:
    """Inverse of `to_ranges`."""
    numbers: list[int] = []
    for piece in filter(None, text.split(",")):
        first, _, last = piece.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers
