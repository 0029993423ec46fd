"""Laplace noise on a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.options import Positive
from p2psim.privacy.mechanisms.protocol import Mechanism

if TYPE_CHECKING:
    from p2psim.privacy.accounting.noises import Noise

#: Largest scale in steps of the grid: draws, up to 38 times as large, must be whole numbers of double precision.
_FINEST = 2.0**46


class DiscreteLaplace(Mechanism):
    """Values are rounded to a grid, and whole numbers of its steps g added, against the L1 sensitivity there.

    P(k steps) ∝ exp(−|k|·g/b) in each coordinate (Ghosh, Roughgarden, Sundararajan 2009). A release whose rounded
    values move by at most Δ_g in L1 has the loss ε₀ = Δ_g/b and is ε₀-DP.
    """

    kind: Literal["discrete-laplace"] = "discrete-laplace"
    grid: Positive = Field(description="g, the step of the grid")
    norm: ClassVar[Literal["l1", "l2"]] = "l1"
    adds_up: ClassVar[bool] = True
    title: ClassVar[str] = "discrete Laplace noise"

    @property
    def lattice(self) -> float | None:
        """The grid's step."""
        return self.grid

    @property
    def noise(self) -> Noise:
        """That of noise on a grid, for the fewest steps that a loss can be made of, which is the worst."""
        from p2psim.privacy.accounting.noises import DISCRETE_LAPLACE

        return DISCRETE_LAPLACE

    def sensitivity_of(self, moved: np.ndarray, dimension: int) -> np.ndarray:
        """L1 sensitivity of rounded values, g(⌈Δ/g⌉ + p − 1), where those before move by at most Δ; 0 for Δ = 0.

        Proof. Rounding is ⌊x/g + ½⌋, so a coordinate that moves by d moves by at most ⌈|d|/g⌉ steps, and not at all for
        d = 0. Let Σ|d_j| ≤ Δ. Each ⌈|d_j|/g⌉ is less than |d_j|/g + 1, so that the steps of all p coordinates are
        fewer than Δ/g + p; as a whole number they are at most ⌈Δ/g⌉ + p − 1. It is reached: p − 1 coordinates that
        move by next to nothing across a half, and one that moves by the rest.

        Parameters
        ----------
        moved : ndarray
            Δ, not negative.
        dimension : int
            p.
        """
        steps = np.ceil(moved / self.grid) + dimension - 1
        return np.where(moved > 0, self.grid * steps, 0.0)

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p) with uniform draws on [0, 1), row by row that of an agent's numbered release."""
        from p2psim.core.philox import unit_uniform

        unit_uniform(key, agents, numbers, out)

    def of_scale(self, unit: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """Whole steps of the grid, by inversion of the geometric law, from uniform draws.

        With a = exp(−g/b) the chance of −m steps or fewer is aᵐ/(1 + a) for m ≥ 1. So a draw v below ½ means −m steps,
        m the largest with v < aᵐ/(1 + a), which is −b/g·ln((1 + a)v) rounded up, less one; a draw above ½ means what
        1 − v means, with the other sign.

        Parameters
        ----------
        unit : ndarray, shape (releases, p)
            In [0, 1); zero stands for 2**-54.
        scales : ndarray, shape (releases,)
            b; zero for no noise.

        Raises
        ------
        MeaningError
            If a scale is so many steps that they cannot be counted in double precision.
        """
        steps = scales[:, None] / self.grid
        if not (steps <= _FINEST).all():
            raise MeaningError(
                "privacy.mechanism.grid",
                f"{self.grid:g} is too fine for noise of scale {scales.max():g}: give a step of at least "
                f"{scales.max() / _FINEST:.2g}",
            )
        nearer = np.maximum(np.minimum(unit, 1.0 - unit), 2.0**-54)
        with np.errstate(divide="ignore"):
            a = np.exp(-1.0 / steps)
        away = np.maximum(np.ceil(-steps * np.log((1.0 + a) * nearer)) - 1.0, 0.0)
        return np.where(unit < 0.5, 0.0 - away, away) * self.grid  # 0 − 0 is no negative zero

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """g²·2a/(1 − a)² with a = e^(−g/b), which is g²/(2·sinh²(g/2b)); that of rounding, below g²/4, is not in it."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(self.grid**2 / (2.0 * np.sinh(self.grid / (2.0 * scales)) ** 2))
