"""How long messages are on the air and travel: senders' random draws, and attributes of a graph's edges.

Every sender makes its random draws for itself, so that what one sender does moves no other sender's draws.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Discriminator, Field, Tag

from p2psim.core.distributions import Distribution, sample
from p2psim.core.errors import MeaningError
from p2psim.core.events import LEARNER
from p2psim.core.options import NonNegative, NumberOr, Options, Positive
from p2psim.core.printing import exact
from p2psim.core.randomness import Rewound, Streams
from p2psim.network.graph import Graph
from p2psim.network.spec import RunningNetwork

#: Random draws are made this many at a time: a draw alone costs more than the event that it serves.
BLOCK = 64

UNIT = Distribution(uniform=(0.0, 1.0))


class Drawing:
    """Makes the draws of one replica."""

    def __init__(self, streams: Streams):
        self._streams = streams
        self._rewound: dict[str, Rewound] = {}

    def draws(
        self, purpose: str, agent: int, quantity: float | Distribution, lane: int = 0
    ) -> Iterator[float]:
        """Endless draws of a quantity, from a stream of a purpose and an agent; made in blocks."""
        if not isinstance(quantity, Distribution):
            yield from itertools.repeat(quantity)
        # Many make a few draws, and some make many: the first ones need no generator of their own.
        if purpose not in self._rewound:
            self._rewound[purpose] = Rewound(self._streams.key(purpose))
        yield from sample(quantity, self._rewound[purpose].at(agent, lane), BLOCK).tolist()
        random = self._streams.generator(purpose, agent, lane)
        sample(quantity, random, BLOCK)
        while True:
            yield from sample(quantity, random, BLOCK).tolist()


class Draws:
    """Draws of every sender for one purpose, each from streams of its own."""

    def __init__(self, world: RunningNetwork, purpose: str, quantity: float | Distribution = UNIT):
        self._world, self._purpose, self._quantity = world, purpose, quantity
        self._lanes: tuple[dict[int, Iterator[float]], ...] = ({}, {})

    def of(self, sender: int, lane: int = 0) -> Iterator[float]:
        """Endless draws of one sender."""
        lanes = self._lanes[lane]
        found = lanes.get(sender)
        if found is None:
            found = lanes[sender] = self._world.draws(self._purpose, sender, self._quantity, lane)
        return found


@dataclass(frozen=True)
class Airtime:
    """Airtime of messages.

    Attributes
    ----------
    question : float
        Of one that carries no model (its version is −1).
    loaded : float
        Of one that carries a model or an answer: the longest.
    """

    question: float
    loaded: float


class NumbersPerTime(Options):
    """A bandwidth in numbers, so that the airtime of a model grows with its parameters."""

    numbers: Positive = Field(
        description="numbers per unit of time; a p-vector has as many as the model parameters"
    )


#: p-vectors per unit of time, whatever their length; or numbers.
Bandwidth = NumberOr[Positive, NumbersPerTime]


def airtime_of(
    overhead: float, bandwidth: float | NumbersPerTime | None, vectors: int, dimension: int | None = None
) -> Airtime:
    """Airtime of messages.

    Parameters
    ----------
    overhead : float
        Airtime of every message, whatever it carries.
    bandwidth : float or NumbersPerTime, optional
        p-vectors, or numbers, per unit of time; without limit when left out.
    vectors : int
        p-vectors in a message that carries a model or an answer.
    dimension : int, optional
        p, where the bandwidth is in numbers.

    Raises
    ------
    MeaningError
        If the bandwidth is in numbers, and nobody knows how many a vector has.
    """
    if bandwidth is None:
        return Airtime(overhead, overhead)
    if not isinstance(bandwidth, NumbersPerTime):
        return Airtime(overhead, overhead + vectors / bandwidth)
    if dimension is None:
        raise MeaningError(
            "network.channel.bandwidth",
            "numbers per unit of time need the length of a model: give Network its dimension, or give p-vectors per "
            "unit of time",
        )
    return Airtime(overhead, overhead + vectors * dimension / bandwidth.numbers)


#: A number of the link from a sender to a receiver.
OfLink = Callable[[int, int], float]


class EdgeValue(Options):
    """An attribute of the graph's edges, where the graph has been given: a number for each link."""

    edge: str = Field(description="name of the attribute; every link must have it")

    def column(self, links: Graph, key: str, most: float) -> np.ndarray:
        """Value of each entry of ``links.indices``, shape (m,).

        Raises
        ------
        MeaningError
            If a link has none, or one that is negative or above ``most``.
        """
        if self.edge not in links.attributes:
            known = ", ".join(sorted(links.attributes)) or "none"
            raise MeaningError(
                f"{key}.edge",
                f"not every link of the graph has a number called {self.edge!r}; attributes that all have: {known}",
            )
        values = links.attributes[self.edge]
        wrong = values[(values < 0) | (values > most)]
        if wrong.size:
            limit = f"between 0 and {most:g}" if most < float("inf") else "0 or more"
            raise MeaningError(
                f"{key}.edge", f"{self.edge!r} must be {limit} on every link, got {exact(wrong[0])}"
            )
        return values

    def of_link(self, links: Graph, key: str, most: float = float("inf")) -> OfLink:
        """Value of a link, by sender and receiver."""
        column = self.column(links, key, most).tolist()
        if links.star:
            return lambda sender, receiver: column[receiver if sender == LEARNER else sender]
        tables: list[dict[int, float] | None] = [None] * links.agents

        def value(sender: int, receiver: int) -> float:
            table = tables[sender]
            if table is None:
                first, last = int(links.indptr[sender]), int(links.indptr[sender + 1])
                table = tables[sender] = dict(
                    zip(links.indices[first:last].tolist(), column[first:last], strict=True)
                )
            return table[receiver]

        return value


def number_or_mapping(value: Any) -> str:
    """Tell apart what a channel's latency can be, by its shape."""
    if isinstance(value, EdgeValue) or (isinstance(value, dict) and "edge" in value):
        return "edge"
    return "number" if not isinstance(value, dict | Options) else "mapping"


#: How long the next message from a sender to a receiver travels; the lane is that of `Medium.carry`.
Delays = Callable[[int, int, int], float]

Latency = Annotated[
    Annotated[NonNegative, Tag("number")]
    | Annotated[EdgeValue, Tag("edge")]
    | Annotated[Distribution, Tag("mapping")],
    Discriminator(number_or_mapping),
]


def open_latency(latency: float | EdgeValue | Distribution, world: RunningNetwork) -> Delays:
    """Delays in a world."""
    if isinstance(latency, EdgeValue):
        delay = latency.of_link(world.links, "network.channel.latency")
        return lambda sender, receiver, _: delay(sender, receiver)
    if isinstance(latency, Distribution):
        draws = Draws(world, "latency", latency)
        return lambda sender, _, lane: next(draws.of(sender, lane))
    constant = latency
    return lambda *_: constant
