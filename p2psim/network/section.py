"""The ``network`` section of a scenario, and the network that an engine runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.events import LEARNER
from p2psim.core.options import BY_NAME, Options
from p2psim.core.randomness import Streams
from p2psim.core.registry import place_of
from p2psim.network.availability import Always, AnyAvailability
from p2psim.network.channels.channel import Channel
from p2psim.network.channels.draws import Airtime, airtime_of
from p2psim.network.compute import Compute, contradictions
from p2psim.network.exchanges import AnyExchange, Exchange
from p2psim.network.graph import Graph, TopologyInputs, links
from p2psim.network.members import Members, Rate, RateTable
from p2psim.network.spec import Conduct
from p2psim.network.topologies import AnyTopology, Topology, draw_links
from p2psim.network.verify_order import Ordering

if TYPE_CHECKING:
    import networkx as nx


class Clock(Options):
    """Independent Poisson clocks."""

    kind: Literal["poisson"] = "poisson"
    rate: Rate = Field(
        1.0,
        description="mean number of wakes per unit of time; {path: FILE} takes it from a CSV file with columns "
        "agent, rate, and {column: NAME} from a column of data.per_owner",
    )

    def check_names(self, labels: Sequence[str]) -> None:
        """Raise a MeaningError if a table names an agent that there is not, or leaves one out."""
        if isinstance(self.rate, RateTable):
            self.rate.values(labels)

    def rates(self, members: Members) -> np.ndarray:
        """Rate of each agent, shape (n,).

        Raises
        ------
        MeaningError
            If an agent has no rate or two, or a name means no agent.
        """
        return members.values(self.rate, RateTable.key)


Engine = Literal["auto", "simpy", "array"]

#: Of slotted ALOHA: with shorter slots their numbers would not be exact whole numbers after some thousand periods.
SHORTEST_SLOT = 1e-12


def uncompiled_parts(exchange: Exchange, channel: Channel, availability: AnyAvailability) -> list[str]:
    """Keys of a scenario whose parts have no compiled form: those from outside p2psim, which SimPy runs."""
    parts = {
        "exchange": (exchange,),
        "channel.effects": channel.effects or (),
        "availability": availability.reasons,
    }
    return [
        f"network.{key}" for key, given in parts.items() if any(place_of(part) is not None for part in given)
    ]


def scope_message(uncompiled: list[str]) -> str:
    """Why the array engine is refused."""
    return f"the array engine has no compiled form of parts of your own; given by {', '.join(uncompiled)}"


class NetworkSection(Options):
    """Which agents wake, which hear which, and when.

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
    compute: Compute | None = Field(
        None, description="time that agents take to compute an update; none when absent"
    )
    channel: Channel = Field(Channel(), description="what happens to a message on its way")
    availability: AnyAvailability = Field(Always(), description="which agents are online")
    engine: Engine = Field(
        "auto", description="auto takes the array engine unless the network has parts from outside p2psim"
    )

    unsaid: ClassVar[tuple[str, ...]] = ("compute",)

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
        exchange by gossip, or in rounds.
    answerer_releases : bool
        Whether in push-pull the agent that answers also makes a release with its update, as the one that woke.
        Otherwise it updates with what it has heard alone, even if it may make no more releases.
    members : Members, optional
        What is known of the agents beside their links; their indices when left out.
    vectors : int
        p-vectors in a message that carries a model: with a bandwidth they take airtime.
    dimension : int, optional
        p, the parameters of a model, where the bandwidth is in numbers.
    compute : Compute, optional
        Time that agents take to compute an update; none when left out.
    work : ndarray, shape (n,), optional
        Records that an update of each agent takes, where the time to compute is one per record.
    """

    links: Graph
    exchange: Exchange
    channel: Channel = field(default_factory=Channel)
    availability: AnyAvailability = field(default_factory=Always)
    rates: np.ndarray | None = None
    goes_on: bool = False
    updates: Literal["wake", "hear"] = "wake"
    answerer_releases: bool = True
    members: Members | None = None
    vectors: int = 1
    dimension: int | None = None
    compute: Compute | None = None
    work: np.ndarray | None = None

    def __post_init__(self) -> None:
        """Refuse a channel, or an exchange, that means nothing on these links; see their ``check``."""
        self.channel.check(self.links)
        self.exchange.check(self.links)

    @classmethod
    def of_graph(
        cls,
        graph: nx.Graph[Any] | Topology,
        exchange: Exchange,
        channel: Channel | None = None,
        availability: AnyAvailability | None = None,
        *,
        compute: Compute | None = None,
        work: np.ndarray | None = None,
        seed: int = 0,
        replica: int = 0,
    ) -> Network:
        """Make a network from a graph of NetworkX or a topology.

        Parameters
        ----------
        graph : networkx.Graph or Topology
            Nodes 0 … n − 1, or nodes of other names, which are numbered in their order and keep their names; and −1
            where there is a learner. The node attribute ``rate`` is the rate of a clock, one where it is left out.
        exchange : Request, Poll, Round, Broadcast, Gossip or Synchronous
        channel : Channel, optional
            Ideal when left out.
        availability : optional
            Everyone is online when left out.
        compute : Compute, optional
        work : ndarray, shape (n,), optional
            As the attributes of the same names.
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
            return cls(arrays, exchange, channel, availability, compute=compute, work=work)
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
        return cls(
            arrays, exchange, channel, availability, rates, members=members, compute=compute, work=work
        )

    @property
    def ordering(self) -> Ordering:
        """What is known of the order of events at one instant, for the verifier of events."""
        return Ordering(
            self.channel.ends,
            self.availability.turns_alone,
            own_exchange=place_of(self.exchange) is not None,
            computes=self.compute is not None,
            in_rounds=self.conduct.in_rounds,
        )

    @property
    def conduct(self) -> Conduct:
        """What agents on a graph do, for the verifier of events."""
        return self.exchange.conduct(self.updates, self.answerer_releases)

    @property
    def known_members(self) -> Members:
        """What is known of the agents; their indices where nothing is."""
        return self.members or Members.unnamed(self.links.agents)

    @property
    def known_rates(self) -> np.ndarray:
        """Wakes of each agent per unit of time, shape (n,)."""
        return self.rates if self.rates is not None else np.ones(self.links.agents)

    @property
    def airtime(self) -> Airtime:
        """Time that transmissions take.

        Raises
        ------
        MeaningError
            If it needs the length of a model, which is not known, or slots of that length could not be counted.
        """
        channel = self.channel
        airtime = airtime_of(channel.airtime, channel.bandwidth, self.vectors, self.dimension)
        if channel.collision == "slotted" and 0 < airtime.loaded < SHORTEST_SLOT:
            raise MeaningError(
                "network.channel.airtime",
                f"slots must be {SHORTEST_SLOT} or longer, or 0; the longest message takes {airtime.loaded}",
            )
        return airtime

    def check_compute(self) -> None:
        """Refuse a time to compute that contradicts the rest of the network.

        Raises
        ------
        MeaningError
            Also if a poll would supersede every answer, or the numbers of agents are not as `Compute.factors` has them.
        """
        compute, interval = self.compute, self.exchange.polled
        if compute is None:
            return
        for key, message in contradictions(compute, self.exchange, self.availability):
            raise MeaningError(key, message)
        shortest = compute.least(self.known_members, self.work)
        if interval is not None and (shortest > interval).all():
            raise MeaningError(
                "network.compute",
                f"every agent takes longer than the interval {interval} between queries, at least "
                f"{shortest.min():g}, so that the next query would supersede every answer",
            )

    def mean_work(self) -> np.ndarray | None:
        """Mean time that an update of each agent takes to compute, shape (n,); None where there is none."""
        return self.compute.means(self.known_members, self.work) if self.compute is not None else None

    def shares(self) -> np.ndarray:
        """Share of its ticks at which each agent is there, shape (n,); NaN where it cannot be said beforehand.

        Raises
        ------
        MeaningError
            If the availability means nothing for these agents.
        """
        assert self.members is not None
        return self.availability.shares(self.members, self.links)


class RunSetup(NamedTuple):
    """What an engine needs for one run.

    Attributes
    ----------
    network : Network
    rates : ndarray, shape (n,)
        Wakes of each agent per unit of time.
    streams : Streams
        Random streams of the replica.
    limits : ndarray of int64, shape (n,), optional
        The most releases that each agent may make.
    commits, time : optional
        Where the run ends: after this number of commits, or after what happens at this time.
    chunk : int
        Events in a chunk.
    """

    network: Network
    rates: np.ndarray
    streams: Streams
    limits: np.ndarray | None
    commits: int | None
    time: float | None
    chunk: int
