"""How an agent's budget is spread over its releases, and the most releases that it may make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from p2psim.options import BY_NAME, Count, Options

#: Stands for no limit on releases.
UNLIMITED = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Releases:
    """Some releases, in the order of the events: whose, its number among that agent's, and the commits before it.

    Shape (releases,) each.
    """

    agents: np.ndarray
    numbers: np.ndarray
    steps: np.ndarray


class Horizon(Options):
    """ε/T for each of at most T releases, T the horizon: a worst case, since an owner of N answers about T/N times."""

    kind: Literal["horizon"] = "horizon"
    clairvoyant: ClassVar[bool] = False

    def limit(self, horizon: int, share: float) -> int:
        """Most releases of one agent."""
        return horizon

    def weights(self, releases: Releases, limits: np.ndarray) -> np.ndarray:
        """Share of its agent's budget that each release takes; ``limits`` are those of the releases' agents."""
        return 1.0 / limits


class Cap(Options):
    """ε/m for each of m releases, then none."""

    kind: Literal["cap"] = "cap"
    releases: Count | None = Field(None, description="m")
    tail: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="instead of m: m is the least number that an owner's answers exceed with at most this "
        "probability; for a lossless, always-on request star",
    )
    clairvoyant: ClassVar[bool] = False

    @model_validator(mode="after")
    def _one_of_them(self) -> Cap:
        if (self.releases is None) == (self.tail is None):
            raise ValueError("give exactly one of releases and tail")
        return self

    def limit(self, horizon: int, share: float) -> int:
        """Most releases of one agent, which answers a share of the horizon's queries."""
        if self.releases is not None:
            return self.releases
        assert self.tail is not None
        return binomial_cap(horizon, share, self.tail)

    def weights(self, releases: Releases, limits: np.ndarray) -> np.ndarray:
        """Share of its agent's budget that each release takes."""
        return 1.0 / limits


class Geometric(Options):
    """ε(1 − r)r^j for release j = 0, 1, …: any number of releases, each with more noise than the one before."""

    kind: Literal["geometric"] = "geometric"
    ratio: Annotated[float, Field(gt=0, lt=1)] = Field(0.99, description="r")
    clairvoyant: ClassVar[bool] = False

    def limit(self, horizon: int, share: float) -> int:
        """No limit."""
        return UNLIMITED

    def weights(self, releases: Releases, limits: np.ndarray) -> np.ndarray:
        """Share of its agent's budget that each release takes."""
        return (1 - self.ratio) * self.ratio**releases.numbers


Allocation = Annotated[Horizon | Cap | Geometric, Field(discriminator="kind"), BY_NAME]


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
