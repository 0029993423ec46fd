"""A table of spans: agent, begin, end, one span a line."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from p2psim.decimals import BeyondFloatError
from p2psim.errors import MeaningError
from p2psim.text_tables import as_wide, header_of, lines_of, number, shown

COLUMNS = ("agent", "begin", "end")


class Span(NamedTuple):
    """A span of time of an agent, and where it was written."""

    place: str
    agent: str
    begin: float
    end: float


def read_spans(path: Path, key: str) -> Iterator[Span]:
    """Read a table; an empty end, or .inf, is for ever.

    Raises
    ------
    MeaningError
        With file and line, if a column is missing, a line has more or fewer fields than the header, or a time is none.
    """
    header = [name.strip() for name in header_of(path, key)]
    if any(header.count(name) != 1 for name in COLUMNS):
        raise MeaningError(
            key, f"{path} needs columns agent, begin, end, each once; it has {', '.join(header)}"
        )
    places = [header.index(name) for name in COLUMNS]
    for line, cells in as_wide(itertools.islice(lines_of(path, key), 1, None), len(header), path, key):
        place = f"{path}:{line}"
        agent, begin, end = (cells[i] for i in places)
        yield Span(place, agent, _time(begin, place, key), _time(end.strip() or "inf", place, key))


def _time(text: str, place: str, key: str) -> float:
    try:
        time = number(text.replace(".inf", "inf"))
    except BeyondFloatError as error:
        raise MeaningError(key, f"{place}: {error}") from None
    if time is None or time < 0:
        raise MeaningError(key, f"{place}: begin and end must be times, 0 or more, got {shown(text)}")
    return time
