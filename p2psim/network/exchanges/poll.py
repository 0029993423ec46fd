"""The learner asks everyone at regular intervals."""

from __future__ import annotations

import itertools
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from p2psim.core.distributions import Quantity, least
from p2psim.core.events import LEARNER
from p2psim.core.options import Positive
from p2psim.network.exchanges.protocol import Exchange, QueriedOwners
from p2psim.network.order import POLL
from p2psim.network.spec import RunningNetwork, Steps


class Poll(Exchange):
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
    computes: ClassVar[bool] = True
    delay_key: ClassVar[str] = "response"
    events_per_commit: ClassVar[int] = 4

    @property
    def polled(self) -> float:
        """Interval of the queries."""
        return self.interval

    @model_validator(mode="after")
    def _can_answer(self) -> Poll:
        if least(self.response) > self.interval:
            raise ValueError(
                f"response: takes at least {least(self.response)}, longer than the interval {self.interval} between "
                "queries, so that the next query would supersede every answer"
            )
        return self

    def start(self, world: RunningNetwork) -> None:
        """Start the learner's queries."""
        world.env.process(_Polling(world, self.response).poll(self.interval))


class _Polling(QueriedOwners):
    """The learner's queries, and what each owner still owes."""

    def poll(self, interval: float) -> Steps:
        """The learner: it sends a query at each multiple of the interval, unless it is offline."""
        for number in itertools.count(1):
            yield from self._world.until(number * interval, LEARNER, number, POLL)
            if self._world.present[LEARNER]:
                self._ask()

    def _use(self, owner: int, _: int, answer: int, version: int, release: int) -> None:
        self._world.commit(LEARNER, owner, answer, release)
