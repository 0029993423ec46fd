"""Push-sum (Kempe, Dobra, Gehrke 2003): averaging by messages that need no answer."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from p2psim.learning.run_end import RunEnd
from p2psim.learning.starts import Local, Start


class PushSum(RunEnd):
    """Each agent keeps a sum and a weight, and sends half of both; its model is sum by weight.

    Sums and weights are conserved as long as every message arrives, whatever its delay: then all models tend to the
    mean of the start. A message that is lost takes its sum and weight along: models still agree in the end, elsewhere.
    """

    kind: Literal["push-sum"] = "push-sum"
    start: Start = Field(Local(), description="what is averaged")

    mu: ClassVar[float] = 1.0
    touches_data: ClassVar[bool] = False
    updates: ClassVar[Literal["wake", "hear"]] = "hear"
