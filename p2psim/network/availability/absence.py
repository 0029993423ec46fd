"""What all kinds of availability share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.network.links import Links
from p2psim.network.members import Members
from p2psim.options import Options
from p2psim.randomness import Streams

if TYPE_CHECKING:
    from p2psim.network.world import World

#: Where the keys of this part stand in a scenario.
KEY = "network.availability"


class Absence(Options):
    """What happens while an agent is away, and when it comes back; each kind says when that is.

    An agent that is away does not wake, send or commit. Its Poisson clock ticks on, unheard: having no memory, one that
    stood still meanwhile would give the same law of wakes.
    """

    messages: Literal["lost", "held"] = Field(
        "lost", description="what becomes of a message that reaches an agent that is away"
    )
    rejoin: Literal["stale", "reset", "fetch"] = Field(
        "stale", description="which model an agent has when it comes back"
    )
    #: Whether nobody is ever away and no wake is missed.
    ideal: ClassVar[bool] = False
    #: Whether agents are away for spans of time; otherwise they only miss wakes.
    has_spans: ClassVar[bool] = True

    def start(self, world: World, streams: Streams) -> None:
        """Begin to change who is there (`Presence.alternate`), with draws from ``streams``; called before time runs."""
        raise NotImplementedError

    def misses(self, world: World, streams: Streams) -> list[Misses] | None:
        """For each agent, whether it misses its next wake; None where no wake of an agent that is there is missed."""
        return None

    def shares(self, members: Members, links: Links) -> np.ndarray:
        """Share of its ticks that each agent is there for in the long run, shape (n,).

        NaN where it changes with time for good, or cannot be said.

        Raises
        ------
        MeaningError
            If a value names no agent and no group, or needs what is not known of the agents.
        """
        raise NotImplementedError


class Misses:
    """Independent answers to whether an agent misses a wake, drawn in blocks from its own stream."""

    def __init__(self, streams: Streams, agent: int, chance: float):
        self._chance = chance
        self._draws = _blocks(streams.generator("availability", agent))

    def __call__(self) -> bool:
        """Whether the next wake is missed."""
        return next(self._draws) < self._chance


def _blocks(random: np.random.Generator) -> Iterator[float]:
    while True:
        yield from random.random(64).tolist()
