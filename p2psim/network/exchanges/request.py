from typing import Literal
from pydantic import Field
from p2psim.distributions import Quantity
from p2psim.options import Options

class Request(Options):
    """An owner asks when its clock ticks; the learner serves one at a time."""

    kind: Literal["request"] = "request"
    service: Quantity = Field(0.0, description="time the owner takes to compute its answer; the learner is busy meanwhile")
    busy: Literal["refuse", "queue"] = Field("refuse", description="what a busy learner does with who asks")
