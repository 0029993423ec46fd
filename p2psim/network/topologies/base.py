"""What topologies have in common: their base class and keys, drawing of random graphs, and the number of agents.

Pairs of agents are drawn with equal chances, and a graph is drawn again until it is connected or, where parts are
allowed, until no agent is alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from p2psim.core.agent_names import some
from p2psim.core.errors import MeaningError
from p2psim.core.options import Few, Options, Whole
from p2psim.network.changes import Change
from p2psim.network.graph import Graph, TopologyInputs, components, from_edges, without_links


class Topology(Options):
    """Base of all topologies: who is linked with whom.

    A topology of your own is a subclass with a ``kind``, its own keys, and ``links``. One that draws random numbers
    sets ``is_random``; if it also has a key ``seed``, a number there fixes the graph for all replicas. One that has the
    keys ``weights`` and ``normalise`` (`Weights`, `Normalise`) gets the weights that they ask for.

    Attributes
    ----------
    kind : str
        The name, as ``kind: Literal["caveman"] = "caveman"``.
    agents : int or None
        How many agents there are, where the topology says it: a key, or a property; None leaves it to the data.
    is_random : bool
        Whether it draws random numbers.
    is_star : bool
        Whether it has a place for a central learner.
    is_file : bool
        Whether a file holds the graph: it is then read when a scenario is checked.
    reads_data : bool
        Whether links depend on the records; ledgers flag it.
    size_key : str
        The key that says how many agents there are.

    Choices
    -------
    weights: metropolis
        W_ij = 1/(1 + max(d_i, d_j)), d the numbers of neighbours
    weights: uniform
        W_ij = 1/(1 + max d), the same for every link
    weights: degree
        W_ij = 1/max(d_i, d_j)
    """

    part_kind: ClassVar[str] = "topology"

    # Subclasses declare it with a Literal.
    kind: Any

    is_random: ClassVar[bool] = False
    is_star: ClassVar[bool] = False
    is_file: ClassVar[bool] = False
    reads_data: ClassVar[bool] = False
    size_key: ClassVar[str] = "network.topology.agents"
    unsaid: ClassVar[tuple[str, ...]] = ("weights", "normalise")

    @abstractmethod
    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Make the graph.

        Parameters
        ----------
        agents : int or None
            Number of agents that a caller asks for; `p2psim.network.topologies.base.settle` gives the one that all
            agree on.
        random : numpy.random.Generator
            The only source of random numbers.
        given : TopologyInputs
            What the data says: the number of agents, their names, and what neighbours are found by.
        learner : bool
            Whether there shall be a central learner; only a star has a place for one
            (`p2psim.network.topologies.base.no_learner` refuses it).

        Returns
        -------
        Graph

        Raises
        ------
        MeaningError
            If there is no such graph.
        """

    @property
    def size(self) -> int | None:
        """Number of agents that the topology says, None where it leaves it to the data."""
        return getattr(self, "agents", None)

    @property
    def redrawn_every(self) -> float | None:
        """Time between two graphs, where there is another in each interval."""
        return None

    def link_ends(self, agents: int) -> float:
        """Ends of links that a graph of so many agents has, about; at least two for each agent that is joined."""
        return 2.0 * agents

    def block_sizes(self, agents: int) -> Sequence[int]:
        """Agents of each block of a graph that is drawn in blocks, the first agents first; none where it is not."""
        return ()

    def size_and_names(self) -> tuple[int | None, tuple[str, ...] | None]:
        """How many agents the topology asks for and their names, as far as it says either."""
        return self.size, None

    def by_order(self) -> Self:
        """The same with agents numbered as the nodes occur, where nodes have names; otherwise itself."""
        return self

    def check_owners(self, labels: Sequence[str]) -> None:
        """Raise if the data has another number of owners, of these names, than the topology asks for.

        Raises
        ------
        MeaningError
        """
        number, _ = self.size_and_names()
        if number is not None and number != len(labels):
            key = f"network.topology{'.agents' if 'agents' in type(self).model_fields else ''}"
            message = f"asks for {number} agents, but the data has {len(labels)} owners: {some(labels)}"
            raise MeaningError(key, message)


