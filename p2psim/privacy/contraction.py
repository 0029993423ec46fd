"""B's Proposition 2: budgets spread by how much of a release's noise the later steps contract away.

An allocation's weights are shares of what adds up: of Σ ε for pure DP (power 1), of Σ μ² for Gaussian noise (power 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.errors import Fault, MeaningError
from p2psim.options import Count
from p2psim.privacy.allocation import Allocation
from p2psim.privacy.shares import UNLIMITED, Outlook, Releases

_EXPONENTS = {"third": 1 / 3, "quarter": 1 / 4}

#: The best exponent where this power of the losses is what adds up.
_OF_POWER = {1: "third", 2: "quarter"}


class Contraction(Allocation):
    """Losses ∝ C^{(T−1−t)/3} for a release at step t (B, Proposition 2): late releases get more, as their noise stays.

    The noise of step t is contracted by C^{T−1−t} until the end, so Σ C^{T−1−t}/ε(t)² is least under a given Σ ε(t)
    for the corrected form. The printed one, ε ∝ C^{t/3}, gives late releases less. Where Σ ε² is what is limited, as
    for Gaussian noise, the exponent is 1/4. T cancels in the shares: a run that ends by time needs no T.
    """

    kind: Literal["contraction"] = "contraction"
    sums_to_one: ClassVar[bool] = True
    form: Literal["printed", "corrected"] = Field(
        "corrected", description="printed: ∝ C^{t/3}, as in the paper; corrected: ∝ C^{(T−1−t)/3}"
    )
    wakes: Literal["known", "expected"] = Field(
        "expected",
        description="known: shares of the releases that will happen, flagged clairvoyant; expected: an agent takes "
        "k·n, the expected global time of its k-th wake, spreads its budget over as many as it expects, then stops",
    )
    rate: Literal["auto"] | Annotated[float, Field(gt=0, lt=1)] = Field(
        "auto", description="C; auto: 1 − σ/(n·L_max), from public constants of the graph and the losses"
    )
    exponent: Literal["auto", "third", "quarter"] = Field(
        "auto",
        description="third where Σ ε is what is limited; quarter where it is Σ ε², as under zCDP or advanced "
        "composition; auto: by the mechanism",
    )
    releases: Count | None = Field(
        None, description="wakes: expected alone: the most releases; as many as are expected when left out"
    )

    def faults(self, star: bool) -> Iterator[Fault]:
        """Only on graphs does theory say by how much a commit contracts."""
        if self.rate == "auto" and star:
            message = "auto is for agents on a graph; give a number between 0 and 1, both excluded"
            yield Fault(message, "privacy.allocation.rate")
        if self.wakes == "known" and self.releases is not None:
            message = "limits what is made at expected wakes; known ones are all used"
            yield Fault(message, "privacy.allocation.releases")

    @property
    def clairvoyant(self) -> bool:  # type: ignore[override]
        """Whether it knows the wakes that will happen."""
        return self.wakes == "known"

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent."""
        if self.clairvoyant:
            return UNLIMITED
        return self.releases if self.releases is not None else round(expected)

    def weights(self, releases: Releases, limits: np.ndarray, outlook: Outlook, power: int = 1) -> np.ndarray:
        """Share of its agent's budget that each release takes at expected wakes, C^{(K−1−k)n/3} over its sum.

        For K releases k = 0 … K − 1; C^{kn/3} in the printed form. For known wakes, what is expected before the run.
        """
        count = outlook.expected[releases.agents] if self.clairvoyant else limits
        fall = self._fall(outlook, power) * outlook.periods[releases.agents]
        # Away from the release with the largest share, so that only what is negligible beside it can underflow.
        away = count - 1 - releases.numbers if self.form == "corrected" else releases.numbers
        shares: np.ndarray = np.exp(-fall * away) * (np.expm1(-fall) / np.expm1(-fall * count))
        return shares

    def logarithms(self, releases: Releases, outlook: Outlook, power: int = 1) -> np.ndarray:
        """Logarithm of each release's weight before it is divided by their sum."""
        fall = self._fall(outlook, power)
        return releases.steps * (fall if self.form == "corrected" else -fall)

    def _fall(self, outlook: Outlook, power: int) -> float:
        """−ln C times the exponent of a loss to the power that adds up."""
        rate = outlook.contraction if self.rate == "auto" else self.rate
        if rate is None:
            raise MeaningError(
                "privacy.allocation.rate",
                "auto has no theory for this algorithm; give a number between 0 and 1",
            )
        if not 0 < rate < 1:
            raise MeaningError(
                "privacy.allocation.rate",
                f"auto found C = {rate}, but needs an objective that is strongly convex: give a number between 0 and 1",
            )
        named = self.exponent if self.exponent != "auto" else _OF_POWER[power]
        return -math.log(rate) * _EXPONENTS[named] * power
