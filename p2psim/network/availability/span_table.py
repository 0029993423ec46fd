"""A table of spans: agent, begin, end, one span a line."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from p2psim.errors import MeaningError

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
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file, strict=True)
        try:
            header = [name.strip() for name in next(lines, [])]
            if sorted(set(header) & set(COLUMNS)) != sorted(COLUMNS) or len(set(header)) != len(header):
                given = ", ".join(header) or "nothing"
                raise MeaningError(key, f"{path} needs columns agent, begin, end, each once; it has {given}")
            places = [header.index(name) for name in COLUMNS]
            for line in lines:
                if not line:
                    continue
                place = f"{path}:{lines.line_num}"
                if len(line) != len(header):
                    raise MeaningError(key, f"{place}: must have {len(header)} fields, got {len(line)}")
                agent, begin, end = (line[i] for i in places)
                yield Span(place, agent, _time(begin, place, key), _time(end.strip() or "inf", place, key))
        except UnicodeDecodeError:
            raise MeaningError(key, f"{path} is not UTF-8 text; save it as UTF-8") from None
        except csv.Error as error:
            raise MeaningError(key, f"{path}:{lines.line_num}: {error}") from None


def _time(text: str, place: str, key: str) -> float:
    try:
        time = float(text.replace(".inf", "inf"))
    except ValueError:
        raise MeaningError(key, f"{place}: begin and end must be numbers, got {text!r}") from None
    if not time >= 0:
        raise MeaningError(key, f"{place}: begin and end must be times, 0 or more, got {text!r}")
    return time
