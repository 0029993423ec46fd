"""An allocation: each release gets half of what is left of its agent's budget, the last all of it."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

import p2psim
from p2psim.core.options import Count
from p2psim.privacy.shares import Releases, RunForecast


@p2psim.register
class Halving(p2psim.Allocation):
    """½, ¼, … of the budget, the last two alike, for so many releases."""

    kind: Literal["halving"] = "halving"
    releases: Count = Field(description="the most releases")

    sums_to_one: ClassVar[bool] = True

    def limit(self, horizon: int, share: float, expected: float) -> int:
        return self.releases

    def weights(
        self, releases: Releases, limits: np.ndarray, outlook: RunForecast, power: int = 1
    ) -> np.ndarray:
        return 0.5 ** np.minimum(releases.numbers + 1, limits - 1)
