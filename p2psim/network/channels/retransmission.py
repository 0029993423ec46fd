"""Sending again what did not arrive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from p2psim.core.distributions import Distribution, Quantity
from p2psim.core.events import OFFLINE, UNACKNOWLEDGED
from p2psim.core.options import BY_NAME, Fraction, Options
from p2psim.network.channels.draws import Draws
from p2psim.network.channels.medium import Medium

if TYPE_CHECKING:
    from p2psim.network.simpy_engine.timers import Endpoint, Message
    from p2psim.network.spec import RunningNetwork

Limit = Annotated[int, Field(ge=1, le=100)]

_BACKOFF = Distribution(exponential=0.1)


class NoRetransmission(Options):
    """A message that does not arrive is gone."""

    kind: Literal["none"] = "none"


class ResendSame(Options):
    """The same bytes are sent again, to each receiver that has not acknowledged them: free in privacy.

    Whatever kept an attempt from arriving, the sender learns of it when it fails, and tries again after ``backoff``.
    An acknowledgement takes no airtime; one that is lost makes the sender send again what the receiver has, who takes
    no notice. A sender that is away when it is to try again gives up.
    """

    kind: Literal["same"] = "same"
    limit: Limit = Field(3, description="the most times that a message is sent again to a receiver")
    backoff: Quantity = Field(_BACKOFF, description="time from the end of an attempt to the next")
    acknowledge: Fraction = Field(0.0, description="probability that an acknowledgement is lost")


class ResendFresh(Options):
    """An owner whose answer was lost gives it again with a new release, which costs privacy; for a star.

    Queries are not sent again. The owner gives up when it hears a newer query, may make no more releases, or is away.
    """

    kind: Literal["fresh"] = "fresh"
    limit: Limit = Field(3, description="the most times that an answer to a query is given again")
    backoff: Quantity = Field(_BACKOFF, description="time from the loss to the next answer")


Retransmit = Annotated[NoRetransmission | ResendSame | ResendFresh, Field(discriminator="kind"), BY_NAME]


class Retransmission:
    """Stands between a medium and the world, and lets a message fail only when all attempts have.

    Attempts are counted where something went wrong, so that what arrives at once costs nothing.
    """

    def __init__(self, world: RunningNetwork, options: ResendSame, make: Callable[[Endpoint], Medium]):
        self._world, self._limit = world, options.limit
        self._backoffs = Draws(world, "retransmit", options.backoff)
        self._loses_some = options.acknowledge > 0
        self._acknowledge, self._draws = options.acknowledge, Draws(world, "acknowledgement")
        # Of messages that were sent again, by (seq, receiver): how often, and whether they have arrived.
        self._again: dict[tuple[int, int], tuple[int, bool]] = {}
        self._medium = make(self)

    def carry(self, message: Message) -> None:
        """Send for the first time."""
        self._medium.carry(message)

    def arrive(self, message: Message, receiver: int) -> None:
        """Take in a message, once; send it again if its acknowledgement is lost."""
        if not self._world.presence.takes_in(receiver):
            self.fail(message, receiver, OFFLINE)
            return
        tries, had = self._again.pop((message.seq, receiver), (0, False))
        if not had:
            self._world.arrive(message, receiver)
        if (
            self._loses_some
            and next(self._draws.of(message.sender)) < self._acknowledge
            and tries < self._limit
        ):
            self._again[message.seq, receiver] = tries, True
            self._try_again(message, receiver, UNACKNOWLEDGED)

    def fail(self, message: Message, receiver: int, outcome: int) -> None:
        """Send again, or give up."""
        tries, had = self._again.get((message.seq, receiver), (0, False))
        if tries < self._limit:
            self._again[message.seq, receiver] = tries, had
            self._try_again(message, receiver, outcome)
        else:
            self._give_up(message, receiver, outcome)

    def _try_again(self, message: Message, receiver: int, outcome: int) -> None:
        world, sender = self._world, message.sender

        def send() -> None:
            if not world.present[sender]:
                self._give_up(message, receiver, outcome)
                return
            tries, had = self._again[message.seq, receiver]
            self._again[message.seq, receiver] = tries + 1, had
            world.retry(message, receiver, outcome)
            self._medium.carry(message.to(receiver, lane=1))

        world.after(next(self._backoffs.of(sender)), send)

    def _give_up(self, message: Message, receiver: int, outcome: int) -> None:
        _, had = self._again.pop((message.seq, receiver))
        if not had:
            self._world.fail(message, receiver, outcome)
