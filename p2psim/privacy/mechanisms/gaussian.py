"""Gaussian noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from p2psim.privacy.mechanisms.protocol import Mechanism

if TYPE_CHECKING:
    from p2psim.privacy.accounting.noises import Noise


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
        from p2psim.streams import unit_gaussian

        unit_gaussian(key, agents, numbers, out)

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """s²."""
        return np.asarray(scales**2)
