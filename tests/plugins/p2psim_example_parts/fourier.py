"""A feature: random Fourier features (Rahimi and Recht 2007), which are fitted on nobody's records."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

import p2psim
from p2psim.data.features.maps import Fitted


@p2psim.register
class Fourier(p2psim.Feature):
    """√(2/q)·cos(ωᵀx + b), of which inner products are those of a Gaussian kernel, up to chance."""

    kind: Literal["fourier"] = "fourier"
    components: int = Field(50, ge=1, description="number of features q")
    width: float = Field(1.0, gt=0, description="standard deviation of the kernel, in units of x")

    needs_public: ClassVar[bool] = False

    def fit(
        self, public: np.ndarray, names: tuple[str, ...], key: str, random: np.random.Generator
    ) -> Fitted:
        """Draw frequencies N(0, 1/width²) and phases uniform in [0, 2π)."""
        frequencies = random.standard_normal((len(names), self.components)) / self.width
        phases = random.uniform(0, 2 * np.pi, self.components)
        return Fitted(
            lambda rows: np.sqrt(2 / self.components) * np.cos(rows @ frequencies + phases),
            tuple(f"cos{j + 1}" for j in range(self.components)),
            {"frequencies": frequencies.tolist(), "phases": phases.tolist()},
        )
