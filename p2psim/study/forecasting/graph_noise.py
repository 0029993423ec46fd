"""Noise of coordinate descent in a forecast: its variance before the run, and what it adds to the objective."""

from __future__ import annotations

import numpy as np

from p2psim.errors import MeaningError
from p2psim.privacy.allocations import UNLIMITED, Contraction, Releases, Uniform
from p2psim.privacy.mechanisms import noise_scales
from p2psim.privacy.plan import Plan
from p2psim.study.forecasting.setting import answer_variances
from p2psim.theory.forecast.descent import LinearDescent
from p2psim.theory.forecast.descent_path import DescentPath
from p2psim.theory.forecast.descent_totals import known_wakes_noise, unconditional_variances

#: Multiplications for which noise that knows all wakes is forecast exactly.
_EXACT_WORK = 2e11


def noise_at(
    model: LinearDescent, walked: DescentPath, plan: Plan, wakes: int, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """What noise adds to E[Q_L] after some numbers of wakes, by agent; variances; and what of it is approximate.

    Parameters
    ----------
    model : LinearDescent
    walked : DescentPath
        Of as many wakes as any of ``at`` at least.
    plan : Plan
    wakes : int
        T, wakes of the run, as far as they are known before it.
    at : ndarray of int, shape (moments,)

    Returns
    -------
    noise : ndarray, shape (moments, n)
    variances : ndarray, shape (wakes walked, n)
        Of a coordinate of a release, if the wake t is agent i's.
    approximate : list of str

    Raises
    ------
    MeaningError
        If the variance of the mechanism is not known, or too large for a number.
    """
    if plan.clairvoyant:
        return _of_all_wakes(model, walked, plan, wakes, at)
    variances = answer_variances(plan, model.chance, len(walked.gain))
    noise = np.array([(walked.gain[:k] * variances[:k][::-1]).sum(axis=0) for k in at.tolist()])
    return noise, variances, []


def _of_all_wakes(
    model: LinearDescent, walked: DescentPath, plan: Plan, wakes: int, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    if plan.sampled:
        raise MeaningError(
            "privacy.allocation", f"{plan.allocation.kind} with known wakes has no forecast for batches"
        )
    power, ratio = 2 // plan.mechanism.power, _ratio(plan)
    whole = plan.mechanism.variance(
        noise_scales(plan.claimed_sensitivity, plan.allowance ** (1 / plan.mechanism.power))
    )
    reasons = []
    work = 2.0 * model.agents * (power + 1) * wakes * model.size**2 * min(model.size, 8)
    traces = None
    if work > _EXACT_WORK:
        with np.errstate(divide="ignore", invalid="ignore"):
            traces = np.nan_to_num(walked.gain / (model.chance * model.noise_step**2))
        reasons.append("when an agent wakes is taken to be independent of how often it does in all")
    try:
        noise = known_wakes_noise(model, wakes, ratio, power, whole, np.minimum(at, wakes), traces)
        variances = unconditional_variances(model.chance, len(walked.gain), wakes, ratio, power, whole)
    except FloatingPointError:
        raise MeaningError(
            "privacy.allocation", "the variance of some releases overflows: C is too small for so many"
        ) from None
    return noise, variances, reasons


def _ratio(plan: Plan) -> float:
    """ω: a release at step t weighs ω^{−t}."""
    assert isinstance(plan.allocation, Uniform | Contraction)
    both = Releases(np.zeros(2, np.int64), np.zeros(2, np.int64), np.arange(2))
    weights = plan.allocation.logarithms(both, plan.outlook, plan.mechanism.power)
    return float(np.exp(weights[0] - weights[1]))


def overruns_in_time(plan: Plan, expected: np.ndarray) -> float:
    """Largest probability that an agent wakes more often than it may release, its wakes Poisson of these means."""
    from scipy.stats import poisson

    limited = plan.releases != UNLIMITED
    if not limited.any():
        return 0.0
    return float(poisson.sf(plan.releases[limited], expected[limited]).max())
