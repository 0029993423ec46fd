"""Prepared problems and run arrays on disk.

Problems are prepared once, and all workers share them through memory maps. Archives (npz) are written one array at a
time, and their bytes depend on their content alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import uuid
import zipfile
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from p2psim.core.compiled import unwritten
from p2psim.core.process import one_thread
from p2psim.data.prepare import prepare
from p2psim.scenario.cells import content
from p2psim.scenario.fields import explicit
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.computable import computed
from p2psim.simulation.prepared import PreparedData

#: Problems that a process keeps open. Cells of one replica follow each other, and few differ in their data.
_OPEN = 8

#: Identifiers that a process remembers.
_KNOWN = 65_536


_KNOWN_OF_CASE = ("labels", "groups", "x_l1", "x_max", "y_max", "fitted", "warnings")


class Workspace:
    """Cases by what determines them; those that no replica redraws lie in a directory.

    Parameters
    ----------
    directory : Path or None
        May be shared by several processes; with None, cases are kept in memory alone.
    alone : bool
        Whether no other process reads them: a case is then written when it is no longer kept open, and not before.
    """

    def __init__(self, directory: Path | None, alone: bool = False):
        self.directory, self._alone = directory, alone
        self._open: OrderedDict[str, PreparedData] = OrderedDict()
        self._unwritten: set[str] = set()
        # Identifiers by the ids of the sections, which cells share; the scenario is kept, so that the ids stay theirs.
        self._known: OrderedDict[tuple[int | None, ...], tuple[Scenario, str]] = OrderedDict()

    def case(self, scenario: Scenario, replica: int) -> PreparedData:
        """Case of a scenario (without a sweep) in one replica; on disk from now on, unless replicas draw their own.

        Raises
        ------
        MeaningError, MissingSourceError
            If the data cannot be prepared as the scenario says.
        """
        problem_id = self._identify(scenario, replica)
        if problem_id in self._open:
            self._open.move_to_end(problem_id)
            return self._open[problem_id]
        place = None if self.directory is None or scenario.data.redrawn else self.directory / problem_id
        if place is not None and place.is_dir():
            case = _read(place)
        else:
            case = _make(problem_id, scenario, replica)
            if place is not None and self._alone:
                self._unwritten.add(problem_id)
            elif place is not None:
                _write(case, place)
                case = _read(place)
        self._open[problem_id] = case
        while len(self._open) > _OPEN:
            other, oldest = self._open.popitem(last=False)
            if self.directory is not None and other in self._unwritten:
                self._unwritten.remove(other)
                _write(oldest, self.directory / other)
        return case

    def problems(self) -> list[str]:
        """Identifiers of the cases on disk, or kept for this process alone."""
        if self.directory is None or not self.directory.is_dir():
            return []
        folders = {path.name for path in self.directory.iterdir() if path.is_dir()}
        return sorted(name for name in folders | self._unwritten if "." not in name)

    def arrays(self, problem_id: str) -> dict[str, np.ndarray]:
        """Arrays of a case, for the run folder.

        Raises
        ------
        KeyError
            If the case is neither on disk nor open.
        """
        if problem_id in self._open:
            return self._open[problem_id].arrays
        if self.directory is None or not (self.directory / problem_id).is_dir():
            raise KeyError(problem_id)
        return _read(self.directory / problem_id).arrays

    def fitted(self, scenario: Scenario) -> dict[str, Any]:
        """What the preparation found; empty for data that every replica redraws."""
        return {} if scenario.data.redrawn else self.case(scenario, 0).fitted

    def _identify(self, scenario: Scenario, replica: int) -> str:
        sections = (scenario.network, scenario.data, scenario.learning, scenario.record)
        alone = id(scenario) if "data" in scenario.independent else None
        key = *map(id, sections), scenario.seed, replica if scenario.data.redrawn else None, alone
        if key not in self._known:
            self._known[key] = scenario, _identify(scenario, replica)
            while len(self._known) > _KNOWN:
                self._known.popitem(last=False)
        return self._known[key][1]


def _write(case: PreparedData, place: Path) -> None:
    """Write aside and rename, so that others find the whole or nothing."""
    aside = place.with_name(f"{case.problem_id}.{uuid.uuid4().hex}")
    aside.mkdir(parents=True)
    for name, array in case.arrays.items():
        np.save(aside / f"{name}.npy", array, allow_pickle=False)
    (aside / "case.json").write_text(json.dumps({key: getattr(case, key) for key in _KNOWN_OF_CASE}))
    try:
        os.rename(aside, place)
    except OSError:
        if not place.is_dir():
            raise
        shutil.rmtree(aside)  # someone else was faster; the bytes are the same


def _read(place: Path) -> PreparedData:
    known = json.loads((place / "case.json").read_text())
    for key in ("labels", "groups", "warnings"):
        known[key] = tuple(known[key]) if known[key] is not None else None
    files = sorted(place.glob("*.npy"))
    arrays = {path.stem: np.load(path, mmap_mode="r").view(np.ndarray) for path in files}
    return PreparedData(problem_id=place.name, arrays=arrays, **known)


def _identify(scenario: Scenario, replica: int) -> str:
    _, names = scenario.network.topology.size_and_names()
    parts = {
        "data": explicit(scenario.data, digests=True),
        "seed": scenario.data.seed if scenario.data.seed is not None else scenario.seed,
        "replica": replica if scenario.data.redrawn else None,
        "variant": data_variant(scenario),
        "agents": scenario.network.topology.size,
        **({} if names is None else {"names": names}),
        "family": adapter_of(scenario).identify(scenario),
    }
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=16).hexdigest()


def data_variant(scenario: Scenario) -> str:
    """What tells this cell's data draws apart from those of others; empty when they are shared."""
    return content(scenario) if "data" in scenario.independent else ""


