"""Noise that makes releases private. A mechanism knows its noise of scale one and what scale a budget asks for."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.options import BY_NAME, Options


class NoNoise(Options):
    """Releases go out as they are: nothing is guaranteed."""

    kind: Literal["none"] = "none"
    is_private: ClassVar[bool] = False

    def scales(self, sensitivity: np.ndarray, epsilons: np.ndarray) -> np.ndarray:
        """Scale of the noise: zero."""
        return np.zeros(np.broadcast(sensitivity, epsilons).shape)

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p) with noise of scale one, row by row that of an agent's numbered release."""
        out[:] = 0.0


class Laplace(Options):
    """Independent Laplace noise in each coordinate, against the L1 sensitivity."""

    kind: Literal["laplace"] = "laplace"
    is_private: ClassVar[bool] = True

    def scales(self, sensitivity: np.ndarray, epsilons: np.ndarray) -> np.ndarray:
        """Scale b = Δ/ε that makes a release of L1 sensitivity Δ ε-DP; zero for infinite ε.

        Parameters
        ----------
        sensitivity, epsilons : ndarray
            Broadcast against each other; ε positive.

        Returns
        -------
        ndarray
            May be infinite where Δ/ε overflows: the caller must look.
        """
        with np.errstate(over="ignore", divide="ignore"):
            return np.asarray(sensitivity / epsilons)

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p) with noise of scale one, row by row that of an agent's numbered release."""
        from p2psim.streams import unit_laplace

        unit_laplace(key, agents, numbers, out)


Mechanism = Annotated[NoNoise | Laplace, Field(discriminator="kind"), BY_NAME]
