"""Graphs that link similar agents: nearest neighbours by profile, and similarity weights between all pairs."""

from bisect import bisect_left
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import AgentError, MeaningError
from p2psim.core.options import Count, Positive
from p2psim.network.graph import Graph, TopologyInputs, checked_links, from_edges
from p2psim.network.spectrum import dense_lambda2
from p2psim.network.topologies import base

#: Distances of so many pairs are held at once: 64 MB.
BLOCK = 8_000_000

#: Distances that agree to so many decimals (of the largest possible one) are ties.
_DECIMALS = 12


class NearestNeighbours(base.SizedTopology):
    """Each agent is linked with those whose profiles are nearest to its own; weights are one.

    Profiles come with the data. Among equally near ones (to 12 decimals) lower numbers win. Takes time in n².

    Choices
    -------
    metric: cosine
        by the angle between profiles; that of a profile of zeros to any other is a right one
    metric: euclidean
        by the distance between profiles
    symmetrise: or
        linked if one chooses the other
    symmetrise: and
        linked if both choose each other
    """

    kind: Literal["knn"] = "knn"
    neighbours: Count = Field(description="how many nearest agents each chooses")
    metric: Literal["cosine", "euclidean"] = Field("cosine", description="how near two profiles are")
    symmetrise: Literal["or", "and"] = Field(
        "or", description="or links two agents if one chooses the other, and if both do"
    )
    agents: base.Agents = None
    allow_disconnected: base.AllowDisconnected = False
    weights: base.Weights = None
    normalise: base.Normalise = None
    reads_data: ClassVar[bool] = True

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of the graph."""
        if given.profiles is None:
            raise MeaningError(
                "network.topology", "knn needs profiles of the agents, which this data source does not give"
            )
        if self.neighbours >= agents:
            raise MeaningError(
                "network.topology.neighbours",
                f"must be less than the number of agents, {agents}; got {self.neighbours}",
            )
        chosen = nearest(_checked(given.profiles, agents), self.neighbours, self.metric)
        rows = np.repeat(np.arange(agents, dtype=np.int64), self.neighbours)
        keys, times = np.unique(base.pair_keys(agents, rows, chosen.ravel()), return_counts=True)
        if self.symmetrise == "and":
            keys = keys[times == 2]
        links = from_edges(agents, keys // agents, keys % agents)
        return checked_links(links, "network.topology", self.allow_disconnected)


def _checked(profiles: Any, agents: int) -> Any:
    if profiles.ndim != 2 or profiles.shape[0] != agents or profiles.shape[1] < 1:
        raise MeaningError(
            "network.topology", f"profiles must be {agents} vectors, got an array of shape {profiles.shape}"
        )
    values = profiles if isinstance(profiles, np.ndarray) else profiles.data
    if not np.isfinite(values).all():
        raise MeaningError("network.topology", "profiles must be finite numbers")
    return profiles.astype(np.float64)


def nearest(profiles: Any, neighbours: int, metric: str) -> np.ndarray:
    """Numbers of the nearest other rows.

    Parameters
    ----------
    profiles : ndarray or scipy.sparse array or matrix, shape (n, q)
    neighbours : int
        Less than n.
    metric : {"cosine", "euclidean"}

    Returns
    -------
    ndarray of int64, shape (n, neighbours)
        In rising order in each row.

    Notes
    -----
    A profile that is zero has no direction. Its cosine to every other one is taken for 0, as if they were orthogonal,
    and its neighbours are the first of these.
    """
    from scipy.sparse import csr_array, issparse

    rows = csr_array(profiles) if issparse(profiles) else profiles
    squares = np.asarray((rows * rows).sum(axis=1)).ravel()
    if metric == "cosine":
        rows = rows * (1 / np.sqrt(np.where(squares > 0, squares, 1.0)))[:, None]
        rows = csr_array(rows) if issparse(rows) else rows
        squares = np.ones(squares.size)
    n = squares.size
    scale = 4 * squares.max() or 1.0  # the largest squared distance there can be
    chosen = np.empty((n, neighbours), dtype=np.int64)
    step = max(1, BLOCK // n)
    for start in range(0, n, step):
        stop = min(n, start + step)
        products = rows[start:stop] @ rows.T
        products = products.toarray() if issparse(products) else products
        # Rounded, so that what is equal but for the order of summation is equal.
        distances = np.round((squares[start:stop, None] + squares - 2 * products) / scale, _DECIMALS)
        distances[np.arange(stop - start), np.arange(start, stop)] = np.inf
        chosen[start:stop] = _smallest(distances, neighbours)
    return chosen


def _smallest(distances: np.ndarray, count: int) -> np.ndarray:
    """Columns of the smallest entries of each row, the first of equal ones."""
    border = np.partition(distances, count - 1, axis=1)[:, count - 1 : count]
    below, at = distances < border, distances == border
    room = count - below.sum(axis=1, keepdims=True)
    take = below | (at & (np.cumsum(at, axis=1) <= room))
    return np.nonzero(take)[1].reshape(-1, count)


class Similarity(base.SizedTopology):
    """Every two agents are linked by how alike the models are that their data was generated from.

    W_ij = exp((cos φ_ij − 1)/γ), φ_ij the angle between the targets of i and j (Bellet, Guerraoui, Taziki and
    Tommasi 2018, section 5.1). Takes memory in n², and with `keep_connected` time in n³.

    Choices
    -------
    kernel: angular
        by the angle between targets
    """

    kind: Literal["similarity"] = "similarity"
    kernel: Literal["angular"] = Field("angular", description="how alike two targets are")
    gamma: Positive = Field(0.1, description="γ; the smaller, the faster weights fall with the angle")
    keep_connected: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="drop the smallest weights, one by one, as long as λ₂ of the Laplacian stays above this; "
        "left out, all are kept",
    )
    agents: base.Agents = None
    normalise: base.Normalise = None
    most: ClassVar[int | None] = base.MOST_OF_ALL_PAIRS
    reads_data: ClassVar[bool] = True

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Links of the graph."""
        if given.targets is None:
            raise MeaningError(
                "network.topology",
                "similarity needs targets of the agents, which this data source does not give",
            )
        cosines = _cosines(given.targets, agents)
        a, b = np.triu_indices(agents, 1)
        weights = np.exp((cosines[a, b] - 1) / self.gamma)
        there = weights > 0  # underflow, at small γ
        a, b, weights = a[there], b[there], weights[there]
        if self.keep_connected is not None:
            a, b, weights = drop_smallest(agents, a, b, weights, self.keep_connected)
        return checked_links(from_edges(agents, a, b, weights), "network.topology")


