"""The run folder on disk: which scenario it belongs to, who may write to it, and how its files are written.

While a study runs, each finished batch is one directory under ``parts/`` (see :mod:`p2psim.runs.parts`). At the end
everything is written to ``parts/final`` and moved from there; the renaming of that directory is the moment in which the
study is finished. A run that is killed before it continues from the parts; one that is killed after it moves the rest.
A list of the figures that p2psim drew says which may be removed.
"""

import contextlib
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from p2psim.core import files
from p2psim.core.errors import FolderError, first_line
from p2psim.core.faults import nearest
from p2psim.runs import manifest
from p2psim.runs.manifest import Manifest, RunEntry
from p2psim.runs.parts import TABLES, EncodedPart, RunKey, StoredPart, read_part
from p2psim.runs.seals import DamagedError, Print, damage, opened, print_of, sealed
from p2psim.runs.system import take_lock
from p2psim.runs.tables import Source, StoredTables
from p2psim.scenario.notices import Warned
from p2psim.simulation.outcome import check_event_format
from p2psim.simulation.workspace import write_archive

#: The file that a run holds while it writes.
LOCK = ".lock"
SCENARIO = "scenario.yaml"
#: What ``p2psim verify`` leaves.
VERDICT = "verified.json"
RESULTS = (*(f"{name}.parquet" for name in TABLES), "noise.npz", "data.npz", "models.npz")
PARTS = "parts"
FINAL = "final"
DATA = "data"
#: Folder of the validation study that chose the values of a tuned key.
TUNING = "tuning"
_DONE = ".parts.done"
#: Beginning of a cell's hash, replica, and a number where there are several.
_PART_NAME = re.compile(r"[0-9a-f]{16}-\d+(-\d+)?")
#: What a run may have left before its manifest was written.
_BEFORE_MANIFEST = {LOCK, f".{manifest.NAME}.aside", TUNING}


