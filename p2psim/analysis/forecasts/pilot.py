"""Pilot replicas beside a forecast: how right it is, and of graphs what a replica costs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.analysis.forecasts.forecast import POINTS, Forecast, forecast
from p2psim.analysis.forecasts.graph_averaging import AveragingForecast, averaging_forecast
from p2psim.analysis.forecasts.graph_descent import DescentForecast, descent_forecast
from p2psim.analysis.forecasts.graph_setting import graph_setting
from p2psim.analysis.forecasts.star_setting import setting
from p2psim.network.topologies import is_redrawn
from p2psim.scenario.record import EveryTime
from p2psim.simulation.simulate import simulate
from p2psim.theory.forecasts.descent import LinearDescent

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.prepared import PreparedData
    from p2psim.simulation.workspace import Workspace

#: Relative standard errors below this are of rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Calibration:
    """Forecasts and means of pilot replicas, at the recorded numbers of answers.

    Where every replica draws its data anew, each has a forecast of its own.

    Attributes
    ----------
    steps : ndarray of int, shape (records,)
    forecast, mean : ndarray, shape (records,)
        Expected ψ, and its mean over the replicas.
    error : ndarray, shape (records,)
        Standard error of their difference; 0 where all replicas differ alike from their forecasts.
    """

    steps: np.ndarray
    forecast: np.ndarray
    mean: np.ndarray
    error: np.ndarray

    @property
    def z(self) -> np.ndarray:
        """Difference in standard errors, shape (records,); 0 where all replicas are the same but for rounding."""
        away = self.mean - self.forecast
        vary = self.error > _ROUNDING * np.abs(self.mean)
        found: np.ndarray = np.divide(away, self.error, out=np.zeros_like(away), where=vary)
        return found

    @property
    def off(self) -> float:
        """(mean − forecast)/forecast at the end: the measured error of an approximation."""
        return float(self.mean[-1] / self.forecast[-1] - 1)

    @property
    def points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps, means and standard errors, as figures show them."""
        return self.steps, self.mean, self.error

    @property
    def end(self) -> dict[str, float]:
        """The mean at the end, and how far all points are off: part of a line of a table."""
        return {"± s.e.": float(self.error[-1]), "largest |z|": float(np.abs(self.z).max())}

    @property
    def tree(self) -> dict[str, Any]:
        """As ``p2psim forecast --json`` writes it."""
        return {
            "step": self.steps.tolist(),
            "forecast": self.forecast.tolist(),
            "mean": self.mean.tolist(),
            "error": self.error.tolist(),
            "z": self.z.tolist(),
            "off": self.off,
        }


def calibrate(
    scenario: Scenario, workspace: Workspace, replicas: int, made: Forecast | None = None
) -> Calibration:
    """Run the first replicas of a scenario (without a sweep) beside their forecasts.

    Parameters
    ----------
    scenario : Scenario
    workspace : Workspace
    replicas : int
        At least 2.
    made : Forecast, optional
        Of replica 0.
    """
    T = made.setting.answers if made is not None else setting(scenario, workspace.case(scenario, 0)).answers
    record = scenario.record
    length = record.every if isinstance(record.every, int) else max(1, T // POINTS)
    pilot = scenario.model_copy(
        update={"record": record.model_copy(update={"metrics": ["relative_fitness"], "every": length})}
    )
    expected, measured, steps = [], [], np.zeros(0, np.int64)
    for replica in range(replicas):
        if made is None or (replica and scenario.data.redrawn):
            made = forecast(setting(scenario, workspace.case(scenario, replica), replica))
        series = simulate(pilot, replica, workspace).series[0]
        # A run that ends early, as when all owners are spent, keeps its last model.
        wanted = np.arange(0, T + 1, length)
        held = np.searchsorted(series.step, wanted, side="right") - 1
        measured.append(series.value[held])
        expected.append(made.parts.psi[wanted])
        steps = wanted
    away = np.array(measured) - np.array(expected)
    error = away.std(axis=0, ddof=1) / np.sqrt(replicas)
    return Calibration(steps, np.mean(expected, axis=0), np.mean(measured, axis=0), error)


GraphForecast = DescentForecast | AveragingForecast


def graph_forecast(scenario: Scenario, case: PreparedData, replica: int = 0) -> GraphForecast:
    """Forecast a scenario on a graph.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    made = graph_setting(scenario, case, replica)
    return descent_forecast(made) if isinstance(made.step, LinearDescent) else averaging_forecast(made)


def graph_calibrate(
    scenario: Scenario, workspace: Workspace, replicas: int, made: GraphForecast
) -> tuple[Calibration, float]:
    """Run the first replicas of a scenario (without a sweep) beside their forecasts.

    Runs that end by time are compared at times: those that reach a number of commits are not like the others.

    Parameters
    ----------
    scenario : Scenario
    workspace : Workspace
    replicas : int
        At least 2.
    made : DescentForecast or AveragingForecast
        Of replica 0.

    Returns
    -------
    Calibration
        Its ``steps`` are times where runs end by time.
    float
        Seconds of a replica; the first, which may compile, left out.
    """
    setup, record, metric = made.setting.cell.setup, scenario.record, made.metric
    every = record.every
    if setup.time is not None and isinstance(every, int):
        every = EveryTime(time=setup.time / POINTS)
    pilot = scenario.model_copy(
        update={"record": record.model_copy(update={"metrics": [metric], "per_agent": [], "every": every})}
    )
    anew = scenario.data.redrawn or is_redrawn(scenario.network.topology)
    expected, measured, seconds = [], [], []
    at = made if every == record.every else graph_forecast(pilot, workspace.case(scenario, 0))
    for replica in range(replicas):
        if replica and anew:
            at = graph_forecast(pilot, workspace.case(scenario, replica), replica)
        began = time.perf_counter()
        found = [one for one in simulate(pilot, replica, workspace).series if one.metric == metric]
        seconds.append(time.perf_counter() - began)
        series = next(one for one in found if one.model == "main" and one.agent is None)
        moments = at.moments
        when = series.time if moments.axis == "time" else series.step
        # The last is the run's last, wherever that is.
        held = np.searchsorted(when, moments.points[:-1] * (1 + 1e-12), side="right") - 1
        measured.append(np.append(series.value[held], series.value[-1]))
        expected.append(at.expected)
    away = np.array(measured) - np.array(expected)
    error = np.hypot(away.std(axis=0, ddof=1) / np.sqrt(replicas), at.error)
    calibration = Calibration(moments.points, np.mean(expected, axis=0), np.mean(measured, axis=0), error)
    return calibration, float(np.mean(seconds[1:]))
