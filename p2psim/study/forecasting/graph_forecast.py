"""The forecast of coordinate descent in one cell: its expected objective along the run, in its parts."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from p2psim.errors import SimulationError
from p2psim.learning.graph_optimum import minimise_alone, minimise_together
from p2psim.study.forecasting.graph_moments import Moments, moments_of
from p2psim.study.forecasting.graph_noise import noise_at, overruns_in_time
from p2psim.study.forecasting.graph_setting import GraphSetting
from p2psim.study.forecasting.setting import overruns
from p2psim.theory.forecast.descent import LinearDescent
from p2psim.theory.forecast.descent_end import distances
from p2psim.theory.forecast.descent_path import DescentPath, path

#: Probability that an agent makes all its releases, from which on it is told.
_RUNS_OUT = 1e-3

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
    """Forecast a cell.

    Raises
    ------
    MeaningError
        If the variance of the noise is not known.
    SimulationError
        If the forecast grows beyond all numbers.
    """
    model, cell = setting.step, setting.cell
    assert isinstance(model, LinearDescent)
    stage, plan = cell.stage, cell.stage.plan
    moments, wakes = moments_of(cell.scenario.record.every, stage.commits, stage.time, setting.rate)
    nodes = _nodes(moments)
    walked, noise, variances, reasons = _walk(setting, model, moments, wakes, nodes)
    reasons = [*setting.approximate, *reasons]
    if plan.clairvoyant and stage.commits is None:
        reasons.append("known wakes of a run that ends by time: as many as are expected")
    if stage.commits is None:
        tail = overruns_in_time(plan, setting.rate * setting.frequencies * float(stage.time or 0.0))
    else:
        tail = overruns(plan, setting.frequencies, stage.commits)
    if tail > _RUNS_OUT:
        reasons.append(f"an agent makes all its releases with probability {tail:.2g}, and is taken to go on")
    bias = model.gap(model.offset)
    optimum = minimise_together(cell.problem)
    alone = minimise_alone(cell.problem)
    held = cell.problem.records > 0
    at = moments.chances
    return DescentForecast(
        setting,
        moments,
        bias,
        at @ walked.mean_gap - bias,
        # A variance; below 0 by rounding alone.
        at @ np.maximum(walked.expected - walked.start_noise - walked.mean_gap, 0.0),
        at @ walked.start_noise,
        _at_moments(moments, nodes, noise),
        float(cell.problem.objective(alone) - cell.problem.objective(optimum)),
        distances(model, variances[:wakes]),
        np.where(held, ((alone - optimum) ** 2).sum(axis=1), np.nan),
        tuple(reasons),
    )


def _walk(
    setting: GraphSetting, model: LinearDescent, moments: Moments, wakes: int, nodes: np.ndarray
) -> tuple[DescentPath, np.ndarray, np.ndarray, list[str]]:
    """A short walk where its error does not matter, a full one where it may."""
    plan = setting.cell.stage.plan
    try:
        with np.errstate(over="raise", invalid="raise"):
            for exact in (False, True):
                walked = _kept_path(model, moments.most, exact)
                noise, variances, reasons = noise_at(model, walked, plan, wakes, nodes)
                if not walked.error:
                    break
                largest = walked.gain.max(axis=0) * walked.error
                unknown = walked.error * walked.expected[0] + (variances.sum(axis=0) * largest).sum()
                if unknown <= _ACCEPTED * (walked.expected[-1] + noise[-1].sum()):
                    break
    except FloatingPointError:
        raise SimulationError("the expected objective grows beyond all numbers") from None
    return walked, noise, variances, reasons


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
