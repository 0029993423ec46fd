"""What one batch of simulations leaves behind: a directory ``parts/NAME`` of a run folder.

A part holds Arrow files rather than Parquet: merging takes the rows of one (cell, replica) at a time from
many parts, which a memory map gives for nothing and a compressed file only by being read again and again.
Parts know cells by content hash alone; numbers and swept columns are given when they are merged.
"""

import io
import json
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.errors import FolderError
from p2psim.study.archives import read_member, write_archive
from p2psim.study.notices import Warned

if TYPE_CHECKING:
    import pyarrow as pa

    from p2psim.study.outcome import Outcome

#: Version of the layout of parts; parts of another version are refused.
PART_FORMAT = 2
TABLES = ("metrics", "ledger", "agents", "events")
ARCHIVES = ("noise", "models")
#: Fields of an event in the order of the columns of ``events.parquet``.
EVENT_COLUMNS = ("seq", "time", "kind", "agent", "peer", "version", "cause", "release", "outcome")

#: Content hash of a cell, and replica: what names one simulation whatever the grid it stands in.
RunKey = tuple[str, int]


@dataclass(frozen=True)
class Finished:
    """One simulation that ended.

    Attributes
    ----------
    key : RunKey
        Which.
    outcome : Outcome
        What it gave.
    seconds : float
        Wall time.
    """

    key: RunKey
    outcome: "Outcome"
    seconds: float


@dataclass(frozen=True)
class Part:
    """A batch, encoded as the files of its directory, so that a worker needs no access to the run folder."""

    files: dict[str, bytes]
    runs: tuple[RunKey, ...]
    problems: tuple[str, ...] = ()
    data: dict[str, bytes] = field(default_factory=dict)


def encode(finished: Sequence[Finished]) -> Part:
    """Encode a batch.

    Parameters
    ----------
    finished : sequence of Finished
        At least one.
    """
    outcomes = [one.outcome for one in finished]
    tables = {
        "metrics": [_metrics(outcome) for outcome in outcomes],
        "ledger": [_columns(outcome.ledger) for outcome in outcomes],
        "agents": [_columns(outcome.agents) for outcome in outcomes],
        "events": [None if outcome.events is None else _events(outcome.events) for outcome in outcomes],
    }
    files: dict[str, bytes] = {}
    for name, pieces in tables.items():
        present = [piece for piece in pieces if piece is not None]
        if present:
            files[f"{name}.arrow"] = _arrow_bytes(present)
    for name in ARCHIVES:
        members = [(f"{one.key[0]}/{one.key[1]}", getattr(one.outcome, name)) for one in finished]
        arrays = [(member, array) for member, array in members if array is not None]
        if arrays:
            stream = io.BytesIO()
            write_archive(stream, arrays)
            files[f"{name}.npz"] = stream.getvalue()
    runs = [
        {
            "content": one.key[0],
            "replica": one.key[1],
            "ended": one.outcome.ended,
            "seconds": round(one.seconds, 6),
            "problem": one.outcome.problem_id,
            "rows": {
                name: -1 if pieces[i] is None else pieces[i].num_rows for name, pieces in tables.items()
            },
        }
        for i, one in enumerate(finished)
    ]
    # By message, then by cell.
    warnings: dict[str, Counter[str]] = {}
    for one in finished:
        for warning in one.outcome.warnings:
            warnings.setdefault(warning, Counter())[one.key[0]] += 1
    listing = {
        "format": PART_FORMAT,
        "runs": runs,
        "warnings": dict(sorted(warnings.items())),
        "files": {name: [len(content), zlib.crc32(content)] for name, content in files.items()},
    }
    files["part.json"] = json.dumps(listing, indent=1).encode()
    problems = tuple(dict.fromkeys(outcome.problem_id for outcome in outcomes))
    return Part(files, tuple(one.key for one in finished), problems)


def _arrow_bytes(pieces: "Sequence[pa.Table]") -> bytes:
    import pyarrow as pa

    table = pa.concat_tables(pieces, promote_options="permissive").unify_dictionaries().combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _names(values: Sequence[str], counts: Sequence[int]) -> "pa.DictionaryArray":
    """Dictionary column in which each value stands as often as its count says."""
    import pyarrow as pa

    known = sorted(set(values))
    codes = np.repeat(np.array([known.index(value) for value in values], dtype=np.int32), counts)
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(known, pa.string()))


