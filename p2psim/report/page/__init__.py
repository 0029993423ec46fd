"""A page for a run: one HTML file that shows its results and plays a recorded replica, without a server or network."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from p2psim.core.errors import InputError
from p2psim.core.files import write_text
from p2psim.core.printing import exact
from p2psim.report.files import FORMATS
from p2psim.report.page.encoding import Packer, assembled, with_figures
from p2psim.report.page.recording import open_recording
from p2psim.report.page.replica import replica as plain_replica
from p2psim.report.page.study import study
from p2psim.runs.result import Result
from p2psim.runs.verification import ReplicaCheck

#: Bytes of a page with images of figures; one that is larger without them has none.
LARGEST = 4_900_000

#: The page's name in the run folder.
NAME = "report.html"


def page(
    result: Result,
    cell: int | None = None,
    replica: int | None = None,
    begin: float | None = None,
    end: float | None = None,
    *,
    question: str = "",
    checked: Sequence[ReplicaCheck] | None = None,
) -> str:
    """Make the page of a run: the same bytes for the same run folder, with its figures, libraries and zlib.

    Parameters
    ----------
    result : Result
    cell : int, optional
        The cell whose replica is played; the first one with recorded events when left out.
    replica : int, optional
        The replica that is played; the first one of the cell when left out.
    begin, end : float, optional
        Times between which its events are played; from the first event on, as many as a page can hold, when left out.
    question : str
        What the study asks.
    checked : sequence of ReplicaCheck, optional
        What ``p2psim verify`` found; by default what it left in the run folder.

    Returns
    -------
    str
        The HTML.

    Raises
    ------
    InputError
        If there is no such cell or replica, or nothing of it can be played between these times.
    """
    if begin is not None and end is not None and not begin < end:
        message = f"--from, --to: the first must be the earlier time; got {exact(begin)} and {exact(end)}"
        raise InputError(message)
    packer = Packer()
    plain: dict[str, Any] = {"study": study(result, packer, question, checked), "replica": None}
    if result.events is not None and result.links is not None:
        if cell is None:
            cell = int(result.events["cell"].min()) if len(result.events) else 0
        if replica is None:
            rows = result.events["replica"][result.events["cell"] == cell]
            replica = int(rows.min()) if len(rows) else 0
        held = open_recording(result, cell, replica)
        plain["replica"] = plain_replica(held, packer, begin, end)
        if not plain["replica"]["events"]["count"]:
            raise InputError(
                f"--from, --to: no event lies between these times; the replica lasts from 0 to {held.end:g}"
            )
    elif replica is not None:
        message = f"--replica: {result.path} has no events to play; set record.events: true and run again"
        raise InputError(message)
    text = assembled(plain, packer, f"{result.described.name} · p2psim")
    return with_figures(text, _figures(result.path / "figures", LARGEST - len(text.encode())))


def _figures(folder: Path, room: int) -> list[dict[str, Any]]:
    """Figures that ``p2psim plot`` left in a folder: names of files, and images of as many as there is room for."""
    files: dict[str, list[Path]] = {}
    for path in sorted(folder.glob("*.*")) if folder.is_dir() else ():
        if path.suffix[1:] in (*FORMATS, "csv"):
            files.setdefault(path.stem, []).append(path)
    entries = []
    for name, paths in files.items():
        image = next((path for path in paths if path.suffix == ".png"), None)
        content = base64.b64encode(image.read_bytes()).decode() if image is not None else ""
        fits = bool(content) and len(content) <= room
        room -= len(content) if fits else 0
        listed = [path.name for path in paths]
        entries.append({"name": name, "files": listed, "image": content if fits else ""})
    return entries


@dataclass(frozen=True)
class Shown:
    """A page inside a notebook.

    Attributes
    ----------
    text : str
        Its HTML.
    height : int
        In pixels.
    """

    text: str
    height: int

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"a page of {len(self.text):,} characters"

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.height}px; border: 0"
        return f'<iframe srcdoc="{escape(self.text)}" style="{style}" title="p2psim"></iframe>'


def shown(result: Result, cell: int | None = None, replica: int | None = None, height: int = 900) -> Shown:
    """Make the page of a run for a notebook; see `page`."""
    return Shown(page(result, cell, replica), height)


def write_page(result: Result, path: Path | None = None, **choices: Any) -> Path:
    """Write the page of a run; see `page`. Its place is ``report.html`` in the run folder by default."""
    path = result.path / NAME if path is None else path
    write_text(path, page(result, **choices))
    return path
