"""Forecasts of all cells of a scenario, as plain values and as tables."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from p2psim.analysis.forecasts.best import Best, best
from p2psim.analysis.forecasts.coalitions import CoalitionReport, market
from p2psim.analysis.forecasts.collaboration import Alike, JoinDecision, noise_at_the_end, parties
from p2psim.analysis.forecasts.exchange import Party, case_of, check_algorithm
from p2psim.analysis.forecasts.forecast import ForecastCurve
from p2psim.analysis.forecasts.pilot import Calibration, calibrate, forecast_of
from p2psim.core.errors import InputError, MeaningError, P2PSimError
from p2psim.runs.pilot import refuse_excess
from p2psim.scenario.cells import cells
from p2psim.simulation.workspace import Workspace

if TYPE_CHECKING:
    from p2psim.scenario.model import Cell, Scenario


@dataclass(frozen=True, kw_only=True)
class CellForecast:
    """All that is said of one cell.

    Attributes
    ----------
    cell : Cell
    forecast : Forecast, DescentForecast or AveragingForecast
    calibration : Calibration or None
    seconds : float
        That the forecast took.
    best : Best or None
    coalitions : CoalitionReport or None
        Both of owners of a learner alone.
    """

    cell: Cell
    forecast: Any
    calibration: Calibration | None
    seconds: float
    best: Best | None = None
    coalitions: CoalitionReport | None = None

    #: What the table of agents shows: its title, and columns by the names of plain values.
    agents_title: ClassVar[str] = "the noise that each agent adds, and how far it is from its optimum"
    agent_columns: ClassVar[Mapping[str, str]] = {
        "agent": "label",
        "records": "records",
        "ε": "epsilon",
        "its noise": "noise",
        "share of the noise": "share",
        "‖θ − θ*‖² together": "together",
        "alone": "alone",
        "closer": "gains",
    }

    @property
    def metric(self) -> str:
        """What is forecast: its name among recorded metrics."""
        return str(self.forecast.metric)

    @property
    def symbol(self) -> str:
        """What tables call it."""
        return str(self.forecast.symbol)

    @property
    def curve(self) -> ForecastCurve:
        """What is expected along the run."""
        curve: ForecastCurve = self.forecast.curve
        return curve

    @property
    def agent_values(self) -> list[dict[str, Any]]:
        """What each agent adds and gains, as plain values; none of averaging, which nobody does alone."""
        return list(self.forecast.agents)

    def row(self) -> dict[str, Any]:
        """One line of a table."""
        row = {"cell": self.cell.index, **self.cell.swept, **self.forecast.end}
        row |= {"exact": not self.forecast.approximate, **self._joining()}
        return row if self.calibration is None else row | self._pilots(self.calibration)

    def _joining(self) -> dict[str, Any]:
        return {}

    def _pilots(self, calibration: Calibration) -> dict[str, Any]:
        return {
            "pilots": float(calibration.mean[-1]),
            **calibration.end,
            "forecast s": self.seconds,
            "1,000 replicas s": 1000 * calibration.seconds,
        }

    def along(self, most: int) -> list[dict[str, Any]]:
        """Lines of a table along the run."""
        return [{"cell": self.cell.index, **row} for row in self.forecast.along(most)]

    def agents(self) -> list[dict[str, Any]]:
        """Lines of a table of agents."""
        return [
            {"cell": self.cell.index, **{column: agent[key] for column, key in self.agent_columns.items()}}
            for agent in self.agent_values
        ]

    def others(self, number: int) -> str:
        """How a table of agents that leaves some out says so."""
        return "more agents"

    def as_tree(self) -> dict[str, Any]:
        """Everything as plain values."""
        forecast, curve, key = self.forecast, self.curve, self.forecast.key
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
            **self._agents_tree(),
        }
        for name, value in (("best", self.best), ("coalitions", self.coalitions)):
            if value is not None:
                tree[name] = asdict(value)
        return (
            tree if self.calibration is None else tree | {"calibration": self._pilots_tree(self.calibration)}
        )

    def _agents_tree(self) -> dict[str, Any]:
        return {"agents": self.agent_values} if self.agent_values else {}

    def _pilots_tree(self, calibration: Calibration) -> dict[str, Any]:
        return calibration.tree | {"seconds": {"forecast": self.seconds, "replica": calibration.seconds}}


@dataclass(frozen=True, kw_only=True)
class StarCellForecast(CellForecast):
    """All that is said of one cell of a central learner.

    Attributes
    ----------
    parties : list of JoinDecision
    alike : Alike
        The same with any number of average owners.
    break_even : int or None
        Least number of average owners with which it pays; None where there is none up to 10,000.
    """

    parties: list[JoinDecision]
    alike: Alike
    break_even: int | None

    agents_title: ClassVar[str] = "what each owner reaches alone and together"
    agent_columns: ClassVar[Mapping[str, str]] = {
        "owner": "label",
        "records": "records",
        "ε": "epsilon",
        "ψ alone": "alone",
        "ψ together": "together",
        "of that its noise": "noise",
        "gains": "gains",
        "ε to break even": "break_even",
    }

    @property
    def noise(self) -> np.ndarray:
        """What each owner's noise adds at the end, shape (N,)."""
        return self.forecast.parts.noise[-1]

    def psi_at(self, factor: float) -> float:
        """E[ψ] at the end with all budgets multiplied; infinite where noise has no scale that is a number."""
        given = self.forecast.setting
        try:
            other = given.with_plan(budgets=given.cell.setup.plan.budget * factor)
            return float(self.forecast.parts.noiseless[-1] + noise_at_the_end(self.forecast, other))
        except MeaningError:
            return float("inf")

    @property
    def agent_values(self) -> list[dict[str, Any]]:
        """What each owner reaches and gains, as plain values."""
        return [{**asdict(party), "gains": party.gains} for party in self.parties]

    def _joining(self) -> dict[str, Any]:
        gaining = sum(party.gains for party in self.parties)
        return {"who gains": f"{gaining} of {len(self.parties)}", "N to gain": self.break_even}

    def _pilots(self, calibration: Calibration) -> dict[str, Any]:
        mean = float(calibration.mean[-1])
        return {"pilot ψ": mean, **calibration.end, "pilot/forecast − 1": calibration.off}

    def others(self, number: int) -> str:
        """How a table of owners that leaves some out says so."""
        return f"up to {number} more owners in each cell"

    def _agents_tree(self) -> dict[str, Any]:
        return {"parties": self.agent_values, "break_even_owners": self.break_even}

    def _pilots_tree(self, calibration: Calibration) -> dict[str, Any]:
        return calibration.tree


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
    common: dict[str, Any] = {"cell": cell, "forecast": forecast, "seconds": time.perf_counter() - began}
    common["calibration"] = calibrate(scenario, workspace, replicas, forecast) if replicas else None
    if not of_learner:
        return CellForecast(**common)
    alike = Alike(forecast.setting)
    return StarCellForecast(
        parties=parties(forecast),
        alike=alike,
        break_even=alike.break_even(),
        best=best(forecast.setting) if search else None,
        coalitions=market(forecast.setting) if coalitions else None,
        **common,
    )
