"""Mixing weights: how much of each neighbour's model an agent takes when models are averaged, x ← W x.

W is doubly stochastic under every rule: its rows sum to one, so that equal models stay as they are, and so do its
columns, so that averaging keeps the mean of the models.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.network.changes import ActiveLinks
from p2psim.network.graph import Graph, refusal

#: How weights follow from the graph.
MixingRule = Literal["metropolis", "uniform", "degree", "links"]
#: Those that need numbers of neighbours only.
WeightRule = Literal["metropolis", "uniform", "degree"]

#: Sums of weights may miss one by so much: rounding.
_ROUNDING = 1e-9

#: Weight of each link from the numbers of neighbours of its two ends and the largest of all.
_FORMULAS: Mapping[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]] = {
    "metropolis": lambda one, other, largest: 1 / (1 + np.maximum(one, other)),
    "uniform": lambda one, other, largest: np.full(one.size, 1 / (1 + largest)),
    "degree": lambda one, other, largest: 1 / np.maximum(one, other),
}


def mixing_weights(
    graph: Graph, rule: MixingRule, key: str = "network.topology"
) -> tuple[np.ndarray, np.ndarray]:
    """Doubly stochastic weights on the links of a graph of agents, and what each agent keeps for its own model.

    Parameters
    ----------
    graph : Graph
        Without a learner.
    rule : {"metropolis", "uniform", "degree", "links"}
        With d_i the number of neighbours of agent i:

        ``metropolis``
            W_ij = 1/(1 + max(d_i, d_j)) (Xiao, Boyd and Kim 2007).
        ``uniform``
            W_ij = 1/(1 + max_k d_k), the same on every link.
        ``degree``
            W_ij = 1/max(d_i, d_j), the local-degree weights of Xiao and Boyd (2004). An agent none of whose
            neighbours has more neighbours than itself keeps no weight for its own model.
        ``links``
            W_ij is the weight of the link.

        W_ii is what the others leave of one. On a graph whose agents all have d neighbours, ``metropolis`` and
        ``uniform`` are both 1/(d + 1), for its own model too.
    key : str
        What errors name.

    Returns
    -------
    links : ndarray, shape (m,)
        Weight of the model of ``graph.indices[k]`` for each directed link, in the order of ``graph.indices``.
    own : ndarray, shape (n,)

    Raises
    ------
    MeaningError
        If there is a learner; a weight is not a positive finite number; the weights of an agent exceed one, or those
        that the others give to its model do not sum to one; or averaging would alternate for ever, since the graph
        (or a part of it) is bipartite and nobody in it keeps any weight.
    """
    if rule not in get_args(MixingRule):
        raise MeaningError(
            key, f"no rule for mixing weights is called {rule!r}: {', '.join(get_args(MixingRule))}"
        )
    if graph.star:
        raise MeaningError(key, "models are mixed on a graph of agents; a star with a learner has none")
    n = graph.agents
    degrees = np.diff(graph.indptr)
    rows = np.repeat(np.arange(n), degrees)
    links = _links(graph, key) if rule == "links" else weights_by_degrees(graph, rule)
    sums = np.bincount(rows, links, n)
    if (most := int(np.argmax(sums))) >= 0 and sums[most] > 1 + _ROUNDING:
        raise MeaningError(
            key,
            f"the weights of agent {most} sum to {sums[most]:.6g}; mixing by the weights of links needs sums of "
            "at most 1 (another rule, or weights: metropolis on the topology, gives such)",
        )
    own = np.where(np.abs(1 - sums) <= _ROUNDING, 0.0, 1 - sums)
    given = np.bincount(graph.indices, links, n) + own
    if (worst := float(np.abs(given - 1).max())) > _ROUNDING:
        agent = int(np.abs(given - 1).argmax())
        raise MeaningError(
            key,
            f"the weights that agents give to the model of agent {agent} sum to {given[agent]:.6g}, not 1 (off by "
            f"{worst:.2g}): averaging would not keep the mean",
        )
    if _alternates(graph, rows, own):
        raise MeaningError(
            key,
            f"under the rule {rule} nobody keeps a weight for its own model, and the graph has two sides that only "
            "mix with each other: averaging alternates for ever; take metropolis or uniform",
        )
    return links, own


class MomentWeights:
    """Mixing weights of a graph at a moment, which goes forward; of a graph that does not change, at all times.

    Parameters
    ----------
    graph : Graph
    rule : MixingRule
    end : float, optional
        As of `p2psim.network.changes.ActiveLinks`.

    Attributes
    ----------
    graph : Graph
    values : ndarray, shape (links,)
        Weights, 0 of links that are not there; changed in place.
    """

    def __init__(self, graph: Graph, rule: MixingRule, end: float | None = None):
        self.graph, self._rule, self._active = graph, rule, ActiveLinks(graph, end)
        self.values = np.zeros(graph.indices.size)
        self._weigh()

    def _weigh(self) -> None:
        self.values[:] = 0.0
        self.values[self._active.is_there] = mixing_weights(self._active.graph(), self._rule)[0]

    @property
    def upcoming(self) -> float:
        """When they change next; infinite if they never do."""
        return self._active.upcoming

    def advance(self, time: float) -> None:
        """Go on to a moment."""
        if self._active.upcoming <= time:
            self._active.advance(time)
            self._weigh()


def mixing_matrix(graph: Graph, rule: MixingRule, key: str = "network.topology") -> Any:
    """W of `mixing_weights` with the agents' own weights on its diagonal, a ``csr_array`` of shape (n, n)."""
    from scipy.sparse import csr_array, diags_array

    links, own = mixing_weights(graph, rule, key)
    between = csr_array((links, graph.indices, graph.indptr), shape=(own.size, own.size))
    return (between + diags_array(own)).tocsr()


def weights_by_degrees(graph: Graph, rule: WeightRule) -> np.ndarray:
    """Weight of each directed link under a rule of `mixing_weights` that needs numbers of neighbours only."""
    degrees = np.diff(graph.indptr)
    one, other = np.repeat(degrees, degrees), degrees[graph.indices]
    return _FORMULAS[rule](one, other, int(degrees.max(initial=0)))


def _links(graph: Graph, key: str) -> np.ndarray:
    """The weights of the links, which must be positive finite numbers."""
    bad = np.flatnonzero(~(np.isfinite(graph.weights) & (graph.weights > 0)))
    if bad.size:
        agent = int(np.searchsorted(graph.indptr, bad[0], side="right")) - 1
        which = f"the weight of the link {agent} – {graph.indices[bad[0]]}"
        raise MeaningError(key, f"{which} {refusal(float(graph.weights[bad[0]]))}")
    return graph.weights.astype(np.float64)


def _alternates(graph: Graph, rows: np.ndarray, own: np.ndarray) -> bool:
    """Whether a part of the graph is bipartite and all of its agents have an own weight of zero.

    In the graph with two copies of each agent, whose links lead from one copy to the other, a bipartite part falls
    into two.
    """
    if (own > 0).all():
        return False
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = own.size
    ends = (np.concatenate([rows, rows + n]), np.concatenate([graph.indices + n, graph.indices]))
    cover = coo_array((np.ones(2 * rows.size), ends), shape=(2 * n, 2 * n)).tocsr()
    _, part = connected_components(cover, directed=False)
    keeps = np.zeros(part.max() + 1, dtype=bool)
    np.logical_or.at(keeps, part, np.tile(own > 0, 2))
    return bool((~keeps[part[:n]] & (part[:n] != part[n:])).any())
