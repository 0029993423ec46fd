"""What is claimed of some releases: δ at ε, and ε at δ, by the accountant of loss distributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, Subsampled

#: Exact up to a hair above: of every noise it needs the curve of one release alone.
_ACCOUNTANT = "pld"


def after_sampling(losses: np.ndarray, rate: float) -> np.ndarray:
    """Pure losses log(1 + q(e^ε₀ − 1)) of releases of batches that hold a record with probability q."""
    return np.asarray(np.log1p(rate * np.expm1(losses)))


def before_sampling(loss: float, rate: float) -> float:
    """Inverse of `after_sampling`."""
    return float(np.log1p(np.expm1(loss) / rate))


@dataclass(frozen=True)
class Claim:
    """What releases of one agent are claimed to cost together.

    Attributes
    ----------
    noise : Noise
    losses : ndarray, shape (releases,)
        Sensitivity over scale.
    rate : float
        Probability that a record is in the batch of a release, in (0, 1].
    """

    noise: Noise
    losses: np.ndarray
    rate: float

    def part(self, releases: slice) -> Claim:
        """Claim of some of the releases."""
        return Claim(self.noise, self.losses[releases], self.rate)

    @property
    def told(self) -> np.ndarray:
        """Losses after sampling, shape (releases,)."""
        return after_sampling(self.losses, self.rate)

    @property
    def _charges(self) -> Charges:
        return Charges.of(self.noise if self.rate == 1 else Subsampled(self.noise, self.rate), self.losses)

    def delta(self, epsilon: float) -> float:
        """δ at ε."""
        return float(ACCOUNTANTS[_ACCOUNTANT].delta(self._charges, epsilon)[0])

    def epsilon(self, delta: float) -> float:
        """ε at δ; infinite where there is none."""
        return float(ACCOUNTANTS[_ACCOUNTANT].epsilon(self._charges, delta)[0])
