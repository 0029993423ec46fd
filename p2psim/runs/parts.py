"""What one batch of simulations leaves behind: a directory ``parts/NAME`` of a run folder.

A part holds Arrow files rather than Parquet: merging takes the rows of one (cell, replica) at a time from
many parts, which a memory map gives for nothing and a compressed file only by being read again and again.
Parts know cells by content hash alone; numbers and swept columns are given when they are merged.
"""

import io
import json
import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from p2psim.core.errors import FolderError, first_line
from p2psim.core.events import number_column, numbers_of, text_column
from p2psim.runs.seals import DamagedError, of_one_folder, opened, sealed
from p2psim.scenario.notices import Warned
from p2psim.simulation.outcome import Outcome
from p2psim.simulation.workspace import members_of, read_member, write_archive

#: Version of the layout of parts; parts of another version are refused.
PART_FORMAT = 4
#: What tells a part, and says what is in it.
LISTING = "part.json"
TABLES = ("metrics", "ledger", "agents", "events", "links")
ARCHIVES = ("noise", "models")

#: Content hash of a cell, and replica: what names one simulation whatever the grid it stands in.
RunKey = tuple[str, int]


@dataclass(frozen=True)
class EncodedPart:
    """A batch, as what the files of its directory hold: a worker elsewhere needs no access to the run folder.

    Attributes
    ----------
    files : dict of str to Table, or arrays with their names
        They go into a file without being put together in memory before.
    warnings : dict
        By message, how often each cell gave it.
    runs : dict
        From `RunKey` to what ``part.json`` says of it.
    data : dict of str to bytes
        Prepared data to be kept, by problem, as archives.
    """

    files: dict[str, pa.Table | list[tuple[str, np.ndarray]]]
    warnings: dict[str, dict[str, int]]
    runs: dict[RunKey, dict[str, Any]]
    data: dict[str, bytes]

    @property
    def size(self) -> int:
        """Bytes of tables and arrays in memory."""
        arrays = [[(name, held)] if isinstance(held, pa.Table) else held for name, held in self.files.items()]
        return sum(array.nbytes for several in arrays for _, array in several)

    def put(self, path: Path) -> "StoredPart":
        """Write the directory, which must not exist yet."""
        path.mkdir()
        listing: dict[str, Any] = {"format": PART_FORMAT, "runs": list(self.runs.values())}
        listing |= {"warnings": self.warnings, "files": {}}
        for name, content in self.files.items():
            with _Summed(path / name) as stream:
                if isinstance(content, pa.Table):
                    with pa.ipc.new_file(stream, content.schema) as writer:
                        writer.write_table(content)
                else:
                    write_archive(stream, content)
                listing["files"][name] = [stream.tell(), stream.checksum]
        (path / LISTING).write_text(sealed(json.dumps(listing)), encoding="utf-8")
        return StoredPart(path, self.runs, _warned(self.warnings), self.data)


class _Summed(io.BufferedWriter):
    """A file that is written, and the checksum of what has been written so far."""

    def __init__(self, path: Path):
        super().__init__(io.FileIO(path, "wb"))
        self.checksum = 0

    def write(self, content: Any) -> int:
        """Write bytes."""
        self.checksum = zlib.crc32(content, self.checksum)
        return super().write(content)

    def seek(self, *_: int) -> int:
        """Refuse, so that an archive does not go back to what is in the checksum already."""
        raise io.UnsupportedOperation("seek")


def encode(
    finished: Sequence[tuple[RunKey, Outcome, float]], data: dict[str, bytes], said: Sequence[str] = ()
) -> EncodedPart:
    """Encode a batch.

    Parameters
    ----------
    finished : sequence of (RunKey, Outcome, float)
        At least one: which simulation ended, what it gave, and its wall time in seconds.
    data : dict
        Prepared data to be kept, by problem, as archives.
    said : sequence of str
        Warnings of every simulation, beside those of its outcome.
    """
    outcomes = [outcome for _, outcome, _ in finished]
    files: dict[str, pa.Table | list[tuple[str, np.ndarray]]] = {
        f"{name}.arrow": _joined(pieces, len(outcomes))
        for name, pieces in tables_of(outcomes).items()
        if pieces
    }
    for name in ARCHIVES:
        members = [(f"{cell}/{replica}", getattr(outcome, name)) for (cell, replica), outcome, _ in finished]
        arrays = [(member, array) for member, array in members if array is not None]
        if arrays:
            files[f"{name}.npz"] = arrays
    runs = {
        (cell, replica): {
            "content": cell,
            "replica": replica,
            "ended": outcome.ended,
            "seconds": round(seconds, 6),
            "problem": outcome.problem_id,
            "rows": _rows(outcome),
        }
        for (cell, replica), outcome, seconds in finished
    }
    # By message, then by cell.
    warnings = defaultdict[str, Counter[str]](Counter)
    for (cell, _), outcome, _ in finished:
        for warning in (*outcome.warnings, *said):
            warnings[warning][cell] += 1
    return EncodedPart(files, dict(sorted(warnings.items())), runs, data)


