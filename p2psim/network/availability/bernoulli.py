"""Every wake is missed or not, independently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.errors import MeaningError
from p2psim.network.availability.absence import KEY, Absence, Misses
from p2psim.network.availability.odds import Depends, tilted
from p2psim.network.links import Links
from p2psim.network.members import Members
from p2psim.options import OneOf, SharePerAgent
from p2psim.randomness import Streams

if TYPE_CHECKING:
    from p2psim.network.world import World


class Bernoulli(Absence, OneOf):
    """An agent misses each wake with a probability of its own; it still hears messages.

    Under ``poll`` the queries are what wakes: an owner that misses one does not answer it.
    """

    kind: Literal["bernoulli"] = "bernoulli"
    alternatives: ClassVar[tuple[str, ...]] = ("drop", "participation")
    drop: SharePerAgent | None = Field(None, description="probability that a wake is missed, below 1")
    participation: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="instead of drop: share of wakes that are not missed"
    )
    depends: Depends | None = Field(None, description="which agents miss more than others, at the same mean")
    has_spans: ClassVar[bool] = False

    def chances(self, members: Members, links: Links) -> np.ndarray:
        """Probability that each agent misses a wake, shape (n,)."""
        if self.participation is not None:
            drop = np.full(links.agents, 1 - self.participation)
        else:
            assert self.drop is not None
            drop = members.values(self.drop, f"{KEY}.drop")
        if not (drop < 1).all():
            raise MeaningError(f"{KEY}.drop", f"must be below 1, got {drop.max():g}")
        return tilted(drop, self.depends, members, links)

    def start(self, world: World, streams: Streams) -> None:
        """Nobody is ever away."""

    def misses(self, world: World, streams: Streams) -> list[Misses] | None:
        """A draw for each wake."""
        chances = self.chances(world.members, world.links)
        return [Misses(streams, agent, float(chance)) for agent, chance in enumerate(chances)]

    def shares(self, members: Members, links: Links) -> np.ndarray:
        """One minus the probability of a miss."""
        return 1 - self.chances(members, links)
