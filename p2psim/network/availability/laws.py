"""How long agents stay and stay away: laws of durations with a given mean, and their residual times.

A stationary renewal process that is looked at at a fixed time is in a span of law length-biased by its duration, at a
uniform place in it (Cox 1962, Renewal Theory, chapter 5). The length-biased laws are exact: of the lognormal it is the
lognormal with its location moved by σ²; of the Weibull, the scale times G^{1/k} with G ~ Gamma(1 + 1/k).
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from p2psim.options import BY_NAME, Options, Positive


class Exponential(Options):
    """No memory."""

    kind: Literal["exponential"] = "exponential"

    def durations(self, mean: float, random: np.random.Generator, size: int) -> np.ndarray:
        """Independent durations, shape (size,)."""
        return random.exponential(mean, size)

    def residual(self, mean: float, random: np.random.Generator) -> float:
        """What is left of the span in which the process is found."""
        return float(random.exponential(mean))


class Lognormal(Options):
    """Many short spans and a few very long ones."""

    kind: Literal["lognormal"] = "lognormal"
    sigma: Positive = Field(1.0, description="standard deviation of the logarithm")

    def durations(self, mean: float, random: np.random.Generator, size: int) -> np.ndarray:
        """Independent durations, shape (size,)."""
        return random.lognormal(math.log(mean) - self.sigma**2 / 2, self.sigma, size)

    def residual(self, mean: float, random: np.random.Generator) -> float:
        """What is left of the span in which the process is found."""
        whole = random.lognormal(math.log(mean) + self.sigma**2 / 2, self.sigma)
        return float(whole * random.random())


class Weibull(Options):
    """Spans that end ever less likely (shape below 1) or ever more likely (above) the longer they have lasted."""

    kind: Literal["weibull"] = "weibull"
    shape: Positive = Field(0.5, description="k; 1 is the exponential law")

    def durations(self, mean: float, random: np.random.Generator, size: int) -> np.ndarray:
        """Independent durations, shape (size,)."""
        return mean / math.gamma(1 + 1 / self.shape) * random.weibull(self.shape, size)

    def residual(self, mean: float, random: np.random.Generator) -> float:
        """What is left of the span in which the process is found."""
        scale = mean / math.gamma(1 + 1 / self.shape)
        whole = scale * random.gamma(1 + 1 / self.shape) ** (1 / self.shape)
        return float(whole * random.random())


class Constant(Options):
    """Every span lasts the same."""

    kind: Literal["constant"] = "constant"

    def durations(self, mean: float, random: np.random.Generator, size: int) -> np.ndarray:
        """The mean, ``size`` times."""
        return np.full(size, mean)

    def residual(self, mean: float, random: np.random.Generator) -> float:
        """What is left of the span in which the process is found."""
        return mean * float(random.random())


Law = Annotated[Exponential | Lognormal | Weibull | Constant, Field(discriminator="kind"), BY_NAME]
