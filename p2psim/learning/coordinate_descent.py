"""Coordinate descent on a graph (B, section 3)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from p2psim.learning.batches import Batch, Whole
from p2psim.learning.run_end import RunEnd
from p2psim.learning.smoothness import Smoothness
from p2psim.learning.starts import Start, Zero
from p2psim.options import Step


class CoordinateDescent(RunEnd):
    """On waking, an agent steps down its own loss and towards its neighbours' models (B, section 3)."""

    kind: Literal["coordinate-descent"] = "coordinate-descent"
    mu: Step = Field(description="μ, the weight of the agents' own losses")
    start: Start = Field(Zero(), description="the agents' first models")
    batch: Batch = Field(Whole(), description="which of an agent's records take part in a release")
    smoothness: Smoothness = "public"

    touches_data: ClassVar[bool] = True
    updates: ClassVar[Literal["wake", "hear"]] = "wake"
