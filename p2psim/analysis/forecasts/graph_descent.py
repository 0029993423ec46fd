"""The forecast of coordinate descent in one cell: its expected objective along the run, in its parts."""

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from p2psim.analysis.forecasts import graph_setting as graphs
from p2psim.analysis.forecasts.forecast import ForecastCurve
from p2psim.analysis.forecasts.star_setting import those_that_hold
from p2psim.analysis.forecasts.variances import noise_at, release_variances, wants_orders
from p2psim.core.errors import MeaningError, SimulationError
from p2psim.learning.batches import batch_of
from p2psim.learning.graph.optimum import graph_balance, graph_expansion, minimise_alone, minimise_together
from p2psim.network.spectrum import weight_matrix
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.prepared import PreparedData
from p2psim.theory.forecasts.descent import LinearDescent, linear_descent
from p2psim.theory.forecasts.descent_orders import GapMoments, Orders, sampled, vectors
from p2psim.theory.forecasts.descent_path import SHORT_ERROR, DescentPath, distances, path

#: Longest state of descent along drawn orders, which needs no squares of that.
MOST_DRAWN = 20_000

#: Orders of wakes that are drawn: so many, and fewer if they take longer than so many seconds.
_ORDERS, _FEWEST, _SECONDS = 2_000, 30, 3.0

#: Seconds beyond which a forecast is refused.
LONGEST = 300.0

#: Numbers of wakes at which noise is summed up; between them it is a cubic spline.
_NODES = 600

#: Errors of walks, beside the largest value, and which of these errors, relative to what is forecast, is accepted: the
#: shortest where that is small, a full walk where it may matter.
_WALKS = ((1e-11, 1e-9), (SHORT_ERROR, 1e-7), (0.0, np.inf))


@dataclass(frozen=True)
class DescentForecast(graphs.GraphForecast):
    """E[Q_L] − Q_L* at all moments: bias + optimisation + order + start + Σ noise.

    Attributes
    ----------
    setting, moments
        As in `GraphForecast`.
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
    distances : callable
        Gives `apart`, which takes as long as all else, when it is asked for.
    apart_alone : ndarray, shape (n,)
        ‖θ_i − θ*_i‖² of the minimiser of the agent's own loss; NaN for an agent without records.
    orders : int
        Over how many drawn orders of wakes it is an average; 0 where it is not.
    error : ndarray, shape (moments,)
        Standard error of that average; 0 where it is none.
    approximate : tuple of str
        Why it is not exact; empty where it is.
    """

    metric = symbol = key = "objective_gap"

    bias: float
    optimisation: np.ndarray
    order: np.ndarray
    start: np.ndarray
    noise: np.ndarray
    alone: float
    distances: Callable[[], np.ndarray]
    apart_alone: np.ndarray
    orders: int
    error: np.ndarray
    approximate: tuple[str, ...]

    @property
    def noiseless(self) -> np.ndarray:
        """Without any noise, shape (moments,)."""
        return np.asarray(self.bias + self.optimisation + self.order)

    @property
    def expected(self) -> np.ndarray:
        """E[Q_L] − Q_L*, shape (moments,)."""
        return np.asarray(self.noiseless + self.start + self.noise.sum(axis=1))

    @cached_property
    def apart(self) -> np.ndarray:
        """E‖θ_i − θ*_i‖² at the end, shape (n,).

        Raises
        ------
        SimulationError
            If it grows beyond all numbers.
        """
        with _growing():
            return self.distances()

    @property
    def gains(self) -> np.ndarray:
        """Which agents come closer to their optima together, on the mean square, than alone, shape (n,)."""
        return self.apart < self.apart_alone

    @property
    def curve(self) -> ForecastCurve:
        """What is expected along the run."""
        return replace(super().curve, noiseless=self.noiseless, alone=self.alone)

    @property
    def end(self) -> dict[str, Any]:
        """The end in its parts: a line of a table."""
        parts = {name: float(values[-1]) for name, values in self.run.items()}
        error = parts.pop("error")
        return {
            "Q_L − Q_L*": float(self.expected[-1]),
            "bias": self.bias,
            **parts,
            "± of orders": error if self.orders else None,
            "local models": self.alone,
            "closer than alone": f"{self.gains.sum()} of {np.isfinite(self.apart_alone).sum()}",
        }

    def parts_at(self, moment: int) -> dict[str, float]:
        """A moment of the run: a line of a table."""
        return {
            "Q_L − Q_L*": float(self.expected[moment]),
            "without noise": float(self.noiseless[moment]),
            "noise": float(self.noise[moment].sum() + self.start[moment]),
        }

    @property
    def agents(self) -> list[dict[str, Any]]:
        """What each agent adds and gains."""
        cell, noise = self.setting.cell, self.noise[-1]
        total = float(noise.sum())
        return [
            {
                "label": cell.case.labels[i],
                "records": int(cell.problem.records[i]),
                "epsilon": float(cell.setup.plan.budget[i]),
                "noise": float(noise[i]),
                "share": float(noise[i]) / total if total else 0.0,
                "together": float(self.apart[i]),
                "alone": float(self.apart_alone[i]),
                "gains": bool(self.gains[i]),
            }
            for i in range(len(noise))
        ]

    @property
    def run(self) -> dict[str, np.ndarray]:
        """All moments in their parts."""
        parts = {name: getattr(self, name) for name in ("optimisation", "order", "start")}
        return parts | {"noise": self.noise.sum(axis=1), "error": self.error}

    @property
    def more(self) -> dict[str, Any]:
        """What else is forecast, as plain values."""
        return {"orders": self.orders, "bias": self.bias, "local_models": self.alone}


