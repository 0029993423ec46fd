"""The variance of noise before a run, as forecasts expect it, and what it adds on a graph."""

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.privacy.mechanisms import noise_scales
from p2psim.privacy.plan import Plan
from p2psim.privacy.shares import UNLIMITED, Releases
from p2psim.simulation.algorithms.replay import ReplaySetup
from p2psim.theory.forecasts.descent import LinearDescent
from p2psim.theory.forecasts.descent_path import DescentPath
from p2psim.theory.forecasts.known_wakes import known_wakes_noise, unconditional_variances
from p2psim.theory.forecasts.split import average_variances, geometric_variances


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
    ratio = plan.allocation.falls_by
    falls_as_loss = plan.mechanism.power == 1 and plan.mechanism.scales_linearly
    if ratio is not None and falls_as_loss and not plan.sampled:
        first = _variances(plan, np.ones(N, int))[:, 0]
        try:
            return geometric_variances(first, ratio, frequencies, steps)
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
    releases = Releases(agents, flat, np.zeros(flat.size, np.int64))
    return variances_of(plan, plan.scales(releases)).reshape(len(most), width)


def variances_of(plan: Plan, scales: np.ndarray) -> np.ndarray:
    """Variances of noise of these scales.

    Raises
    ------
    MeaningError
        If the mechanism's is not known.
    """
    variances = np.asarray(plan.mechanism.variance(scales))
    if np.isnan(variances).any():
        message = "the variance of its noise is not known, so nothing can be forecast"
        raise MeaningError("privacy.mechanism", message)
    return variances


def overruns(plan: Plan, frequencies: np.ndarray, steps: float, in_time: bool = False) -> float:
    """Largest probability that an owner is queried for more answers than it may give.

    Of a number of steps; in a time the steps are Poisson, and ``steps`` is their mean.
    """
    # `scipy.stats` has the same, and takes a second to load.
    from scipy.special import bdtrc, pdtrc

    limited = plan.releases != UNLIMITED
    if not limited.any():
        return 0.0
    most, shares = plan.releases[limited], frequencies[limited]
    tails = pdtrc(most, steps * shares) if in_time else bdtrc(np.minimum(most, steps), steps, shares)
    return float(tails.max())


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
        message = "the variance of some releases overflows: C is too small for so many"
        raise MeaningError("privacy.allocation", message) from None


def wants_orders(model: LinearDescent, plan: Plan, setup: ReplaySetup, rate: float) -> bool:
    """Whether moments do not close: releases may end, or scales depend on wakes in ways that are too much to walk."""
    ends_in_time = setup.commits is None
    steps = rate * float(setup.time or 0.0) if setup.commits is None else setup.commits
    if overruns(plan, model.chance, steps, ends_in_time) > RUNS_OUT:
        return True
    if not plan.clairvoyant:
        return False
    wakes = setup.commits or 0
    work = 4.0 * model.agents * (2 // plan.mechanism.power + 1) * wakes * model.size**2
    return setup.commits is None or work > _EXACT_WORK or plan.sampled


def release_variances(plan: Plan, agents: np.ndarray, numbers: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Variance of a coordinate of each release of a whole run, shape (releases,).

    Raises
    ------
    MeaningError
        If the variance of the mechanism is not known.
    """
    if not plan.mechanism.is_private:
        return np.zeros(agents.size)
    releases = Releases(agents, numbers, steps)
    return variances_of(plan, plan.scales(releases, plan.totals([releases])))


def _ratio(plan: Plan) -> float:
    """ω: a release at step t weighs ω^{−t}."""
    if not plan.allocation.by_powers:
        message = f"weights of {plan.allocation.kind} are not known to be powers of one number: nothing can be forecast"
        raise MeaningError("privacy.allocation", message)
    both = Releases(np.zeros(2, np.int64), np.zeros(2, np.int64), np.arange(2))
    weights = plan.allocation.logarithms(both, plan.forecast, plan.mechanism.power)
    return float(np.exp(weights[0] - weights[1]))