def _cosines(targets: np.ndarray, agents: int) -> np.ndarray:
    if targets.ndim != 2 or targets.shape[0] != agents:
        raise MeaningError(
            "network.topology", f"targets must be {agents} vectors, got an array of shape {targets.shape}"
        )
    lengths = np.sqrt((targets * targets).sum(axis=1))
    wrong = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if wrong.size:
        raise AgentError(
            "network.topology",
            "the target of agent {agent} is zero or not finite, and has no direction",
            int(wrong[0]),
        )
    units = targets / lengths[:, None]
    # Not BLAS, whose last digits depend on its threads.
    cosines: np.ndarray = np.clip(np.einsum("ik,jk->ij", units, units, optimize=False), -1, 1)
    return cosines


def drop_smallest(
    agents: int, a: np.ndarray, b: np.ndarray, weights: np.ndarray, above: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Drop the smallest weights, one by one, as long as λ₂ of the Laplacian D − W stays above a threshold.

    Without a link λ₂ is never higher than with it, so that the last one to drop is found by bisection.

    Parameters
    ----------
    agents : int
    a, b, weights : ndarray, shape (m,)
        Every link once. Of equal weights the first is dropped first.
    above : float

    Returns
    -------
    a, b, weights
        What is left.

    Raises
    ------
    MeaningError
        If λ₂ is not above the threshold with all links.
    """
    order = np.argsort(weights, kind="stable")
    a, b, weights = a[order], b[order], weights[order]

    def lambda2(dropped: int) -> float:
        matrix = np.zeros((agents, agents))
        matrix[a[dropped:], b[dropped:]] = weights[dropped:]
        return dense_lambda2(matrix + matrix.T)

    full = lambda2(0)
    if not full > above:
        raise MeaningError(
            "network.topology.keep_connected",
            f"λ₂ is {full:.3g} with all weights, which is not above {above:g}; a larger gamma would help",
        )

    def falls(dropped: int) -> bool:
        return weights.size - dropped < agents - 1 or not lambda2(dropped) > above

    first = bisect_left(
        range(1, weights.size), True, key=falls
    )  # so many dropped: λ₂ is above it for the last time
    return a[first:], b[first:], weights[first:]
