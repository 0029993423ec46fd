"""How an agent's budget is spread over its releases: each a class, and one name in the list below."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.options import BY_NAME, Count, OneOf, Positive
from p2psim.privacy.accounting.names import AccountantName
from p2psim.privacy.allocation import Allocation, StatedLosses
from p2psim.privacy.contraction import Contraction
from p2psim.privacy.shares import UNLIMITED, Outlook, Releases
from p2psim.registry import AnyOf, register_all

__all__ = [
    "UNLIMITED",
    "Allocation",
    "AnyAllocation",
    "Cap",
    "Constant",
    "Contraction",
    "Geometric",
    "Horizon",
    "Listed",
    "Outlook",
    "Releases",
    "StatedLosses",
    "Uniform",
    "binomial_cap",
]


class Horizon(Allocation):
    """ε/T for each of at most T releases, T the horizon: a worst case, since an owner of N answers about T/N times."""

    kind: Literal["horizon"] = "horizon"
    sums_to_one: ClassVar[bool] = True
    for_stars: ClassVar[bool] = True
    even: ClassVar[bool] = True

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent."""
        return horizon

    def weights(self, releases: Releases, limits: np.ndarray, outlook: Outlook, power: int = 1) -> np.ndarray:
        """Share of its agent's budget that each release takes."""
        return 1.0 / limits


class Cap(Allocation, OneOf):
    """m releases of equal loss, then none: ε/m each, or what composition by an accountant permits."""

    kind: Literal["cap"] = "cap"
    sums_to_one: ClassVar[bool] = True
    alternatives: ClassVar[tuple[str, ...]] = ("releases", "tail")
    releases: Count | None = Field(None, description="m")
    tail: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="instead of m: m is the least number that an owner's answers exceed with at most this "
        "probability; for a lossless, always-on request star",
    )
    compose: AccountantName | None = Field(
        None,
        description="the accountant by which m releases of the largest equal loss stay within ε at δ; it must be the "
        "one that enforces the budget",
    )
    even: ClassVar[bool] = True

    @property
    def composed_by(self) -> str | None:
        """The accountant, where one is named."""
        return self.compose

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent, which answers a share of the horizon's queries."""
        if self.releases is not None:
            return self.releases
        assert self.tail is not None
        return binomial_cap(horizon, share, self.tail)

    def weights(self, releases: Releases, limits: np.ndarray, outlook: Outlook, power: int = 1) -> np.ndarray:
        """Share of its agent's budget that each release takes."""
        return 1.0 / limits


class Geometric(Allocation):
    """ε(1 − r)r^j for release j = 0, 1, …: any number of releases, each with more noise than the one before."""

    kind: Literal["geometric"] = "geometric"
    sums_to_one: ClassVar[bool] = True
    ratio: Annotated[float, Field(gt=0, lt=1)] = Field(0.99, description="r")

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """No limit."""
        return UNLIMITED

    def weights(self, releases: Releases, limits: np.ndarray, outlook: Outlook, power: int = 1) -> np.ndarray:
        """Share of its agent's budget that each release takes."""
        return (1 - self.ratio) * self.ratio**releases.numbers


class Uniform(Allocation):
    """Equal parts for all releases that will happen: the budget is spent exactly, by who knows all wakes beforehand."""

    kind: Literal["uniform"] = "uniform"
    sums_to_one: ClassVar[bool] = True
    clairvoyant: ClassVar[bool] = True
    alike: ClassVar[bool] = True

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """No limit."""
        return UNLIMITED

    def weights(self, releases: Releases, limits: np.ndarray, outlook: Outlook, power: int = 1) -> np.ndarray:
        """Share of its agent's budget that each release is expected to take, before the run."""
        return 1.0 / outlook.expected[releases.agents]

    def logarithms(self, releases: Releases, outlook: Outlook, power: int = 1) -> np.ndarray:
        """Logarithm of each release's weight, before it is divided by their sum."""
        return np.zeros(releases.agents.size)


class Listed(StatedLosses):
    """Losses one by one, for as many releases as the list is long and the budget allows, then none."""

    kind: Literal["list"] = "list"
    losses: Annotated[list[Positive], Field(min_length=1)] = Field(
        description="loss of each release, sensitivity over scale of the noise: ε₀ for Laplace noise, μ for Gaussian"
    )

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent."""
        return len(self.losses)

    def stated_losses(self, numbers: np.ndarray) -> np.ndarray:
        """Loss of an agent's numbered releases, shape (releases,)."""
        # An agent whose budget is infinite goes on without noise; what is looked up for it is not used.
        return np.array(self.losses)[np.minimum(numbers, len(self.losses) - 1)]


class Constant(StatedLosses):
    """The same loss for each release, as many as the budget allows, then none."""

    kind: Literal["constant"] = "constant"
    loss: Positive = Field(
        description="of each release, sensitivity over scale of the noise: ε₀ for Laplace noise, μ for Gaussian noise"
    )
    even: ClassVar[bool] = True

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """No limit but the budget."""
        return UNLIMITED

    def stated_losses(self, numbers: np.ndarray) -> np.ndarray:
        """Loss of an agent's numbered releases, shape (releases,)."""
        return np.full(numbers.size, self.loss)


register_all([Horizon, Cap, Geometric, Uniform, Contraction, Listed, Constant])

#: Any allocation that is registered.
AnyAllocation = Annotated[Allocation, AnyOf("allocation"), BY_NAME]


def binomial_cap(horizon: int, share: float, tail: float) -> int:
    """Least m with P(Bin(T, share) > m) ≤ tail: T answers, of which an owner gives each with probability ``share``.

    Parameters
    ----------
    horizon : int
        T.
    share : float
        In (0, 1].
    tail : float
        In (0, 1).
    """
    from scipy.stats import binom

    m = max(1, int(binom.isf(tail, horizon, share)))
    while binom.sf(m, horizon, share) > tail:
        m += 1
    while m > 1 and binom.sf(m - 1, horizon, share) <= tail:
        m -= 1
    return min(m, horizon)
