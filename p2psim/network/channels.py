"""What happens to a message on its way: delay and loss."""

from pydantic import Field

from p2psim.distributions import Quantity
from p2psim.options import Fraction, Options


class Channel(Options):
    """A channel that delays and loses messages, each delivery independently of the others."""

    latency: Quantity = Field(0.0, description="time a message travels, in mean clock periods")
    loss: Fraction = Field(0.0, description="probability that a delivery is lost")

    @property
    def ideal(self) -> bool:
        """Whether every message arrives in the moment in which it is sent."""
        return self.latency == 0 and self.loss == 0
