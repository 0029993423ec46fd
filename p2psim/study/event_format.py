"""Whether the events of a run folder are of the format that this version reads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p2psim import __version__
from p2psim.errors import FolderError

NAME = "events.parquet"
#: Key of the metadata of the table.
KEY = b"p2psim.events"


def check_event_format(folder: Path, made_by: Mapping[str, Any]) -> None:
    """See whether the events can be read; a folder without events passes.

    Parameters
    ----------
    folder : Path
        The run folder.
    made_by : mapping
        Versions, as in its manifest.

    Raises
    ------
    FolderError
        If they are of another format, or say nothing of it; names the format, who wrote it, and what to do.
    """
    import pyarrow.parquet as pq

    from p2psim.network.events import FORMAT_VERSION

    path = folder / NAME
    if not path.exists():
        return
    found = (pq.read_schema(path).metadata or {}).get(KEY, b"unknown").decode(errors="replace")
    if found != str(FORMAT_VERSION):
        raise FolderError(
            f"{path}: event format {found}, written by p2psim {made_by.get('p2psim', 'unknown')}; this is p2psim "
            f"{__version__}, which reads format {FORMAT_VERSION}. Use the p2psim that wrote it, or run it again: into "
            f"another folder with --out, or in its place with --overwrite"
        )
