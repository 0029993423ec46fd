from typing import Literal
from pydantic import Field
from p2psim.distributions import Quantity
from p2psim.options import Options, Positive

class Poll(Options):
    """The learner broadcasts queries at regular intervals; who hears one answers after a random delay."""

    kind: Literal["poll"] = "poll"
    interval: Positive = Field(1.0, description="time between queries")
    response: Quantity = Field(0.0, description="delay between hearing a query and sending the answer")
