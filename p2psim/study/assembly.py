"""A scenario from parts in Python: a NetworkX graph, arrays per agent, an algorithm, a privacy object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from p2psim.data.section import DataSection
from p2psim.data.sources.arrays import Arrays
from p2psim.errors import InputError
from p2psim.learning.async_star import AsyncStar
from p2psim.learning.losses import Loss
from p2psim.learning.section import LearningSection, Regularizer
from p2psim.network.channels import Channel
from p2psim.network.clocks import Clock
from p2psim.network.exchanges import Exchange, Request
from p2psim.network.graphs import Star, links
from p2psim.network.section import NetworkSection
from p2psim.privacy.mechanisms import NoNoise
from p2psim.privacy.section import PrivacySection
from p2psim.study.record import RecordSection
from p2psim.study.scenario import Scenario

if TYPE_CHECKING:
    import networkx as nx


def assemble(
    graph: nx.Graph[int],
    records: Sequence[tuple[np.ndarray, np.ndarray]],
    algorithm: AsyncStar,
    loss: Loss,
    l2: float,
    *,
    privacy: PrivacySection | None = None,
    exchange: Exchange | None = None,
    channel: Channel | None = None,
    record: RecordSection | None = None,
    name: str = "study",
    seed: int = 0,
    replicas: int = 1,
) -> Scenario:
    """Make a scenario from parts.

    Parameters
    ----------
    graph : networkx.Graph
        A star: node −1 is the learner, nodes 0 … N − 1 its owners. A node's attribute ``rate`` is the rate of its
        clock; one when left out.
    records : sequence of N pairs (X, y)
        Of shapes (n_i, p) and (n_i,), as they are: nothing is scaled.
    algorithm : AsyncStar
    loss : Squared, Hinge or Logistic
    l2 : float
        Weight of the regulariser, positive.
    privacy : PrivacySection, optional
        No noise when left out.
    exchange, channel, record : optional
        Request, an ideal channel, and relative fitness at every step when left out.
    name, seed, replicas
        As in a scenario file.

    Returns
    -------
    Scenario
        For :func:`p2psim.run`. Written down, it holds a digest of the arrays.

    Raises
    ------
    InputError
        If the graph is not such a star, or parts contradict each other.
    """
    arrays = links(graph)
    if not arrays.star:
        raise InputError("the graph must be a star whose learner is node −1")
    if len(records) != arrays.agents:
        raise InputError(f"the graph has {arrays.agents} owners, but there are records of {len(records)}")
    rates = {str(i): float(graph.nodes[i].get("rate", 1.0)) for i in range(arrays.agents)}
    exchange = exchange or Request()
    return Scenario.from_dict(
        {
            "name": name,
            "seed": seed,
            "replicas": replicas,
            "network": NetworkSection(
                topology=Star(agents=arrays.agents),
                exchange=exchange,
                clock=Clock(rate=rates) if exchange.has_clocks and set(rates.values()) != {1.0} else None,
                channel=channel or Channel(),
            ),
            "data": DataSection(source=Arrays.per_agent([X for X, _ in records], [y for _, y in records])),
            "learning": LearningSection(algorithm=algorithm, loss=loss, regularizer=Regularizer(l2=l2)),
            "privacy": privacy or PrivacySection(mechanism=NoNoise()),
            "record": record or RecordSection(),
        }
    )
