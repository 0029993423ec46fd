"""Agents that come and go: alternating spans of presence and absence, and the distributions of their durations.

The distributions have a given mean, and their residual times can be drawn. A stationary renewal process that is
observed at a fixed time is in a span whose duration has the length-biased distribution, at a uniform place in it (Cox
1962, Renewal Theory, chapter 5). The length-biased distributions are exact: that of the lognormal is the lognormal with
its location moved by σ²; that of the Weibull is the scale times G^{1/k} with G ~ Gamma(1 + 1/k).
"""

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.options import ByKind, Few, OneOf, Options, PerAgent, Positive, ProperSharePerAgent
from p2psim.core.printing import exact
from p2psim.core.randomness import Rewound, Streams
from p2psim.network.availability.absence import KEY, Availability, Depends, tilted
from p2psim.network.graph import Graph
from p2psim.network.members import Members
from p2psim.network.spec import RunningNetwork


class ExponentialSpans(Options):
    """No memory."""

    kind: Literal["exponential"] = "exponential"

    def durations(self, mean: float, random: np.random.Generator, size: int) -> np.ndarray:
        """Independent durations, shape (size,)."""
        return random.exponential(mean, size)

    def residual(self, mean: float, random: np.random.Generator) -> float:
        """What is left of the span in which the process is found."""
        return float(random.exponential(mean))


class LognormalSpans(Options):
    """Many short spans and a few very long ones."""

    kind: Literal["lognormal"] = "lognormal"
    sigma: Positive = Field(1.0, description="standard deviation of the logarithm")

    def durations(self, mean: float, random: np.random.Generator, size: int) -> np.ndarray:
        """Independent durations, shape (size,)."""
        return random.lognormal(math.log(mean) - self.sigma**2 / 2, self.sigma, size)

    def residual(self, mean: float, random: np.random.Generator) -> float:
        """What is left of the span in which the process is found."""
        whole = random.lognormal(math.log(mean) + self.sigma**2 / 2, self.sigma)
        return float(whole * random.random())


class WeibullSpans(Options):
    """Spans that end ever less likely (shape below 1) or ever more likely (above) the longer they have lasted."""

    kind: Literal["weibull"] = "weibull"
    shape: Positive = Field(0.5, description="k; 1 is the exponential distribution")

    def durations(self, mean: float, random: np.random.Generator, size: int) -> np.ndarray:
        """Independent durations, shape (size,)."""
        return mean / math.gamma(1 + 1 / self.shape) * random.weibull(self.shape, size)

    def residual(self, mean: float, random: np.random.Generator) -> float:
        """What is left of the span in which the process is found."""
        scale = mean / math.gamma(1 + 1 / self.shape)
        whole = scale * random.gamma(1 + 1 / self.shape) ** (1 / self.shape)
        return float(whole * random.random())


class ConstantSpans(Options):
    """Every span lasts the same."""

    kind: Literal["constant"] = "constant"

    def durations(self, mean: float, random: np.random.Generator, size: int) -> np.ndarray:
        """The mean, ``size`` times."""
        return np.full(size, mean)

    def residual(self, mean: float, random: np.random.Generator) -> float:
        """What is left of the span in which the process is found."""
        return mean * float(random.random())


SpanDistribution = ByKind[ExponentialSpans | LognormalSpans | WeibullSpans | ConstantSpans]

#: Spans are drawn this many at a time.
_BLOCK = 32


class RenewalTurns:
    """When a stationary alternating renewal process turns: an iterator without end.

    Between blocks of draws it keeps where its stream goes on, and no generator: many processes take little memory.

    Parameters
    ----------
    random : Rewound
        Of the key of the purpose ``availability``.
    address : int
        Whose stream of it is drawn from.
    up, down : float
        Mean durations.
    up_law, down_law : SpanDistribution

    Attributes
    ----------
    begins : bool
        Whether the process begins up.
    """

    __slots__ = ("_address", "_first", "_last", "_laws", "_means", "_random", "_stream", "begins")

    def __init__(
        self,
        random: Rewound,
        address: int,
        up: float,
        down: float,
        up_law: SpanDistribution,
        down_law: SpanDistribution,
    ):
        self._random, self._address, self._stream = random, address, (0, -1)
        generator = random.at(address)
        self.begins = bool(generator.random() < up / (up + down))
        # First what the process is in at the beginning.
        self._means = (up, down) if self.begins else (down, up)
        self._laws = (up_law, down_law) if self.begins else (down_law, up_law)
        self._last = self._laws[0].residual(self._means[0], generator)
        self._first: np.ndarray | None = self._draw(generator)

    def _draw(self, generator: np.random.Generator) -> np.ndarray:
        """The last turn, and a block of more."""
        (one, other), (mean, other_mean) = self._laws, self._means
        turns = np.empty(1 + 2 * _BLOCK)
        turns[0] = self._last
        # Up comes first in the stream, whatever the process begins with.
        if self.begins:
            turns[2::2] = one.durations(mean, generator, _BLOCK)
        turns[1::2] = other.durations(other_mean, generator, _BLOCK)
        if not self.begins:
            turns[2::2] = one.durations(mean, generator, _BLOCK)
        self._stream = self._random.place()
        turns = turns.cumsum()
        self._last = float(turns[-1])
        return turns

    def block(self) -> np.ndarray:
        """The next turns, as many as are drawn at once."""
        first, self._first = self._first, None
        if first is not None:
            return first
        return self._draw(self._random.at(self._address, 0, *self._stream))[1:]

    def __iter__(self) -> Iterator[float]:
        while True:
            yield from self.block().tolist()


