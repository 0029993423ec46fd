"""No noise."""

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
