"""What a forecast of a graph takes from a scenario and its data, and the moments for which the forecast is made.

`GraphSetting` holds the numbers. `RecordedMoments` holds the distribution
of the number of steps at each moment of recording, and at the end of the run.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np

from p2psim.analysis.forecasts.forecast import POINTS, Calibration, ForecastCurve
from p2psim.analysis.forecasts.star_setting import refuse_unknown
from p2psim.core.errors import MeaningError
from p2psim.learning.graph.optimum import propagate
from p2psim.learning.steps import PrivateWarmStart
from p2psim.network.verify_messages import NEVER
from p2psim.scenario.model import Scenario
from p2psim.scenario.record import EveryTime, between_records
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.algorithms.agents import long_run_frequencies
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.algorithms.graph_setting import algorithm_of, start_scales
from p2psim.simulation.outcome import Series
from p2psim.simulation.prepared import PreparedData

#: Longest state n·p of descent, and most agents of averaging, whose moments are squares of that.
MOST_NUMBERS = 2_000


@dataclass(frozen=True)
class GraphSetting:
    """A graph as a forecast sees it.

    Attributes
    ----------
    cell : GraphCell
    frequencies : ndarray, shape (n,)
        γ_i, the probability that a wake is agent i's.
    rate : float
        Wakes per unit of time that are not missed.
    first : ndarray, shape (n, p)
        Expected first models.
    first_factor : ndarray, shape (n, n)
        A square root of the covariance between the agents' noise of one coordinate of them: covariance = BBᵀ.
    """

    cell: GraphCell
    frequencies: np.ndarray
    rate: float
    first: np.ndarray
    first_factor: np.ndarray

    @property
    def first_covariance(self) -> np.ndarray:
        """BBᵀ, shape (n, n)."""
        return self.first_factor @ self.first_factor.T


@dataclass(frozen=True)
class Needs:
    """What the forecast of an algorithm needs of the network.

    Attributes
    ----------
    exchange : str
        What the scenario has.
    known : tuple of str
        What there may be.
    why : str
    lossless : bool
        Whether all messages must arrive.
    """

    exchange: str
    known: tuple[str, ...]
    why: str
    lossless: bool


def graph_setting(scenario: Scenario, case: PreparedData, replica: int, needs: Needs) -> GraphSetting:
    """Take from a scenario (without a sweep) and its case what a forecast needs.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    refuse_network(scenario, needs)
    cell = cast("GraphCell", adapter_of(scenario).cell(scenario, case, replica))
    network = cell.setup.network
    frequencies, _ = long_run_frequencies(network)
    return GraphSetting(cell, frequencies, float(network.known_rates @ network.shares()), *_first(cell))


def refuse_larger(most: int, what: str, number: int) -> None:
    """Refuse a graph with more of something than a forecast takes.

    Raises
    ------
    MeaningError
    """
    if number > most:
        raise MeaningError("network.topology", f"forecasts take up to {most:,} {what}, got {number:,}")


def refuse_network(scenario: Scenario, needs: Needs) -> None:
    """Refuse what has no forecast: its steps would depend on the past.

    Raises
    ------
    MeaningError
    """
    network, of = scenario.network, f"forecasts of {scenario.learning.algorithm.kind} need"
    refuse_unknown(network)
    channel, availability, on_graphs = network.channel, network.availability, "forecasts on graphs need"
    timeless = channel.latency == 0 and channel.airtime == 0 and channel.bandwidth is None
    independent = channel.resending == NEVER and channel.losses.is_independent
    untimed = f"{on_graphs} messages that take no time: no latency, airtime or bandwidth"
    whole = f"{of} messages that all arrive: otherwise neighbours know older models"
    single = "forecasts of averaging need losses that are independent, without retransmission"
    missed = f"{on_graphs} wakes that are missed independently, always or bernoulli; got {availability.kind}"
    for place, holds, message in (
        ("exchange", needs.exchange in needs.known, f"{of} {needs.why}; got {needs.exchange}"),
        ("channel", timeless, untimed),
        ("channel.loss", channel.ideal or not needs.lossless, whole),
        ("channel", independent, single),
        ("availability", not availability.has_spans, missed),
    ):
        if not holds:
            raise MeaningError(f"network.{place}", message)


def _first(cell: GraphCell) -> tuple[np.ndarray, np.ndarray]:
    """Expected first models, and a square root of the covariance between agents of one coordinate of their noise."""
    scenario, problem, n = cell.scenario, cell.problem, cell.problem.agents
    start, mechanism = algorithm_of(scenario).start, scenario.privacy.mechanism
    if not isinstance(start, PrivateWarmStart) or not mechanism.is_private:
        return cell.first.models, np.zeros((n, n))
    if start.perturbation != "mechanism":
        message = f"forecasts do not cover a start by {start.perturbation} perturbation"
        raise MeaningError("learning.algorithm.start.perturbation", message)
    scales, _, _ = start_scales(scenario, problem, cell.bound, start.epsilon, start.ridge(problem))
    deviations, alone = np.sqrt(mechanism.variance(scales)), start.models(problem)
    if not start.propagate:
        return alone, np.diag(deviations)
    return propagate(problem, alone), propagate(problem, np.eye(n)) * deviations


#: Most moments of recording that are shown.
_MOST = 400

#: Numbers of steps by a time are left out beyond this probability.
_TAIL = 1e-13


