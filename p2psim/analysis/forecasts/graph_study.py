"""Forecasts of cells on graphs, as plain values and as tables."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.analysis.forecasts.graph_averaging import AveragingForecast
from p2psim.analysis.forecasts.graph_descent import DescentForecast
from p2psim.analysis.forecasts.pilot import (
    Calibration,
    GraphForecast,
    graph_calibrate,
    graph_forecast,
    metric_of,
)

if TYPE_CHECKING:
    from p2psim.scenario.model import Cell
    from p2psim.simulation.workspace import Workspace


@dataclass(frozen=True)
class Cost:
    """Seconds of a forecast, and of a simulation.

    Attributes
    ----------
    forecast, replica : float
    """

    forecast: float
    replica: float


@dataclass(frozen=True)
class GraphCellForecast:
    """All that is said of one cell.

    Attributes
    ----------
    cell : Cell
    forecast : DescentForecast or AveragingForecast
    calibration : Calibration or None
    cost : Cost or None
        Where pilot replicas ran.
    """

    cell: Cell
    forecast: GraphForecast
    calibration: Calibration | None
    cost: Cost | None

    @property
    def metric(self) -> str:
        """What is forecast: its name among recorded metrics."""
        return metric_of(self.forecast)

    def row(self) -> dict[str, Any]:
        """One line of a table."""
        made = self.forecast
        row: dict[str, Any] = {"cell": self.cell.index, **self.cell.swept}
        if isinstance(made, DescentForecast):
            row |= {
                "Q_L − Q_L*": float(made.gap[-1]),
                "bias": made.bias,
                "optimisation": float(made.optimisation[-1]),
                "order": float(made.order[-1]),
                "start": float(made.start[-1]),
                "noise": float(made.noise[-1].sum()),
                "± of orders": float(made.error[-1]) if made.orders else None,
                "local models": made.alone,
                "closer than alone": f"{made.gains.sum()} of {np.isfinite(made.apart_alone).sum()}",
            }
        else:
            row |= {
                "consensus distance": float(made.spread[-1]),
                "drift of the mean": float(made.drift[-1]),
                "bias of the mean": float(made.bias[-1]),
                "λ₂": made.rates.mean,
                "r": made.rates.square,
            }
        row["exact"] = not made.approximate
        if self.calibration is not None and self.cost is not None:
            row |= {
                "pilots": float(self.calibration.mean[-1]),
                "± s.e.": float(self.calibration.error[-1]),
                "largest |z|": float(np.abs(self.calibration.z).max()),
                "forecast s": self.cost.forecast,
                "1,000 replicas s": 1000 * self.cost.replica,
            }
        return row

    def along(self, most: int) -> list[dict[str, Any]]:
        """Lines of a table along the run."""
        made, moments = self.forecast, self.forecast.moments
        some = np.unique(np.linspace(0, len(moments.points) - 1, most).round().astype(int))
        rows = []
        for k in some.tolist():
            row: dict[str, Any] = {"cell": self.cell.index, moments.axis: float(moments.points[k])}
            if isinstance(made, DescentForecast):
                row |= {
                    "Q_L − Q_L*": float(made.gap[k]),
                    "without noise": float(made.noiseless[k]),
                    "noise": float(made.noise[k].sum() + made.start[k]),
                }
            else:
                row |= {
                    "consensus distance": float(made.spread[k]),
                    "drift of the mean": float(made.drift[k]),
                }
            rows.append(row)
        return rows

    def agents(self, most: int | None = None) -> list[dict[str, Any]]:
        """Lines of a table of agents; none of averaging, which nobody does alone."""
        made = self.forecast
        if isinstance(made, AveragingForecast):
            return []
        return [
            {
                "cell": self.cell.index,
                "agent": one["label"],
                "records": one["records"],
                "ε": one["epsilon"],
                "its noise": one["noise"],
                "share of the noise": one["share"],
                "‖θ − θ*‖² together": one["together"],
                "alone": one["alone"],
                "closer": one["gains"],
            }
            for one in self._agents()[:most]
        ]

    def _agents(self) -> list[dict[str, Any]]:
        made = self.forecast
        assert isinstance(made, DescentForecast)
        cell, noise = made.setting.cell, made.noise[-1]
        total = float(noise.sum())
        return [
            {
                "label": cell.case.labels[i],
                "records": int(cell.problem.records[i]),
                "epsilon": float(cell.setup.plan.budget[i]),
                "noise": float(noise[i]),
                "share": float(noise[i]) / total if total else 0.0,
                "together": float(made.apart[i]),
                "alone": float(made.apart_alone[i]),
                "gains": bool(made.gains[i]),
            }
            for i in range(len(noise))
        ]

    def as_tree(self) -> dict[str, Any]:
        """Everything as plain values."""
        made, moments = self.forecast, self.forecast.moments
        run: dict[str, Any] = {moments.axis: moments.points.tolist(), self.metric: made.expected.tolist()}
        tree: dict[str, Any] = {
            "cell": self.cell.index,
            "swept": dict(self.cell.swept),
            "exact": not made.approximate,
            "approximate": list(made.approximate),
            self.metric: float(made.expected[-1]),
        }
        if isinstance(made, DescentForecast):
            run |= {
                "optimisation": made.optimisation.tolist(),
                "order": made.order.tolist(),
                "start": made.start.tolist(),
                "noise": made.noise.sum(axis=1).tolist(),
                "error": made.error.tolist(),
            }
            tree["orders"] = made.orders
            tree |= {"bias": made.bias, "local_models": made.alone, "run": run, "agents": self._agents()}
        else:
            run |= {"drift": made.drift.tolist(), "bias": made.bias.tolist()}
            rates = {"lambda2": made.rates.mean, "r": made.rates.square}
            tree |= {"rates": rates, "run": run}
        if self.calibration is not None and self.cost is not None:
            seconds = {"forecast": self.cost.forecast, "replica": self.cost.replica}
            tree["calibration"] = {**self.calibration.tree, "seconds": seconds}
        return tree


def of_graph_cell(cell: Cell, workspace: Workspace, replicas: int) -> GraphCellForecast:
    """Forecast one cell, and run pilot replicas if any are asked for."""
    case = workspace.case(cell.scenario, 0)
    began = time.perf_counter()
    made = graph_forecast(cell.scenario, case)
    seconds = time.perf_counter() - began
    if not replicas:
        return GraphCellForecast(cell, made, None, None)
    calibration, replica = graph_calibrate(cell.scenario, workspace, replicas, made)
    return GraphCellForecast(cell, made, calibration, Cost(seconds, replica))
