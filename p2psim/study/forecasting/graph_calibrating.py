"""Pilot replicas beside a forecast of a graph, and what each costs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from p2psim.network.topologies import is_redrawn
from p2psim.study.forecasting.calibrating import Calibration
from p2psim.study.forecasting.forecast import POINTS
from p2psim.study.forecasting.graph_averaging import AveragingForecast, averaging_forecast
from p2psim.study.forecasting.graph_forecast import DescentForecast, descent_forecast
from p2psim.study.forecasting.graph_setting import graph_setting
from p2psim.study.record import EveryTime
from p2psim.study.simulate import simulate
from p2psim.theory.forecast.descent import LinearDescent

if TYPE_CHECKING:
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case, Workspace

GraphForecast = DescentForecast | AveragingForecast


def graph_forecast(scenario: Scenario, case: Case, replica: int = 0) -> GraphForecast:
    """Forecast a scenario on a graph.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    made = graph_setting(scenario, case, replica)
    return descent_forecast(made) if isinstance(made.step, LinearDescent) else averaging_forecast(made)


def metric_of(made: GraphForecast) -> str:
    """The metric whose mean is forecast."""
    return "objective_gap" if isinstance(made, DescentForecast) else "consensus_distance"


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
    stage, record, metric = made.setting.cell.stage, scenario.record, metric_of(made)
    every = record.every
    if stage.time is not None and isinstance(every, int):
        every = EveryTime(time=stage.time / POINTS)
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
