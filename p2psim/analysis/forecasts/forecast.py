"""The forecast of a learner in one cell: expected ψ along the run in its parts, and whom it pays to join."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from p2psim.analysis.forecasts.collaboration import FACTORS, Alike, JoinDecision
from p2psim.analysis.forecasts.learners import RoundsSetting, StarSetting
from p2psim.analysis.forecasts.star_setting import MomentRecursion, Setting, refuse_unknown
from p2psim.analysis.forecasts.variances import overruns
from p2psim.core.errors import MeaningError
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.outcome import Series
from p2psim.simulation.prepared import PreparedData
from p2psim.theory.forecasts.split import Split

#: Probability that an owner runs out of answers, from which on it is reported.
_RUNS_OUT = 1e-3

#: Relative standard errors below this are of rounding.
_ROUNDING = 1e-12

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
class Calibration:
    """Forecasts and means of pilot replicas, along the run.

    Where every replica draws its data anew, each has a forecast of its own.

    Attributes
    ----------
    step : ndarray, shape (records,)
        Numbers of answers, rounds or commits, or times where runs end by time.
    forecast, mean : ndarray, shape (records,)
        What is expected, and the mean over the replicas.
    error : ndarray, shape (records,)
        Standard error of their difference; 0 where all replicas differ alike from their forecasts.
    seconds : float
        Of a replica; the first, which may compile, left out.
    """

    step: np.ndarray
    forecast: np.ndarray
    mean: np.ndarray
    error: np.ndarray
    seconds: float

    @property
    def z(self) -> np.ndarray:
        """Difference in standard errors, shape (records,); 0 where all replicas are the same but for rounding."""
        away = self.mean - self.forecast
        vary = self.error > _ROUNDING * np.abs(self.mean)
        return np.asarray(np.divide(away, self.error, out=np.zeros_like(away), where=vary))

    @property
    def off(self) -> float:
        """(mean − forecast)/forecast at the end: the measured error of an approximation."""
        return float(self.mean[-1] / self.forecast[-1] - 1)

    def end(self, name: str) -> dict[str, float]:
        """The mean at the end, by a name, and how far all points are off: part of a line of a table."""
        largest = float(np.abs(self.z).max())
        return {name: float(self.mean[-1]), "± s.e.": float(self.error[-1]), "largest |z|": largest}

    @property
    def tree(self) -> dict[str, Any]:
        """As ``p2psim forecast --json`` writes it."""
        columns = ("step", "forecast", "mean", "error", "z")
        return {name: getattr(self, name).tolist() for name in columns} | {"off": self.off}


@dataclass(frozen=True)
class LearnerForecast:
    """What the owners of a cell and their learner will reach.

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
    #: What the table of agents shows: its title, and columns by the names of plain values.
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

    @cached_property
    def parties(self) -> list[JoinDecision]:
        """Isolated and collaborating ψ of every owner."""
        cell, budgets = self.setting.cell, self.setting.cell.setup.plan.budget
        return [
            JoinDecision(
                label=cell.case.labels[i],
                records=int(cell.problem.records[i]),
                epsilon=float(budgets[i]),
                alone=float(self.alone[i]),
                together=self.psi,
                noise=float(self.noise[i]),
                break_even=None if factor is None else float(budgets[i] * factor),
            )
            for i, factor in enumerate(self._break_even_factors())
        ]

    def _break_even_factors(self) -> list[float | None]:
        """By what all budgets must be multiplied for each owner to gain nothing and lose nothing."""
        plan = self.setting.cell.setup.plan
        if not plan.mechanism.is_private or not np.isfinite(plan.budget).all():
            return [None] * len(plan.budget)
        noise = np.array([self.noise_at(factor) for factor in FACTORS])
        known = np.isfinite(noise)
        tried, noise = FACTORS[known], noise[known]
        factors: list[float | None] = []
        for room in self.alone - self.parts.noiseless[-1]:
            if room <= 0:
                factors.append(np.inf)
            elif not tried.size or not noise.min() <= room <= noise.max():
                factors.append(None)
            else:
                # Noise falls as a power of ε, exactly so under pure DP: straight between points of the logarithms.
                at = np.interp(np.log(room), np.log(noise[::-1]), np.log(tried[::-1]))
                factors.append(float(np.exp(at)))
        return factors

    @property
    def noise(self) -> np.ndarray:
        """What each owner's noise adds at the end, shape (N,)."""
        return self.parts.noise[-1]

    def noise_at(self, factor: float) -> float:
        """What noise adds to E[ψ] at the end with all budgets multiplied; infinite where its scale is no number."""
        try:
            other = self.setting.with_plan(budgets=self.setting.cell.setup.plan.budget * factor)
            return float(self.walk.noise(other.variances()).sum())
        except MeaningError:
            return float("inf")

    def psi_at(self, factor: float) -> float:
        """E[ψ] at the end with all budgets multiplied; infinite where noise has no scale that is a number."""
        return float(self.parts.noiseless[-1] + self.noise_at(factor))

    @cached_property
    def alike(self) -> Alike:
        """The same with any number of average owners."""
        return Alike(self.setting)

    @cached_property
    def break_even(self) -> int | None:
        """Least number of average owners with which it pays; None where there is none up to 10,000."""
        return self.alike.break_even()

    @property
    def agents(self) -> list[dict[str, Any]]:
        """What each owner reaches and gains, as plain values."""
        return [{**asdict(party), "gains": party.gains} for party in self.parties]

    @property
    def agents_tree(self) -> dict[str, Any]:
        """The same, as ``p2psim forecast --json`` writes it."""
        return {"parties": self.agents, "break_even_owners": self.break_even}

    @property
    def joining(self) -> dict[str, Any]:
        """Whom it pays to join: part of a line of a table."""
        gaining = sum(party.gains for party in self.parties)
        return {"who gains": f"{gaining} of {len(self.parties)}", "N to gain": self.break_even}

    def others(self, number: int) -> str:
        """How a table of owners that leaves some out says so."""
        return f"up to {number} more owners in each cell"

    def pilots(self, calibration: Calibration, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
        """Pilots beside the forecast: part of a line of a table, and what JSON has."""
        return {**calibration.end("pilot ψ"), "pilot/forecast − 1": calibration.off}, calibration.tree

    @property
    def more(self) -> dict[str, Any]:
        """What else is forecast, as plain values."""
        return {"bias": self.parts.bias}

    @property
    def run(self) -> dict[str, np.ndarray]:
        """Parts of all records."""
        at, parts = self.records, self.parts
        noise = parts.noise[at].sum(axis=1)
        return {"optimisation": parts.optimisation[at], "order": parts.order[at], "noise": noise}


#: By the adapter of the algorithm.
_SETTINGS: dict[str, type[StarSetting | RoundsSetting]] = {"star": StarSetting, "rounds": RoundsSetting}


def setting(scenario: Scenario, case: PreparedData, replica: int = 0) -> Setting:
    """Take from a scenario (without a sweep) and its case what a forecast needs.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    algorithm, loss = scenario.learning.algorithm, scenario.learning.score_loss
    if not algorithm.star_exchanges:
        raise MeaningError("learning.algorithm", f"forecasts of a learner do not cover {algorithm.kind}")
    if not np.isfinite(loss.curvature):
        raise MeaningError("learning.loss", f"{loss.kind} has no curvature to forecast with; take logistic")
    refuse_unknown(scenario.network)
    cell: Any = adapter_of(scenario).cell(scenario, case, replica)
    return _SETTINGS[algorithm.adapter].of(cell)


def forecast(setting: Setting) -> LearnerForecast:
    """Forecast a cell.

    Raises
    ------
    MeaningError
        If the variance of the noise is not known.
    SimulationError
        If the step is unstable and the forecast grows beyond all numbers.
    """
    plan, walked = setting.cell.setup.plan, setting.walk()
    variances = setting.variances()
    parts = walked.split(variances)
    reasons = list(setting.approximate)
    tail = overruns(plan, setting.frequencies, setting.answers)
    if tail > _RUNS_OUT:
        reasons.append(f"an owner runs out of answers with probability {tail:.2g}, and is taken to go on")
    if setting.leaves_the_box(variances.max(axis=0)):
        reasons.append("models may leave the box, and are taken to: ψ saturates where this is forecast above")
    return LearnerForecast(setting, walked, parts, tuple(reasons))
