"""Sets of numbers as people write them: ``0-4,7``."""

from collections.abc import Collection, Iterable


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of each run of numbers that follow each other."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def to_ranges(numbers: Iterable[int]) -> str:
    """Write a set of numbers as ``0-4,7``."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs_of(numbers))


def cells_named(numbers: Collection[int]) -> str:
    """``cell 3``, or ``cells 0-4,7``."""
    return f"cell{'s' if len(numbers) > 1 else ''} {to_ranges(numbers)}"


def from_ranges(text: str) -> list[int]:
    """Inverse of `to_ranges`."""
    numbers: list[int] = []
    for piece in filter(None, text.split(",")):
        first, _, last = piece.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers
