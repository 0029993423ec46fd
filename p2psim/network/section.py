"""The ``network`` section of a scenario, and the network that an engine runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag, ValidationInfo, model_validator

from p2psim.core.agent_names import AgentNames
from p2psim.core.errors import MeaningError
from p2psim.core.events import LEARNER
from p2psim.core.files import DataPath, Seal, checked, sealed
from p2psim.core.options import BY_NAME, Options, PerAgent, per_agent
from p2psim.core.registry import place_of
from p2psim.core.text_tables import BeyondFloatError, as_wide, header_of, lines_of, number, shown
from p2psim.network.availability import AllOf, Always, AnyAvailability, Outage
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import AnyExchange, Exchange
from p2psim.network.graph import Graph, TopologyInputs, links
from p2psim.network.members import Members
from p2psim.network.topologies import (
    AnyTopology,
    Topology,
    draw_links,
)
from p2psim.network.verify_order import Ordering

if TYPE_CHECKING:
    import networkx as nx


#: Where the rate stands in a scenario.
RATE_KEY = "network.clock.rate"

RATE_COLUMNS = ("agent", "rate")


class RateTable(Options):
    """Rates from a table with one agent per line; every agent has its line."""

    path: DataPath = Field(description="a CSV file with columns agent, rate")
    sha256: Seal = ""

    @model_validator(mode="before")
    @classmethod
    def _seal(cls, value: Any, info: ValidationInfo) -> Any:
        return sealed(value, info)

    def read(self) -> dict[str, tuple[float, str]]:
        """Rate of each name, and the file and line where it stands.

        Raises
        ------
        MeaningError
            With file and line, if a column is missing, a line has more or fewer fields than the header, a rate is not
            positive and finite, or a name stands there twice.
        MissingSourceError
            If there is no such file.
        """
        key = f"{RATE_KEY}.path"
        path = checked(self.path, key)
        header = [name.strip() for name in header_of(path, key)]
        if any(header.count(name) != 1 for name in RATE_COLUMNS):
            raise MeaningError(
                key, f"{path} needs columns agent, rate, each once; it has {', '.join(header)}"
            )
        agent, rate = (header.index(name) for name in RATE_COLUMNS)
        found: dict[str, tuple[float, str]] = {}
        for line, cells in as_wide(itertools.islice(lines_of(path, key), 1, None), len(header), path, key):
            place, name = f"{path}:{line}", cells[agent]
            if name in found:
                raise MeaningError(key, f"{place}: {name!r} has a rate already, at {found[name][1]}")
            found[name] = _rate(cells[rate], place, key), place
        return found

    def rates(self, labels: Sequence[str]) -> np.ndarray:
        """Rate of each agent, shape (n,); raises as `read` does, and for an agent that is not there or left out."""
        table, key = self.read(), f"{RATE_KEY}.path"
        places = {name: place for name, (_, place) in table.items()}
        agents = AgentNames(labels).resolve(table, key, places)
        rates = np.full(len(labels), math.nan)
        for name, agent in agents.items():
            rates[agent] = table[name][0]
        missing = [label for label, rate in zip(labels, rates.tolist(), strict=True) if math.isnan(rate)]
        if missing:
            raise MeaningError(key, f"{self.path} has no line for agent {missing[0]}")
        return rates


def _rate(text: str, place: str, key: str) -> float:
    try:
        rate = number(text)
    except BeyondFloatError as error:
        raise MeaningError(key, f"{place}: {error}") from None
    if rate is None or not (0 < rate < math.inf):
        raise MeaningError(key, f"{place}: a rate must be a positive finite number, got {shown(text)}")
    return rate


def _form(value: Any) -> str:
    """Tell a table from numbers: an agent may be called path, but its rate is a number."""
    is_table = isinstance(value, RateTable) or (
        isinstance(value, Mapping) and isinstance(value.get("path"), str)
    )
    return "table" if is_table else "numbers"


Rate = Annotated[
    Annotated[PerAgent, Tag("numbers")] | Annotated[RateTable, Tag("table")], Discriminator(_form)
]


class Clock(Options):
    """Independent Poisson clocks."""

    kind: Literal["poisson"] = "poisson"
    rate: Rate = Field(
        1.0,
        description="mean number of wakes per unit of time; {path: FILE} takes it from a CSV file with columns "
        "agent, rate",
    )

    def check_names(self, labels: Sequence[str]) -> None:
        """Raise a MeaningError if a table names an agent that there is not, or leaves one out."""
        if isinstance(self.rate, RateTable):
            self.rate.rates(labels)

    def rates(self, labels: Sequence[str], groups: Sequence[str] | None) -> np.ndarray:
        """Rate of each agent, shape (n,).

        Parameters
        ----------
        labels : sequence of str
            Names of the agents, in order.
        groups : sequence of str, optional
            The group of each.

        Raises
        ------
        MeaningError
            If an agent has no rate or two, or a name means no agent.
        """
        if isinstance(self.rate, RateTable):
            return self.rate.rates(labels)
        return per_agent(self.rate, labels, groups, key=RATE_KEY)


Engine = Literal["auto", "simpy", "array"]


def uncompiled_parts(exchange: Exchange, channel: Channel, availability: AnyAvailability) -> list[str]:
    """Keys of a scenario whose parts have no compiled form: those from outside p2psim, which SimPy runs."""
    parts = {
        "exchange": (exchange,),
        "channel.effects": channel.effects or (),
        "availability": (availability, *getattr(availability, "parts", ())),
    }
    return [
        f"network.{key}" for key, given in parts.items() if any(place_of(part) is not None for part in given)
    ]


def _turn_alone(availability: AnyAvailability) -> bool:
    """Whether no agents leave and come back together."""
    if isinstance(availability, AllOf):
        return all(map(_turn_alone, availability.parts))
    return place_of(availability) is None and not isinstance(availability, Outage)


def scope_message(uncompiled: list[str]) -> str:
    """Why the array engine is refused."""
    return f"the array engine has no compiled form of parts of your own; given by {', '.join(uncompiled)}"


class NetworkSection(Options):
    """Who wakes, who hears whom, and when.

    Choices
    -------
    engine: auto
        array, but simpy where the network has parts from outside p2psim
    engine: simpy
        SimPy processes: every network
    engine: array
        compiled: every network but those with parts from outside p2psim, and the same events bit for bit
    """

    topology: AnyTopology = Field(description="who is linked with whom")
    exchange: AnyExchange = Field(description="what happens when an agent wakes")
    clock: Annotated[Clock | None, BY_NAME] = Field(
        None, description="when agents wake; a Poisson clock of rate 1 when absent"
    )
    channel: Channel = Field(Channel(), description="what happens to a message on its way")
    availability: AnyAvailability = Field(Always(), description="who is there")
    engine: Engine = Field(
        "auto", description="auto takes the array engine unless the network has parts from outside p2psim"
    )

    def uncompiled_parts(self) -> list[str]:
        """Keys because of which SimPy makes the events; empty where the array engine can."""
        return uncompiled_parts(self.exchange, self.channel, self.availability)


@dataclass(frozen=True)
class Network:
    """What makes events.

    Attributes
    ----------
    links : Graph
        From :func:`p2psim.network.section.links`.
    exchange : Exchange
    channel : Channel
    availability : Availability or Always
        When agents are online.
    rates : ndarray, shape (n,), optional
        Wakes of each agent per unit of time, positive; one each when left out.
    goes_on : bool
        Whether an agent that may make no more releases goes on without its data: it wakes, commits and sends as before,
        releasing nothing. Otherwise it is silent. Not for a star's owners.
    updates : {"wake", "hear"}
        Whether the algorithm updates a model when its agent wakes, or when it hears another model. The latter needs an
        exchange by gossip.
    members : Members, optional
        What is known of the agents beside their links; their indices when left out.
    vectors : int
        p-vectors in a message that carries a model: with a bandwidth they take airtime.
    """

    links: Graph
    exchange: Exchange
    channel: Channel = field(default_factory=Channel)
    availability: AnyAvailability = field(default_factory=Always)
    rates: np.ndarray | None = None
    goes_on: bool = False
    updates: Literal["wake", "hear"] = "wake"
    members: Members | None = None
    vectors: int = 1

    def __post_init__(self) -> None:
        """Refuse a channel that means nothing on these links; see `Channel.check`."""
        self.channel.check(self.links)

    @classmethod
    def of_graph(
        cls,
        graph: nx.Graph[Any] | Topology,
        exchange: Exchange,
        channel: Channel | None = None,
        availability: AnyAvailability | None = None,
        *,
        seed: int = 0,
        replica: int = 0,
    ) -> Network:
        """Make a network from a graph of NetworkX or a topology.

        Parameters
        ----------
        graph : networkx.Graph or Topology
            Nodes 0 … n − 1, or nodes of other names, which are numbered in their order and keep their names; and −1
            where there is a learner. The node attribute ``rate`` is the rate of a clock, one where it is left out.
        exchange : Request, Poll, Round, Broadcast or Gossip
        channel : Channel, optional
            Ideal when left out.
        availability : optional
            Everyone is online when left out.
        seed, replica : int
            For a topology that draws random numbers: of the same graph as in a scenario.

        Raises
        ------
        MeaningError
            If the graph is no network, or the channel means nothing on it.

        Examples
        --------
        >>> import p2psim
        >>> network = p2psim.Network.of_graph(p2psim.Ring(agents=5), p2psim.Gossip(), p2psim.Channel(loss=0.5))
        >>> network.links.agents
        5
        """
        channel, availability = channel or Channel(), availability or Always()
        if isinstance(graph, Topology):
            arrays = draw_links(
                graph, TopologyInputs(), seed=seed, replica=replica, learner=exchange.needs_learner
            )
            return cls(arrays, exchange, channel, availability)
        import networkx as nx

        nodes = [node for node in graph if node != LEARNER]
        if set(nodes) == set(range(len(nodes))):
            nodes = sorted(nodes)
        members = Members(tuple(map(str, nodes)))
        rates = np.array([float(graph.nodes[node].get("rate", 1.0)) for node in nodes])
        numbers = {node: number for number, node in enumerate(nodes)}
        if any(node != number for node, number in numbers.items()):
            graph = nx.relabel_nodes(graph, numbers)
        arrays = links(graph, name_of=lambda agent: members.labels[agent])
        return cls(arrays, exchange, channel, availability, rates, members=members)

    @property
    def ordering(self) -> Ordering:
        """What is known of the order of events at one instant, for the verifier of events."""
        return Ordering(
            self.channel.ends,
            _turn_alone(self.availability),
            own_exchange=place_of(self.exchange) is not None,
        )

    def shares(self) -> np.ndarray:
        """Share of its ticks at which each agent is there, shape (n,); NaN where it cannot be said beforehand.

        Raises
        ------
        MeaningError
            If the availability means nothing for these agents.
        """
        assert self.members is not None
        return self.availability.shares(self.members, self.links)