def _metrics(outcome: "Outcome") -> "pa.Table":
    import pyarrow as pa

    series = outcome.series
    counts = [len(one.value) for one in series]

    def joined(name: str, kind: type) -> np.ndarray:
        arrays: list[np.ndarray] = [np.asarray(getattr(one, name), dtype=kind) for one in series]
        return np.concatenate(arrays) if arrays else np.empty(0, kind)

    agents = np.repeat(np.array([0 if s.agent is None else s.agent for s in series], dtype=np.int32), counts)
    absent = np.repeat(np.array([s.agent is None for s in series], dtype=bool), counts)
    return pa.table(
        {
            "step": joined("step", np.int64),
            "time": joined("time", np.float64),
            "agent": pa.array(agents, pa.int32(), mask=absent),
            "model": _names([s.model for s in series], counts),
            "metric": _names([s.metric for s in series], counts),
            "value": joined("value", np.float64),
        }
    )


def _columns(columns: Mapping[str, np.ndarray]) -> "pa.Table":
    """Table of plain columns; text becomes a dictionary column, agent numbers int32."""
    import pyarrow as pa

    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        if values.dtype.kind in "UOT":
            encoded = pa.array(values.tolist(), pa.string()).dictionary_encode()
            arrays[name] = encoded
        else:
            arrays[name] = pa.array(np.ascontiguousarray(values))
        if name in ("agent", "index"):
            arrays[name] = arrays[name].cast(pa.int32())
    return pa.table(arrays)


def _events(events: np.ndarray) -> "pa.Table":
    import pyarrow as pa

    from p2psim.network.events import KINDS, OUTCOMES

    arrays: dict[str, Any] = {}
    for name in EVENT_COLUMNS:
        values = np.ascontiguousarray(events[name])
        if name in ("kind", "outcome"):
            known = pa.array(KINDS if name == "kind" else OUTCOMES, pa.string())
            arrays[name] = pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int32)), known)
        else:
            arrays[name] = pa.array(values)
    return pa.table(arrays)


@dataclass(frozen=True)
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
    """

    path: Path
    runs: dict[RunKey, dict[str, Any]]
    warnings: dict[str, Warned]

    @cached_property
    def _starts(self) -> dict[str, dict[RunKey, tuple[int, int]]]:
        starts: dict[str, dict[RunKey, tuple[int, int]]] = {}
        for table in TABLES:
            place = 0
            starts[table] = {}
            for key, run in self.runs.items():
                rows = run["rows"][table]
                if rows >= 0:
                    starts[table][key] = (place, rows)
                    place += rows
        return starts

    def table(self, name: str) -> "pa.Table | None":
        """The whole table, in memory that the operating system maps; None when the part has none."""
        import pyarrow as pa

        path = self.path / f"{name}.arrow"
        if not path.exists():
            return None
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).read_all()

    def place(self, name: str, key: RunKey) -> tuple[int, int] | None:
        """First row and number of rows of one simulation in a table."""
        return self._starts[name].get(key)

    def array(self, name: str, key: RunKey) -> np.ndarray | None:
        """Noise or models of one simulation."""
        path = self.path / f"{name}.npz"
        try:
            return read_member(path, f"{key[0]}/{key[1]}")
        except (KeyError, FileNotFoundError):
            return None


def read_part(path: Path) -> StoredPart:
    """Open a part and check that its files are those that were written.

    Raises
    ------
    FolderError
        If one is missing or damaged; names it and the cure.
    """
    listing_path = path / "part.json"
    try:
        listing = json.loads(listing_path.read_text(encoding="utf-8"))
        version, entries = listing["format"], listing["files"]
        runs = {(run["content"], int(run["replica"])): run for run in listing["runs"]}
        warnings = {
            message: Warned(sum(times.values()), frozenset(times))
            for message, times in listing["warnings"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise FolderError(f"{listing_path}: damaged ({error}); {_cure(path)}") from None
    if version != PART_FORMAT:
        raise FolderError(f"{listing_path}: format {version}, this p2psim reads {PART_FORMAT}; {_cure(path)}")
    for name, (size, checksum) in entries.items():
        file = path / name
        if not file.is_file():
            raise FolderError(f"{file}: missing; {_cure(path)}")
        content = file.read_bytes() if file.stat().st_size == size else b""
        if len(content) != size or zlib.crc32(content) != checksum:
            raise FolderError(f"{file}: damaged; {_cure(path)}")
    return StoredPart(path, runs, warnings)


def _cure(path: Path) -> str:
    return f"remove {path} and run again (only that batch is repeated), or use another --out"
