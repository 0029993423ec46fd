"""A mechanism: staircase noise (Geng, Kairouz, Oh, Viswanath 2015)."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

import p2psim
from p2psim.core.options import Positive
from p2psim.core.philox import unit_uniform
from p2psim.privacy.accounting.noises import PURE, Noise


@p2psim.register
class Staircase(p2psim.Mechanism):
    """Noise whose density is a staircase: it falls by e^(−g/b) at γg, γg + g, γg + 2g, … on either side of 0.

    A coordinate that moves by d passes ⌈|d|/g⌉ ends of stairs at most, each of which costs g/b. All p coordinates,
    whose moves add up to Δ, pass ⌈Δ/g⌉ + p − 1 together, as for `DiscreteLaplace`: with the sensitivity of so many g,
    the loss is ε₀.
    """

    kind: Literal["staircase"] = "staircase"
    step: Positive = Field(description="g, the width of a stair")
    gamma: float = Field(
        0.5, gt=0, lt=1, description="γ, the share of a stair that is left of the first at 0"
    )

    norm: ClassVar[Literal["l1", "l2"]] = "l1"
    noise: ClassVar[Noise] = PURE
    adds_up: ClassVar[bool] = True

    def sensitivity_of(self, moved: np.ndarray, dimension: int) -> np.ndarray:
        stairs = np.ceil(moved / self.step) + dimension - 1
        return np.where(moved > 0, self.step * stairs, 0.0)

    def fill_unit(self, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray) -> None:
        unit_uniform(key, agents, numbers, out)

    def of_scale(self, unit: np.ndarray, scales: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            fall = -self.step / scales[:, None]
        q = np.exp(fall)
        beyond = q / (self.gamma * (1 - q) + q)  # P(|x| > γg)
        above = np.maximum(2 * np.minimum(unit, 1 - unit), 2.0**-53)  # P(|x| > what is looked for)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            stairs = np.floor(np.log(above / beyond) / fall)
            into = (1 - above / (beyond * np.exp(stairs * fall))) / (1 - q)
            size = np.where(
                above > beyond, self.gamma * (1 - above) / (1 - beyond), self.gamma + stairs + into
            )
        return np.where(scales[:, None] > 0, np.where(unit < 0.5, -self.step, self.step) * size, 0.0)
