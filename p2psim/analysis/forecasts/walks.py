"""What all forecasts of a central learner have: a run without the numbers of its noise.

Variance of the noise that a plan of releases gives answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.privacy.allocations import UNLIMITED, Geometric, Releases
from p2psim.theory.forecasts.linear_star import LocalModel
from p2psim.theory.forecasts.rounds import Reweight
from p2psim.theory.forecasts.split import Split, average_variances, geometric_variances, split
from p2psim.theory.forecasts.star_path import Path
from p2psim.theory.forecasts.synchronous import synchronous_averaging, synchronous_descent
from p2psim.theory.star import Form

if TYPE_CHECKING:
    from p2psim.privacy.plan import Plan


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


def answer_variances(plan: Plan, frequencies: np.ndarray, steps: int) -> np.ndarray:
    """Variance of a coordinate of the noise of an answer, if the k-th answer is owner i's, shape (T, N).

    Averaged over how many of the owner's answers came before. An owner that may release no more is taken to go on:
    the tail of a cap is neglected; see `overruns`.

    Parameters
    ----------
    plan : Plan
    frequencies : ndarray, shape (N,)
        γ_i.
    steps : int
        T.

    Raises
    ------
    MeaningError
        If the variance of the mechanism is not known, or too large for a number.
    """
    N = len(frequencies)
    if not plan.mechanism.is_private:
        return np.zeros((1, N)).repeat(steps, axis=0)
    most = np.where(plan.releases == UNLIMITED, steps, np.minimum(plan.releases, steps))
    if isinstance(plan.allocation, Geometric) and plan.mechanism.kind == "laplace" and not plan.sampled:
        first = _variances(plan, np.ones(N, int))[:, 0]
        try:
            return geometric_variances(first, plan.allocation.ratio, frequencies, steps)
        except FloatingPointError:
            message = "the variance of late answers overflows; raise privacy.allocation.ratio"
            raise MeaningError("privacy.allocation", message) from None
    return average_variances(_variances(plan, most), frequencies, steps)


def _variances(plan: Plan, most: np.ndarray) -> np.ndarray:
    """Of each owner's releases, as many as it has; later ones count as its last, shape (N, largest number)."""
    width = int(most.max())
    if width == 0:
        return np.zeros((len(most), 1))
    numbers = np.minimum(np.arange(width), np.maximum(most, 1)[:, None] - 1)
    agents = np.repeat(np.arange(len(most)), width)
    flat = numbers.reshape(-1)
    made = Releases(agents, flat, np.zeros(flat.size, np.int64))
    return variances_of(plan, plan.scales(made)).reshape(len(most), width)


def variances_of(plan: Plan, scales: np.ndarray) -> np.ndarray:
    """Variances of noise of these scales.

    Raises
    ------
    MeaningError
        If the mechanism's is not known.
    """
    variances = np.asarray(plan.mechanism.variance(scales))
    if np.isnan(variances).any():
        raise MeaningError(
            "privacy.mechanism", "the variance of its noise is not known, so nothing can be forecast"
        )
    return variances


def overruns(plan: Plan, frequencies: np.ndarray, steps: int) -> float:
    """Largest probability that an owner is asked for more answers than it may give."""
    from scipy.stats import binom

    limited = plan.releases != UNLIMITED
    if not limited.any():
        return 0.0
    return float(binom.sf(plan.releases[limited], steps, frequencies[limited]).max())
