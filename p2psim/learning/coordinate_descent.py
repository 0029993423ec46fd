"""Coordinate descent on a graph (B, section 3)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from p2psim.learning.batches import Batch, Whole
from p2psim.learning.run_end import RunEnd
from p2psim.learning.starts import Start, Zero
from p2psim.options import Positive


class CoordinateDescent(RunEnd):
    """On waking, an agent steps down its own loss and towards its neighbours' models (B, section 3)."""

    kind: Literal["coordinate-descent"] = "coordinate-descent"
    mu: Positive = Field(description="μ, the weight of the agents' own losses")
    start: Start = Field(Zero(), description="the agents' first models")
    batch: Batch = Field(Whole(), description="which of an agent's records take part in a release")
    smoothness: Literal["public", "data"] = Field(
        "public",
        description="where L_i^loc comes from, which sets the steps: public bounds on x if there are any, or "
        "the records (then ε does not cover the steps)",
    )

    touches_data: ClassVar[bool] = True
    updates: ClassVar[Literal["wake", "hear"]] = "wake"
