"""npz archives that are written one array at a time and whose bytes depend on their content alone."""

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

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
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def member_names(path: Path) -> list[str]:
    """Names of the arrays in an archive."""
    with zipfile.ZipFile(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def read_member(path: Path, name: str) -> np.ndarray:
    """Read one array."""
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as member:
        array: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        return array


class RunArrays(Mapping[tuple[int, int], Any]):
    """The arrays of ``noise.npz`` or ``models.npz``, by (cell, replica), each read when asked for."""

    def __init__(self, path: Path | None):
        self._path = path
        self._names = member_names(path) if path is not None else []

    def __getitem__(self, run: tuple[int, int]) -> np.ndarray:
        name = f"{run[0]}/{run[1]}"
        if self._path is None or name not in self._names:
            raise KeyError(run)
        return read_member(self._path, name)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for name in self._names:
            cell, replica = name.split("/")
            yield int(cell), int(replica)

    def __len__(self) -> int:
        return len(self._names)
