"""Pilot replicas beside a forecast: how right it is, and what a replica costs."""

import time
from importlib import import_module
from typing import Any

import numpy as np

from p2psim.analysis.forecasts.forecast import Calibration
from p2psim.core.errors import MeaningError
from p2psim.core.registry import parts, place_of
from p2psim.network.topologies import is_redrawn
from p2psim.scenario.model import Scenario
from p2psim.simulation.prepared import PreparedData
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace


def forecast_of(scenario: Scenario, case: PreparedData, replica: int = 0) -> Any:
    """Forecast a scenario: `LearnerForecast`, or a `GraphForecast` on a graph.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    algorithm = scenario.learning.algorithm
    if not algorithm.forecast or place_of(algorithm) is not None:
        known = [
            kind for kind, part in parts("algorithm").items() if part.forecast and not part.star_exchanges
        ]
        message = f"forecasts on graphs are of {', '.join(known)}; got {algorithm.kind}"
        raise MeaningError("learning.algorithm", message)
    module = import_module(f"p2psim.analysis.forecasts.{algorithm.forecast}")
    return module.forecast(module.setting(scenario, case, replica))


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
    if every != record.every:
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