@dataclass(frozen=True)
class RecordedMoments:
    """Moments of recording, and the end.

    Attributes
    ----------
    axis : {"commits", "time"}
    points : ndarray, shape (moments,)
        Number of commits or time of each; the last is the end, at the expected number where that is random.
    chances : ndarray, shape (moments, K + 1)
        Distribution of the number of steps by each.
    """

    axis: Literal["commits", "time"]
    points: np.ndarray
    chances: np.ndarray

    @property
    def most(self) -> int:
        """K, the most steps."""
        return self.chances.shape[1] - 1

    @property
    def needed(self) -> np.ndarray:
        """Numbers of steps that have a probability at some moment, shape (some,)."""
        return np.flatnonzero(self.chances.any(axis=0))


def recorded_moments(
    every: int | EveryTime, commits: int | None, time: float | None, rate: float
) -> tuple[RecordedMoments, int]:
    """Moments at which a run is recorded, and the number of steps that it is expected to have.

    Parameters
    ----------
    every : int or EveryTime
        As in the record section.
    commits, time : optional
        Where the run ends; one of them is given.
    rate : float
        Steps per unit of time, Poisson.
    """
    mean = float(commits) if commits is not None else rate * float(time or 0.0)
    expected = max(1, round(mean))
    stride, interval = between_records(every)
    if interval is not None:
        end = time if time is not None else mean / rate
        at = np.arange(0.0, end * (1 - 1e-12), interval)[:: _stride(end / interval)]
        points = np.append(at, end)
        chances = by_time(rate * points, commits)
        if commits is not None:
            chances[-1] = exactly(np.array([commits]), chances.shape[1])[0]
        return RecordedMoments("time", points, chances), expected
    assert stride is not None
    steps = np.arange(0, expected, stride)[:: _stride(expected / stride)]
    last = exactly(np.array([expected]), expected + 1) if commits is not None else by_time(np.array([mean]))
    chances = np.concatenate([exactly(steps, last.shape[1]), last])
    return RecordedMoments("commits", np.append(steps, mean), chances), expected


def by_time(means: np.ndarray, most: int | None = None) -> np.ndarray:
    """Distributions of Poisson numbers of steps, stopped at a number if one is given, shape (moments, K + 1)."""
    # `scipy.stats` has the same, and takes a second to load.
    from scipy.special import gammaln, pdtrik, xlogy

    width = int(np.ceil(pdtrik(1 - _TAIL, means.max()))) + 2
    number = np.arange(width)
    chances = np.exp(xlogy(number, means[:, None]) - gammaln(number + 1) - means[:, None])
    chances[chances < _TAIL / width] = 0.0
    if most is not None:
        beyond = chances[:, most:].sum(axis=1)
        chances = np.pad(chances[:, : most + 1], ((0, 0), (0, max(0, most + 1 - width))))
        chances[:, most] = beyond
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def exactly(steps: np.ndarray, width: int) -> np.ndarray:
    """Distributions of numbers of steps that are known, shape (moments, K + 1)."""
    return np.asarray(np.arange(width) == steps[:, None], dtype=float)


def _stride(points: float) -> int:
    return max(1, int(np.ceil(points / _MOST)))


@dataclass(frozen=True)
class GraphForecast(ABC):
    """What a cell on a graph will reach; `LearnerForecast` says what tables, JSON and pilots ask of it.

    Attributes
    ----------
    setting : GraphSetting
    moments : RecordedMoments
    """

    metric: ClassVar[str]
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
    joining: ClassVar[Mapping[str, Any]] = {}

    setting: GraphSetting
    moments: RecordedMoments

    @property
    @abstractmethod
    def expected(self) -> np.ndarray:
        """What is compared with runs, shape (moments,)."""

    @abstractmethod
    def parts_at(self, moment: int) -> dict[str, float]:
        """A moment of the run: a line of a table."""

    @property
    def curve(self) -> ForecastCurve:
        """What is expected along the run."""
        return ForecastCurve(self.moments.axis, self.moments.points, self.expected)

    def along(self, most: int) -> list[dict[str, Any]]:
        """Lines of a table along the run."""
        axis, points = self.moments.axis, self.moments.points
        some = np.unique(np.linspace(0, len(points) - 1, most).round().astype(int))
        return [{axis: float(points[k]), **self.parts_at(k)} for k in some.tolist()]

    @property
    def agents(self) -> list[dict[str, Any]]:
        """What each agent adds and gains, as plain values; nothing of averaging, which nobody does alone."""
        return []

    @property
    def agents_tree(self) -> dict[str, Any]:
        """The same, as ``p2psim forecast --json`` writes it."""
        return {"agents": self.agents} if self.agents else {}

    def others(self, number: int) -> str:
        """How a table of agents that leaves some out says so."""
        return "more agents"

    def pilots(self, calibration: Calibration, seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
        """See `LearnerForecast.pilots`."""
        replica, end = calibration.seconds, calibration.end("pilots")
        row = {**end, "forecast s": seconds, "1,000 replicas s": 1000 * replica}
        return row, calibration.tree | {"seconds": {"forecast": seconds, "replica": replica}}

    @property
    def pilot_every(self) -> int | EveryTime:
        """Where pilot replicas record: by time if they end by time, since others are not like those that reach k."""
        every, time = self.setting.cell.scenario.record.every, self.setting.cell.setup.time
        return EveryTime(time=time / POINTS) if time is not None and isinstance(every, int) else every

    @property
    def piloted(self) -> tuple[np.ndarray, np.ndarray]:
        """Points that pilot replicas are compared at, and what is expected there."""
        return self.moments.points, self.expected

    def held(self, series: Series) -> np.ndarray:
        """A replica's values there; the last is the run's last, wherever that is."""
        when = series.time if self.moments.axis == "time" else series.step
        at = np.searchsorted(when, self.moments.points[:-1] * (1 + 1e-12), side="right") - 1
        return np.append(series.value[at], series.value[-1])
