"""An availability: agents come and go, and some absences are very long."""

import itertools
from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

import p2psim
from p2psim.core.options import Positive
from p2psim.core.randomness import Streams
from p2psim.network.graph import Graph
from p2psim.network.members import Members
from p2psim.network.spec import RunningNetwork


@p2psim.register
class Pareto(p2psim.Availability):
    """Times online and offline have Pareto distributions, P(T > t) = (m/t)^shape; stationary from the start on."""

    kind: Literal["pareto"] = "pareto"
    up: Positive = Field(description="mean time that an agent is online, in mean clock periods")
    down: Positive = Field(description="mean time that it is offline")
    shape: Annotated[float, Field(gt=1)] = Field(
        1.5, description="exponent of the tail; up to 2, variances are infinite"
    )

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        for agent in range(world.links.agents):
            random = streams.generator("availability", agent)
            begins = bool(random.random() < self.up / (self.up + self.down))
            world.presence.alternate((agent,), begins, itertools.accumulate(self._spans(begins, random)))

    def _spans(self, online: bool, random: np.random.Generator) -> Iterator[float]:
        """Spans by turns. The first is the rest of the one in which a stationary process is found."""
        yield float(self._mean(online) * self._unit(random, self.shape - 1) * random.random())
        while True:
            online = not online
            yield float(self._mean(online) * self._unit(random, self.shape))

    def _mean(self, online: bool) -> float:
        return self.up if online else self.down

    def _unit(self, random: np.random.Generator, shape: float) -> float:
        """A Pareto number whose least value is that of spans of mean one."""
        return (1 + random.pareto(shape)) * (self.shape - 1) / self.shape

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        return np.full(links.agents, self.up / (self.up + self.down))
