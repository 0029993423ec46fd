"""Mechanisms: no noise, Laplace noise and Gaussian noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from p2psim.privacy.mechanisms.protocol import Mechanism

if TYPE_CHECKING:
    from p2psim.privacy.accounting.noises import Noise


class NoNoise(Mechanism):
    """Releases go out as they are: nothing is guaranteed."""

    kind: Literal["none"] = "none"
    is_private: ClassVar[bool] = False
    norm: ClassVar[Literal["l1", "l2"]] = "l1"
    adds_up: ClassVar[bool] = True

    @property
    def noise(self) -> Noise:
        """One of which nothing is known but that its losses are infinite."""
        from p2psim.privacy.accounting.noises import PURE

        return PURE

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p) with zeros."""
        out[:] = 0.0

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """Zero."""
        return np.zeros(np.shape(scales))


class Laplace(Mechanism):
    """Independent Laplace noise in each coordinate, against the L1 sensitivity.

    Density exp(−|x|/b)/(2b). A release of L1 sensitivity Δ has the loss ε₀ = Δ/b and is ε₀-DP (Dwork, McSherry, Nissim,
    Smith 2006).
    """

    kind: Literal["laplace"] = "laplace"
    norm: ClassVar[Literal["l1", "l2"]] = "l1"
    adds_up: ClassVar[bool] = True
    title: ClassVar[str] = "Laplace noise"

    @property
    def noise(self) -> Noise:
        """That of one coordinate that moves by all of Δ, which dominates every other way to move."""
        from p2psim.privacy.accounting.noises import LAPLACE

        return LAPLACE

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p) with noise of scale one, row by row that of an agent's numbered release."""
        from p2psim.core.philox import unit_laplace

        unit_laplace(key, agents, numbers, out)

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """2b²."""
        return 2.0 * scales**2


class Gaussian(Mechanism):
    """Independent normal noise in each coordinate, against the L2 sensitivity; needs a δ.

    A release of L2 sensitivity Δ with standard deviation s has the loss μ = Δ/s: telling the two data sets apart is as
    hard as telling N(0, 1) from N(μ, 1). Releases compose to one with μ² = Σ μ_t², exactly (Dong, Roth, Su 2022,
    Corollary 3.3). ε and δ turn into μ by the analytic Gaussian mechanism (Balle and Wang 2018, Theorem 8).
    """

    kind: Literal["gaussian"] = "gaussian"
    norm: ClassVar[Literal["l1", "l2"]] = "l2"
    power: ClassVar[int] = 2
    adds_up: ClassVar[bool] = True

    @property
    def noise(self) -> Noise:
        """That of one coordinate that moves by all of Δ."""
        from p2psim.privacy.accounting.noises import GAUSSIAN

        return GAUSSIAN

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p) with noise of scale one, row by row that of an agent's numbered release."""
        from p2psim.core.philox import unit_gaussian

        unit_gaussian(key, agents, numbers, out)

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """s²."""
        return np.asarray(scales**2)