def archive_bytes(members: Iterable[tuple[str, np.ndarray]]) -> bytes:
    """Arrays as the content of an archive."""
    stream = io.BytesIO()
    write_archive(stream, members)
    return stream.getvalue()


def tables_of(outcomes: Sequence[Outcome]) -> dict[str, list[pa.Table]]:
    """Tables of simulations, one after the other: of each kind those whose pieces have the same columns."""
    return {
        "metrics": [_metrics(outcomes)],
        "ledger": _tables([outcome.ledger for outcome in outcomes]),
        "agents": _tables([outcome.agents for outcome in outcomes]),
        "events": [table for outcome in outcomes for table in outcome.columns],
        "links": _tables([outcome.links for outcome in outcomes if outcome.links is not None]),
    }


def _rows(outcome: Outcome) -> dict[str, int]:
    """How many rows a simulation has in each table; −1 where it has none to give."""
    return {
        "metrics": sum(series.value.size for series in outcome.series),
        "ledger": next(iter(outcome.ledger.values())).size,
        "agents": next(iter(outcome.agents.values())).size,
        "events": sum(table.num_rows for table in outcome.columns) if outcome.columns else -1,
        "links": -1 if outcome.links is None else outcome.links["a"].size,
    }


def _joined(pieces: Sequence[pa.Table], simulations: int) -> pa.Table:
    """One table; rows of several simulations, which may be read in another order, lie side by side."""
    table = pa.concat_tables(pieces, promote_options="permissive").unify_dictionaries()
    return table.combine_chunks() if simulations > 1 else table


def coded(texts: Sequence[str | None]) -> pa.DictionaryArray:
    """Text as a column whose dictionary is sorted."""
    known = sorted(text for text in set(texts) if text is not None)
    codes: dict[str | None, int] = {text: code for code, text in enumerate(known)}
    found = np.array([codes.get(text, -1) for text in texts], np.int32)
    return pa.DictionaryArray.from_arrays(number_column(found, found >= 0), text_column(known))


def _metrics(outcomes: Sequence[Outcome]) -> pa.Table:
    """Table of the recorded metrics, one simulation after the other.

    Steps have four bytes where these hold them, and agents none where there are none: much of a run's time goes into
    fresh pages for what it writes.
    """
    series = [entry for outcome in outcomes for entry in outcome.series]
    sizes = [entry.value.size for entry in series]
    agents = np.array([-1 if one.agent is None else one.agent for one in series], np.int32)
    of_agents = np.repeat(agents, sizes) if (agents >= 0).any() else None
    last = max((int(entry.step.max(initial=0)) for entry in series), default=0)

    def joined(name: str, kind: type) -> pa.Array:
        pieces: list[np.ndarray] = [np.asarray(getattr(entry, name), kind) for entry in series]
        return number_column(np.concatenate([np.empty(0, kind), *pieces]))

    def words(name: str) -> pa.Array:
        column = coded([getattr(entry, name) for entry in series])
        codes = numbers_of(column.indices).astype(np.min_scalar_type(-len(column.dictionary) - 1))
        return pa.DictionaryArray.from_arrays(number_column(np.repeat(codes, sizes)), column.dictionary)

    return pa.table(
        {
            "step": joined("step", np.int32 if last < 2**31 else np.int64),
            "time": joined("time", np.float64),
            "agent": pa.nulls(sum(sizes)) if of_agents is None else number_column(of_agents, of_agents >= 0),
            "model": words("model"),
            "metric": words("metric"),
            "value": joined("value", np.float64),
        }
    )


def _tables(simulations: Iterable[Mapping[str, np.ndarray]]) -> list[pa.Table]:
    """Tables of plain columns, each of simulations that follow each other and have the same ones."""
    alike = groupby(simulations, lambda columns: [(name, one.dtype.kind) for name, one in columns.items()])
    return [_table(list(several)) for _, several in alike]


def _table(simulations: Sequence[Mapping[str, np.ndarray]]) -> pa.Table:
    """One table of plain columns; text becomes a dictionary column, agent numbers int32."""
    arrays: dict[str, Any] = {}
    for name in simulations[0]:
        values = np.concatenate([columns[name] for columns in simulations])
        if values.dtype.kind in "UOT":
            arrays[name] = text_column(values.tolist()).dictionary_encode()
        else:
            arrays[name] = number_column(values)
        if name in ("agent", "index"):
            arrays[name] = arrays[name].cast(pa.int32())
    return pa.table(arrays)


