"""Several reasons to be away at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from p2psim.network.availability.absence import Absence, Misses
from p2psim.network.availability.bernoulli import Bernoulli
from p2psim.network.availability.departures import Join, Leave, Remove
from p2psim.network.availability.renewal import LearnerOutage, Outage, Renewal
from p2psim.network.availability.schedules import Diurnal, Scripted
from p2psim.network.links import Links
from p2psim.network.members import Members
from p2psim.options import AS_TUPLE, BY_NAME
from p2psim.randomness import Streams

if TYPE_CHECKING:
    from p2psim.network.world import World

Part = Annotated[
    Bernoulli | Renewal | Outage | LearnerOutage | Diurnal | Scripted | Leave | Join | Remove,
    Field(discriminator="kind"),
    BY_NAME,
]


class AllOf(Absence):
    """An agent is there when each of several parts says so, and misses a wake when any does.

    Parts of the same kind draw from streams of their own. What happens to messages and on coming back is said here, not
    in the parts.
    """

    kind: Literal["all-of"] = "all-of"
    parts: Annotated[
        tuple[Part, ...],
        Field(min_length=2),
        AS_TUPLE,
    ] = Field(description="the reasons")

    def start(self, world: World, streams: Streams) -> None:
        """Begin all parts."""
        for number, part in enumerate(self.parts):
            part.start(world, _of_part(streams, number))

    def misses(self, world: World, streams: Streams) -> list[Misses] | None:
        """A wake is missed if any part has it missed."""
        lists = [part.misses(world, _of_part(streams, number)) for number, part in enumerate(self.parts)]
        given = [one for one in lists if one is not None]
        return [_Any([one[agent] for one in given]) for agent in range(world.links.agents)] if given else None

    def shares(self, members: Members, links: Links) -> np.ndarray:
        """The product, since parts are independent."""
        product = np.ones(links.agents)
        for part in self.parts:
            product = product * part.shares(members, links)
        return product


def _of_part(streams: Streams, number: int) -> Streams:
    """Streams of a part of its own."""
    variant = f"{streams.variants.get('availability', '')}/{number}"
    return replace(streams, variants={**streams.variants, "availability": variant})


class _Any(Misses):
    """Whether any of several has a wake missed; each is asked, so that all advance alike."""

    def __init__(self, parts: list[Misses]):
        self._parts = parts

    def __call__(self) -> bool:
        """Whether any part has the next wake missed."""
        return max([part() for part in self._parts])
