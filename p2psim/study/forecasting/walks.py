"""What all forecasts of a central learner have: a run without the numbers of its noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from p2psim.theory.forecast.answering import Reweight
from p2psim.theory.forecast.local_model import LocalModel
from p2psim.theory.forecast.split import Split, split
from p2psim.theory.forecast.star_path import Path
from p2psim.theory.forecast.synchronous import synchronous_averaging, synchronous_descent
from p2psim.theory.star import Form


class Walk(Protocol):
    """A run whose noise is still open. All in units of f(θ*)."""

    @property
    def noiseless(self) -> float:
        """E[ψ] at the end without noise."""

    def split(self, variances: np.ndarray) -> Split:
        """E[ψ] along the run under noise of these variances, shape (answers or rounds, N)."""

    def noise(self, variances: np.ndarray) -> np.ndarray:
        """What each owner's noise adds at the end, shape (N,)."""


@dataclass(frozen=True)
class StarWalk:
    """Of the asynchronous star."""

    path: Path
    minimum: float

    @property
    def noiseless(self) -> float:
        """E[ψ] at the end without noise."""
        return float(self.path.expected[-1] / self.minimum)

    def split(self, variances: np.ndarray) -> Split:
        """E[ψ] along the run."""
        return split(self.path, variances, self.minimum)

    def noise(self, variances: np.ndarray) -> np.ndarray:
        """What each owner's noise adds at the end, shape (N,)."""
        found: np.ndarray = np.einsum("kn,kn->n", self.path.gain[::-1], variances) / self.minimum
        return found


@dataclass(frozen=True)
class RoundsWalk:
    """Of synchronous rounds.

    Attributes
    ----------
    model : LocalModel
    parameter : float
        ρ or c₁.
    horizon : int
        T: T − 1 rounds.
    averages : bool
        Whether the model is the average of the iterates (W Algorithm 2).
    form : {"printed", "corrected"}
    present : ndarray, shape (N,)
        Probability that an owner's answer is in a round.
    reweight : {"none", "known", "answered"}
    """

    model: LocalModel
    parameter: float
    horizon: int
    averages: bool
    form: Form
    present: np.ndarray
    reweight: Reweight
    _unit: list[Split] = field(default_factory=list, repr=False)

    @property
    def noiseless(self) -> float:
        """E[ψ] at the end without noise."""
        return float(self._of_unit_noise().noiseless[-1])

    def split(self, variances: np.ndarray) -> Split:
        """E[ψ] along the run."""
        arguments = (
            self.model,
            self.model.minimum,
            self.parameter,
            self.horizon,
            variances,
            self.form,
            self.present,
            self.reweight,
        )
        with np.errstate(over="raise", invalid="raise"):
            if self.averages:
                return synchronous_averaging(*arguments).average.parts
            return synchronous_descent(*arguments).parts

    def noise(self, variances: np.ndarray) -> np.ndarray:
        """What each owner's noise adds at the end, shape (N,)."""
        if (variances == variances[:1]).all():
            found: np.ndarray = self._of_unit_noise().noise[-1] * variances[0]
            return found
        return self.split(variances).noise[-1]

    def _of_unit_noise(self) -> Split:
        if not self._unit:
            self._unit.append(self.split(np.ones((self.horizon - 1, len(self.present)))))
        return self._unit[0]