def inspect(folder: Path, overwrite: bool = False) -> Manifest | None:
    """See whether a folder may be used; changes nothing.

    Parameters
    ----------
    folder : Path
        Where results are to go.
    overwrite : bool
        Whether the results that it holds may be of an earlier format, since they will be replaced.

    Returns
    -------
    Manifest or None
        None when the folder is new or empty.

    Raises
    ------
    FolderError
        If it is not a folder, or foreign, or damaged.
    """
    place = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if not place.exists():
        raise FolderError(f"{folder}: {place} is a link to nothing")
    if not place.is_dir():
        raise FolderError(f"{folder}: {place} is a file, not a folder; choose another --out")
    if not folder.exists():
        return None
    if not (folder / manifest.NAME).exists():
        strangers = sorted(set(os.listdir(folder)) - _BEFORE_MANIFEST)
        if not strangers:
            return None
        # Another run may have written its manifest a moment ago.
        if not (folder / manifest.NAME).exists():
            raise FolderError(
                f"{folder}: not a run folder, and not empty (it holds {strangers[0]}); choose another --out"
            )
    stored = manifest.read(folder)
    if not overwrite:
        manifest.check_format(folder, stored)
    return stored


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder; the kernel lets go when the process ends, however it ends.

    Raises
    ------
    FolderError
        If another run is in it, or it cannot be written to.
    """
    try:
        handle = open(folder / LOCK, "ab")  # noqa: SIM115 - closed by the block below
    except OSError as error:
        message = f"{folder}: cannot be written to ({error.strerror}); choose another --out"
        raise FolderError(message) from None
    with handle:
        # A file system may have no locks: better to run without than not to run.
        with contextlib.suppress(OSError):
            try:
                take_lock(handle)
            except BlockingIOError:
                message = f"{folder}: another run is writing into it; wait for it, or choose another --out"
                raise FolderError(message) from None
        yield


def is_running(folder: Path) -> bool:
    """Whether a run holds the lock of a folder at this moment."""
    try:
        with open(folder / LOCK, "rb") as handle:
            take_lock(handle, shared=True)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def clear(folder: Path) -> None:
    """Remove what p2psim made and the manifest lists, and nothing else; links are removed, what they lead to is not.

    The manifest itself stays until another one replaces it, so that the folder stays ours.

    Raises
    ------
    FolderError
        If something that p2psim did not make is where its results are to go.
    """
    if not (folder / manifest.NAME).exists():
        return
    _complete(folder)
    _refuse_strangers(folder, manifest.read(folder))
    for name in (*RESULTS, SCENARIO, VERDICT):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / PARTS, ignore_errors=True)
    _remove_figures(folder)


def _complete(folder: Path) -> None:
    """Go on with a commit that was cut off."""
    shutil.rmtree(folder / _DONE, ignore_errors=True)
    if (folder / PARTS / FINAL).is_dir():
        move_final(folder)


def _refuse_strangers(folder: Path, stored: Manifest) -> None:
    """See that nothing stands where results go but what p2psim made."""
    parts = folder / PARTS
    results = (folder / name for name in RESULTS if name not in stored.files)
    strangers = [path for path in results if os.path.lexists(path)]
    strangers += [folder / name for name in (*RESULTS, SCENARIO, VERDICT) if (folder / name).is_dir()]
    if parts.is_symlink() or (os.path.lexists(parts) and not parts.is_dir()):
        strangers.append(parts)
    elif parts.is_dir():
        shown = (path for path in parts.glob("[!.]*") if path.name != DATA)
        strangers += [path for path in shown if not _PART_NAME.fullmatch(path.name)]
    if strangers:
        raise FolderError(
            f"{strangers[0]}: not made by p2psim, and its results need this name; move it, or choose another --out"
        )


@dataclass(frozen=True)
class Content:
    """The results that a folder holds.

    Attributes
    ----------
    manifest : Manifest
        As it stands.
    parts : tuple of StoredPart
        Batches that are not in the tables yet.
    earlier : StoredTables
        The tables, of the simulations that the manifest lists.
    """

    manifest: Manifest
    parts: tuple[StoredPart, ...]
    earlier: StoredTables

    def grown(self, manifest: Manifest, parts: Iterable[StoredPart]) -> "Content":
        """With what this process has added, which needs no check, and the manifest that it wrote before."""
        known = sorted([*self.parts, *parts], key=lambda part: part.path.name)
        return Content(manifest, tuple(known), self.earlier)

    def sources(self) -> dict[RunKey, Source]:
        """Where the rows of each finished simulation are."""
        in_parts = {key: part for part in self.parts for key in part.runs}
        return {**in_parts, **dict.fromkeys(self.manifest.runs, self.earlier)}

    def entries(self) -> dict[RunKey, RunEntry]:
        """How each finished simulation ended."""
        runs = chain.from_iterable(part.runs.items() for part in self.parts)
        entries = {key: RunEntry(run["ended"], run["seconds"], run["problem"]) for key, run in runs}
        return entries | self.manifest.runs

    def warnings(self) -> dict[str, Warned]:
        """All warnings, with counts and cells."""
        total = dict(self.manifest.warnings)
        for message, warned in chain.from_iterable(part.warnings.items() for part in self.parts):
            total[message] = total[message] + warned if message in total else warned
        return total


def read_content(folder: Path) -> Content:
    """Read what a folder holds, checking every file against what was written.

    Call it under `lock`. A commit that was cut off is completed first.

    Raises
    ------
    FolderError
        If a file is missing or damaged, or its events are of another format than those that would be added.
    """
    _complete(folder)
    stored = manifest.read(folder)
    _refuse_strangers(folder, stored)
    for name, written in stored.files.items():
        if fault := damage(folder / name, written):
            raise FolderError(
                f"{folder / name}: {fault}; restore it from a copy, run into another folder with --out, "
                f"or start {folder} afresh with --overwrite"
            )
    check_event_format(folder, stored.made_by)
    parts = tuple(map(read_part, part_paths(folder)))
    for archive in (folder / PARTS / DATA).glob("[!.]*.npz"):
        if not _whole_archive(archive):
            message = f"{archive}: damaged; remove {folder / PARTS} and run again, or use another --out"
            raise FolderError(message)
    return Content(stored, parts, StoredTables(folder, stored.stored))


def part_paths(folder: Path) -> list[Path]:
    """Batches that have finished, in the order of their names."""
    return sorted(path for path in (folder / PARTS).glob("[!.]*") if path.name not in (DATA, FINAL))


def _whole_archive(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def begin(folder: Path, described: Manifest, scenario_text: str) -> None:
    """Write the manifest of a study that starts or goes on, then its scenario.

    In this order: cells that leave the grid are copied from the old scenario into the new manifest, so the
    old scenario must not go first.
    """
    manifest.write(folder, described)
    files.write_text(folder / SCENARIO, scenario_text)
    (folder / PARTS / DATA).mkdir(parents=True, exist_ok=True)
    for left in (*(folder / PARTS).glob(".*"), *(folder / PARTS / DATA).glob(".*")):
        # A worker whose parent was killed a moment ago may still write.
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def add_part(
    folder: Path,
    part: EncodedPart | StoredPart,
    arrays: Callable[[str], Mapping[str, np.ndarray]] | None = None,
) -> StoredPart:
    """Keep a finished batch, whole or not at all and flushed to disk, and return where it is.

    Parameters
    ----------
    folder : Path
    part : EncodedPart or StoredPart
        What it gave, or where its worker has written that, under a hidden name among the others.
    arrays : callable, optional
        Gives the prepared data of a problem that is not in the part; without it no data is kept.
    """
    for problem in {run["problem"] for run in part.runs.values()}:
        path = folder / PARTS / DATA / f"{problem}.npz"
        if arrays is None or path.exists():
            continue
        with files.aside(path) as temporary, open(temporary, "wb") as stream:
            if problem in part.data:
                stream.write(part.data[problem])
            else:
                write_archive(stream, sorted(arrays(problem).items()))
    cell, replica = next(iter(part.runs))
    name = f"{cell[:16]}-{replica}"
    names = chain([name], (f"{name}-{again}" for again in count(1)))
    path = next(path for path in map((folder / PARTS).joinpath, names) if not path.exists())
    with files.aside(path) as folder:
        kept = part.put(folder)
        for file in folder.iterdir():
            files.sync(file)
    return replace(kept, path=path, data={})


def move_final(folder: Path) -> None:
    """Complete a commit: may be cut off at any point and called again."""
    final = folder / PARTS / FINAL
    # The manifest last.
    for path in sorted(final.iterdir(), key=lambda path: path.name == manifest.NAME):
        os.replace(path, folder / path.name)
    with contextlib.suppress(OSError):
        files.sync(folder)
    shutil.rmtree(folder / _DONE, ignore_errors=True)
    os.rename(folder / PARTS, folder / _DONE)
    # The system gives the pages of large files back one by one.
    with ThreadPoolExecutor() as several:
        several.map(partial(shutil.rmtree, ignore_errors=True), list((folder / _DONE).iterdir()))
    shutil.rmtree(folder / _DONE, ignore_errors=True)


FIGURES = "figures"
#: Beside the manifest, which a run that goes on may replace at any moment.
LISTING = ".figures.json"


def add_figures(folder: Path, paths: Iterable[Path]) -> None:
    """List those of some files that are among the figures of a run folder: p2psim drew them."""
    new = {path.name: print_of(path) for path in paths if path.parent == folder / FIGURES}
    if new:
        listed = _listed(folder) | new
        files.write_text(folder / LISTING, sealed(json.dumps({"figures": listed}, indent=2)))


def _remove_figures(folder: Path) -> None:
    """Remove the figures of a run folder that are as they were made. No link is followed, none is removed."""
    figures = folder / FIGURES
    if not figures.is_symlink():
        for name, written in _listed(folder).items():
            path = figures / Path(name).name
            if not path.is_symlink() and not damage(path, written):
                path.unlink()
        with contextlib.suppress(OSError):
            figures.rmdir()
    with contextlib.suppress(OSError):
        (folder / LISTING).unlink()


def _listed(folder: Path) -> dict[str, Print]:
    """Figures that p2psim drew; none where there is no list that is whole."""
    try:
        with opened(folder / LISTING) as listing:
            return {name: (size, sha) for name, (size, sha) in listing["figures"].items()}
    except (OSError, DamagedError):
        return {}


def plain_scenario(file: Path) -> dict[str, Any]:
    """Read a resolved scenario as plain values; a damaged one is a `FolderError`."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        tree = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except (YAMLError, ValueError, RecursionError) as error:
        raise FolderError(f"{file}: damaged ({first_line(error)})") from error
    return tree if isinstance(tree, dict) else {}


def meant(folder: Path) -> str:
    """The run folder beside it that was probably meant."""
    try:
        beside = [entry.name for entry in folder.parent.iterdir() if (entry / manifest.NAME).is_file()]
    except OSError:
        return ""
    meant = nearest(folder.name, beside)
    return f"; did you mean {folder.parent / meant}?" if meant else ""
