"""What a mechanism is: a noise that scales, the norm in which it hides a change, and what one release costs.

One number says what a release costs: its *loss*, the sensitivity over the scale of the noise, in the noise's own norm.
It is ε₀ for Laplace noise and μ for Gaussian noise. So the scale is sensitivity over loss, and noise as if each record
stood for k multiplies the loss of the real records by k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

if TYPE_CHECKING:
    from p2psim.privacy.accounting.noises import Noise


class Noisy(Protocol):
    """What every mechanism offers."""

    @property
    def kind(self) -> str:
        """Its name."""

    @property
    def is_private(self) -> bool:
        """Whether it guarantees anything."""

    @property
    def norm(self) -> Literal["l1", "l2"]:
        """In which norm the sensitivity of a release is taken."""

    @property
    def power(self) -> int:
        """Power of the losses that adds up over releases: 1 for pure DP, 2 for Gaussian noise, whose μ² add up."""

    @property
    def adds_up(self) -> bool:
        """Whether releases cost no more than one whose loss to the power is the sum of theirs.

        Where not, a budget's shares are only a way to spread it, and the accountant that enforces it says when it ends.
        """

    @property
    def lattice(self) -> float | None:
        """What noisy values are rounded to multiples of; None for no rounding."""

    @property
    def noise(self) -> Noise:
        """What accountants know of it: the dominating pair of a release of a given loss."""

    def sensitivity_of(self, moved: np.ndarray, dimension: int) -> np.ndarray:
        """Sensitivity of what noise is added to, where values before that move by at most ``moved`` in the norm."""

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Fill ``out`` (releases, p) with draws that know no scale, row r for release numbers[r] of agents[r].

        A row depends on nothing but the key, the agent and the number.
        """

    def of_scale(self, unit: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """Noise of the given scales, shape (releases,), from what `fill_unit` drew, shape (releases, p)."""

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """Variance of one coordinate of noise of the given scales; NaN where it is not known."""


class Scaled:
    """What most mechanisms have in common: noise of a scale is that of scale one times it, and nothing is rounded."""

    @property
    def lattice(self) -> float | None:
        """No rounding."""
        return None

    def sensitivity_of(self, moved: np.ndarray, dimension: int) -> np.ndarray:
        """What values move by."""
        return moved

    def of_scale(self, unit: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """Noise of the given scales, shape (releases,), from noise of scale one, shape (releases, p)."""
        return unit * scales[:, None]


def noise_scales(sensitivity: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """Scale that makes a release of a sensitivity have a loss: Δ/loss; zero for infinite loss, which is no noise.

    Parameters
    ----------
    sensitivity, losses : ndarray
        Broadcast against each other; losses positive.

    Returns
    -------
    ndarray
        May be infinite where Δ/loss overflows: the caller must look.
    """
    with np.errstate(over="ignore", divide="ignore"):
        return np.asarray(sensitivity / losses)