class ChangingTopology(Topology):
    """Base of graphs whose links come and go with time.

    One of your own has what every `Topology` has, where ``links`` gives all links that there can be, and says in
    ``changes`` when they come and go. It sets ``is_random`` if either draws random numbers. Nothing else is to be done:
    both engines, the verifier and `p2psim.network.changes.ActiveLinks` read the same changes.
    """

    @abstractmethod
    def changes(self, graph: Graph, random: np.random.Generator, given: TopologyInputs) -> Iterable[Change]:
        """Say when links come and go.

        Parameters
        ----------
        graph : Graph
            What `links` gave.
        random : numpy.random.Generator
            The only source of random numbers; not the one of `links`.
        given : TopologyInputs
            What the data says.

        Returns
        -------
        iterable of Change
            In order of time, the first at time 0, with the links that are there at first. It may go on for ever: no
            more is taken from it than a run needs.
        """

    def period(self, agents: int) -> int | None:
        """Number of changes after which the graph is the first again, and so on; None where there is none."""
        return None


#: The most graphs that are drawn before giving up, and the most links in all of them (but always five graphs).
MOST_DRAWS = 100
_MOST_LINKS = 20_000_000

EdgeEnds = tuple[np.ndarray, np.ndarray]


def pair_keys(agents: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One number for each link, whichever way it is written."""
    keys = np.minimum(a, b) * agents
    keys += np.maximum(a, b)
    return keys


def is_first(values: np.ndarray) -> np.ndarray:
    """Whether each value is the first of its kind."""
    first = np.zeros(values.size, dtype=bool)
    first[np.unique(values, return_index=True)[1]] = True
    return first


def chosen(count: int, probability: float, random: np.random.Generator) -> np.ndarray:
    """Choose each of the numbers 0 … count − 1 independently with the same probability, in rising order.

    Jumps from one chosen number to the next are geometric: time and memory are those of what is chosen.
    """
    if probability == 0 or count == 0:
        return np.zeros(0, dtype=np.int64)
    mean = count * probability
    block = int(mean + 4 * np.sqrt(mean)) + 10
    found, last = [], -1
    while last < count:
        jumps = np.minimum(random.geometric(probability, block), count + 1)  # sums then cannot overflow
        places = last + np.cumsum(jumps)
        found.append(places)
        last = int(places[-1])
    every = np.concatenate(found)
    return every[: np.searchsorted(every, count)]


def pairs_within(agents: int, probability: float, random: np.random.Generator) -> EdgeEnds:
    """Choose each of the agents' n(n − 1)/2 pairs with the same probability."""
    place = chosen(agents * (agents - 1) // 2, probability, random)
    # Pair (a, b), b < a, stands at place a(a − 1)/2 + b; the root may be one off in floating point.
    a = ((1 + np.sqrt(1 + 8 * place.astype(np.float64))) / 2).astype(np.int64)
    a -= a * (a - 1) // 2 > place
    a += a * (a + 1) // 2 <= place
    return a, place - a * (a - 1) // 2


def pairs_between(first: int, second: int, probability: float, random: np.random.Generator) -> EdgeEnds:
    """Choose pairs of one of 0 … first − 1 and one of first … first + second − 1, with the same probability."""
    place = chosen(first * second, probability, random)
    return place // second, first + place % second


Agents = Annotated[Few | None, Field(description="number of agents; left out, as many as the data gives")]
Seed = Annotated[
    Whole | None, Field(description="seed of this one graph for all replicas; left out, each draws its own")
]
AllowDisconnected = Annotated[
    bool, Field(description="whether the graph may fall into parts that no link joins")
]

Weights = Annotated[
    Literal["metropolis", "uniform", "degree"] | None,
    Field(
        description="weights W_ij of links from the agents' numbers of neighbours d; left out, all are 1, or those "
        "that the graph has"
    ),
]
Normalise = Annotated[
    bool | None,
    Field(
        description="true divides all weights by the mean over agents of D_ii, the sum of an agent's weights, so that "
        "graphs compare"
    ),
]

#: Where all pairs of agents are built: 1.2 GB of links.
MOST_OF_ALL_PAIRS = 10_000


def settle(
    own: int | None,
    agents: int | None,
    given: TopologyInputs,
    least: int = 2,
    most: int | None = None,
    key: str = "network.topology.agents",
) -> int:
    """Number of agents that the topology, the caller and the data agree on.

    Raises
    ------
    MeaningError
        If they disagree, none of them says it, or there are too few or too many for the kind of graph.
    """
    wanted = agents if agents is not None else given.agents
    if agents is not None and given.agents is not None and agents != given.agents:
        raise MeaningError(key, f"{agents} agents are asked for, but the data gives {given.agents}")
    if own is not None and wanted is not None and own != wanted:
        raise MeaningError(key, f"is {own}, but the data gives {wanted} agents")
    number = own if own is not None else wanted
    if number is None:
        raise MeaningError(key, "say how many agents there are, here or in the data")
    if number < least:
        raise MeaningError(key, f"this graph takes at least {least} agents, got {number}")
    if most is not None and number > most:
        raise MeaningError(
            key, f"this graph has a link for every pair: at most {most:,} agents, got {number:,}"
        )
    return number


class SizedTopology(Topology):
    """Base of graphs of a number of agents that a key, a caller and the data agree on."""

    #: Fewest and most agents of such a graph.
    least: ClassVar[int] = 2
    most: ClassVar[int | None] = None

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        """Links of the graph; see :func:`p2psim.network.topologies.draw_links`."""
        no_learner(self.kind, learner)
        return self.build(
            settle(self.size, agents, given, self.least, self.most, self.size_key), random, given
        )

    @abstractmethod
    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Make the graph of so many agents."""


class RedrawnTopology(SizedTopology):
    """Base of random graphs that are drawn until one is connected, or, where parts are allowed, leaves nobody alone.

    So the graph has the distribution that `draw` gives, conditioned on being such.
    """

    is_random: ClassVar[bool] = True

    if TYPE_CHECKING:
        allow_disconnected: bool

    @abstractmethod
    def draw(self, agents: int, random: np.random.Generator) -> EdgeEnds:
        """Both ends of each link of a simple graph."""

    @abstractmethod
    def advice(self, agents: int) -> str:
        """What would help where no graph is such."""

    def build(self, agents: int, random: np.random.Generator, given: TopologyInputs) -> Graph:
        """Make the graph.

        Raises
        ------
        MeaningError
            If none of up to 100 graphs (fewer when they are large) was such.
        """
        drawn = links_drawn = 0
        while drawn < MOST_DRAWS and (drawn < 5 or links_drawn < _MOST_LINKS):
            a, b = self.draw(agents, random)
            drawn += 1
            links_drawn += a.size
            if a.size == 0:
                continue
            links = from_edges(agents, a, b)
            if not without_links(links).size and (self.allow_disconnected or components(links) == 1):
                return links
        wanted = "left nobody alone" if self.allow_disconnected else "was connected"
        message = f"none of {drawn} graphs drawn {wanted}; {self.advice(agents)}"
        raise MeaningError("network.topology", message)


def no_learner(kind: str, learner: bool) -> None:
    """Refuse a learner where there is no place for one.

    Raises
    ------
    MeaningError
    """
    if learner:
        raise MeaningError("network.topology", f"a central learner needs a star, got {kind}")


def is_graph(value: Any) -> bool:
    """Whether a value is a graph of NetworkX; does not import it."""
    return any(kind.__module__.partition(".")[0] == "networkx" for kind in type(value).__mro__)
