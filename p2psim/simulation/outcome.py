"""The outcome of one replica of one cell, as plain arrays, and what reading or repeating it depends on.

The caller writes the arrays. `streams_of` gives the random streams of a replica, as the scenario shares them between
cells. `check_event_format` shows whether the events of a run folder have the format that this version reads.
`link_table` lists the links of a simulation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core import __version__
from p2psim.core.errors import FolderError
from p2psim.core.events import COLUMNS, EVENT, FORMAT_VERSION, LEARNER
from p2psim.core.randomness import Streams
from p2psim.learning.metrics import Series
from p2psim.network.changes import Upcoming
from p2psim.network.graph import Graph
from p2psim.scenario.cells import content
from p2psim.scenario.model import Scenario

if TYPE_CHECKING:
    import pyarrow as pa


__all__ = ["Outcome", "Series"]


@dataclass(frozen=True)
class Outcome:
    """Results of one simulation.

    Attributes
    ----------
    ended : str
        ``commits``, ``time`` or ``exhausted`` (no agent could act any more).
    series : tuple of Series
        The recorded metrics.
    ledger, agents : dict of ndarray, shape (N,) each
        Columns of the run folder's tables, one row per agent.
    columns : tuple of pyarrow.Table
        The events, in tables that follow each other, counts perhaps in four bytes; none unless they are recorded.
    links : dict of ndarray, or None
        Columns of the run folder's table of links; when events are recorded.
    noise : ndarray, shape (releases, p), or None
        As added to the gradients, ordered by (agent, release); when recorded.
    models : ndarray, shape (records, p), or None
        The learner's recorded models; when recorded.
    problem_id : str
        Names the prepared data in the workspace.
    warnings : tuple of str
    """

    ended: str
    series: tuple[Series, ...]
    ledger: dict[str, np.ndarray]
    agents: dict[str, np.ndarray]
    columns: tuple["pa.Table", ...]
    links: dict[str, np.ndarray] | None
    noise: np.ndarray | None
    models: np.ndarray | None
    problem_id: str
    warnings: tuple[str, ...]

    @property
    def events(self) -> np.ndarray | None:
        """The events as an array of EVENT; None unless they are recorded."""
        if not self.columns:
            return None
        events = np.zeros(sum(table.num_rows for table in self.columns), EVENT)
        for name in COLUMNS:
            arrays = [chunk for table in self.columns for chunk in table[name].chunks]
            codes = (array.indices if name in ("kind", "outcome") else array for array in arrays)
            events[name] = np.concatenate([array.to_numpy() for array in codes])
        return events


@cache
def arithmetic() -> dict[str, list[str]]:
    """Libraries of linear algebra with version and kernel, and the vector instructions that NumPy uses here."""
    import scipy.linalg  # noqa: F401 (its library is its own)
    from threadpoolctl import threadpool_info

    config = np.show_config(mode="dicts")
    assert isinstance(config, dict)
    parts = ("internal_api", "version", "architecture")
    loaded = [one for one in threadpool_info() if one["user_api"] == "blas"]
    blas = {" ".join(str(one[part]) for part in parts if one.get(part)) for one in loaded}
    if not blas:  # one that cannot be asked, such as Accelerate
        built = config["Build Dependencies"]["blas"]
        blas = {f"{built['name']} {built['version']}"}
    return {"blas": sorted(blas), "simd": sorted(config["SIMD Extensions"].get("found", []))}


def differing(other: object) -> str:
    """What is not the same there and here, as a person reads it; empty where all is."""
    here = arithmetic()
    there = other if isinstance(other, dict) else {}
    return "; ".join(
        f"{name} {', '.join(there.get(name, [])) or 'unknown'} there, {', '.join(mine) or 'none'} here"
        for name, mine in here.items()
        if there.get(name) != mine
    )


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


def streams_of(scenario: Scenario, replica: int) -> Streams:
    """Random streams of a replica; those in ``independent`` are told apart by the cell's content."""
    if not scenario.independent:
        return Streams(scenario.seed, replica)
    return Streams(scenario.seed, replica, dict.fromkeys(scenario.independent, content(scenario)))


def link_table(graph: Graph, last: float, end: float | None = None) -> dict[str, np.ndarray]:
    """Every link once, or once for each time that it was there.

    Parameters
    ----------
    graph : Graph
    last : float
        Until when changes are listed.
    end : float, optional
        End of the run, if it has one.

    Returns
    -------
    dict of ndarray, shape (links,) each
        Ends ``a < b`` (the learner is −1) and ``weight``; of a graph that changes ``begin`` and ``end`` as well: a link
        is there from `begin` on and not at `end`, which is infinite where it is there at `last`. Rows are in the order
        of a, b and begin.
    """
    rows = np.repeat(np.arange(graph.agents, dtype=np.int32), np.diff(graph.indptr))
    if graph.star:
        return {"a": np.full(rows.size, LEARNER, np.int32), "b": rows, "weight": graph.weights}
    columns = {"a": rows, "b": graph.indices, "weight": graph.weights}
    if graph.changes is None:
        return {name: values[rows < graph.indices] for name, values in columns.items()}
    upcoming = Upcoming(graph, np.inf if end is None else end)
    blocks = [upcoming.more()]
    while upcoming.known <= last:
        blocks.append(upcoming.more())
    times, places, comes = map(np.concatenate, zip(*blocks, strict=True))
    listed = np.flatnonzero((times <= last) & (rows < graph.indices)[places])
    # Changes of a link follow each other, and by turns it comes and goes.
    listed = listed[np.argsort(places[listed], kind="stable")]
    times, places, comes = times[listed], places[listed], comes[listed]
    begins = np.flatnonzero(comes)
    after = np.append(times, np.inf)[begins + 1]
    goes = np.append(places, -1)[begins + 1] == places[begins]
    spans = {"begin": times[begins], "end": np.where(goes, after, np.inf)}
    return {name: values[places[begins]] for name, values in columns.items()} | spans
