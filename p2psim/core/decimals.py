"""Numbers as people write them: what a float cannot hold is refused, and does not become 0 or infinity."""

import math
import re

#: A number so written that it may be beyond a float: with an exponent of three digits, or with very many digits.
_SUSPECT = re.compile(
    r"(?<![\w.])(?=\.?[0-9])(?:[0-9]*+\.?[0-9]*+[eE][-+]?[0-9]{3,}|[0-9]{300,}+\.?[0-9]*+|[0-9]*+\.[0-9]{300,}+)"
)


class BeyondFloatError(ValueError):
    """A number is too large or too small for a float."""


def decimal(text: str, infinity: str = "inf") -> float:
    """Return the float that is nearest to a number in decimal notation.

    Parameters
    ----------
    text : str
        What ``float`` reads.
    infinity : str
        How infinity is written where the text comes from, named in the error.

    Raises
    ------
    BeyondFloatError
        If the number is finite and the float infinite, or the float 0 and the number not.
    ValueError
        If it is no number.
    """
    value = float(text)
    shown = text.strip() if len(text) <= 40 else f"{text.strip()[:40]}…"
    if math.isinf(value) and any(letter.isdigit() for letter in text):
        raise BeyondFloatError(f"{shown} is too large for a number; write {infinity} for infinity")
    if value == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
        raise BeyondFloatError(f"{shown} is too small for a number; the smallest is 5e-324, or write 0")
    return value


def is_beyond(text: str) -> bool:
    """Whether a text is a number that a float cannot hold."""
    try:
        decimal(text)
    except BeyondFloatError:
        return True
    return False


def refuse_beyond(text: str) -> None:
    """Raise BeyondFloatError if a text holds a number that a float cannot hold."""
    for match in _SUSPECT.finditer(text):
        decimal(match.group())
