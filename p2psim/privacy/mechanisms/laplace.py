"""Laplace noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from p2psim.privacy.mechanisms.protocol import Mechanism

if TYPE_CHECKING:
    from p2psim.privacy.accounting.noises import Noise


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
        from p2psim.streams import unit_laplace

        unit_laplace(key, agents, numbers, out)

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """2b²."""
        return 2.0 * scales**2
