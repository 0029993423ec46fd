"""Pilot replicas beside a forecast: how right it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.study.forecasting.forecast import POINTS, Forecast, forecast
from p2psim.study.forecasting.setting import setting
from p2psim.study.simulate import simulate

if TYPE_CHECKING:
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Workspace


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
