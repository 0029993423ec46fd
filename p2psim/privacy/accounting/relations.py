"""Poisson samples where a record is added or removed: the relation of most of the literature, for comparison with it.

No scenario is accounted for in this way: p2psim's data sets differ in one record that is replaced, and so have the same
number of records, which is public. Adding or removing a record has a direction, so a loss distribution is needed for
each, and the larger ε counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, before_sampling, relative_error


@dataclass(frozen=True)
class PoissonSample(ABC):
    """A noise on the sum over a Poisson sample that may hold a record, and on one that cannot, in one direction.

    Loss: how far a record that is added moves the sum, by the scale of the noise.

    Attributes
    ----------
    noise : Noise
        Of the sum; without a direction.
    rate : float
        q, in (0, 1].
    """

    change: ClassVar[str]

    noise: Noise
    rate: float

    def __post_init__(self) -> None:
        if not 0 < self.rate <= 1:
            raise ValueError(f"a sampling rate must be in (0, 1], got {self.rate}")

    @property
    def name(self) -> str:
        """That of the noise, the rate, and the direction."""
        return f"{self.noise.name} sampled at {self.rate:g}, a record {self.change}"

    @property
    def relative_error(self) -> float | None:
        """That of the noise's curve."""
        return relative_error(self.noise)

    @property
    @abstractmethod
    def reverse(self) -> PoissonSample:
        """The other direction."""

    @abstractmethod
    def above(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        """The curve for ε ≥ 0."""

    def delta(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        """The curve for all ε: below 0 by δ(−ε) = 1 − e^{−ε}(1 − δ'(ε)), δ' that of the other direction."""
        losses, e = np.broadcast_arrays(np.asarray(losses, dtype=float), np.asarray(epsilon, dtype=float))
        size = np.abs(e)
        below = 1 - np.exp(np.minimum(e, 0.0)) * (1 - self.reverse.above(losses, size))
        return np.where(e >= 0, self.above(losses, size), below)


class RemovedFromPoisson(PoissonSample):
    """A record is removed: (1 − q)Q₁ + qP₁ and Q₁, for the noise's pair (P₁, Q₁) (Zhu, Dong, Wang 2022, Theorem 11)."""

    change: ClassVar[str] = "removed"

    @property
    def reverse(self) -> AddedToPoisson:
        """The other direction."""
        return AddedToPoisson(self.noise, self.rate)

    def above(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        """q·δ(ln(1 + (e^ε − 1)/q)) for ε ≥ 0."""
        with np.errstate(over="ignore"):
            return np.asarray(self.rate * self.noise.delta(losses, before_sampling(epsilon, self.rate)))


class AddedToPoisson(PoissonSample):
    """A record is added: Q₁ and (1 − q)Q₁ + qP₁."""

    change: ClassVar[str] = "added"

    @property
    def reverse(self) -> RemovedFromPoisson:
        """The other direction."""
        return RemovedFromPoisson(self.noise, self.rate)

    def above(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        """κδ(ε + ln(q/κ)), κ = 1 − (1 − q)e^ε, for ε ≥ 0, as sup_S Q₁(S)·κ − qe^ε·P₁(S); 0 where κ is not positive."""
        with np.errstate(over="ignore"):
            kappa = self.rate - (1 - self.rate) * np.expm1(epsilon)
        possible = kappa > 0
        kappa = np.where(possible, kappa, 1.0)
        moved = np.where(possible, epsilon + np.log(self.rate / kappa), 0.0)
        return np.where(possible, kappa * self.noise.delta(losses, np.maximum(moved, 0.0)), 0.0)


def epsilon_of_adding_or_removing(noise: Noise, loss: float, rate: float, count: int, delta: float) -> float:
    """ε at δ of equal releases of Poisson samples, where a record is added or removed.

    Parameters
    ----------
    noise : Noise
        Of the sum, as `p2psim.privacy.accounting.noises.GAUSSIAN`.
    loss : float
        How far one record moves the sum by the scale of the noise: half the loss of a replacement.
    rate : float
        Chance of each record to be drawn, in (0, 1].
    count : int
        Number of releases.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        The larger of both directions, by accountant ``pld``.
    """
    directions: tuple[Noise, ...] = RemovedFromPoisson(noise, rate), AddedToPoisson(noise, rate)
    return max(
        float(ACCOUNTANTS["pld"].epsilon(Charges.of(one, loss, count), delta)[0]) for one in directions
    )
