"""Variance of the noise that a plan of releases gives answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import MeaningError
from p2psim.privacy.allocations import UNLIMITED, Geometric, Releases
from p2psim.theory.forecast.noise import average_variances, geometric_variances

if TYPE_CHECKING:
    from p2psim.privacy.plan import Plan


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
