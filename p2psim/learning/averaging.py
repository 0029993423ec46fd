"""Gossip averaging (Boyd, Ghosh, Prabhakar, Shah 2006)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from p2psim.learning.run_end import RunEnd
from p2psim.learning.starts import Local, Start


class Averaging(RunEnd):
    """Agents that meet take the mean of their models."""

    kind: Literal["averaging"] = "averaging"
    start: Start = Field(Local(), description="what is averaged")

    mu: ClassVar[float] = 1.0
    touches_data: ClassVar[bool] = False
    updates: ClassVar[Literal["wake", "hear"]] = "hear"
