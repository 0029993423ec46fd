"""Figures that p2psim drew into a run folder: a list of them, so that nothing else is ever removed."""

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path

from p2psim.study.aside import write_text
from p2psim.study.seals import DamagedError, Print, damage, opened, print_of, sealed

FIGURES = "figures"
#: Beside the manifest, which a run that goes on may replace at any moment.
LISTING = ".figures.json"


def add(folder: Path, files: Iterable[Path]) -> None:
    """List as made what of some files is among the figures of a run folder."""
    new = {path.name: print_of(path) for path in files if path.parent == folder / FIGURES}
    if not new:
        return
    listed = _listed(folder) | new
    write_text(folder / LISTING, sealed(json.dumps({"figures": listed}, indent=2)))


def remove(folder: Path) -> None:
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
    """Nothing where there is no list that is whole: then nothing is known to be made."""
    try:
        with opened(folder / LISTING) as listing:
            return {name: (size, sha) for name, (size, sha) in listing["figures"].items()}
    except (OSError, DamagedError):
        return {}
