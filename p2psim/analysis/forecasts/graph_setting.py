"""What a forecast of a graph takes from a scenario and its data, and the moments for which the forecast is made.

`GraphSetting` holds the numbers, and the reasons why the forecast may not be exact. `Moments` holds the distribution
of the number of steps at each moment of recording, and at the end of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from p2psim.analysis.forecasts.star_setting import refuse_unknown
from p2psim.core.errors import MeaningError
from p2psim.learning.graph.algorithms import Averaging, CoordinateDescent
from p2psim.learning.graph.optimum import (
    graph_balance,
    graph_expansion,
    minimise_alone,
    minimise_together,
    propagate,
)
from p2psim.learning.steps import PrivateWarmStart
from p2psim.network.channels.draws import EdgeValue
from p2psim.network.channels.loss import GilbertElliott
from p2psim.network.exchanges import Broadcast, Gossip
from p2psim.network.spectrum import weight_matrix
from p2psim.scenario.record import EveryTime
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.algorithms.agents import long_run_frequencies
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.algorithms.graph_setting import algorithm_of
from p2psim.simulation.algorithms.graph_start import start_scales
from p2psim.theory.forecasts import gossip
from p2psim.theory.forecasts.descent import LinearDescent, linear_descent

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.prepared import PreparedData

#: Longest state n·p of descent, and most agents of averaging, whose moments are squares of that.
MOST_NUMBERS = 2_000

#: Longest state of descent along drawn orders, which needs no squares of that.
MOST_DRAWN = 20_000


@dataclass(frozen=True)
class GraphSetting:
    """A graph as a forecast sees it.

    Attributes
    ----------
    cell : GraphCell
    step : LinearDescent or Averaging
        What an update does.
    frequencies : ndarray, shape (n,)
        γ_i, the probability that a wake is agent i's.
    rate : float
        Steps per unit of time: wakes that are not missed, and of averaging those that lead to a commit.
    first : ndarray, shape (n, p)
        Expected first models.
    first_factor : ndarray, shape (n, n)
        A square root of the covariance between the agents' noise of one coordinate of them: covariance = BBᵀ.
    approximate : tuple of str
        Why the forecast is not exact; empty where it is.
    """

    cell: GraphCell
    step: LinearDescent | gossip.Averaging
    frequencies: np.ndarray
    rate: float
    first: np.ndarray
    first_factor: np.ndarray
    approximate: tuple[str, ...]


def graph_setting(scenario: Scenario, case: PreparedData, replica: int = 0) -> GraphSetting:
    """Take from a scenario (without a sweep) and its case what a forecast needs.

    Raises
    ------
    MeaningError
        If there is no forecast of such a scenario.
    """
    algorithm = scenario.learning.algorithm
    _check(scenario)
    cell = adapter_of(scenario).cell(scenario, case, replica)
    assert isinstance(cell, GraphCell)
    network, problem = cell.setup.network, cell.problem
    assert network.rates is not None
    frequencies, _ = long_run_frequencies(network)
    wakes = float(network.rates @ network.shares())
    first, factor = _first(cell)
    if isinstance(algorithm, Averaging):
        if problem.agents > MOST_NUMBERS:
            raise _too_large(MOST_NUMBERS, "agents of averaging", problem.agents)
        step = _averaging(cell, frequencies)
        return GraphSetting(cell, step, frequencies, wakes * step.effective, first, factor, ())
    # Where clipped updates rest is found from a matrix of that size.
    most = MOST_NUMBERS if np.isfinite(cell.rule.clip) else MOST_DRAWN
    if problem.agents * problem.dimension > most:
        raise _too_large(most, "agents times coordinates", problem.agents * problem.dimension)
    descent = _descent(cell, frequencies, first, factor @ factor.T)
    return GraphSetting(cell, descent, frequencies, wakes, first, factor, tuple(_reasons(cell)))


def _too_large(most: int, what: str, number: int) -> MeaningError:
    return MeaningError("network.topology", f"forecasts take up to {most:,} {what}, got {number:,}")


def _check(scenario: Scenario) -> None:
    """Refuse what has no forecast: its steps would depend on the past."""
    algorithm, network = scenario.learning.algorithm, scenario.network
    refuse_unknown(network)
    exchange, channel, availability = network.exchange, network.channel, network.availability
    if isinstance(algorithm, CoordinateDescent):
        if not isinstance(exchange, Broadcast):
            message = "forecasts of coordinate-descent need broadcast: otherwise neighbours know older models"
            raise MeaningError("network.exchange", f"{message}; got {exchange.kind}")
    elif isinstance(algorithm, Averaging):
        if not isinstance(exchange, Gossip) or exchange.mode == "edge":
            got = getattr(exchange, "mode", exchange.kind)
            raise MeaningError(
                "network.exchange", f"forecasts of averaging need gossip: push, pull or push-pull; got {got}"
            )
    else:
        raise MeaningError(
            "learning.algorithm",
            f"forecasts on graphs are of coordinate-descent and averaging; got {algorithm.kind}",
        )
    timeless = channel.latency == 0 and channel.airtime == 0 and channel.bandwidth is None
    if not timeless:
        raise MeaningError(
            "network.channel",
            "forecasts on graphs need messages that take no time: no latency, airtime or bandwidth",
        )
    if isinstance(algorithm, CoordinateDescent) and not channel.ideal:
        raise MeaningError(
            "network.channel.loss",
            "forecasts of coordinate-descent need messages that all arrive: otherwise neighbours know older models",
        )
    if isinstance(channel.loss, GilbertElliott) or channel.retransmit.kind != "none":
        raise MeaningError(
            "network.channel",
            "forecasts of averaging need losses that are independent, without retransmission",
        )
    if availability.kind not in ("always", "bernoulli"):
        raise MeaningError(
            "network.availability",
            "forecasts on graphs need wakes that are missed independently, always or bernoulli; "
            f"got {availability.kind}",
        )


def _first(cell: GraphCell) -> tuple[np.ndarray, np.ndarray]:
    """Expected first models, and a square root of the covariance between agents of one coordinate of their noise."""
    scenario, problem, n = cell.scenario, cell.problem, cell.problem.agents
    start, mechanism = algorithm_of(scenario).start, scenario.privacy.mechanism
    if not isinstance(start, PrivateWarmStart) or not mechanism.is_private:
        return cell.start, np.zeros((n, n))
    scales, _, _ = start_scales(scenario, problem, cell.bound, start)
    deviations, alone = np.sqrt(mechanism.variance(scales)), minimise_alone(problem)
    if not start.propagate:
        return alone, np.diag(deviations)
    return propagate(problem, alone), propagate(problem, np.eye(n)) * deviations


def _averaging(cell: GraphCell, frequencies: np.ndarray) -> gossip.Averaging:
    exchange, loss = cell.scenario.network.exchange, cell.scenario.network.channel.loss
    assert isinstance(exchange, Gossip)
    assert exchange.mode != "edge"
    links = weight_matrix(cell.links)
    lost = np.zeros(links.shape)
    if isinstance(loss, EdgeValue):
        rows = np.repeat(np.arange(cell.links.agents), np.diff(cell.links.indptr))
        lost[rows, cell.links.indices] = loss.column(cell.links, "network.channel.loss", 1.0)
    else:
        assert not isinstance(loss, GilbertElliott)
        lost[:] = loss
    chances = gossip.partner_chances(links, frequencies, exchange.partner == "weight")
    return gossip.averaging(exchange.mode, chances, lost)


def _descent(cell: GraphCell, frequencies: np.ndarray, first: np.ndarray, noise: np.ndarray) -> LinearDescent:
    problem, rule = cell.problem, cell.rule
    optimum = minimise_together(problem)
    rest = graph_balance(problem, optimum, rule.clip, rule.order)
    _, curvature = graph_expansion(problem, optimum)
    jacobian = None
    if np.isfinite(rule.clip):
        _, jacobian = graph_expansion(problem, rest, rule.clip, rule.order)
    return linear_descent(
        weight_matrix(cell.links),
        problem.pull,
        problem.alpha,
        curvature,
        first,
        optimum,
        frequencies,
        jacobian,
        rest,
        noise,
    )


def _reasons(cell: GraphCell) -> list[str]:
    problem, algorithm, found = cell.problem, cell.scenario.learning.algorithm, []
    assert isinstance(algorithm, CoordinateDescent)
    if not problem.loss.is_squared_error:
        found.append(f"{problem.loss.kind} loss: a quadratic model at the minimiser")
    if np.isfinite(cell.rule.clip):
        found.append("gradients may be clipped: a linear model of those that are not")
    if algorithm.batch.kind != "whole":
        found.append("batches: the variance of sampling is not in it")
    if cell.rule.grid is not None:
        found.append("rounding to the grid is not in it")
    return found


#: Most moments of recording that are shown.
_MOST = 400

#: Numbers of steps by a time are left out beyond this probability.
_TAIL = 1e-13


@dataclass(frozen=True)
class Moments:
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


def moments_of(
    every: int | EveryTime, commits: int | None, time: float | None, rate: float
) -> tuple[Moments, int]:
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
    if isinstance(every, EveryTime):
        end = time if time is not None else mean / rate
        at = np.arange(0.0, end * (1 - 1e-12), every.time)[:: _stride(end / every.time)]
        points = np.append(at, end)
        chances = by_time(rate * points, commits)
        if commits is not None:
            chances[-1] = _exactly(np.array([commits]), chances.shape[1])[0]
        return Moments("time", points, chances), expected
    steps = np.arange(0, expected, every)[:: _stride(expected / every)]
    last = _exactly(np.array([expected]), expected + 1) if commits is not None else by_time(np.array([mean]))
    width = last.shape[1]
    return Moments(
        "commits", np.append(steps, mean), np.concatenate([_exactly(steps, width), last])
    ), expected


def by_time(means: np.ndarray, most: int | None = None) -> np.ndarray:
    """Distributions of Poisson numbers of steps, stopped at a number if one is given, shape (moments, K + 1)."""
    from scipy.stats import poisson

    width = int(poisson.isf(_TAIL, means.max())) + 2
    chances = np.array(poisson.pmf(np.arange(width), means[:, None]))
    chances[chances < _TAIL / width] = 0.0
    if most is not None:
        beyond = chances[:, most:].sum(axis=1)
        chances = np.pad(chances[:, : most + 1], ((0, 0), (0, max(0, most + 1 - width))))
        chances[:, most] = beyond
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _exactly(steps: np.ndarray, width: int) -> np.ndarray:
    made = np.zeros((len(steps), width))
    made[np.arange(len(steps)), steps] = 1.0
    return made


def _stride(points: float) -> int:
    return max(1, int(np.ceil(points / _MOST)))