def _words_in(column: pa.DictionaryArray) -> pa.Array:
    """Words of a column, each once; codes of a byte are looked for, which ends early for those that are there."""
    codes = column.indices
    if codes.type != pa.int8() or codes.null_count:
        return column.unique().cast(pa.string())
    there = codes.buffers()[1].slice(codes.offset, len(codes)).to_pybytes()
    return column.dictionary.filter(
        number_column(np.array([code in there for code in range(len(column.dictionary))]))
    )


@dataclass(frozen=True, eq=False)
class StoredPart:
    """A part on disk, checked against its listing.

    Attributes
    ----------
    path : Path
        Its directory.
    runs : dict
        From `RunKey` to what ``part.json`` says of it.
    warnings : dict of str to Warned
        Messages, how often, and in which cells.
    data : dict of str to bytes
        Prepared data to be kept, by problem, as archives, until they are; the directory does not hold them.
    """

    path: Path
    runs: dict[RunKey, dict[str, Any]]
    warnings: dict[str, Warned]
    data: dict[str, bytes] = field(default_factory=dict)

    #: Parts whose maps are open at a time.
    most_open: ClassVar[int] = 1024

    def put(self, path: Path) -> "StoredPart":
        """Move the directory to a name beside its own, which must not exist yet."""
        os.rename(self.path, path)
        return replace(self, path=path)

    @cached_property
    def _numbers(self) -> dict[RunKey, int]:
        return {key: number for number, key in enumerate(self.runs)}

    def table(self, name: str, piece: int = 0) -> pa.Table:
        """The whole table, which is its only piece, in memory that the operating system maps."""
        with pa.memory_map(str(self.path / f"{name}.arrow")) as source:
            return pa.ipc.open_file(source).read_all()

    def columns(self, name: str) -> tuple[pa.Schema, dict[str, pa.Array]]:
        """Schema of a table, and the words of each text column, each once."""
        table = self.table(name)
        texts = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
        words = ([*map(_words_in, table.column(column).chunks)] for column in texts)
        return table.schema, {
            column: pa.chunked_array(several, pa.string()).unique()
            for column, several in zip(texts, words, strict=True)
        }

    def places(self, name: str, keys: Sequence[RunKey]) -> np.ndarray:
        """Where the rows of some simulations are in a table; as of `p2psim.runs.tables.StoredTables`."""
        rows = np.array([run["rows"][name] for run in self.runs.values()])
        counts = np.maximum(rows, 0)
        numbers = np.array([self._numbers[key] for key in keys], np.int64)
        zeros, starts = np.zeros_like(numbers), np.cumsum(counts) - counts
        places = np.stack([np.arange(len(keys)), zeros, starts[numbers], counts[numbers]], axis=1)
        return places[rows[numbers] >= 0]

    def has_arrays(self, name: str) -> bool:
        """Whether some simulation has noise, or models."""
        return len(self._members[name]) > 0

    def array(self, name: str, key: RunKey) -> np.ndarray | None:
        """Noise or models of one simulation."""
        place = self._members[name].get(f"{key[0]}/{key[1]}")
        return None if place is None else read_member(self.path / f"{name}.npz", place)

    @cached_property
    def _members(self) -> dict[str, dict[str, int]]:
        """Arrays in each archive, looked up for every simulation; most parts have none."""
        paths = {name: self.path / f"{name}.npz" for name in ARCHIVES}
        return {name: members_of(path) if path.exists() else {} for name, path in paths.items()}


def _warned(warnings: Mapping[str, Mapping[str, int]]) -> dict[str, Warned]:
    return {message: Warned(sum(times.values()), frozenset(times)) for message, times in warnings.items()}


def read_part(path: Path) -> StoredPart:
    """Open a part and check that its files are those that were written.

    Raises
    ------
    FolderError
        If one is missing or damaged; names it and the cure.
    """
    listing_path = path / LISTING
    try:
        with opened(listing_path) as listing:
            version, entries, _ = listing["format"], of_one_folder(listing["files"]), listing["sha256"]
            runs = {(run["content"], int(run["replica"])): run for run in listing["runs"]}
            warnings = _warned(listing["warnings"])
    except (OSError, DamagedError) as error:
        raise FolderError(f"{listing_path}: damaged ({first_line(error)}); {_cure(path)}") from None
    if version != PART_FORMAT:
        raise FolderError(f"{listing_path}: format {version}, this p2psim reads {PART_FORMAT}; {_cure(path)}")
    for name, (size, checksum) in entries.items():
        file = path / name
        if not file.is_file():
            raise FolderError(f"{file}: missing; {_cure(path)}")
        if file.stat().st_size != size or _checksum(file) != checksum:
            raise FolderError(f"{file}: damaged; {_cure(path)}")
    return StoredPart(path, runs, warnings)


def _checksum(path: Path) -> int:
    with pa.memory_map(str(path)) as source:
        return zlib.crc32(source.read_buffer())


def _cure(path: Path) -> str:
    return f"remove {path} and run again (only that batch is repeated), or use another --out"
