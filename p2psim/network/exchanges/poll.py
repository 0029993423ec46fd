"""The learner asks everyone at regular intervals."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator

from p2psim.distributions import Quantity, least
from p2psim.network.events import LEARNER, NONE, OFFLINE, SUPERSEDED
from p2psim.network.exchanges.answers import Answers
from p2psim.options import Options, Positive

if TYPE_CHECKING:
    import simpy

    from p2psim.network.world import World


class Poll(Options):
    """The learner broadcasts its model at regular intervals; who hears it answers after a random delay.

    Queries leave at times interval, 2·interval, …. An owner that hears a query drops the answer that it still
    owes to an older one, touching no data for it; a query with an older model than one heard before, which has
    overtaken it on the way, is superseded as well. Each answer that reaches the learner is a commit. An owner that has
    left when its answer is due does not give it; a learner that is away asks nobody.
    """

    kind: Literal["poll"] = "poll"
    interval: Positive = Field(1.0, description="time between queries")
    response: Quantity = Field(0.0, description="time between hearing a query and sending the answer")

    has_clocks: ClassVar[bool] = False
    needs_learner: ClassVar[bool] = True

    @property
    def array_code(self) -> int | None:
        """Only SimPy runs this."""
        return None

    @model_validator(mode="after")
    def _can_answer(self) -> Poll:
        if least(self.response) > self.interval:
            raise ValueError(
                f"response: takes at least {least(self.response)}, longer than the interval {self.interval} between "
                "queries, so that the next query would supersede every answer"
            )
        return self

    def needs_delivery(self, _: str) -> bool:
        """Whether there is no commit without a message that arrives."""
        return True

    def start(self, world: World) -> None:
        """Start the learner's rounds."""
        world.env.process(_Rounds(self, world).ask())


class _Rounds:
    """The learner's queries, and what each owner still owes."""

    def __init__(self, options: Poll, world: World):
        self._world = world
        self._interval = options.interval
        owners = world.links.agents
        self._owners = range(owners)
        self._delays = [world.draws("response", owner, options.response) for owner in range(owners)]
        self._owed: list[tuple[int, int] | None] = [None] * owners
        self._newest = [0] * owners
        self._answers = Answers(world)

    def ask(self) -> Generator[simpy.Event, Any, None]:
        """Send a query after each interval."""
        world = self._world
        while True:
            yield world.env.timeout(self._interval)
            if world.present[LEARNER]:
                world.send(LEARNER, self._owners, world.commits, NONE, NONE, self._hear, self._miss)

    def _hear(self, _: int, owner: int, query: int, version: int, __: int) -> None:
        world = self._world
        self._answers.forget(owner)
        if world.is_spent(owner):
            return
        if world.misses(owner):
            world.drop(owner, LEARNER, version, query, OFFLINE)
            return
        if version < self._newest[owner]:
            world.drop(owner, LEARNER, version, query, SUPERSEDED)
            return
        self._newest[owner] = version
        older = self._owed[owner]
        if older is not None:
            world.drop(owner, LEARNER, older[1], older[0], SUPERSEDED)
            self._owed[owner] = None
        owed = self._owed[owner] = (query, version)
        # The timeout of a dropped answer stays in SimPy's queue; it must find that it is owed no longer.
        world.after(next(self._delays[owner]), lambda: self._answer(owner, owed))

    def _answer(self, owner: int, owed: tuple[int, int]) -> None:
        if self._owed[owner] is not owed:
            return
        self._owed[owner] = None
        world = self._world
        if not world.present[owner]:
            world.drop(owner, LEARNER, owed[1], owed[0], OFFLINE)
            return
        self._answers.give(owner, *owed, self._commit, self._miss)

    def _commit(self, owner: int, _: int, answer: int, __: int, release: int) -> None:
        self._world.commit(LEARNER, owner, answer, release)

    def _miss(self, *_: int) -> None:
        """Nobody learns that a message was lost."""
