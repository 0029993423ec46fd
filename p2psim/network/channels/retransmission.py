"""Sending again what did not arrive."""

from typing import Annotated, Literal

from pydantic import Field

from p2psim.core.distributions import Distribution, Quantity
from p2psim.core.options import ByKind, Fraction, Options

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


Retransmit = ByKind[NoRetransmission | ResendSame | ResendFresh]
