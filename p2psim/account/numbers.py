"""Numbers as the calculator reads and prints them."""

import math

from p2psim.errors import InputError

#: Numbers that differ by less than this part of themselves are told as the same.
ROUNDING = 1e-12


def upward(value: float, digits: int = 7) -> str:
    """Write a number with so many significant digits, never smaller than it is, but for the rounding of its last bits.

    A loss that is rounded to the nearest would be told too small half of the time.
    """
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    text = f"{value:.{digits}g}"
    if float(text) < value - ROUNDING * abs(value):
        last = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
        text = f"{float(text) + last:.{digits}g}"
    return text


def downward(value: float, digits: int = 7) -> str:
    """Write a number with so many significant digits, never larger than it is."""
    text = upward(-value, digits)
    return text[1:] if text.startswith("-") else f"-{text}" if value else text


def positive(name: str, value: float) -> float:
    """Return a number that must be positive and finite.

    Raises
    ------
    InputError
        Naming the argument, what is expected and what was given.
    """
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name}: must be a positive number, got {value:g}")
    return value


def share(name: str, value: float, *, zero: bool = False) -> float:
    """Return a number that must lie between 0 and 1, 1 itself not, and 0 only if that is allowed."""
    if not (0 < value < 1 or (zero and value == 0)):
        raise InputError(f"{name}: must be {'at least' if zero else 'above'} 0 and below 1, got {value:g}")
    return value


def check_rate(name: str, rate: float | None) -> None:
    """Refuse a sampling rate that is given and is not above 0 and at most 1.

    Raises
    ------
    InputError
        Naming the argument, what is expected and what was given.
    """
    if rate is not None and not 0 < rate <= 1:
        raise InputError(f"{name}: must be above 0 and at most 1, got {rate:g}")
