"""What a mechanism is: a noise that scales, the norm in which it hides a change, and what one release costs.

One number says what a release costs: its *loss*, the sensitivity over the scale of the noise, in the noise's own norm.
It is ε₀ for Laplace noise and μ for Gaussian noise. So the scale is sensitivity over loss, and noise as if each record
stood for k multiplies the loss of the real records by k.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.options import Options

if TYPE_CHECKING:
    from p2psim.privacy.accounting.noises import Noise


class Mechanism(Options):
    """Base of all mechanisms.

    A mechanism of your own is a subclass with a ``kind``, keys of its own, ``norm``, ``noise`` and ``fill_unit``. Noise
    of a scale is that of scale one times it, unless ``of_scale`` says otherwise.

    Attributes
    ----------
    kind : str
        Its name, as ``kind: Literal["staircase"] = "staircase"``.
    is_private : bool
        Whether it guarantees anything.
    power : int
        Power of the losses that adds up over releases: 1 for pure DP, 2 for Gaussian noise, whose μ² add up.
    adds_up : bool
        Whether releases cost no more than one whose loss to the power is the sum of theirs. Where not, a budget's
        shares are only a way to spread it, and the accountant that enforces it says when it ends.
    lattice : float or None
        What noisy values are rounded to multiples of; None for no rounding.
    """

    part_kind: ClassVar[str] = "mechanism"

    # Subclasses declare it with a Literal.
    kind: Any

    is_private: ClassVar[bool] = True
    power: ClassVar[int] = 1
    adds_up: ClassVar[bool] = False

    @property
    @abstractmethod
    def norm(self) -> Literal["l1", "l2"]:
        """In which norm the sensitivity of a release is taken; a class attribute does."""

    @property
    @abstractmethod
    def noise(self) -> Noise:
        """What accountants know of it: the dominating pair of a release of a given loss.

        See `p2psim.privacy.accounting.noises`. ``PURE`` there says: the loss is ε₀, and no more is known.
        """

    @property
    def lattice(self) -> float | None:
        """What noisy values are rounded to multiples of; None for no rounding."""
        return None

    @property
    def title(self) -> str:
        """How messages call it."""
        return f"the {self.kind} mechanism"

    def sensitivity_of(self, moved: np.ndarray, dimension: int) -> np.ndarray:
        """Sensitivity of what noise is added to, where values before that move by at most ``moved`` in the norm."""
        return moved

    @abstractmethod
    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Draw noise of scale one, or whatever `of_scale` makes noise of; the draws know no scale.

        A row depends on nothing but the key, the agent and the number, as `p2psim.core.philox.unit_uniform` does.

        Parameters
        ----------
        key : ndarray of uint64, shape (2,)
            Of the random stream of the run's noise.
        agents, numbers : ndarray of int, shape (releases,)
            Row r is for release numbers[r] of agents[r].
        out : ndarray, shape (releases, p)
            Filled with finite numbers.
        """

    def draw(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        """Do what `fill_unit` does, and look at what was drawn.

        Raises
        ------
        MeaningError
            If a draw is not a finite number.
        """
        self.fill_unit(key, agents, numbers, out)
        if not np.isfinite(out).all():
            raise MeaningError("privacy.mechanism", f"{self.kind} drew noise that is not a finite number")

    def of_scale(self, unit: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """Noise of the given scales, shape (releases,), from what `fill_unit` drew, shape (releases, p)."""
        return unit * scales[:, None]

    def variance(self, scales: np.ndarray) -> np.ndarray:
        """Variance of one coordinate of noise of the given scales; NaN where it is not known, and not forecast."""
        return np.full(np.shape(scales), np.nan)


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
