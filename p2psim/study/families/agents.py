"""The table of agents: who they are, what they hold, and where they stand in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from p2psim.network.members import Members

if TYPE_CHECKING:
    from p2psim.data.prepare import Prepared
    from p2psim.network.graphs import Links
    from p2psim.study.workspace import Case


def names_of(prepared: Prepared) -> dict[str, np.ndarray]:
    """Names and groups of the agents as arrays of a case; no groups where there are none."""
    made = {"labels": np.array(prepared.labels, dtype=np.str_)}
    return made if prepared.groups is None else made | {"groups": np.array(prepared.groups, dtype=np.str_)}


def members_of(arrays: Mapping[str, np.ndarray]) -> Members:
    """What the network knows of who holds the records of a case.

    Parameters
    ----------
    arrays : mapping
        Of the case: ``labels``, perhaps ``groups``, ``offsets`` and ``y``.
    """
    offsets, y = arrays["offsets"], arrays["y"]
    records = np.diff(offsets)
    sums = np.diff(np.concatenate([[0.0], np.cumsum(y)])[offsets])
    labels = np.divide(sums, records, out=np.zeros(records.size), where=records > 0)
    groups = tuple(arrays["groups"].tolist()) if "groups" in arrays else None
    return Members(tuple(arrays["labels"].tolist()), groups, {"records": records, "label": labels})


def star_agents(case: Case, records: np.ndarray, budget: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of the run folder's table of agents, from ``index`` on, one row an owner."""
    return agents_table(case, records, _star_centralities(records.size), budget)


def agents_table(
    case: Case, records: np.ndarray, centralities: dict[str, np.ndarray], budget: np.ndarray
) -> dict[str, np.ndarray]:
    """Columns of the table of agents; centralities are those of whoever knows the graph."""
    groups = case.groups if case.groups is not None else ("",) * records.size
    return {
        "index": np.arange(records.size, dtype=np.int32),
        "label": np.array(case.labels, dtype=object),
        "group": np.array(groups, dtype=object),
        "records": records,
        **centralities,
        "budget": budget,
    }


@lru_cache(maxsize=8)
def _star_centralities(owners: int) -> dict[str, np.ndarray]:
    """Degree and normalised centralities (Freeman 1979) of a star's owners: the learner is on every shortest path."""
    others = owners  # the learner and the other owners
    return {
        "degree": np.ones(owners, np.int32),
        "degree_centrality": np.full(owners, 1 / others),
        "closeness_centrality": np.full(owners, others / (1 + 2 * (owners - 1))),
        "betweenness_centrality": np.zeros(owners),
    }


#: Beyond so many agents only degrees are given: betweenness takes time in n·links.
_MOST_CENTRALITIES = 2000


def graph_centralities(links: Links) -> dict[str, np.ndarray]:
    """Degrees and normalised centralities (Freeman 1979), unweighted; NaN where there are too many agents."""
    key = links.indptr.tobytes(), links.indices.tobytes()
    return _centralities(*key)


@lru_cache(maxsize=8)
def _centralities(indptr_bytes: bytes, indices_bytes: bytes) -> dict[str, np.ndarray]:
    indptr, indices = np.frombuffer(indptr_bytes, np.int64), np.frombuffer(indices_bytes, np.int32)
    degrees = np.diff(indptr)
    n = degrees.size
    made: dict[str, np.ndarray] = {
        "degree": degrees.astype(np.int32),
        "degree_centrality": degrees / max(n - 1, 1),
    }
    if n > _MOST_CENTRALITIES:
        return {
            **made,
            "closeness_centrality": np.full(n, np.nan),
            "betweenness_centrality": np.full(n, np.nan),
        }
    import rustworkx as rx

    graph: rx.PyGraph[None, None] = rx.PyGraph()
    graph.add_nodes_from([None] * n)
    owners = np.repeat(np.arange(n), degrees)
    once = owners < indices
    graph.extend_from_edge_list(list(zip(owners[once].tolist(), indices[once].tolist(), strict=True)))
    # Beyond so many agents they would be found on several threads, which workers do not have.
    alone = n + 1
    closeness = rx.closeness_centrality(graph, parallel_threshold=alone)
    betweenness = rx.betweenness_centrality(graph, parallel_threshold=alone)
    made["closeness_centrality"] = np.array([closeness[i] for i in range(n)])
    made["betweenness_centrality"] = np.array([betweenness[i] for i in range(n)])
    return made
