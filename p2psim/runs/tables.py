"""Merging of parts and earlier tables into the Parquet files of a run folder.

Rows go through memory one row group at a time, as one stream in the order of the table. The bytes depend on the rows
alone: groups have a fixed number of rows, text has one sorted dictionary for the whole file, or for each group where it
would be longer than that, and nothing depends on batches, workers or attempts.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from p2psim.core.events import COUNTS, FORMAT_VERSION, number_column
from p2psim.runs.parquet import ROW_GROUP, packing, write_table
from p2psim.runs.parts import RunKey, StoredPart, coded
from p2psim.simulation.outcome import KEY
from p2psim.simulation.workspace import RunArrays


class StoredTables:
    """The tables of a folder that was finished before, as a source of rows like a `StoredPart`.

    Parameters
    ----------
    folder : Path
        The run folder.
    contents : sequence of str
        Content hash of each cell number that its tables use.
    """

    #: Row groups that are in memory at a time.
    most_open: ClassVar[int] = 4

    def __init__(self, folder: Path, contents: Sequence[str]):
        self.folder = folder
        self._numbers = {content: number for number, content in enumerate(contents)}
        self._places = cache(self._find_places)
        self._arrays = cache(self._open_arrays)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    def columns(self, name: str) -> tuple[pa.Schema, dict[str, pa.Array]]:
        """Schema of a table without cell, replica and swept columns, and the words of each text column, each once."""
        with pq.ParquetFile(self._path(name)) as file:
            schema = file.schema_arrow
            schema = pa.schema(list(schema)[schema.get_field_index("replica") + 1 :])
            texts = [field.name for field in schema if pa.types.is_dictionary(field.type)]
            words = {column: list[pa.Array]() for column in texts}
            for group in range(file.num_row_groups if texts else 0):
                rows = file.read_row_group(group, columns=texts)
                for column in texts:
                    words[column].append(pc.unique(rows[column]))
        return schema, {column: _distinct(several) for column, several in words.items()}

    def places(self, name: str, keys: Sequence[RunKey]) -> np.ndarray:
        """Where the rows of some simulations are.

        Returns
        -------
        ndarray
            A row for each stretch of rows: position of the simulation among `keys`, row group, first row in it, and
            number of rows; in the order of `keys`.
        """
        places = self._places(name)
        runs = ((self._numbers[cell], replica) for cell, replica in keys)
        found = [(at, *place) for at, run in enumerate(runs) for place in places.get(run, ())]
        # A table without rows is one all the same.
        return np.array(found or [(0,) * 4] * self._path(name).exists(), np.int64).reshape(-1, 4)

    def _find_places(self, name: str) -> dict[tuple[int, int], list[tuple[int, int, int]]]:
        """Row group, first row in it, and number of rows of each stretch, by cell and replica."""
        places = defaultdict[tuple[int, int], list[tuple[int, int, int]]](list)
        if not self._path(name).exists():
            return places
        with pq.ParquetFile(self._path(name)) as file:
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group, columns=["cell", "replica"])
                cell, replica = (rows.column(column).to_numpy() for column in ("cell", "replica"))
                edges = np.flatnonzero((np.diff(cell) != 0) | (np.diff(replica) != 0)) + 1
                for begin, end in pairwise([0, *edges.tolist(), len(cell)]):
                    if end > begin:
                        places[int(cell[begin]), int(replica[begin])].append((group, begin, end - begin))
        return places

    def table(self, name: str, group: int) -> pa.Table:
        """One row group."""
        with pq.ParquetFile(self._path(name)) as file:
            return file.read_row_group(group)

    def has_arrays(self, name: str) -> bool:
        """Whether some simulation has noise, or models."""
        return len(self._arrays(name)) > 0

    def array(self, name: str, key: RunKey) -> np.ndarray | None:
        """Noise or models of one simulation."""
        return self._arrays(name).get((self._numbers[key[0]], key[1]))

    def _open_arrays(self, name: str) -> RunArrays:
        path = self.folder / f"{name}.npz"
        return RunArrays(path if path.exists() else None)


Source = StoredPart | StoredTables


@dataclass(frozen=True, eq=False)
class Placed:
    """Simulations in the order of the tables: by cell, then replica.

    Attributes
    ----------
    keys : list of RunKey
        What they are.
    cells, replicas : ndarray of int32, of shape (simulations,)
        Their numbers in the tables.
    sources : list
        Where rows are, each once.
    owners : ndarray of int64, of shape (simulations,)
        Position among the sources of that which has a simulation.
    """

    keys: list[RunKey]
    cells: np.ndarray
    replicas: np.ndarray
    sources: list[Source]
    owners: np.ndarray

    def held(self, name: str) -> np.ndarray:
        """What a table holds: see `_RUN`."""
        several = []
        for owner, source in enumerate(self.sources):
            runs = np.flatnonzero(self.owners == owner)
            places = source.places(name, [self.keys[run] for run in runs])
            places[:, _RUN] = runs[places[:, _RUN]]
            several.append(places)
        together = np.concatenate([np.empty((0, 4), np.int64), *several])
        return together[np.argsort(together[:, _RUN], kind="stable")]

    def arrays(self, name: str) -> Iterator[tuple[str, np.ndarray]]:
        """Noise or models of all that have some, by cell and replica."""
        having = np.array([source.has_arrays(name) for source in self.sources], bool)
        for run in np.flatnonzero(having[self.owners]):
            array = self.sources[self.owners[run]].array(name, self.keys[run])
            if array is not None:
                yield f"{self.cells[run]}/{self.replicas[run]}", array


#: Columns of what is held, an array with a row for each stretch of rows in the order of the table: position of the
#: simulation, piece of its source's table, first row in that, number of rows.
_RUN, _PIECE, _START, _COUNT = range(4)


def _cut(held: np.ndarray) -> Iterator[np.ndarray]:
    """What each group of exactly `ROW_GROUP` rows holds; the last one is shorter, and empty if alone."""
    ends = np.cumsum(held[:, _COUNT])
    if not ends[-1]:
        yield held
    for first in range(0, int(ends[-1]), ROW_GROUP):
        last = min(first + ROW_GROUP, int(ends[-1]))
        begin, end = np.searchsorted(ends, first, "right"), np.searchsorted(ends, last)
        group = held[begin : end + 1].copy()
        before = first - (ends[begin] - held[begin, _COUNT])
        group[0, _START] += before
        group[0, _COUNT] -= before
        group[-1, _COUNT] -= ends[end] - last
        yield group


#: Columns and dictionaries of a table, the table, and which rows are wanted: where stretches begin, how long they are.
_Stretches = tuple[list[Any], pa.Table, np.ndarray, np.ndarray]


def groups(name: str, runs: Placed, held: np.ndarray) -> Iterator[tuple[np.ndarray, list[_Stretches]]]:
    """Rows of all simulations in turn, group by group: of which simulations they are, and where they lie."""

    def opening(owner: int, piece: int) -> tuple[list[Any], pa.Table]:
        rows = runs.sources[owner].table(name, piece)
        texts = (column for column in rows.columns if pa.types.is_dictionary(column.type))
        return [rows.schema, *(chunk.dictionary for column in texts for chunk in column.chunks)], rows

    opened = {most: lru_cache(most)(opening) for most in {source.most_open for source in runs.sources}}
    for group in _cut(held):
        pieces = list[_Stretches]()
        # Neighbours with the same source.
        of = np.stack([runs.owners[group[:, _RUN]], group[:, _PIECE]])
        for several in np.split(group, np.flatnonzero((of[:, 1:] != of[:, :-1]).any(axis=0)) + 1):
            owner, piece = int(runs.owners[several[0, _RUN]]), int(several[0, _PIECE])
            form, rows = opened[runs.sources[owner].most_open](owner, piece)
            pieces.append((form, rows, several[:, _START], several[:, _COUNT]))
        yield group, pieces


def _gathered(table: pa.Table, starts: np.ndarray, counts: np.ndarray) -> pa.Table:
    """Rows of several simulations; without copying them, where they follow each other."""
    ends = np.cumsum(counts)
    if (starts[1:] == starts[:-1] + counts[:-1]).all():
        return table.slice(int(starts[0]), int(ends[-1]))
    rows = np.arange(ends[-1]) + np.repeat(starts - (ends - counts), counts)
    return pc.take(table, number_column(rows), boundscheck=False)


def _conformed(rows: pa.Table, body: pa.Schema, dictionaries: dict[str, pa.Array]) -> pa.Table:
    """Rows with all columns of the whole table, nulls in those that they lack, and its dictionaries."""
    columns = []
    for field in body:
        dictionary = dictionaries.get(field.name)
        if field.name in rows.schema.names:
            chunks = rows.column(field.name).chunks
        else:
            chunks = [pa.nulls(rows.num_rows, field.type if dictionary is None else pa.string())]
        if dictionary is not None:
            chunks = [_recoded(chunk, dictionary) for chunk in chunks]
        alike = (chunk if chunk.type == field.type else chunk.cast(field.type) for chunk in chunks)
        columns.append(pa.chunked_array(alike, field.type))
    return pa.Table.from_arrays(columns, schema=body)


def _recoded(chunk: pa.Array, dictionary: pa.Array) -> pa.DictionaryArray:
    """The same text with the codes of another dictionary."""
    if not pa.types.is_dictionary(chunk.type):
        chunk = chunk.cast(pa.string()).dictionary_encode()
    if chunk.dictionary.equals(dictionary):
        return chunk  # as it lies in the file, which is mapped and not read
    codes = pc.take(pc.index_in(chunk.dictionary, dictionary), chunk.indices, boundscheck=False)
    return pa.DictionaryArray.from_arrays(codes, dictionary)


def _shortened(rows: pa.ChunkedArray) -> pa.ChunkedArray:
    """The rows of a group; with a dictionary of their own words, if that of all groups is longer than a group.

    A dictionary is written with every group: with the names of a million agents that would take longer than all else.
    """
    whole = rows.chunk(0) if len(rows) else None
    if not isinstance(whole, pa.DictionaryArray) or len(whole.dictionary) <= ROW_GROUP:
        return rows
    used = whole.indices.unique().drop_null()
    used = used.take(pc.sort_indices(used))
    codes = pc.index_in(whole.indices, used)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, whole.dictionary.take(used))], rows.type)


def read_table(path: Path, columns: Sequence[str] | None = None, check: bool = False) -> pa.Table:
    """Read a table of a run folder, or some columns of it; text with one sorted dictionary. May check its checksums."""
    with pq.ParquetFile(path, page_checksum_verification=check) as file:
        table = file.read(columns)
    for place, column in enumerate(table.columns):
        known = [chunk.dictionary for chunk in column.chunks] if pa.types.is_dictionary(column.type) else []
        if any(not one.equals(known[0]) for one in known):
            words = _sorted(_distinct(known))
            chunks = [_recoded(chunk, words) for chunk in column.chunks]
            table = table.set_column(place, table.field(place), pa.chunked_array(chunks, column.type))
    return table


#: Written in the metadata of every table.
TABLE_FORMAT = 2

#: Columns of the ledger that say that a number must not be taken at face value.
FLAG_MEANINGS = {
    "bound_violated": "a gradient was longer than the bound that the noise relies on: the claimed ε does not hold",
    "over_budget": "ε of the real records is above the budget",
    "not_private": "ε is infinite",
    "public_graph_assumed": "ε holds for whom the graph, or the features, are public: they were computed from records",
    "data_dependent_step": "the step size was computed from the records; ε holds given the step",
    "scaled_records": "the noise is that of more records than there are",
    "clairvoyant": "the noise depends on which releases will happen, which nobody could know beforehand",
}
FLAGS = tuple(FLAG_MEANINGS)

#: Columns that stand first, and last, in the tables whose columns depend on the scenario.
_FIRST = {
    "ledger": ("agent", "releases", "lost", "deliveries_lost", "budget", "epsilon_claimed"),
    "agents": ("index", "label", "group", "records", "degree"),
}
_LAST = {"ledger": ("violation_step", "violation_size", *FLAGS), "agents": ("budget",)}
#: Columns of numbers that stand before the others.
_NUMBERS = (("cell", pa.int32()), ("replica", pa.int32()))
#: Columns of the events whose values follow soon after themselves: several events happen at one time.
ALIKE = ("time", "release")
#: Tables that begin with the swept columns.
SWEPT_TABLES = ("metrics", "ledger")


def merge(name: str, runs: Placed, swept: dict[str, list[Any]], path: Path, threads: int = 1) -> bool:
    """Write one table.

    Parameters
    ----------
    name : str
        ``metrics``, ``ledger``, ``agents``, ``events`` or ``links``.
    runs : Placed
    swept : dict
        Name of each swept column, and its value in each cell.
    path : Path
        The Parquet file to write.
    threads : int
        That put rows together and pack them, while this one looks where they are.

    Returns
    -------
    bool
        False when no simulation has rows of this kind; nothing is written then.
    """
    held = runs.held(name)
    if not held.size:
        return False
    sources = [runs.sources[owner] for owner in np.unique(runs.owners[held[:, _RUN]])]
    body, dictionaries = _body(name, sources)
    columns = swept_columns(swept) if name in SWEPT_TABLES else {}
    metadata = {"p2psim.table": name, "p2psim.format": str(TABLE_FORMAT)}
    if name == "events":
        metadata[KEY.decode()] = str(FORMAT_VERSION)
    first = [*((key, column.type) for key, column in columns.items()), *_NUMBERS]
    schema = pa.schema([*map(pa.field, *zip(*first, strict=True)), *body], metadata=metadata)

    def put_together(group: np.ndarray, pieces: list[_Stretches]) -> pa.Table:
        # Of large parts these rows alone are copied; and short stretches that are alike together.
        forms = ([_gathered(*one) for _, *one in several] for _, several in groupby(pieces, itemgetter(0)))
        tables = (pa.concat_tables(several).combine_chunks() for several in forms)
        rows = pa.concat_tables([_conformed(table, body, dictionaries) for table in tables])
        each = (number[group[:, _RUN]] for number in (runs.cells, runs.replicas))
        ids = [number_column(np.repeat(several, group[:, _COUNT])) for several in each]
        ofs = (pc.take(column, ids[0], boundscheck=False) for column in columns.values())
        arrays = [*ofs, *ids, *map(_shortened, rows.combine_chunks().columns)]
        return pa.Table.from_arrays(arrays, schema=schema)

    makers = (partial(put_together, *found) for found in groups(name, runs, held))
    alike = [*(key for key, _ in first), *(ALIKE if name == "events" else ())]
    write_table(path, schema, makers, packing(schema, alike), threads)
    return True


#: Of columns that parts may hold in fewer bytes.
WIDE = {"metrics": {"step": pa.int64(), "agent": pa.int32()}, "events": dict.fromkeys(COUNTS, pa.int64())}


def _body(name: str, sources: Sequence[Source]) -> tuple[pa.Schema, dict[str, pa.Array]]:
    """Columns of all sources together, in their order, and the values of each text column."""
    schemas, texts = [], defaultdict[str, list[pa.Array]](list)
    for source in sources:
        schema, words = source.columns(name)
        schemas.append(schema.remove_metadata())
        for column, values in words.items():
            texts[column].append(values)
    merged = pa.unify_schemas(schemas, promote_options="permissive")
    names = sorted(merged.names, key=partial(rank, name)) if name in _FIRST else merged.names
    text = pa.dictionary(pa.int32(), pa.string())
    kinds = {column: text if column in texts else merged.field(column).type for column in names}
    fields = list((kinds | WIDE.get(name, {})).items())
    return pa.schema(fields), {column: _sorted(_distinct(several)) for column, several in texts.items()}


def _sorted(words: pa.Array) -> pa.Array:
    """Words in the order of UTF-8's bytes, which is that of characters."""
    return words.take(pc.sort_indices(words))


def _distinct(several: Sequence[pa.Array]) -> pa.Array:
    """Text that stands in any of several columns, each once, without nulls."""
    plain = [column.cast(pa.string()) for column in several]
    return pa.chunked_array(plain, pa.string()).drop_null().unique()


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


def swept_columns(swept: dict[str, list[Any]]) -> dict[str, pa.Array]:
    """One array per swept key, with one value per cell: numeric where all are numbers, else text."""
    columns: dict[str, pa.Array] = {}
    for key, values in swept.items():
        kinds = {type(value) for value in values}
        if kinds <= {bool} or kinds <= {int, float}:
            columns[key] = number_column(np.array(values))
            continue
        columns[key] = coded([value if value is None else _text(value) for value in values])
    return columns


def _text(value: Any) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
