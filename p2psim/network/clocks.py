"""When agents wake."""

from typing import Literal

from pydantic import Field

from p2psim.options import Options, PerAgent


class Clock(Options):
    """Independent Poisson clocks."""

    kind: Literal["poisson"] = "poisson"
    rate: PerAgent = Field(1.0, description="mean number of wakes per unit of time")
