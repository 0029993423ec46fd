"""When agents are online: always, with wakes that are missed, or away for one reason or several."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.options import AS_TUPLE, BY_NAME, OneOf, Options, PositiveSharePerAgent, SharePerAgent
from p2psim.core.part_types import AnyOf
from p2psim.core.randomness import Streams
from p2psim.core.registry import declare, register, register_all
from p2psim.network.availability.absence import KEY, Availability, Depends, MissedWakes, Misses, tilted
from p2psim.network.graph import Graph
from p2psim.network.members import Members
from p2psim.network.spec import RunningNetwork


class Always(Options):
    """Everyone is there all the time."""

    part_kind: ClassVar[str] = "availability"

    kind: Literal["always"] = "always"
    ideal: ClassVar[bool] = True
    turns_alone: ClassVar[bool] = True
    has_spans: ClassVar[bool] = False
    messages: ClassVar[str] = "lost"
    rejoin: ClassVar[str] = "stale"
    reasons: ClassVar[tuple[Availability, ...]] = ()

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Nobody ever leaves."""

    def misses(self, world: RunningNetwork, streams: Streams) -> None:
        """No wake is missed."""

    def missed(self, members: Members, links: Graph, streams: Streams) -> list[MissedWakes]:
        """None is."""
        return []

    def check_names(self, members: Members) -> None:
        """Nobody is named."""

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        """All of its ticks."""
        return np.ones(links.agents)


class Bernoulli(Availability, OneOf):
    """Each agent misses its wakes with its own probability; it still hears messages.

    Under ``poll`` the queries are what wakes: an owner that misses one does not answer it.
    """

    kind: Literal["bernoulli"] = "bernoulli"
    alternatives: ClassVar[tuple[str, ...]] = ("drop", "participation")
    drop: SharePerAgent | None = Field(None, description="probability that a wake is missed, below 1")
    participation: PositiveSharePerAgent | None = Field(
        None, description="instead of drop: share of wakes that are not missed"
    )
    depends: Depends | None = Field(None, description="which agents miss more than others, at the same mean")
    has_spans: ClassVar[bool] = False

    def chances(self, members: Members, links: Graph) -> np.ndarray:
        """Probability that each agent misses a wake, shape (n,)."""
        if self.participation is not None:
            key, what = f"{KEY}.participation", "so small a number that it misses all its wakes"
            drop = 1 - members.values(self.participation, key)
        else:
            assert self.drop is not None
            key, what = f"{KEY}.drop", "1, and must be below 1"
            drop = members.values(self.drop, key)
        if not (drop < 1).all():
            raise MeaningError(key, f"agent {members.labels[int(drop.argmax())]} has {what}")
        return tilted(drop, self.depends, members, links)

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Nobody is ever away."""

    def misses(self, world: RunningNetwork, streams: Streams) -> list[Misses] | None:
        """A draw for each wake."""
        chances = self.chances(world.members, world.links)
        return [Misses(streams, agent, float(chance)) for agent, chance in enumerate(chances)]

    def missed(self, members: Members, links: Graph, streams: Streams) -> list[MissedWakes]:
        """One reason."""
        return [MissedWakes(self.chances(members, links), streams.key("availability"))]

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        """One minus the probability of a miss."""
        return 1 - self.chances(members, links)


register_all([Always, Bernoulli])
__getattr__ = declare(
    "availability",
    __name__,
    {
        "renewal": "renewal:Renewal",
        "outage": "renewal:Outage",
        "learner": "renewal:LearnerOutage",
        "diurnal": "schedules:Diurnal",
        "scripted": "schedules:Scripted",
        "leave": "departures:Leave",
        "join": "departures:Join",
        "remove": "departures:Remove",
    },
)

Part = Annotated[Availability, AnyOf("availability", but=("always", "all-of")), BY_NAME]


@register
class AllOf(Availability):
    """An agent is there when each of several parts says so, and misses a wake when any does.

    Parts of the same kind draw from separate streams. What happens to messages and on coming back is set here, not
    in the parts.
    """

    kind: Literal["all-of"] = "all-of"
    parts: Annotated[tuple[Part, ...], Field(min_length=2), AS_TUPLE] = Field(description="the reasons")

    @property
    def reasons(self) -> Sequence[Availability]:
        """The parts."""
        return self.parts

    @property
    def turns_alone(self) -> bool:
        """Whether no agents leave and come back together, for any of the reasons."""
        return all(part.turns_alone for part in self.parts)

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Begin all parts."""
        for number, part in enumerate(self.parts):
            part.start(world, of_part(streams, number))

    def misses(self, world: RunningNetwork, streams: Streams) -> Sequence[Callable[[], bool]] | None:
        """A wake is missed if any part has it missed."""
        lists = [part.misses(world, of_part(streams, number)) for number, part in enumerate(self.parts)]
        given = [one for one in lists if one is not None]
        return [_any([one[agent] for one in given]) for agent in range(world.links.agents)] if given else None

    def missed(self, members: Members, links: Graph, streams: Streams) -> list[MissedWakes]:
        """Those of all parts."""
        parts = enumerate(self.parts)
        return [one for k, part in parts for one in part.missed(members, links, of_part(streams, k))]

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        """The product, since parts are independent."""
        product = np.ones(links.agents)
        for part in self.parts:
            product = product * part.shares(members, links)
        return product


def of_part(streams: Streams, number: int) -> Streams:
    """Streams of one of several parts, apart from those of the others."""
    variant = f"{streams.variants.get('availability', '')}/{number}"
    return replace(streams, variants={**streams.variants, "availability": variant})


def _any(parts: Sequence[Callable[[], bool]]) -> Callable[[], bool]:
    """Whether any of several has a wake missed; each is asked, so that all advance alike."""
    return lambda: max([part() for part in parts])


#: Any kind of availability that is registered.
AnyAvailability = Annotated[Availability | Always, AnyOf("availability"), BY_NAME]

__all__ = ["AllOf", "Always", "AnyAvailability", "Availability", "Bernoulli", "Misses"]
