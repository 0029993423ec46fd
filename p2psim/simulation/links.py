"""Links of a simulation as a table, for the run folder."""

import numpy as np

from p2psim.core.events import LEARNER
from p2psim.network.changes import Upcoming
from p2psim.network.graph import Graph


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
