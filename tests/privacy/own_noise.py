"""A mechanism of one's own, as a user would write it: logistic noise."""

import numpy as np

from p2psim.privacy.accounting.noises import PURE
from p2psim.streams import unit_uniform


class Logistic:
    """Independent logistic noise in each coordinate, against the L1 sensitivity.

    |d ln f/dx| ≤ 1/s for the density f of scale s, so a release of L1 sensitivity Δ is Δ/s-DP: the loss is ε₀.
    """

    norm = "l1"
    noise = PURE

    def __init__(self, stretch: float = 1.0):
        if stretch <= 0:
            raise ValueError(f"stretch must be positive, got {stretch}")
        self.stretch = stretch

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """The quantile of uniform draws; zero stands for 2**-54."""
        unit_uniform(key, agents, numbers, out)
        np.maximum(out, 2.0**-54, out=out)
        out[:] = self.stretch * np.log(out / (1.0 - out))


class Bounded(Logistic):
    """Uniform noise on ±2 scales: some outcomes are possible for one data set alone, whatever it claims."""

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        unit_uniform(key, agents, numbers, out)
        out[:] = self.stretch * (4.0 * out - 2.0)


class DoubleExponential(Logistic):
    """Laplace noise; its scale is the one that is claimed if the stretch is 1."""

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        unit_uniform(key, agents, numbers, out)
        side = np.where(out < 0.5, -1.0, 1.0)
        out[:] = -self.stretch * side * np.log(np.maximum(2.0 * np.minimum(out, 1.0 - out), 2.0**-54))


class Normal(Logistic):
    """Gaussian noise that claims pure DP, which no Gaussian noise has."""

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        from scipy.special import ndtri

        unit_uniform(key, agents, numbers, out)
        out[:] = self.stretch * ndtri(np.maximum(out, 2.0**-54))


class Silent(Logistic):
    """No noise at all."""

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        out[:] = 0.0


class Broken(Logistic):
    """Draws what is no number."""

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        out[:] = np.nan


class Nameless:
    """No mechanism."""

    norm = "l1"


class OtherNorm(Logistic):
    """With a norm that nobody knows."""

    norm = "l3"
