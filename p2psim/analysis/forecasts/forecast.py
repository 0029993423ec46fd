"""The forecast of a learner in one cell: expected ψ along the run in its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from p2psim.analysis.forecasts.learners import RoundsSetting, StarSetting
from p2psim.analysis.forecasts.star_setting import MomentRecursion, Setting, refuse_unknown
from p2psim.analysis.forecasts.variances import answer_variances, overruns
from p2psim.core.errors import MeaningError
from p2psim.simulation.algorithms import adapter_of
from p2psim.theory.forecasts.split import Split

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.outcome import Series
    from p2psim.simulation.prepared import PreparedData

#: Probability that an owner runs out of answers, from which on it is reported.
_RUNS_OUT = 1e-3

#: Points of a forecast where a scenario records by time.
POINTS = 20


@dataclass(frozen=True)
class ForecastCurve:
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
class Forecast:
    """What a cell will reach.

    Attributes
    ----------
    setting : Setting
    walk : MomentRecursion
        Without noise, and what noise would add.
    parts : Split
        E[ψ] after k = 0 … K answers or rounds.
    approximate : tuple of str
        Why it is not exact; empty where it is.
    """

    metric: ClassVar[str] = "relative_fitness"
    #: What tables and JSON call it.
    symbol: ClassVar[str] = "ψ"
    key: ClassVar[str] = "psi"
    error: ClassVar[float] = 0.0

    setting: Setting
    walk: MomentRecursion
    parts: Split
    approximate: tuple[str, ...]

    @property
    def psi(self) -> float:
        """E[ψ] at the end."""
        return float(self.parts.psi[-1])

    @property
    def pilot_every(self) -> int:
        """Number of answers or rounds between records, of pilot replicas too."""
        every = self.setting.cell.scenario.record.every
        return every if isinstance(every, int) else max(1, self.setting.answers // POINTS)

    @property
    def records(self) -> np.ndarray:
        """Numbers of answers or rounds at which the scenario records, and the last."""
        T = self.setting.answers
        return np.unique(np.append(np.arange(0, T + 1, self.pilot_every), T))

    @property
    def piloted(self) -> tuple[np.ndarray, np.ndarray]:
        """Points that pilot replicas are compared at, and what is expected there."""
        at = np.arange(0, self.setting.answers + 1, self.pilot_every)
        return at, self.parts.psi[at]

    def held(self, series: Series) -> np.ndarray:
        """A replica's values there: a run that ends early, as when all owners are spent, keeps its last model."""
        return series.value[np.searchsorted(series.step, self.piloted[0], side="right") - 1]

    @property
    def alone(self) -> np.ndarray:
        """ψ of what each owner reaches alone, without noise, shape (N,)."""
        return self.setting.model.isolated

    @property
    def curve(self) -> ForecastCurve:
        """What is expected along the run."""
        at = self.records
        return ForecastCurve("step", at, self.parts.psi[at], self.parts.noiseless[at])

    @property
    def end(self) -> dict[str, Any]:
        """The end in its parts: a line of a table."""
        parts = {name: float(values[-1]) for name, values in self.run.items()}
        return {"ψ": self.psi, "bias": self.parts.bias, **parts}

    def along(self, most: int) -> list[dict[str, Any]]:
        """Lines of a table along the run."""
        at, parts = self.records, self.parts
        few = at[:: max(1, len(at) // most)].tolist()
        return [
            {
                "answers or rounds": k,
                "ψ": float(parts.psi[k]),
                "without noise": float(parts.noiseless[k]),
                "noise": float(parts.noise[k].sum()),
            }
            for k in [*few, *([int(at[-1])] if few[-1] != at[-1] else [])]
        ]

    @property
    def more(self) -> dict[str, Any]:
        """What else is forecast, as plain values."""
        return {"bias": self.parts.bias}

    @property
    def run(self) -> dict[str, np.ndarray]:
        """Parts of all records."""
        at, parts = self.records, self.parts
        return {
            "optimisation": parts.optimisation[at],
            "order": parts.order[at],
            "noise": parts.noise[at].sum(axis=1),
        }


#: By the adapter of the algorithm.
_SETTINGS: dict[str, type[StarSetting | RoundsSetting]] = {"star": StarSetting, "rounds": RoundsSetting}


def setting(scenario: Scenario, case: PreparedData, replica: int = 0) -> Setting:
    """Take from a scenario (without a sweep) and its case what a forecast needs.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    algorithm, loss = scenario.learning.algorithm, scenario.learning.loss
    if not algorithm.star_exchanges:
        raise MeaningError("learning.algorithm", f"forecasts of a learner are not of {algorithm.kind}")
    if not np.isfinite(loss.curvature):
        raise MeaningError(
            "learning.loss",
            f"{loss.kind} has no curvature to forecast with; take logistic",
        )
    refuse_unknown(scenario.network)
    cell: Any = adapter_of(scenario).cell(scenario, case, replica)
    return _SETTINGS[algorithm.adapter].of(cell)


def forecast(setting: Setting) -> Forecast:
    """Forecast a cell.

    Raises
    ------
    MeaningError
        If the variance of the noise is not known.
    SimulationError
        If the step is unstable and the forecast grows beyond all numbers.
    """
    plan, steps = setting.cell.setup.plan, setting.answers
    walked = setting.walk()
    variances = answer_variances(plan, setting.frequencies, steps)
    parts = walked.split(variances)
    reasons = list(setting.approximate)
    tail = overruns(plan, setting.frequencies, steps)
    if tail > _RUNS_OUT:
        reasons.append(f"an owner runs out of answers with probability {tail:.2g}, and is taken to go on")
    if setting.leaves_the_box(variances.max(axis=0)):
        reasons.append("models may leave the box, and are taken to: ψ saturates where this is forecast above")
    return Forecast(setting, walked, parts, tuple(reasons))
