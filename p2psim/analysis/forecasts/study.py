"""Forecasts of all cells of a scenario, as plain values and as tables; the search for the best, and pilots beside."""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from p2psim.analysis.forecasts.collaboration import CoalitionReport, market
from p2psim.analysis.forecasts.exchange import Party, case_of, check_algorithm
from p2psim.analysis.forecasts.forecast import Calibration
from p2psim.analysis.forecasts.star_setting import Setting
from p2psim.analysis.forecasts.variances import overruns
from p2psim.core.errors import InputError, MeaningError, P2PSimError, SimulationError
from p2psim.core.registry import parts, place_of
from p2psim.network.topologies import is_redrawn
from p2psim.privacy.allocations import Allocation, Cap, Geometric, Horizon
from p2psim.runs.pilot import refuse_excess
from p2psim.scenario.cells import cells, display
from p2psim.scenario.model import Cell, Scenario
from p2psim.scenario.tuning import refuse_untuned
from p2psim.simulation.prepared import PreparedData
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

#: Horizons that are tried, as multiples of the scenario's.
HORIZONS = np.geomspace(1 / 16, 4.0, 7)

#: Chance that an owner of a capped allocation runs out of answers.
TAIL = 1e-6


@dataclass(frozen=True)
class Best:
    """A choice.

    Attributes
    ----------
    horizon : int
    rho, c1 : float or None
        Whichever the algorithm has.
    allocation : str
        As in a scenario.
    psi : float
        Its forecast, exact to the extent that forecasts of this scenario are.
    """

    horizon: int
    rho: float | None
    c1: float | None
    allocation: str
    psi: float


def best(setting: Setting, budgets: np.ndarray | None = None) -> Best:
    """Search horizons, steps and allocations for the least forecast.

    Parameters
    ----------
    setting : Setting
        The scenario's, or one with other owners (`Setting.alike`, `Setting.among`); these need budgets.
    budgets : ndarray, shape (N,), optional
        ε of each owner; those of the scenario when left out.

    Raises
    ------
    SimulationError
        If nothing that is tried has a forecast.
    """
    horizons = sorted({max(2, round(setting.horizon * factor)) for factor in HORIZONS})
    plans = partial(_plans, setting, budgets)
    choices = list(setting.choices(horizons, plans))
    if not choices:
        raise SimulationError("no step that was tried has a forecast")
    least = min(choices, key=lambda choice: choice.psi)
    step = {"rho": None, "c1": None, setting.parameter: least.parameter}
    psi = setting.psi_of(least, plans)
    return Best(least.horizon, step["rho"], step["c1"], display(least.allocation), psi)


def _plans(
    setting: Setting, budgets: np.ndarray | None, horizon: int
) -> Iterator[tuple[Allocation, np.ndarray]]:
    """Allocations that are tried at a horizon, and the variances that they give."""
    allocation = setting.cell.scenario.privacy.allocation
    answers = horizon * float(setting.frequencies.max())
    tried: list[Allocation] = [allocation]
    usual = Horizon(), Cap(tail=TAIL), Geometric(ratio=1 - 1 / (1 + answers))
    tried += [other for other in usual if other not in tried]
    for allocation in tried:
        try:
            other = setting.with_plan(horizon=horizon, allocation=allocation)
            plan = other.cell.setup.plan if budgets is None else other.plan(budgets)
            if overruns(plan, setting.frequencies, other.answers) > 10 * TAIL:
                continue
            yield allocation, other.variances(plan)
        except MeaningError:  # noise whose scale is no number, or an allocation that these cannot have
            continue


