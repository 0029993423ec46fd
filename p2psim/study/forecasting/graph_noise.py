"""Noise of coordinate descent in a forecast: its variance before the run, and what it adds to the objective."""

from __future__ import annotations

import numpy as np

from p2psim.errors import MeaningError
from p2psim.privacy.allocations import UNLIMITED, Contraction, Releases, Uniform
from p2psim.privacy.mechanisms import noise_scales
from p2psim.privacy.plan import Plan
from p2psim.study.families.stage import Stage
from p2psim.study.forecasting.variances import answer_variances, overruns, variances_of
from p2psim.theory.forecast.descent import LinearDescent
from p2psim.theory.forecast.descent_path import DescentPath
from p2psim.theory.forecast.descent_totals import known_wakes_noise, unconditional_variances

#: Numbers that are moved for noise that knows all wakes, up to which it is forecast exactly.
_EXACT_WORK = 2e10

#: Probability that an agent makes all its releases, from which on orders are drawn.
RUNS_OUT = 1e-6


def noise_at(
    model: LinearDescent, walked: DescentPath, plan: Plan, wakes: int, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What noise adds to E[Q_L] after some numbers of wakes, by agent, and variances.

    Parameters
    ----------
    model : LinearDescent
    walked : DescentPath
        Of as many wakes as any of ``at`` at least.
    plan : Plan
    wakes : int
        T, wakes of the run.
    at : ndarray of int, shape (moments,)

    Returns
    -------
    noise : ndarray, shape (moments, n)
    variances : ndarray, shape (wakes walked, n)
        Of a coordinate of a release, if the wake t is agent i's.

    Raises
    ------
    MeaningError
        If the variance of the mechanism is not known, or too large for a number.
    """
    if not plan.clairvoyant:
        variances = answer_variances(plan, model.chance, len(walked.gain))
        return np.array([(walked.gain[:k] * variances[:k][::-1]).sum(axis=0) for k in at.tolist()]), variances
    power, ratio = 2 // plan.mechanism.power, _ratio(plan)
    losses = plan.allowance ** (1 / plan.mechanism.power)
    whole = plan.mechanism.variance(noise_scales(plan.claimed_sensitivity, losses))
    try:
        return (
            known_wakes_noise(model, wakes, ratio, power, whole, at),
            unconditional_variances(model.chance, len(walked.gain), wakes, ratio, power, whole),
        )
    except FloatingPointError:
        raise MeaningError(
            "privacy.allocation", "the variance of some releases overflows: C is too small for so many"
        ) from None


def wants_orders(model: LinearDescent, plan: Plan, stage: Stage, rate: float) -> bool:
    """Whether moments do not close: releases may end, or scales depend on wakes in ways that are too much to walk."""
    if stage.commits is None:
        tail = _overruns_in_time(plan, rate * model.chance * float(stage.time or 0.0))
    else:
        tail = overruns(plan, model.chance, stage.commits)
    if tail > RUNS_OUT:
        return True
    if not plan.clairvoyant:
        return False
    wakes = stage.commits or 0
    work = 4.0 * model.agents * (2 // plan.mechanism.power + 1) * wakes * model.size**2
    return stage.commits is None or work > _EXACT_WORK or plan.sampled


def release_variances(plan: Plan, agents: np.ndarray, numbers: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Variance of a coordinate of each release of a whole run, shape (releases,).

    Raises
    ------
    MeaningError
        If the variance of the mechanism is not known.
    """
    if not plan.mechanism.is_private:
        return np.zeros(agents.size)
    made = Releases(agents, numbers, steps)
    return variances_of(plan, plan.scales(made, plan.totals([made])))


def _ratio(plan: Plan) -> float:
    """ω: a release at step t weighs ω^{−t}."""
    if not isinstance(plan.allocation, Uniform | Contraction):
        message = f"weights of {plan.allocation.kind} are not known to be powers of one number: nothing can be forecast"
        raise MeaningError("privacy.allocation", message)
    both = Releases(np.zeros(2, np.int64), np.zeros(2, np.int64), np.arange(2))
    weights = plan.allocation.logarithms(both, plan.outlook, plan.mechanism.power)
    return float(np.exp(weights[0] - weights[1]))


def _overruns_in_time(plan: Plan, expected: np.ndarray) -> float:
    """Largest probability that an agent wakes more often than it may release, its wakes Poisson of these means."""
    from scipy.stats import poisson

    limited = plan.releases != UNLIMITED
    if not limited.any():
        return 0.0
    return float(poisson.sf(plan.releases[limited], expected[limited]).max())
