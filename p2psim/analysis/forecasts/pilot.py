"""Pilot replicas beside a forecast: how right it is, and what a replica costs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.analysis.forecasts.forecast import Forecast, forecast, setting
from p2psim.analysis.forecasts.graph_averaging import averaging_forecast
from p2psim.analysis.forecasts.graph_descent import descent_forecast
from p2psim.analysis.forecasts.graph_setting import graph_setting
from p2psim.network.topologies import is_redrawn
from p2psim.simulation.simulate import simulate

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.prepared import PreparedData
    from p2psim.simulation.workspace import Workspace

#: Relative standard errors below this are of rounding.
_ROUNDING = 1e-12

#: Forecasts on graphs, by algorithm.
_ON_GRAPHS = {"coordinate-descent": descent_forecast, "averaging": averaging_forecast}


def forecast_of(scenario: Scenario, case: PreparedData, replica: int = 0) -> Any:
    """Forecast a scenario: `Forecast` of a learner, `DescentForecast` or `AveragingForecast` on a graph.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    algorithm = scenario.learning.algorithm
    if algorithm.star_exchanges:
        return forecast(setting(scenario, case, replica))
    numbers = graph_setting(scenario, case, replica)
    return _ON_GRAPHS[algorithm.kind](numbers)


@dataclass(frozen=True)
class Calibration:
    """Forecasts and means of pilot replicas, along the run.

    Where every replica draws its data anew, each has a forecast of its own.

    Attributes
    ----------
    steps : ndarray, shape (records,)
        Numbers of answers, rounds or commits, or times where runs end by time.
    forecast, mean : ndarray, shape (records,)
        What is expected, and the mean over the replicas.
    error : ndarray, shape (records,)
        Standard error of their difference; 0 where all replicas differ alike from their forecasts.
    seconds : float
        Of a replica; the first, which may compile, left out.
    """

    steps: np.ndarray
    forecast: np.ndarray
    mean: np.ndarray
    error: np.ndarray
    seconds: float

    @property
    def z(self) -> np.ndarray:
        """Difference in standard errors, shape (records,); 0 where all replicas are the same but for rounding."""
        away = self.mean - self.forecast
        vary = self.error > _ROUNDING * np.abs(self.mean)
        return np.asarray(np.divide(away, self.error, out=np.zeros_like(away), where=vary))

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
    scenario: Scenario, workspace: Workspace, replicas: int, first: Any | None = None
) -> Calibration:
    """Run the first replicas of a scenario (without a sweep) beside their forecasts.

    Parameters
    ----------
    scenario : Scenario
    workspace : Workspace
    replicas : int
        At least 2.
    first : optional
        Of replica 0, by `forecast_of`.
    """
    now = forecast_of(scenario, workspace.case(scenario, 0)) if first is None else first
    record, every, metric = scenario.record, now.pilot_every, now.metric
    changes = {"metrics": [metric], "per_agent": [], "every": every}
    pilot = scenario.model_copy(update={"record": record.model_copy(update=changes)})
    anew = scenario.data.redrawn or is_redrawn(scenario.network.topology)
    if every != record.every and not isinstance(now, Forecast):
        now = forecast_of(pilot, workspace.case(scenario, 0))
    expected, measured, seconds = [], [], []
    for replica in range(replicas):
        if replica and anew:
            now = forecast_of(pilot, workspace.case(scenario, replica), replica)
        began = time.perf_counter()
        recorded = simulate(pilot, replica, workspace).series
        seconds.append(time.perf_counter() - began)
        of_all = (series for series in recorded if series.metric == metric and series.agent is None)
        measured.append(now.held(next(series for series in of_all if series.model == "main")))
        expected.append(now.piloted[1])
    away = np.array(measured) - np.array(expected)
    error = np.hypot(away.std(axis=0, ddof=1) / np.sqrt(replicas), now.error)
    means = np.mean(expected, axis=0), np.mean(measured, axis=0)
    return Calibration(now.piloted[0], *means, error, float(np.mean(seconds[1:])))
