"""The forecast of coordinate descent in one cell: its expected objective along the run, in its parts.

Noise of coordinate descent in a forecast: its variance before the run, and what it adds to the objective.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

import numpy as np

from p2psim.analysis.forecasts.graph_setting import MOST_NUMBERS, GraphSetting, Moments, moments_of
from p2psim.analysis.forecasts.walks import answer_variances, overruns, variances_of
from p2psim.core.errors import MeaningError, SimulationError
from p2psim.learning.graph.optimum import minimise_alone, minimise_together
from p2psim.privacy.allocations import UNLIMITED, Contraction, Releases, Uniform
from p2psim.privacy.mechanisms import noise_scales
from p2psim.privacy.plan import Plan
from p2psim.simulation.algorithms.replay import ReplaySetup
from p2psim.theory.forecasts.descent import LinearDescent
from p2psim.theory.forecasts.descent_orders import Orders, sampled, vectors
from p2psim.theory.forecasts.descent_path import (
    DescentPath,
    distances,
    known_wakes_noise,
    path,
    unconditional_variances,
)

#: Orders of wakes that are drawn: so many, and fewer if they take longer than so many seconds.
_ORDERS, _FEWEST, _SECONDS = 2_000, 30, 3.0

#: Seconds beyond which a forecast is refused.
_LONGEST = 300.0

#: Numbers of wakes at which noise is summed up; between them it is a cubic spline.
_NODES = 600

#: Error of a short walk, relative to what is forecast, that is accepted.
_ACCEPTED = 1e-7


@dataclass(frozen=True)
class DescentForecast:
    """E[Q_L] − Q_L* at all moments: bias + optimisation + order + start + Σ noise.

    Attributes
    ----------
    setting : GraphSetting
    moments : Moments
    bias : float
        Of the models at which updates rest: 0 where no gradient is clipped there.
    optimisation : ndarray, shape (moments,)
        Of the expected models, less the bias.
    order : ndarray, shape (moments,)
        What chance adds through who wakes when.
    start : ndarray, shape (moments,)
        What is left of the noise of the first models.
    noise : ndarray, shape (moments, n)
        What the noise of each agent's releases adds.
    alone : float
        Q_L − Q_L* where each agent has the minimiser of its own loss, without noise.
    apart : ndarray, shape (n,)
        E‖θ_i − θ*_i‖² at the end.
    apart_alone : ndarray, shape (n,)
        ‖θ_i − θ*_i‖² of the minimiser of the agent's own loss; NaN for an agent without records.
    orders : int
        Over how many drawn orders of wakes it is an average; 0 where it is not.
    error : ndarray, shape (moments,)
        Standard error of that average; 0 where it is none.
    approximate : tuple of str
        Why it is not exact; empty where it is.
    """

    setting: GraphSetting
    moments: Moments
    bias: float
    optimisation: np.ndarray
    order: np.ndarray
    start: np.ndarray
    noise: np.ndarray
    alone: float
    apart: np.ndarray
    apart_alone: np.ndarray
    orders: int
    error: np.ndarray
    approximate: tuple[str, ...]

    @property
    def noiseless(self) -> np.ndarray:
        """Without any noise, shape (moments,)."""
        found: np.ndarray = self.bias + self.optimisation + self.order
        return found

    @property
    def gap(self) -> np.ndarray:
        """E[Q_L] − Q_L*, shape (moments,)."""
        found: np.ndarray = self.noiseless + self.start + self.noise.sum(axis=1)
        return found

    @property
    def gains(self) -> np.ndarray:
        """Which agents come closer to their optima together, on the mean square, than alone, shape (n,)."""
        return self.apart < self.apart_alone

    @property
    def expected(self) -> np.ndarray:
        """What is compared with runs."""
        return self.gap


def descent_forecast(setting: GraphSetting) -> DescentForecast:
    """Forecast a cell: by moments where they close, else along orders of wakes that are drawn.

    Raises
    ------
    MeaningError
        If the variance of the noise is not known.
    SimulationError
        If the forecast grows beyond all numbers.
    """
    model, cell = setting.step, setting.cell
    assert isinstance(model, LinearDescent)
    setup = cell.setup
    moments, wakes = moments_of(cell.scenario.record.every, setup.commits, setup.time, setting.rate)
    bias, optimum, alone = (
        model.gap(model.offset),
        minimise_together(cell.problem),
        minimise_alone(cell.problem),
    )
    try:
        with np.errstate(over="raise", invalid="raise"):
            parts = (
                _of_orders(setting, model, moments, wakes)
                if model.size > MOST_NUMBERS or wants_orders(model, setup.plan, setup, setting.rate)
                else _of_moments(setting, model, moments, wakes)
            )
    except FloatingPointError:
        raise SimulationError("the expected objective grows beyond all numbers") from None
    return DescentForecast(
        setting,
        moments,
        bias,
        parts.mean_gap - bias,
        # A variance; below 0 by rounding, or by chance of the orders.
        np.maximum(parts.noiseless - parts.mean_gap, 0.0),
        parts.start,
        parts.noise,
        float(cell.problem.objective(alone) - cell.problem.objective(optimum)),
        parts.apart,
        np.where(cell.problem.records > 0, ((alone - optimum) ** 2).sum(axis=1), np.nan),
        parts.orders,
        parts.error,
        (*setting.approximate, *parts.reasons),
    )


@dataclass(frozen=True)
class _Parts:
    noiseless: np.ndarray
    mean_gap: np.ndarray
    start: np.ndarray
    noise: np.ndarray
    apart: np.ndarray
    orders: int
    error: np.ndarray

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why these are not exact."""
        if not self.orders:
            return ()
        return (
            "releases end, budgets know all wakes, or agents are many: an average over drawn orders of wakes",
        )


