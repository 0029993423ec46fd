"""What a study may be called."""

import re

#: A study's name is also that of its folder and its file.
PATTERN = r"^\w[\w .+=-]{0,99}$"


def checked_name(name: str) -> str:
    """Return the name if it can be a folder's on any system.

    Raises
    ------
    ValueError
        If it cannot.
    """
    if not re.fullmatch(PATTERN, name) or name.endswith((" ", ".", "\n")):
        allowed = "at most 100 letters, digits, _ - + = and, inside, spaces and dots"
        raise ValueError(f"must be a name of {allowed}, got {name[:120]!r}")
    return name
