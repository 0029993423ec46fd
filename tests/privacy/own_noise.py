"""Mechanisms of one's own, as a user would write them: logistic noise, and some that are not what they claim."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

import p2psim
from p2psim.core.philox import unit_uniform
from p2psim.privacy.accounting.noises import PURE, Noise


@p2psim.register
class Logistic(p2psim.Mechanism):
    """Independent logistic noise in each coordinate, against the L1 sensitivity.

    |d ln f/dx| ≤ 1/s for the density f of scale s, so a release of L1 sensitivity Δ is Δ/s-DP: the loss is ε₀.
    """

    kind: Literal["logistic"] = "logistic"
    stretch: float = Field(1.0, gt=0, description="what draws are multiplied by; the claim is right for 1")

    norm: ClassVar[Literal["l1", "l2"]] = "l1"
    noise: ClassVar[Noise] = PURE

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """The quantile of uniform draws; zero stands for 2**-54."""
        unit_uniform(key, agents, numbers, out)
        np.maximum(out, 2.0**-54, out=out)
        out[:] = self.stretch * np.log(out / (1.0 - out))


@p2psim.register
class Bounded(Logistic):
    """Uniform noise on ±2 scales: some outcomes are possible for one data set alone, whatever it claims."""

    kind: Literal["bounded"] = "bounded"

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        unit_uniform(key, agents, numbers, out)
        out[:] = self.stretch * (4.0 * out - 2.0)


@p2psim.register
class DoubleExponential(Logistic):
    """Laplace noise; its scale is the one that is claimed if the stretch is 1."""

    kind: Literal["double-exponential"] = "double-exponential"

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        unit_uniform(key, agents, numbers, out)
        side = np.where(out < 0.5, -1.0, 1.0)
        out[:] = -self.stretch * side * np.log(np.maximum(2.0 * np.minimum(out, 1.0 - out), 2.0**-54))


@p2psim.register
class Normal(Logistic):
    """Gaussian noise that claims pure DP, which no Gaussian noise has."""

    kind: Literal["normal"] = "normal"

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        from scipy.special import ndtri

        unit_uniform(key, agents, numbers, out)
        out[:] = self.stretch * ndtri(np.maximum(out, 2.0**-54))


@p2psim.register
class Silent(Logistic):
    """No noise at all."""

    kind: Literal["silent"] = "silent"

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        out[:] = 0.0


@p2psim.register
class Broken(Logistic):
    """Draws what is no number."""

    kind: Literal["broken"] = "broken"

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        out[:] = np.nan


@p2psim.register
class OtherNorm(Logistic):
    """With a norm that nobody knows."""

    kind: Literal["other-norm"] = "other-norm"

    norm: ClassVar[str] = "l3"  # type: ignore[assignment]
