"""Forecasts of all cells of a scenario, as plain values and as tables."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from p2psim.analysis.forecasts.best import Best, best
from p2psim.analysis.forecasts.coalitions import CoalitionReport, market
from p2psim.analysis.forecasts.exchange import Party, case_of, check_algorithm
from p2psim.analysis.forecasts.forecast import Calibration
from p2psim.analysis.forecasts.pilot import calibrate, forecast_of
from p2psim.core.errors import InputError, P2PSimError
from p2psim.runs.pilot import refuse_excess
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Cell, Scenario
from p2psim.scenario.tuning import refuse_untuned
from p2psim.simulation.workspace import Workspace


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
    with tempfile.TemporaryDirectory(prefix="p2psim-") as directory:
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
        raise InputError(f"cell {cell.index}: the best choice is searched for stars, not for graphs")
    if coalitions and not of_learner:
        raise InputError(f"cell {cell.index}: coalitions are of owners of a learner, not of graphs")
    case = case_of(scenario, statistics) if statistics else workspace.case(scenario, 0)
    began = time.perf_counter()
    forecast = forecast_of(scenario, case)
    seconds = time.perf_counter() - began
    calibration = calibrate(scenario, workspace, replicas, forecast) if replicas else None
    return CellForecast(
        cell,
        forecast,
        seconds,
        forecast.agents,
        forecast.joining,
        calibration,
        best(forecast.setting) if search else None,
        market(forecast.setting) if coalitions else None,
    )
