"""Rows of simulations, from wherever they are, in the order of a table: one stream, cut into row groups."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.study.earlier import ROW_GROUP, Earlier
from p2psim.study.parts import RunKey, StoredPart

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Placed:
    """One simulation at its place in the tables.

    Attributes
    ----------
    cell, replica : int
        Its numbers now.
    key : RunKey
        What it is.
    source : StoredPart or Earlier
        Where its rows are.
    """

    cell: int
    replica: int
    key: RunKey
    source: "StoredPart | Earlier"


#: Cell and replica of each row, and the rows.
Piece = tuple[np.ndarray, np.ndarray, "pa.Table"]
#: A simulation, its first row in a table of its source, and how many it has.
Held = tuple[Placed, tuple[int, int]]


def sources_of(held: Iterable[Held]) -> "list[StoredPart | Earlier]":
    """Each source once, in the order in which they are first met."""
    return list({id(run.source): run.source for run, _ in held}.values())


def pieces(
    name: str, held: Sequence[Held], body: "pa.Schema", dictionaries: "dict[str, pa.Array]"
) -> Iterator[Piece]:
    """Rows of all simulations in turn, all with the same columns. The maps of few parts are open at a time."""
    parts = {one.path: one for one in sources_of(held) if isinstance(one, StoredPart)}

    @lru_cache(maxsize=128)
    def table_of(path: Path) -> Any:
        # A whole part at once: its simulations may have few rows each.
        return _conformed(parts[path].table(name), body, dictionaries)

    for several in _neighbours(held):
        source = several[0][0].source
        starts, counts = np.array([place for _, place in several], np.int64).T
        cells = np.repeat(np.array([run.cell for run, _ in several], np.int32), counts)
        replicas = np.repeat(np.array([run.replica for run, _ in several], np.int32), counts)
        if isinstance(source, StoredPart):
            yield cells, replicas, _gathered(table_of(source.path), starts, counts)
            continue
        at = 0
        for start, count in _stretches(starts, counts):
            for rows in source.rows(name, start, count):
                end = at + rows.num_rows
                yield cells[at:end], replicas[at:end], _conformed(rows, body, dictionaries)
                at = end


def _neighbours(held: Sequence[Held]) -> Iterator[list[Held]]:
    """Simulations that follow each other and have the same source: as many as fill a row group, at least one."""
    several: list[Held] = []
    rows = 0
    for one in held:
        count = one[1][1]
        if several and (one[0].source is not several[0][0].source or rows + count > ROW_GROUP):
            yield several
            several, rows = [], 0
        several.append(one)
        rows += count
    if several:
        yield several


def _stretches(starts: np.ndarray, counts: np.ndarray) -> Iterator[tuple[int, int]]:
    """First row and number of rows of each stretch of simulations whose rows follow each other."""
    edges = [0, *(np.flatnonzero(starts[1:] != starts[:-1] + counts[:-1]) + 1).tolist(), starts.size]
    rows = np.concatenate([[0], np.cumsum(counts)])[edges].tolist()
    for begin, (before, after) in zip(edges, pairwise(rows), strict=False):
        yield int(starts[begin]), after - before


def _gathered(table: "pa.Table", starts: np.ndarray, counts: np.ndarray) -> "pa.Table":
    """Rows of several simulations; without copying them, where they follow each other."""
    import pyarrow as pa

    ends = np.cumsum(counts)
    if (starts[1:] == starts[:-1] + counts[:-1]).all():
        return table.slice(int(starts[0]), int(ends[-1]))
    rows = np.arange(ends[-1]) + np.repeat(starts - (ends - counts), counts)
    return table.take(pa.array(rows))


def groups(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Cut a stream of pieces into groups of exactly `ROW_GROUP` rows, the last one shorter."""
    group: list[Piece] = []
    room = ROW_GROUP
    some = False
    for cells, replicas, rows in pieces:
        while rows.num_rows >= room:
            group.append((cells[:room], replicas[:room], rows.slice(0, room)))
            cells, replicas, rows = cells[room:], replicas[room:], rows.slice(room)
            yield group
            some, group, room = True, [], ROW_GROUP
        if rows.num_rows or not (group or some):
            group.append((cells, replicas, rows))
            room -= rows.num_rows
    if group and (room < ROW_GROUP or not some):
        yield group


def _conformed(rows: "pa.Table", body: "pa.Schema", dictionaries: "dict[str, pa.Array]") -> "pa.Table":
    """Rows with all columns of the whole table, nulls in those that they lack, and its dictionaries."""
    import pyarrow as pa

    columns = []
    for field in body:
        if field.name not in rows.schema.names:
            nothing = pa.nulls(rows.num_rows, pa.int32() if field.name in dictionaries else field.type)
            if field.name in dictionaries:
                nothing = pa.DictionaryArray.from_arrays(nothing, dictionaries[field.name])
            columns.append(nothing)
            continue
        column = rows.column(field.name)
        chunks = column.chunks
        if field.name in dictionaries:
            chunks = [_recoded(chunk, dictionaries[field.name]) for chunk in chunks]
        columns.append(pa.chunked_array([chunk.cast(field.type) for chunk in chunks], field.type))
    return pa.Table.from_arrays(columns, schema=body)


def _recoded(chunk: "pa.Array", dictionary: "pa.Array") -> "pa.DictionaryArray":
    """The same text with the codes of another dictionary."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(chunk.type):
        chunk = chunk.cast(pa.string()).dictionary_encode()
    if chunk.dictionary.equals(dictionary):
        return chunk  # as it lies in the file, which is mapped and not read
    codes = pc.index_in(chunk.dictionary, dictionary).take(chunk.indices)
    return pa.DictionaryArray.from_arrays(codes, dictionary)