def setting(scenario: Scenario, case: PreparedData, replica: int = 0) -> graphs.GraphSetting:
    """See `p2psim.analysis.forecasts.forecast.setting`."""
    why = "broadcast: otherwise neighbours know older models"
    needs = graphs.Needs(scenario.network.exchange.kind, ("broadcast",), why, True)
    return graphs.graph_setting(scenario, case, replica, needs)


def forecast(setting: graphs.GraphSetting) -> DescentForecast:
    """Forecast a cell: by moments where they close, else along orders of wakes that are drawn.

    Raises
    ------
    MeaningError
        If the variance of the noise is not known.
    SimulationError
        If the forecast grows beyond all numbers.
    """
    cell, model = setting.cell, _model(setting)
    setup = cell.setup
    moments, wakes = graphs.recorded_moments(
        cell.scenario.record.every, setup.commits, setup.time, setting.rate
    )
    bias = model.gap(model.offset)
    optimum, alone = minimise_together(cell.problem), minimise_alone(cell.problem)
    with _growing():
        drawn = model.size > graphs.MOST_NUMBERS or wants_orders(model, setup.plan, setup, setting.rate)
        parts, apart = (_of_orders if drawn else _of_moments)(setting, model, moments, wakes)
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
        apart,
        np.where(cell.problem.records > 0, ((alone - optimum) ** 2).sum(axis=1), np.nan),
        parts.orders,
        parts.error,
        _reasons(cell, parts.orders > 0),
    )


@contextmanager
def _growing() -> Iterator[None]:
    """Say of what grows beyond all numbers what it is."""
    try:
        with np.errstate(over="raise", invalid="raise"):
            yield
    except FloatingPointError:
        raise SimulationError("the expected objective grows beyond all numbers") from None


#: Parts of the gap, and what gives the distances of models from their optima.
_Parts = tuple[GapMoments, Callable[[], np.ndarray]]


def _of_orders(
    setting: graphs.GraphSetting, model: LinearDescent, moments: graphs.RecordedMoments, wakes: int
) -> _Parts:
    cell = setting.cell
    plan, scenario = cell.setup.plan, cell.scenario
    how = Orders(
        limits=plan.releases,
        spent=scenario.privacy.when_spent,
        alpha=cell.problem.alpha,
        rest=minimise_together(cell.problem) + model.offset,
        anchor=cell.first.anchor,
        start_factor=setting.first_factor,
        variances=partial(release_variances, plan),
        commits=cell.setup.commits,
        time=cell.setup.time,
        rate=setting.rate,
    )
    # So many that they take about as long as is borne.
    degree, p = model.weights.nnz / model.agents, cell.problem.dimension
    seconds = wakes * (1e-6 + 4e-10 * p * (p + degree) * vectors(model))
    if seconds * _FEWEST > LONGEST:
        minutes = seconds * _FEWEST / 60
        raise MeaningError("network.topology", f"the forecast would take some {minutes:.0f} minutes")
    orders = int(np.clip(_SECONDS / seconds, _FEWEST, _ORDERS))
    parts = sampled(model, how, moments.axis, moments.points, orders, scenario.seed)
    return parts, lambda: parts.apart


