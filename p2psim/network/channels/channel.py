"""The ``channel`` part of a scenario, and how what did not arrive is sent again."""

from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from p2psim.core.distributions import Distribution, Quantity
from p2psim.core.errors import MeaningError
from p2psim.core.options import ByKind, Fraction, NonNegative, Options
from p2psim.network.channels.draws import Bandwidth, EdgeValue, Latency
from p2psim.network.channels.effects import Effects, Loss, LossModel, loss_model
from p2psim.network.graph import Graph
from p2psim.network.spec import AnswerAgain
from p2psim.network.verify_messages import NEVER, Resending

Limit = Annotated[int, Field(ge=1, le=100)]

_BACKOFF = Distribution(exponential=0.1)


class NoRetransmission(Options):
    """A message that does not arrive is gone."""

    kind: Literal["none"] = "none"
    limit: ClassVar[int] = 0
    backoff: ClassVar[float] = 0.0
    acknowledge: ClassVar[float] = 0.0
    resending: ClassVar[Resending] = NEVER


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

    @property
    def resending(self) -> Resending:
        """What may be sent again."""
        return Resending(self.limit, self.acknowledge > 0)


class ResendFresh(Options):
    """An owner whose answer was lost gives it again with a new release, which costs privacy; for a star.

    Queries are not sent again. The owner gives up when it hears a newer query, may make no more releases, or is away.
    """

    kind: Literal["fresh"] = "fresh"
    limit: Limit = Field(3, description="the most times that an answer to a query is repeated")
    backoff: Quantity = Field(_BACKOFF, description="time from the loss to the next answer")
    acknowledge: ClassVar[float] = 0.0

    @property
    def resending(self) -> Resending:
        """What may be sent again."""
        return Resending(fresh=self.limit)


Retransmit = ByKind[NoRetransmission | ResendSame | ResendFresh]


#: Without a backoff of its own, carrier sensing waits this many airtimes on average.
BACKOFF_AIRTIMES = 10.0


class Channel(Options):
    """A channel on which messages take time, are lost, and collide.

    A transmission occupies [t, t + airtime) wherever its sender is heard; its latency comes after that. With collisions
    each receiver decides for itself whether it has heard it.

    Choices
    -------
    collision: none
        messages do not disturb one another
    collision: aloha
        agents transmit at once; transmissions that overlap at a receiver are lost
    collision: slotted
        ALOHA whose transmissions begin at whole slots
    collision: carrier-sense
        a sender that hears another waits a random time, then tries again
    while_sending: wait
        it waits its turn
    while_sending: overlap
        it goes out at once; one sender's do not collide
    while_sending: skip
        it is dropped
    """

    latency: Latency = Field(
        0.0,
        description="time a message travels, in mean clock periods; {edge: NAME} takes it from an attribute of links",
    )
    loss: Loss = Field(
        0.0,
        description="probability that a delivery is lost: a number, {edge: NAME}, or bursts, "
        "{kind: gilbert-elliott, ...}",
    )
    airtime: NonNegative = Field(0.0, description="time a message is on the air")
    bandwidth: Bandwidth | None = Field(
        None,
        description="p-vectors per unit of time, or {numbers: so many}: then a larger model takes longer; each vector "
        "that a message carries adds to its airtime; null is no limit",
    )
    collision: Literal["none", "aloha", "slotted", "carrier-sense"] = Field(
        "none", description="how senders share the medium; none: messages do not disturb one another"
    )
    shared: bool | None = Field(
        None,
        description="whether everybody hears everybody; otherwise neighbours hear each other; null: on a star, yes",
    )
    half_duplex: bool = Field(False, description="whether an agent that sends hears nothing meanwhile")
    capture: Fraction = Field(
        0.0,
        description="probability that a transmission which began in quiet survives those that begin during it",
    )
    while_sending: Literal["wait", "overlap", "skip"] = Field(
        "wait",
        description="what becomes of a message whose sender is busy with another: it waits its turn, goes out at once "
        "(one sender's do not collide), or is dropped",
    )
    backoff: Distribution | None = Field(
        None,
        description="of carrier-sense: time until a sender that heard another tries again; null: exponential, of ten "
        "times the longest airtime",
    )
    attempts: Annotated[int, Field(ge=1, le=1000)] = Field(
        16, description="of carrier-sense: after this many failed attempts the message is dropped"
    )
    retransmit: Retransmit = Field(NoRetransmission(), description="whether what was lost is sent again")
    effects: Effects | None = Field(
        None, description="what else loses or delays deliveries, in order: parts of your own"
    )

    unsaid: ClassVar[tuple[str, ...]] = ("effects",)

    @model_validator(mode="after")
    def _is_random(self) -> Self:
        uniform = self.backoff.uniform if self.backoff is not None else None
        if uniform is not None and uniform[0] == uniform[1]:
            raise ValueError(
                "backoff: must be random, or those who have waited for one another collide again"
            )
        return self

    @property
    def ideal(self) -> bool:
        """Whether every message arrives in the moment in which it is sent."""
        return self.takes_no_time and self.loss == 0

    @property
    def takes_no_time(self) -> bool:
        """Whether every message ends in the moment in which it is sent."""
        is_instant = self.latency == 0 and self.airtime == 0 and self.bandwidth is None
        return is_instant and not self.effects

    @property
    def fresh(self) -> AnswerAgain | None:
        """How lost answers are given again with new releases; None where they are not."""
        return self.retransmit if self.resending.fresh else None

    @property
    def resending(self) -> Resending:
        """What may be sent again."""
        return self.retransmit.resending

    @property
    def losses(self) -> LossModel:
        """How deliveries are lost."""
        return loss_model(self.loss)

    def travel_times(self, links: Graph) -> np.ndarray | None:
        """Latency of each entry of ``links.indices``; None where it is not of the link."""
        if not isinstance(self.latency, EdgeValue):
            return None
        return self.latency.column(links, "network.channel.latency", np.inf)

    @property
    def ends(self) -> Literal["at once", "arrival", "airtime"] | None:
        """When messages end, as the verifier of events has it; None where some arrive after their airtime."""
        is_on_air = self.airtime > 0 or self.bandwidth is not None
        if self.collision == "none" or not is_on_air:
            takes_time = self.latency != 0 or is_on_air or self.effects
            return "arrival" if takes_time else "at once"
        return "airtime" if self.latency == 0 and not self.effects else None

    def check(self, links: Graph) -> None:
        """Refuse keys that mean nothing on these links.

        Raises
        ------
        MeaningError
            If links lack an attribute that the channel takes, fresh answers are asked for where nobody answers, or an
            effect means nothing on these links.
        """
        for effect in self.effects or ():
            effect.open(links)
        self.travel_times(links)
        if self.losses.shared_chance is None:  # otherwise links have no numbers to be looked at
            self.losses.chances(links)
        if self.fresh is not None and not links.star:
            raise MeaningError(
                "network.channel.retransmit",
                "fresh gives a learner's query another answer, and there is no learner; use kind: same",
            )
