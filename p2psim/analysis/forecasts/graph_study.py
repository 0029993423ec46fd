"""Forecasts of cells on graphs, as plain values and as tables."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from p2psim.analysis.forecasts.pilot import Calibration, GraphForecast, graph_calibrate, graph_forecast

if TYPE_CHECKING:
    from p2psim.scenario.model import Cell
    from p2psim.simulation.workspace import Workspace


@dataclass(frozen=True)
class Curve:
    """What is expected along a run.

    Attributes
    ----------
    axis : {"step", "commits", "time"}
    points, expected : ndarray, shape (moments,)
        Moments, and what is expected then.
    noiseless : ndarray, shape (moments,), or None
        The same without noise.
    alone : float or None
        The same of local models.
    """

    axis: str
    points: np.ndarray
    expected: np.ndarray
    noiseless: np.ndarray | None = None
    alone: float | None = None


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

    #: Searched and formed for owners of a learner alone.
    best: ClassVar[None] = None
    coalitions: ClassVar[None] = None
    #: What its table of agents shows.
    agents_title: ClassVar[str] = "the noise that each agent adds, and how far it is from its optimum"

    @property
    def metric(self) -> str:
        """What is forecast: its name among recorded metrics."""
        return self.forecast.metric

    @property
    def symbol(self) -> str:
        """What tables call it."""
        return self.metric

    @property
    def curve(self) -> Curve:
        """What is expected along the run."""
        made = self.forecast
        return Curve(made.moments.axis, made.moments.points, made.expected, made.noiseless, made.alone)

    def row(self) -> dict[str, Any]:
        """One line of a table."""
        made = self.forecast
        row = {"cell": self.cell.index, **self.cell.swept, **made.parts, "exact": not made.approximate}
        if self.calibration is not None and self.cost is not None:
            row |= {
                "pilots": float(self.calibration.mean[-1]),
                **self.calibration.end,
                "forecast s": self.cost.forecast,
                "1,000 replicas s": 1000 * self.cost.replica,
            }
        return row

    def along(self, most: int) -> list[dict[str, Any]]:
        """Lines of a table along the run."""
        moments = self.forecast.moments
        some = np.unique(np.linspace(0, len(moments.points) - 1, most).round().astype(int))
        return [
            {
                "cell": self.cell.index,
                moments.axis: float(moments.points[k]),
                **self.forecast.parts_at(k),
            }
            for k in some.tolist()
        ]

    def agents(self) -> list[dict[str, Any]]:
        """Lines of a table of agents; none of averaging, which nobody does alone."""
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
            for one in self.forecast.agents
        ]

    def others(self, number: int) -> str:
        """How a table of agents that leaves some out says so."""
        return "more agents"

    def as_tree(self) -> dict[str, Any]:
        """Everything as plain values."""
        made, moments = self.forecast, self.forecast.moments
        tree: dict[str, Any] = {
            "cell": self.cell.index,
            "swept": dict(self.cell.swept),
            "exact": not made.approximate,
            "approximate": list(made.approximate),
            self.metric: float(made.expected[-1]),
            **made.more,
            "run": {
                moments.axis: moments.points.tolist(),
                self.metric: made.expected.tolist(),
                **made.run,
            },
        }
        if made.agents:
            tree["agents"] = made.agents
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