def _of_moments(
    setting: graphs.GraphSetting, model: LinearDescent, moments: graphs.RecordedMoments, wakes: int
) -> _Parts:
    plan, nodes = setting.cell.setup.plan, _nodes(moments)
    for error, accepted in _WALKS:
        walked = _kept_path(model, moments.most, error)
        noise, variances = noise_at(model, walked, plan, wakes, nodes)
        largest = walked.gain.max(axis=0) * walked.error
        unknown = walked.error * walked.expected[0] + (variances.sum(axis=0) * largest).sum()
        if unknown <= accepted * (walked.expected[-1] + noise[-1].sum()):
            break
    at = moments.chances
    parts = GapMoments(
        noiseless=at @ (walked.expected - walked.start_noise),
        start=at @ walked.start_noise,
        noise=_at_moments(moments, nodes, noise),
        mean_gap=at @ walked.mean_gap,
        apart=np.full(model.agents, np.nan),
        error=np.zeros(len(at)),
    )
    return parts, partial(distances, model, variances[:wakes])


def _kept_path(model: LinearDescent, wakes: int, error: float) -> DescentPath:
    """The walk of a model; cells that differ in noise alone share one."""
    return _path(pickle.dumps([getattr(model, field.name) for field in fields(model)]), wakes, error)


@lru_cache(maxsize=4)
def _path(pickled: bytes, wakes: int, error: float) -> DescentPath:
    return path(LinearDescent(*pickle.loads(pickled)), wakes, not error, error or SHORT_ERROR)


def _nodes(moments: graphs.RecordedMoments) -> np.ndarray:
    """Numbers of wakes at which noise is wanted: all that are needed, or enough of them to draw a curve through."""
    needed = moments.needed
    if len(needed) <= _NODES:
        return needed
    some = np.linspace(0, moments.most, _NODES).round().astype(int)
    exact = moments.chances[(moments.chances > 0).sum(axis=1) == 1].argmax(axis=1)
    return np.union1d(some, exact)


def _at_moments(moments: graphs.RecordedMoments, nodes: np.ndarray, noise: np.ndarray) -> np.ndarray:
    needed = moments.needed
    if len(nodes) >= len(needed) and np.isin(needed, nodes).all():
        return moments.chances[:, nodes] @ noise
    from scipy.interpolate import CubicSpline

    steps = np.arange(moments.most + 1)
    return np.asarray(moments.chances @ np.maximum(CubicSpline(nodes, noise)(steps), 0.0))


def _model(setting: graphs.GraphSetting) -> LinearDescent:
    cell, problem, rule = setting.cell, setting.cell.problem, setting.cell.rule
    # Where clipped updates rest is computed from a matrix of that size.
    most = graphs.MOST_NUMBERS if np.isfinite(rule.clip) else MOST_DRAWN
    graphs.refuse_larger(most, "agents times coordinates", problem.agents * problem.dimension)
    optimum = minimise_together(problem)
    rest = graph_balance(problem, optimum, rule.clip, rule.order)
    _, curvature = graph_expansion(problem, optimum)
    jacobian = None
    if np.isfinite(rule.clip):
        _, jacobian = graph_expansion(problem, rest, rule.clip, rule.order)
    return linear_descent(
        weight_matrix(cell.links),
        problem.pull,
        problem.alpha,
        curvature,
        start=setting.first,
        optimum=optimum,
        chance=setting.frequencies,
        jacobian=jacobian,
        rest=rest,
        start_covariance=setting.first_covariance,
    )


def _reasons(cell: GraphCell, drawn: bool) -> tuple[str, ...]:
    loss, rule, batch = cell.problem.loss, cell.rule, batch_of(cell.scenario.learning.algorithm)
    return those_that_hold(
        {
            f"{loss.kind} loss: a quadratic model at the minimiser": not loss.is_squared_error,
            "gradients may be clipped: a linear model of those that are not": bool(np.isfinite(rule.clip)),
            "batches: the variance of sampling is not in it": batch.code is not None,
            "rounding to the grid is not in it": rule.grid is not None,
            "releases end, budgets know all wakes, or agents are many: an average over drawn orders of wakes": drawn,
        }
    )
