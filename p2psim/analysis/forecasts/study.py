"""Forecasts of all cells of a scenario, as plain values."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from p2psim.analysis.forecasts.best import Best, best, with_plan
from p2psim.analysis.forecasts.coalitions import CoalitionReport, market
from p2psim.analysis.forecasts.collaboration import Alike, JoinDecision, noise_at_the_end, parties
from p2psim.analysis.forecasts.exchange import Party, case_of, check_algorithm
from p2psim.analysis.forecasts.forecast import Forecast, forecast
from p2psim.analysis.forecasts.graph_study import Curve, GraphCellForecast, of_graph_cell
from p2psim.analysis.forecasts.pilot import Calibration, calibrate
from p2psim.analysis.forecasts.star_setting import setting
from p2psim.core.errors import InputError, MeaningError, P2PSimError
from p2psim.runs.pilot import refuse_excess
from p2psim.scenario.cells import cells
from p2psim.simulation.workspace import Workspace

if TYPE_CHECKING:
    from p2psim.scenario.model import Cell, Scenario


@dataclass(frozen=True)
class StarCellForecast:
    """All that is said of one cell of a central learner.

    Attributes
    ----------
    cell : Cell
    forecast : Forecast
    parties : list of JoinDecision
    alike : Alike
        The same with any number of average owners.
    break_even : int or None
        Least number of average owners with which it pays; None where there is none up to 10,000.
    best : Best or None
    calibration : Calibration or None
    coalitions : CoalitionReport or None
    """

    cell: Cell
    forecast: Forecast
    parties: list[JoinDecision]
    alike: Alike
    break_even: int | None
    best: Best | None
    calibration: Calibration | None
    coalitions: CoalitionReport | None = None

    #: What is forecast: its name among recorded metrics, and in tables.
    metric: ClassVar[str] = "relative_fitness"
    symbol: ClassVar[str] = "ψ"
    #: What its table of agents shows.
    agents_title: ClassVar[str] = "what each owner reaches alone and together"

    @property
    def curve(self) -> Curve:
        """What is expected along the run."""
        at, parts = self.forecast.records, self.forecast.parts
        return Curve("step", at, parts.psi[at], parts.noiseless[at])

    @property
    def noise(self) -> np.ndarray:
        """What each owner's noise adds at the end, shape (N,)."""
        return self.forecast.parts.noise[-1]

    def psi_at(self, factor: float) -> float:
        """E[ψ] at the end with all budgets multiplied; infinite where noise has no scale that is a number."""
        made = self.forecast
        try:
            other = with_plan(made.setting, budgets=made.setting.cell.setup.plan.budget * factor)
            return float(made.parts.noiseless[-1] + noise_at_the_end(made, other))
        except MeaningError:
            return float("inf")

    def row(self) -> dict[str, Any]:
        """One line of a table."""
        parts, made = self.forecast.parts, self.forecast
        row: dict[str, Any] = {
            "cell": self.cell.index,
            **self.cell.swept,
            "ψ": made.psi,
            "bias": parts.bias,
            "optimisation": float(parts.optimisation[-1]),
            "order": float(parts.order[-1]),
            "noise": float(parts.noise[-1].sum()),
            "exact": not made.approximate,
            "who gains": f"{sum(one.gains for one in self.parties)} of {len(self.parties)}",
            "N to gain": self.break_even,
        }
        if self.calibration is not None:
            row |= {
                "pilot ψ": float(self.calibration.mean[-1]),
                **self.calibration.end,
                "pilot/forecast − 1": self.calibration.off,
            }
        return row

    def along(self, most: int) -> list[dict[str, Any]]:
        """Lines of a table along the run."""
        at, parts = self.forecast.records, self.forecast.parts
        few = at[:: max(1, len(at) // most)].tolist()
        return [
            {
                "cell": self.cell.index,
                "answers or rounds": k,
                "ψ": float(parts.psi[k]),
                "without noise": float(parts.noiseless[k]),
                "noise": float(parts.noise[k].sum()),
            }
            for k in [*few, *([int(at[-1])] if few[-1] != at[-1] else [])]
        ]

    def agents(self) -> list[dict[str, Any]]:
        """Lines of a table of owners."""
        return [
            {
                "cell": self.cell.index,
                "owner": party.label,
                "records": party.records,
                "ε": party.epsilon,
                "ψ alone": party.alone,
                "ψ together": party.together,
                "of that its noise": party.noise,
                "gains": party.gains,
                "ε to break even": party.break_even,
            }
            for party in self.parties
        ]

    def others(self, number: int) -> str:
        """How a table of owners that leaves some out says so."""
        return f"up to {number} more owners in each cell"

    def as_tree(self) -> dict[str, Any]:
        """Everything as plain values."""
        made, parts = self.forecast, self.forecast.parts
        at = made.records
        tree: dict[str, Any] = {
            "cell": self.cell.index,
            "swept": dict(self.cell.swept),
            "exact": not made.approximate,
            "approximate": list(made.approximate),
            "psi": made.psi,
            "bias": parts.bias,
            "run": {
                "step": at.tolist(),
                "psi": parts.psi[at].tolist(),
                "optimisation": parts.optimisation[at].tolist(),
                "order": parts.order[at].tolist(),
                "noise": parts.noise[at].sum(axis=1).tolist(),
            },
            "parties": [{**asdict(one), "gains": one.gains} for one in self.parties],
            "break_even_owners": self.break_even,
        }
        if self.best is not None:
            tree["best"] = asdict(self.best)
        if self.coalitions is not None:
            tree["coalitions"] = asdict(self.coalitions)
        if self.calibration is not None:
            tree["calibration"] = self.calibration.tree
        return tree


#: Both offer what tables and figures need: `metric`, `symbol`, `curve`, `row`, `along`, `agents`, `as_tree`.
CellForecast: TypeAlias = StarCellForecast | GraphCellForecast


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
    found: list[CellForecast] = []
    grid = cells(scenario, confirm_cells=confirm_cells)
    refuse_excess(scenario, grid, confirm_cells)
    with tempfile.TemporaryDirectory(prefix="p2psim-") as directory:
        workspace = Workspace(Path(directory))
        for cell in grid:
            try:
                found.append(_of_cell(cell, workspace, replicas, search, coalitions, statistics))
            except InputError as error:
                raise InputError(*(scenario.locate(fault) for fault in error.faults)) from error
            except P2PSimError as error:
                raise type(error)(f"cell {cell.index}: {error}") from error
    return found


def _of_cell(
    cell: Cell,
    workspace: Workspace,
    replicas: int,
    search: bool,
    coalitions: bool,
    statistics: Sequence[Party],
) -> CellForecast:
    if statistics:
        check_algorithm(cell.scenario)
    if not cell.scenario.learning.algorithm.star_exchanges:
        if search:
            raise InputError(f"cell {cell.index}: the best choice is searched for stars, not for graphs")
        if coalitions:
            raise InputError(f"cell {cell.index}: coalitions are of owners of a learner, not of graphs")
        return of_graph_cell(cell, workspace, replicas)
    case = case_of(cell.scenario, statistics) if statistics else workspace.case(cell.scenario, 0)
    made = forecast(setting(cell.scenario, case))
    alike = Alike(made.setting)
    return StarCellForecast(
        cell,
        made,
        parties(made),
        alike,
        alike.break_even(),
        best(made.setting) if search else None,
        calibrate(cell.scenario, workspace, replicas, made) if replicas else None,
        market(made.setting) if coalitions else None,
    )
