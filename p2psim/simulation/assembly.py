"""A scenario from parts in Python: a NetworkX graph, arrays per agent, an algorithm, a privacy object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np

from p2psim.core.agent_names import differing
from p2psim.core.errors import InputError
from p2psim.core.events import LEARNER
from p2psim.data.section import DataSection
from p2psim.data.sources.arrays import Arrays
from p2psim.learning.losses import Loss
from p2psim.learning.section import Algorithm
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Exchange
from p2psim.network.exchanges.request import Request
from p2psim.network.graph import links
from p2psim.network.section import Clock
from p2psim.network.topologies.regular import Star
from p2psim.privacy.mechanisms import NoNoise
from p2psim.privacy.section import PrivacySection
from p2psim.scenario.model import Scenario
from p2psim.scenario.record import RecordSection


def assemble(
    graph: nx.Graph[Any],
    records: Sequence[tuple[np.ndarray, np.ndarray]] | Mapping[Any, tuple[np.ndarray, np.ndarray]],
    algorithm: Algorithm,
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
        Nodes are the owners of the records: 0 … N − 1, or names of any kind. In a star, node −1 is the learner. A
        node's attribute ``rate`` is the rate of its clock; one when left out.
    records : mapping from node to pair (X, y), or sequence of N pairs
        Of shapes (n_i, p) and (n_i,), as they are: nothing is scaled. In a sequence, those of nodes 0 … N − 1, or of
        named nodes as the graph lists them.
    algorithm : AsyncStar, CoordinateDescent, Averaging, …
    loss : Loss
    l2 : float
        Weight of the regulariser.
    privacy : PrivacySection, optional
        No noise when left out.
    exchange : optional
        Request of a star when left out; other graphs need one, such as ``Broadcast()`` or ``Gossip()``.
    channel, record : optional
        An ideal channel, and relative fitness (of a star) or the objective gap (of a graph) at every step when left
        out.
    name, seed, replicas
        As in a scenario file.

    Returns
    -------
    Scenario
        For :func:`p2psim.run` and :func:`p2psim.simulate`. Written down, it holds a digest of the arrays and the graph.

    Raises
    ------
    InputError
        If the graph cannot be taken, or parts contradict each other.

    Examples
    --------
    >>> import networkx as nx, numpy as np, p2psim
    >>> records = {name: (np.eye(2), np.ones(2)) for name in ("north", "east", "south")}
    >>> graph = nx.cycle_graph(["north", "east", "south"])
    >>> algorithm = p2psim.CoordinateDescent(mu=1.0, commits=30)
    >>> scenario = p2psim.assemble(graph, records, algorithm, p2psim.Squared(), 0.1, exchange=p2psim.Broadcast())
    >>> p2psim.simulate(scenario).agents["label"].tolist()
    ['north', 'east', 'south']
    """
    if not isinstance(graph, nx.Graph):
        raise InputError(f"the graph must be a networkx.Graph, got {type(graph).__name__}")
    owners = [node for node in graph if node != LEARNER]
    if {str(owner) for owner in owners} == {str(i) for i in range(len(owners))}:
        owners = sorted(owners, key=lambda owner: int(str(owner)))
    labels = [str(owner) for owner in owners]
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"two nodes of the graph are called {twice}")
    topology: Any = graph.copy()
    if LEARNER in graph or "request" in algorithm.star_exchanges:
        numbers = {owner: i for i, owner in enumerate(owners)} | {LEARNER: LEARNER}
        if LEARNER not in graph or not links(nx.relabel_nodes(graph, numbers)).star:
            raise InputError("the graph must be a star whose learner is node −1")
        topology = Star(agents=len(owners))
        exchange = exchange or Request()
    elif exchange is None:
        raise InputError("exchange: a graph without a learner needs one, such as Broadcast() or Gossip()")
    else:
        for _, table in topology.nodes(data=True):
            table.pop("rate", None)
    pairs = _in_order(records, owners)
    named = zip(labels, owners, strict=True)
    rates = {label: float(graph.nodes[owner].get("rate", 1.0)) for label, owner in named}
    tree = {
        "name": name,
        "seed": seed,
        "replicas": replicas,
        "network": {
            "topology": topology,
            "exchange": exchange,
            "clock": Clock(rate=rates) if exchange.has_clocks and set(rates.values()) != {1.0} else None,
            "channel": channel or Channel(),
        },
        "data": DataSection(source=Arrays.per_agent([X for X, _ in pairs], [y for _, y in pairs], labels)),
        "learning": {"algorithm": algorithm, "loss": loss, "regularizer": {"l2": l2}},
        "privacy": privacy or PrivacySection(mechanism=NoNoise()),
    }
    return Scenario.from_dict(tree if record is None else tree | {"record": record})


def _in_order(
    records: Sequence[tuple[np.ndarray, np.ndarray]] | Mapping[Any, tuple[np.ndarray, np.ndarray]],
    owners: Sequence[Any],
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Records of each owner."""
    if isinstance(records, Mapping):
        if set(records) != set(owners):
            which = differing(map(str, owners), map(str, records), "mapping of records")
            raise InputError(f"nodes of the graph and owners of records have different names: {which}")
        pairs = [records[owner] for owner in owners]
    else:
        pairs = list(records) if isinstance(records, Sequence) else []
    if len(pairs) != len(owners):
        raise InputError(f"the graph has {len(owners)} owners, but there are records of {len(pairs)}")
    for owner, pair in zip(owners, pairs, strict=True):
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise InputError(f"the records of {owner} must be a pair (X, y)")
    return pairs