class Renewal(Availability, OneOf):
    """Each agent is there for a random time, away for a random time, and so on; stationary from the start on."""

    kind: Literal["renewal"] = "renewal"
    alternatives: ClassVar[tuple[str, ...]] = ("down", "participation")
    up: PerAgent = Field(description="mean time that an agent stays")
    down: PerAgent | None = Field(None, description="mean time that it stays away")
    participation: ProperSharePerAgent | None = Field(
        None, description="instead of down: share of time that an agent is there, below 1"
    )
    up_law: SpanDistribution = Field(
        ExponentialSpans(), description="distribution of the times that agents stay"
    )
    down_law: SpanDistribution = Field(
        ExponentialSpans(), description="distribution of the times that they stay away"
    )
    depends: Depends | None = Field(
        None, description="which agents are away more than others, at the same mean"
    )

    def means(self, members: Members, links: Graph) -> tuple[np.ndarray, np.ndarray]:
        """Mean times that each agent stays, and stays away, shape (n,) each."""
        up = members.values(self.up, f"{KEY}.up")
        if self.participation is not None:
            there = members.values(self.participation, f"{KEY}.participation")
            down = up * (1 - there) / there
        else:
            assert self.down is not None
            down = members.values(self.down, f"{KEY}.down")
        for name, means in (("up", up), ("down", down)):
            if not np.isfinite(means).all():
                raise MeaningError(f"{KEY}.{name}", "must be finite; leave is for who goes for good")
        if self.depends is not None:
            away = tilted(down / (up + down), self.depends, members, links)
            down = up * away / (1 - away)
        return up, down

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Begin each agent's spans."""
        up, down = self.means(world.members, world.links)
        random = Rewound(streams.key("availability"))
        for agent, means in enumerate(zip(up.tolist(), down.tolist(), strict=True)):
            turns = RenewalTurns(random, agent, *means, self.up_law, self.down_law)
            world.presence.alternate((agent,), turns.begins, turns)

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        """up/(up + down)."""
        up, down = self.means(members, links)
        return up / (up + down)


class Outage(Availability, OneOf):
    """All agents of a group are away at the same times: a network or a region fails."""

    kind: Literal["outage"] = "outage"
    alternatives: ClassVar[tuple[str, ...]] = ("down", "participation")
    up: Positive = Field(description="mean time between outages of a group")
    down: Positive | None = Field(None, description="mean time that an outage lasts")
    participation: ProperSharePerAgent | None = Field(
        None,
        description="instead of down: share of time without an outage; the same for all agents of a group",
    )
    regions: Few | None = Field(
        None, description="number of regions of agents drawn at random, instead of the groups of the data"
    )
    up_law: SpanDistribution = Field(
        ExponentialSpans(), description="distribution of the times between outages"
    )
    down_law: SpanDistribution = Field(
        ExponentialSpans(), description="distribution of the times that outages last"
    )
    turns_alone: ClassVar[bool] = False

    def _downs(self, parts: list[np.ndarray], members: Members) -> list[float]:
        """Mean time that an outage of each part lasts."""
        if self.participation is None:
            assert self.down is not None
            return [self.down] * len(parts)
        key, labels = f"{KEY}.participation", members.labels
        there = members.values(self.participation, key)
        for part in parts:
            one, other = (int(part[place(there[part])]) for place in (np.argmin, np.argmax))
            if there[one] != there[other]:
                given = " and ".join(f"agent {labels[i]} has {exact(there[i])}" for i in (one, other))
                raise MeaningError(key, f"{given}; agents that are away together need the same number")
        return [self.up * (1 - share) / share for share in (float(there[part[0]]) for part in parts)]

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Begin each group's spans, from streams that no single agent has."""
        agents, random = world.links.agents, Rewound(streams.key("availability"))
        parts = self._parts(world.members, streams.generator("availability", agents))
        for number, (members, down) in enumerate(zip(parts, self._downs(parts, world.members), strict=True)):
            turns = RenewalTurns(random, agents + 1 + number, self.up, down, self.up_law, self.down_law)
            world.presence.alternate(tuple(members.tolist()), turns.begins, turns)

    def _parts(self, members: Members, random: np.random.Generator) -> list[np.ndarray]:
        if self.regions is None:
            return list(members.grouped(KEY).values())
        agents = len(members.labels)
        if self.regions > agents:
            raise MeaningError(f"{KEY}.regions", f"there are only {agents} agents")
        return [np.sort(part) for part in np.array_split(random.permutation(agents), self.regions)]

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        """up/(up + down)."""
        parts = [np.arange(links.agents)] if self.regions else list(members.grouped(KEY).values())
        shares = np.empty(links.agents)
        for part, down in zip(parts, self._downs(parts, members), strict=True):
            shares[part] = self.up / (self.up + down)
        return shares


class LearnerOutage(Availability):
    """The learner of a star is away now and then: nobody is served, and what is sent to it is lost."""

    kind: Literal["learner"] = "learner"
    up: Positive = Field(description="mean time that it is there")
    down: Positive = Field(description="mean time that it is away")
    up_law: SpanDistribution = Field(
        ExponentialSpans(), description="distribution of the times that it is there"
    )
    down_law: SpanDistribution = Field(
        ExponentialSpans(), description="distribution of the times that it is away"
    )

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Begin the learner's spans."""
        if not world.links.star:
            raise MeaningError(KEY, "learner is for a star; there is no learner on this graph")
        random = Rewound(streams.key("availability"))
        turns = RenewalTurns(random, -1, self.up, self.down, self.up_law, self.down_law)
        world.presence.alternate((-1,), turns.begins, turns)

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        """up/(up + down): all owners miss the same ticks."""
        return np.full(links.agents, self.up / (self.up + self.down))