def _of_orders(setting: GraphSetting, model: LinearDescent, moments: Moments, wakes: int) -> _Parts:
    cell = setting.cell
    plan, scenario = cell.setup.plan, cell.scenario
    how = Orders(
        limits=plan.releases,
        spent=scenario.privacy.when_spent,
        alpha=cell.problem.alpha,
        rest=minimise_together(cell.problem) + model.offset,
        anchor=cell.anchor,
        start_factor=setting.first_factor,
        variances=partial(release_variances, plan),
        commits=cell.setup.commits,
        time=cell.setup.time,
        rate=setting.rate,
    )
    # So many that they take about as long as is borne.
    degree, p = model.weights.nnz / model.agents, cell.problem.dimension
    seconds = wakes * (2e-6 + 2e-9 * p * (p + degree) * vectors(model))
    if seconds * _FEWEST > _LONGEST:
        minutes = seconds * _FEWEST / 60
        raise MeaningError("network.topology", f"the forecast would take some {minutes:.0f} minutes")
    orders = int(np.clip(_SECONDS / seconds, _FEWEST, _ORDERS))
    found = sampled(model, how, moments.axis, moments.points, orders, scenario.seed)
    return _Parts(found.noiseless, found.mean_gap, found.start, found.noise, found.apart, orders, found.error)


def _of_moments(setting: GraphSetting, model: LinearDescent, moments: Moments, wakes: int) -> _Parts:
    plan, nodes = setting.cell.setup.plan, _nodes(moments)
    # A short walk where its error does not matter, a full one where it may.
    for exact in (False, True):
        walked = _kept_path(model, moments.most, exact)
        noise, variances = noise_at(model, walked, plan, wakes, nodes)
        largest = walked.gain.max(axis=0) * walked.error
        unknown = walked.error * walked.expected[0] + (variances.sum(axis=0) * largest).sum()
        if unknown <= _ACCEPTED * (walked.expected[-1] + noise[-1].sum()):
            break
    at = moments.chances
    return _Parts(
        noiseless=at @ (walked.expected - walked.start_noise),
        mean_gap=at @ walked.mean_gap,
        start=at @ walked.start_noise,
        noise=_at_moments(moments, nodes, noise),
        apart=distances(model, variances[:wakes]),
        orders=0,
        error=np.zeros(len(at)),
    )


#: Walks of models, by all that they depend on: cells that differ in noise alone share one.
_WALKS: OrderedDict[bytes, DescentPath] = OrderedDict()
_KEPT_WALKS = 4


def _kept_path(model: LinearDescent, wakes: int, exact: bool) -> DescentPath:
    made = hashlib.blake2b(f"{wakes} {exact} {model.start.shape}".encode(), digest_size=16)
    weights = model.weights.indptr, model.weights.indices, model.weights.data
    own = model.chance, model.step, model.noise_step, model.blocks, model.objective
    for array in (*weights, *own, model.start, model.offset, model.start_covariance):
        made.update(np.ascontiguousarray(array).data)
    key = made.digest()
    if key not in _WALKS:
        _WALKS[key] = path(model, wakes, exact)
    _WALKS.move_to_end(key)
    while len(_WALKS) > _KEPT_WALKS:
        _WALKS.popitem(last=False)
    return _WALKS[key]


def _nodes(moments: Moments) -> np.ndarray:
    """Numbers of wakes at which noise is wanted: all that are needed, or enough of them to draw a curve through."""
    needed = moments.needed
    if len(needed) <= _NODES:
        return needed
    some = np.linspace(0, moments.most, _NODES).round().astype(int)
    exact = moments.chances[(moments.chances > 0).sum(axis=1) == 1].argmax(axis=1)
    return np.union1d(some, exact)


def _at_moments(moments: Moments, nodes: np.ndarray, noise: np.ndarray) -> np.ndarray:
    needed = moments.needed
    if len(nodes) >= len(needed) and np.isin(needed, nodes).all():
        return moments.chances[:, nodes] @ noise
    from scipy.interpolate import CubicSpline

    steps = np.arange(moments.most + 1)
    return np.asarray(moments.chances @ np.maximum(CubicSpline(nodes, noise)(steps), 0.0))


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


def wants_orders(model: LinearDescent, plan: Plan, setup: ReplaySetup, rate: float) -> bool:
    """Whether moments do not close: releases may end, or scales depend on wakes in ways that are too much to walk."""
    if setup.commits is None:
        tail = _overruns_in_time(plan, rate * model.chance * float(setup.time or 0.0))
    else:
        tail = overruns(plan, model.chance, setup.commits)
    if tail > RUNS_OUT:
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