def _make(problem_id: str, scenario: Scenario, replica: int) -> PreparedData:
    agents, names = scenario.network.topology.size_and_names()
    agents = None if scenario.data.names_owners else agents
    prepared = prepare(scenario.data, scenario.seed, replica, data_variant(scenario), agents, names)
    scenario.network.topology.check_owners(prepared.labels)
    with one_thread():
        adapter = adapter_of(scenario)
        arrays, warnings = computed(
            scenario, prepared.X, prepared.y, lambda: adapter.arrays(scenario, prepared), arrays=True
        )
    # As arrays that are read from disk are: kernels are compiled for one kind or the other.
    arrays = {name: unwritten(array) for name, array in arrays.items()}
    known = {key: getattr(prepared, key) for key in _KNOWN_OF_CASE}
    return PreparedData(problem_id, arrays, **known | {"warnings": prepared.warnings + warnings})


#: The time stamp of every member, so that equal arrays make equal files.
_STAMP = (1980, 1, 1, 0, 0, 0)


def write_archive(stream: IO[bytes], members: Iterable[tuple[str, np.ndarray]]) -> None:
    """Write arrays in the format of ``numpy.savez``, holding one of them in memory at a time.

    Parameters
    ----------
    stream : binary file
        Where to.
    members : iterable of (str, ndarray)
        In the order in which they are to stand; no object arrays.
    """
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in members:
            entry = zipfile.ZipInfo(f"{name}.npy", _STAMP)
            entry.external_attr = 0o600 << 16
            entry.create_system = 3
            with archive.open(entry, "w", force_zip64=True) as member:
                _write_array(member, np.asanyarray(array))


def _write_array(member: IO[bytes], array: np.ndarray) -> None:
    """Write an array as ``numpy.save`` does, from where it lies in memory: NumPy would copy it twice."""
    if not array.flags.c_contiguous or array.dtype.hasobject or not array.size:
        np.lib.format.write_array(member, array, allow_pickle=False)
        return
    np.lib.format.write_array_header_1_0(member, np.lib.format.header_data_from_array_1_0(array))
    member.write(array.reshape(-1).view(np.uint8).data)


def members_of(path: Path) -> dict[str, int]:
    """Names of the arrays in an archive of `write_archive`, and the place in the file at which each begins."""
    places = {}
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            file.seek(entry.header_offset + 26)  # of a header of 30 bytes, before a name and extra fields
            name, extra = struct.unpack("<HH", file.read(4))
            places[entry.filename.removesuffix(".npy")] = entry.header_offset + 30 + name + extra
    return places


def read_member(path: Path, place: int) -> np.ndarray:
    """Read the array at a place of an archive whose checksum is known to be right: its own is not computed again."""
    with path.open("rb") as file:
        file.seek(place)
        return np.lib.format.read_array(file, allow_pickle=False)


class RunArrays(Mapping[tuple[int, int], Any]):
    """The arrays of ``noise.npz`` or ``models.npz``, by (cell, replica), each read when asked for."""

    def __init__(self, path: Path | None):
        self._path = path
        # NumPy's own reader would leave the file open until it is collected.
        self._archive = None if path is None else zipfile.ZipFile(path)
        names = () if self._archive is None else self._archive.namelist()
        runs = ((name, name.removesuffix(".npy").split("/")) for name in names)
        self._names = {(int(cell), int(replica)): name for name, (cell, replica) in runs}

    def __getitem__(self, run: tuple[int, int]) -> np.ndarray:
        name = self._names[run]
        assert self._archive is not None
        with self._archive.open(name) as member:
            return np.lib.format.read_array(member, allow_pickle=False)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __reduce__(self) -> tuple[type[RunArrays], tuple[Path | None]]:
        """Open the archive anew in the other process."""
        return RunArrays, (self._path,)
