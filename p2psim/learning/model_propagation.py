"""Model propagation on a graph (B, appendix C)."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from p2psim.learning.run_end import RunEnd
from p2psim.learning.starts import Local, Start
from p2psim.options import Step


class ModelPropagation(RunEnd):
    """On waking, an agent averages its neighbours' models with its own local one (B, appendix C)."""

    kind: Literal["model-propagation"] = "model-propagation"
    mu: Step = Field(description="μ, the weight of the agents' local models")
    start: Start = Field(Local(), description="the local models, which are also the agents' first ones")

    touches_data: ClassVar[bool] = False
    updates: ClassVar[Literal["wake", "hear"]] = "wake"
