"""What can be checked of a run folder without a part that made it: events as such, and the releases in the ledger.

Who is linked with whom may be known to a missing part alone, so that here everyone counts as a neighbour from whom
something came or went.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.errors import SimulationError
from p2psim.network.channels import Channel
from p2psim.network.events import COMMIT, LEARNER, SEND
from p2psim.network.links import Links, from_edges, star_links
from p2psim.network.resends import Resending
from p2psim.network.verify import verify

if TYPE_CHECKING:
    import pandas as pd

    from p2psim.study.manifest import CellEntry

#: Where a sweep changes the channel: anything may be sent again any number of times.
_ANYTHING = Resending(2**31, True, 2**31)


def broken_invariant(stream: np.ndarray, agents: int, tree: Mapping[str, Any], cell: CellEntry) -> str:
    """What is wrong with a stream of events, whatever the parts of the study were; empty if nothing.

    Parameters
    ----------
    stream : ndarray of EVENT
        Of one simulation.
    agents : int
        Their number.
    tree : mapping
        The resolved scenario, as it was written.
    cell : CellEntry
        The cell, with its swept values.
    """
    swept = {key for key in cell.swept if key.startswith("network.channel")}
    resending = _ANYTHING if swept else Channel.model_validate(tree["network"]["channel"]).resending
    mode = str(tree["network"]["exchange"].get("mode"))
    mode = str(cell.swept.get("network.exchange", cell.swept.get("network.exchange.mode", mode)))
    try:
        verify([stream], _links(stream, agents), by_edge="edge" in mode, resending=resending)
    except SimulationError as error:
        return str(error)
    return ""


def miscounted(stream: np.ndarray, ledger: pd.DataFrame, tree: Mapping[str, Any], cell: CellEntry) -> str:
    """How the releases in a ledger differ from those in the events; empty if they do not."""
    # A start that depends on data is a release before the first event.
    start = tree["learning"]["algorithm"].get("start") or {}
    starts = {1 if start.get("kind") in ("local", "private") else 0}
    if any(key.startswith("learning.algorithm") for key in cell.swept):
        starts = {0, 1}
    made = stream[np.isin(stream["kind"], (SEND, COMMIT)) & (stream["agent"] >= 0) & (stream["release"] >= 0)]
    for agent, recorded in zip(ledger["agent"].tolist(), ledger["releases"].tolist(), strict=True):
        counted = int(made["release"][made["agent"] == agent].max(initial=-1)) + 1
        if recorded - counted not in starts:
            return f"the ledger has {recorded} releases of agent {agent}, its events {counted}"
    return ""


def _links(stream: np.ndarray, agents: int) -> Links:
    if (stream["agent"] == LEARNER).any():
        return star_links(agents)
    ends = np.stack([stream["agent"], stream["peer"]], axis=1)
    pairs = ends[(ends >= 0).all(axis=1) & (ends < agents).all(axis=1)]
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    return from_edges(agents, pairs[:, 0], pairs[:, 1])
