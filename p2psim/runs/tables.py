"""Merging of parts and earlier tables into the Parquet files of a run folder.

Rows go through memory one row group at a time, as one stream in the order of the table. The bytes depend on the rows
alone: groups have a fixed number of rows, text has one sorted dictionary for the whole file, and nothing depends on
batches, workers or attempts.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.runs.earlier import ROW_GROUP, Earlier
from p2psim.runs.parts import RunKey, StoredPart
from p2psim.simulation.outcome import KEY

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
    parts = {source.path: source for source in sources_of(held) if isinstance(source, StoredPart)}

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
    for source in held:
        count = source[1][1]
        if several and (source[0].source is not several[0][0].source or rows + count > ROW_GROUP):
            yield several
            several, rows = [], 0
        several.append(source)
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


#: Written in the metadata of every table.
TABLE_FORMAT = 2

#: Columns of the ledger that say that a number must not be taken at face value.
FLAGS = (
    "bound_violated",
    "over_budget",
    "not_private",
    "public_graph_assumed",
    "data_dependent_step",
    "scaled_records",
    "clairvoyant",
)

#: Columns that stand first, and last, in the tables whose columns depend on the scenario.
_FIRST = {
    "ledger": ("agent", "releases", "lost", "deliveries_lost", "budget", "epsilon_claimed"),
    "agents": ("index", "label", "group", "records", "degree"),
}
_LAST = {
    "ledger": (
        "violation_step",
        "violation_size",
        *FLAGS,
    ),
    "agents": ("budget",),
}
#: Tables that begin with the swept columns.
_SWEPT_TABLES = ("metrics", "ledger")


def merge(name: str, runs: Sequence[Placed], swept: dict[str, list[Any]], path: Path) -> bool:
    """Write one table.

    Parameters
    ----------
    name : str
        ``metrics``, ``ledger``, ``agents`` or ``events``.
    runs : sequence of Placed
        In the order of the table: by cell, then replica.
    swept : dict
        Name of each swept column, and its value in each cell.
    path : Path
        The Parquet file to write.

    Returns
    -------
    bool
        False when no simulation has rows of this kind; nothing is written then.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    held = [(run, place) for run in runs if (place := run.source.place(name, run.key)) is not None]
    if not held:
        return False
    body, dictionaries = _body(name, sources_of(held))
    columns = _swept_columns(swept) if name in _SWEPT_TABLES else {}
    schema = _full_schema(name, columns, body)
    floats = [
        field.name for field in schema if pa.types.is_floating(field.type) and field.name not in columns
    ]
    # Arrow packs one group while the rows of the next are put together.
    with (
        ThreadPoolExecutor(1) as packing,
        pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            use_dictionary=[field.name for field in schema if field.name not in floats],
            use_byte_stream_split=floats,
            write_page_checksum=True,
        ) as writer,
    ):
        packed = None
        for group in groups(pieces(name, held, body, dictionaries)):
            table = _assemble(group, schema, columns)
            if packed is not None:
                packed.result()
            packed = packing.submit(writer.write_table, table, row_group_size=ROW_GROUP)
        if packed is not None:
            packed.result()
    return True


def _body(name: str, sources: Sequence[StoredPart | Earlier]) -> "tuple[pa.Schema, dict[str, pa.Array]]":
    """Columns of all sources together, in their order, and the values of each text column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    schemas, texts = [], dict[str, set[str]]()
    for source in sources:
        table: Any = source.table(name) if isinstance(source, StoredPart) else None
        schema: Any = source.schema(name) if isinstance(source, Earlier) else table.schema
        schemas.append(schema.remove_metadata())
        for field in schema:
            if not pa.types.is_dictionary(field.type):
                continue
            known = texts.setdefault(field.name, set())
            if isinstance(source, StoredPart):
                known.update(v for v in pc.unique(table.column(field.name)).to_pylist() if v is not None)
            else:
                known.update(source.values(name, field.name))
    merged = pa.unify_schemas(schemas, promote_options="permissive")
    names = sorted(merged.names, key=lambda column: rank(name, column))
    if name not in _FIRST:
        names = merged.names
    fields = []
    for column in names:
        field = merged.field(column)
        if column in texts:
            field = pa.field(column, pa.dictionary(pa.int32(), pa.string()))
        fields.append(pa.field(column, field.type))
    dictionaries = {column: pa.array(sorted(values), pa.string()) for column, values in texts.items()}
    return pa.schema(fields), dictionaries


def rank(table: str, column: str) -> tuple[int, int, str, str]:
    """Place of a column: the fixed first ones, then by name (ε before δ of an accountant), then the flags."""
    first, last = _FIRST.get(table, ()), _LAST.get(table, ())
    if column in first:
        return (0, first.index(column), "", "")
    if column in last:
        return (2, last.index(column), "", "")
    for order, prefix in enumerate(("epsilon_", "delta_")):
        if column.startswith(prefix):
            return (1, 0, column.removeprefix(prefix), str(order))
    return (1, 1, column, "")


def _swept_columns(swept: dict[str, list[Any]]) -> "dict[str, pa.Array]":
    """One array a swept key, with one value a cell: numeric where all are numbers, else text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns: dict[str, pa.Array] = {}
    for key, values in swept.items():
        kinds = {type(value) for value in values}
        if kinds <= {bool}:
            columns[key] = pa.array(values, pa.bool_())
        elif kinds <= {int}:
            columns[key] = pa.array(values, pa.int64())
        elif kinds <= {int, float}:
            columns[key] = pa.array([float(value) for value in values], pa.float64())
        else:
            texts = [None if value is None else _text(value) for value in values]
            known = pa.array(sorted({text for text in texts if text is not None}), pa.string())
            codes = pc.index_in(pa.array(texts, pa.string()), known)
            columns[key] = pa.DictionaryArray.from_arrays(codes, known)
    return columns


def _text(value: Any) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def _full_schema(name: str, columns: "dict[str, pa.Array]", body: "pa.Schema") -> "pa.Schema":
    import pyarrow as pa

    metadata = {"p2psim.table": name, "p2psim.format": str(TABLE_FORMAT)}
    if name == "events":
        from p2psim.core.events import FORMAT_VERSION

        metadata[KEY.decode()] = str(FORMAT_VERSION)
    fields = [pa.field(key, array.type) for key, array in columns.items()]
    fields += [pa.field("cell", pa.int32()), pa.field("replica", pa.int32()), *body]
    return pa.schema(fields, metadata=metadata)


def _assemble(group: list[Piece], schema: "pa.Schema", columns: "dict[str, pa.Array]") -> "pa.Table":
    import pyarrow as pa

    cells = np.concatenate([cells for cells, _, _ in group])
    replicas = np.concatenate([replicas for _, replicas, _ in group])
    body = pa.concat_tables([rows for _, _, rows in group]).combine_chunks()
    arrays: list[Any] = []
    for field in schema:
        if field.name == "cell":
            arrays.append(pa.array(cells))
        elif field.name == "replica":
            arrays.append(pa.array(replicas))
        elif field.name in columns:
            arrays.append(columns[field.name].take(pa.array(cells)))
        else:
            arrays.append(body.column(field.name))
    return pa.Table.from_arrays(arrays, schema=schema)