def forecast_of(scenario: Scenario, case: PreparedData, replica: int = 0) -> Any:
    """Forecast a scenario: `LearnerForecast`, or a `GraphForecast` on a graph.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    algorithm = scenario.learning.algorithm
    if not algorithm.forecast or place_of(algorithm) is not None:
        kinds = parts("algorithm").items()
        known = [kind for kind, part in kinds if part.forecast and not part.star_exchanges]
        message = f"forecasts on graphs cover {', '.join(known)}; got {algorithm.kind}"
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


@dataclass(frozen=True)
class CellForecast:
    """All that is said of one cell.

    Attributes
    ----------
    cell : Cell
    forecast : LearnerForecast, DescentForecast or AveragingForecast
    seconds : float
        That the forecast took.
    agent_values : list of dict
        What each owner or agent adds and gains, as plain values.
    joining : mapping
        Whom it pays to join: part of a line of a table.
    calibration : Calibration or None
    best : Best or None
    coalitions : CoalitionReport or None
        Both of owners of a learner alone.
    """

    cell: Cell
    forecast: Any
    seconds: float
    agent_values: list[dict[str, Any]]
    joining: Mapping[str, Any]
    calibration: Calibration | None = None
    best: Best | None = None
    coalitions: CoalitionReport | None = None

    @property
    def _pilots(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a line of a table and JSON have of pilots."""
        known = self.calibration
        return ({}, {}) if known is None else self.forecast.pilots(known, self.seconds)

    def row(self) -> dict[str, Any]:
        """One line of a table."""
        exact = {"exact": not self.forecast.approximate}
        row = {"cell": self.cell.index, **self.cell.swept, **self.forecast.end}
        return row | exact | dict(self.joining) | self._pilots[0]

    def along(self, most: int) -> list[dict[str, Any]]:
        """Lines of a table along the run."""
        return [{"cell": self.cell.index, **row} for row in self.forecast.along(most)]

    def agents(self) -> list[dict[str, Any]]:
        """Lines of a table of agents."""
        columns = self.forecast.agent_columns.items()
        return [
            {"cell": self.cell.index, **{column: agent[key] for column, key in columns}}
            for agent in self.agent_values
        ]

    def as_tree(self) -> dict[str, Any]:
        """Everything as plain values."""
        forecast, curve, key = self.forecast, self.forecast.curve, self.forecast.key
        tree: dict[str, Any] = {
            "cell": self.cell.index,
            "swept": dict(self.cell.swept),
            "exact": not forecast.approximate,
            "approximate": list(forecast.approximate),
            key: float(curve.expected[-1]),
            **forecast.more,
            "run": {
                curve.axis: curve.points.tolist(),
                key: curve.expected.tolist(),
                **{name: values.tolist() for name, values in forecast.run.items()},
            },
            **forecast.agents_tree,
        }
        for name, value in (("best", self.best), ("coalitions", self.coalitions)):
            if value is not None:
                tree[name] = asdict(value)
        return tree if self.calibration is None else tree | {"calibration": self._pilots[1]}


def forecast_scenario(
    scenario: Scenario,
    replicas: int = 0,
    search: bool = False,
    *,
    coalitions: bool = False,
    statistics: Sequence[Party] = (),
    confirm_cells: bool = False,
) -> list[CellForecast]:
    """Forecast every cell of a scenario.

    Parameters
    ----------
    scenario : Scenario
    replicas : int
        Pilot replicas to run beside each forecast; 0 for none.
    search : bool
        Search the best horizon, step and allocation for the budgets of each cell.
    coalitions : bool
        Forecast all coalitions, and what owners add to them.
    statistics : sequence of Party
        What parties have exchanged, to forecast from instead of the scenario's data.
    confirm_cells : bool
        Accept any number of cells.

    Raises
    ------
    InputError
        With the first cell that has no forecast, and why.
    """
    if replicas < 0 or replicas == 1:
        raise InputError(f"pilot replicas must be 0 or at least 2, got {replicas}")
    if replicas and statistics:
        raise InputError("pilot replicas need the records; calibrate where the data is")
    refuse_untuned(scenario)
    forecasts: list[CellForecast] = []
    grid = cells(scenario, confirm_cells=confirm_cells)
    refuse_excess(scenario, grid, confirm_cells)
    with tempfile.TemporaryDirectory(prefix="p2psim-", ignore_cleanup_errors=True) as directory:
        workspace = Workspace(Path(directory))
        for cell in grid:
            try:
                forecasts.append(_of_cell(cell, workspace, replicas, search, coalitions, statistics))
            except InputError as error:
                raise InputError(*(scenario.locate(fault) for fault in error.faults)) from error
            except P2PSimError as error:
                raise type(error)(f"cell {cell.index}: {error}") from error
    return forecasts


def _of_cell(
    cell: Cell,
    workspace: Workspace,
    replicas: int,
    search: bool,
    coalitions: bool,
    statistics: Sequence[Party],
) -> CellForecast:
    scenario, of_learner = cell.scenario, bool(cell.scenario.learning.algorithm.star_exchanges)
    if statistics:
        check_algorithm(scenario)
    if search and not of_learner:
        raise InputError(f"cell {cell.index}: the best choice is searched for stars only, not for graphs")
    if coalitions and not of_learner:
        raise InputError(f"cell {cell.index}: coalitions consist of owners of a learner; a graph has none")
    case = case_of(scenario, statistics) if statistics else workspace.case(scenario, 0)
    began = time.perf_counter()
    forecast = forecast_of(scenario, case)
    seconds = time.perf_counter() - began
    calibration = calibrate(scenario, workspace, replicas, forecast) if replicas else None
    known = seconds, forecast.agents, forecast.joining, calibration
    least = best(forecast.setting) if search else None
    return CellForecast(cell, forecast, *known, least, market(forecast.setting) if coalitions else None)
