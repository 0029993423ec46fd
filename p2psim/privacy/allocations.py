"""How an agent's budget is spread over its releases, and the most releases that it may make.

An allocation offers ``limit`` and ``weights``. One that is ``clairvoyant`` also offers ``logarithms``: its shares are
known only after a run's releases are, and its ``weights`` are what is expected beforehand.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from p2psim.options import BY_NAME, Count, Options
from p2psim.privacy.contraction import Contraction
from p2psim.privacy.shares import UNLIMITED, Outlook, Releases

__all__ = [
    "UNLIMITED",
    "Allocation",
    "Cap",
    "Contraction",
    "Geometric",
    "Horizon",
    "Outlook",
    "Releases",
    "Uniform",
    "binomial_cap",
]


class Horizon(Options):
    """ε/T for each of at most T releases, T the horizon: a worst case, since an owner of N answers about T/N times."""

    kind: Literal["horizon"] = "horizon"
    clairvoyant: ClassVar[bool] = False

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent."""
        return horizon

    def weights(self, releases: Releases, limits: np.ndarray, outlook: Outlook) -> np.ndarray:
        """Share of its agent's budget that each release takes.

        Parameters
        ----------
        releases : Releases
        limits : ndarray of int64, shape (releases,)
            The most releases that the agent of each may make.
        outlook : Outlook
        """
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

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent, which answers a share of the horizon's queries."""
        if self.releases is not None:
            return self.releases
        assert self.tail is not None
        return binomial_cap(horizon, share, self.tail)

    def weights(self, releases: Releases, limits: np.ndarray, outlook: Outlook) -> np.ndarray:
        """Share of its agent's budget that each release takes."""
        return 1.0 / limits


class Geometric(Options):
    """ε(1 − r)r^j for release j = 0, 1, …: any number of releases, each with more noise than the one before."""

    kind: Literal["geometric"] = "geometric"
    ratio: Annotated[float, Field(gt=0, lt=1)] = Field(0.99, description="r")
    clairvoyant: ClassVar[bool] = False

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """No limit."""
        return UNLIMITED

    def weights(self, releases: Releases, limits: np.ndarray, outlook: Outlook) -> np.ndarray:
        """Share of its agent's budget that each release takes."""
        return (1 - self.ratio) * self.ratio**releases.numbers


class Uniform(Options):
    """Equal parts for all releases that will happen: the budget is spent exactly, by who knows all wakes beforehand."""

    kind: Literal["uniform"] = "uniform"
    clairvoyant: ClassVar[bool] = True

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """No limit."""
        return UNLIMITED

    def weights(self, releases: Releases, limits: np.ndarray, outlook: Outlook) -> np.ndarray:
        """Share of its agent's budget that each release is expected to take, before the run."""
        return 1.0 / outlook.expected[releases.agents]

    def logarithms(self, releases: Releases, outlook: Outlook) -> np.ndarray:
        """Logarithm of each release's weight, before it is divided by their sum."""
        return np.zeros(releases.agents.size)


Allocation = Annotated[
    Horizon | Cap | Geometric | Uniform | Contraction, Field(discriminator="kind"), BY_NAME
]


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
