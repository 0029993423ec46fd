"""Whose models should be alike."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from p2psim.errors import AgentError, MeaningError
from p2psim.network.links import Given, Links, checked_links, from_edges
from p2psim.network.spectrum import dense_lambda2
from p2psim.network.topologies.base import Topology
from p2psim.network.topologies.parts import MOST_OF_ALL_PAIRS, Agents, no_learner, settle
from p2psim.options import Positive


class Similarity(Topology):
    """Every two agents are linked by how alike the models are that their data was generated from.

    W_ij = exp((cos φ_ij − 1)/γ), φ_ij the angle between the targets of i and j (Bellet, Guerraoui, Taziki and
    Tommasi 2018, section 5.1). Takes memory in n², and with `keep_connected` time in n³.
    """

    kind: Literal["similarity"] = "similarity"
    kernel: Literal["angular"] = Field("angular", description="how alike two targets are")
    gamma: Positive = Field(0.1, description="γ; the smaller, the faster weights fall with the angle")
    keep_connected: Annotated[float, Field(gt=0)] | None = Field(
        None,
        description="drop the smallest weights, one by one, as long as λ₂ of the Laplacian stays above this; "
        "left out, all are kept",
    )
    agents: Agents = None

    def links(
        self, agents: int | None, random: np.random.Generator, given: Given, learner: bool = False
    ) -> Links:
        """Links of the graph; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        number = settle(self.agents, agents, given, most=MOST_OF_ALL_PAIRS)
        if given.targets is None:
            raise MeaningError(
                "network.topology",
                "similarity needs targets of the agents, which this data source does not give",
            )
        cosines = _cosines(given.targets, number)
        a, b = np.triu_indices(number, 1)
        weights = np.exp((cosines[a, b] - 1) / self.gamma)
        there = weights > 0  # underflow, at small γ
        a, b, weights = a[there], b[there], weights[there]
        if self.keep_connected is not None:
            a, b, weights = drop_smallest(number, a, b, weights, self.keep_connected)
        return checked_links(from_edges(number, a, b, weights), "network.topology")


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
    keeps, fails = 0, weights.size  # so many dropped: λ₂ is above; is not (nothing left)
    while fails - keeps > 1:
        middle = (keeps + fails) // 2
        if weights.size - middle >= agents - 1 and lambda2(middle) > above:
            keeps = middle
        else:
            fails = middle
    return a[keeps:], b[keeps:], weights[keeps:]
