"""The forecast of decentralised SGD in rounds: its expected objective and how far apart agents are, along the run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from p2psim.analysis.forecasts import graph_setting as graphs
from p2psim.analysis.forecasts.forecast import ForecastCurve
from p2psim.analysis.forecasts.star_setting import INSIDE, those_that_hold
from p2psim.analysis.forecasts.variances import release_variances
from p2psim.core.errors import MeaningError, SimulationError
from p2psim.core.times import upto
from p2psim.learning.step_sizes import size_at
from p2psim.network.changes import comes_back, rounds_of
from p2psim.network.mixing import mixing_matrix
from p2psim.scenario.record import EveryTime, between_records
from p2psim.simulation.algorithms import adapter_of
from p2psim.theory.forecasts.decentralised import ModelMoments, QuadraticAgents, model_moments

if TYPE_CHECKING:
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.prepared import PreparedData


@dataclass(frozen=True)
class TrainingForecast(graphs.GraphForecast):
    """E[f(θ̄)] − f* at all moments: that of the expected models, and what batches and noise add.

    Attributes
    ----------
    setting, moments
        As in `GraphForecast`.
    of_means, batches, noise : ndarray, shape (moments,)
    spread : ndarray, shape (moments,)
        E of the mean of ‖θ_i − θ̄‖².
    approximate : tuple of str
        Why it is not exact; empty where it is.
    """

    metric = symbol = key = "objective_gap"
    error = 0.0

    of_means: np.ndarray
    batches: np.ndarray
    noise: np.ndarray
    spread: np.ndarray
    approximate: tuple[str, ...]

    @property
    def expected(self) -> np.ndarray:
        """E[f(θ̄)] − f*, shape (moments,)."""
        return np.asarray(self.of_means + self.batches + self.noise)

    @property
    def curve(self) -> ForecastCurve:
        """What is expected along the run."""
        return replace(super().curve, noiseless=self.of_means + self.batches)

    @property
    def end(self) -> dict[str, Any]:
        """The end in its parts: a line of a table."""
        return self.parts_at(-1)

    def parts_at(self, moment: int) -> dict[str, float]:
        """A moment of the run: a line of a table."""
        parts = {
            "f(θ̄) − f*": self.expected,
            "expected models": self.of_means,
            "batches": self.batches,
            "noise": self.noise,
            "consensus distance": self.spread,
        }
        return {name: float(values[moment]) for name, values in parts.items()}

    @property
    def run(self) -> dict[str, np.ndarray]:
        """All moments in their parts."""
        parts = {"expected_models": self.of_means, "batches": self.batches, "noise": self.noise}
        return parts | {"consensus_distance": self.spread}

    @property
    def more(self) -> dict[str, Any]:
        """What else is forecast, as plain values."""
        return {"consensus_distance_at_end": float(self.spread[-1])}

    @property
    def pilot_every(self) -> int | EveryTime:
        """Where pilot replicas record: rounds are at known times."""
        return self.setting.cell.scenario.record.every


def setting(scenario: Scenario, case: PreparedData, replica: int = 0) -> graphs.GraphSetting:
    """See `p2psim.analysis.forecasts.forecast.setting`."""
    network, algorithm = scenario.network, cast(Any, scenario.learning.algorithm)
    exchange, model, loss = network.exchange.kind, scenario.learning.trained_model, scenario.learning.loss
    why = "rounds, exchange: synchronous: otherwise agents mix models of other times"
    graphs.refuse_network(scenario, graphs.Needs(exchange, ("synchronous",), why, True))
    of = f"forecasts of {algorithm.kind} need"
    for place, holds, message in (
        ("network.availability", network.availability.ideal, "availability: always"),
        ("learning.model", model.uses_loss, "a linear model, whose moments close"),
        (
            "learning.loss",
            loss is not None and loss.is_squared_error,
            "the squared loss, whose moments close",
        ),
        ("learning.algorithm.momentum", algorithm.momentum == 0, "no momentum"),
        (
            "learning.algorithm.batch",
            algorithm.batch.is_fresh,
            "batches that do not depend on earlier ones: whole, poisson or fixed",
        ),
    ):
        if not holds:
            raise MeaningError(place, f"{of} {message}")
    cell: Any = adapter_of(scenario).cell(scenario, case, replica)
    problem, n = cell.problem, cell.problem.agents
    one = network.topology.redrawn_every == network.exchange.round_length
    if cell.links.changes is not None and not (one and comes_back(cell.links)):
        stays = "a graph that stays, or one-peer-exponential whose interval is that of the rounds"
        raise MeaningError("network.topology", f"{of} {stays}")
    if not problem.records.all():
        raise MeaningError("data", f"{of} a record of each agent; agent {problem.records.argmin()} has none")
    graphs.refuse_larger(graphs.MOST_NUMBERS, "agents times coordinates", n * problem.dimension)
    start = np.zeros((n, problem.dimension))
    rate = n / cast(Any, network.exchange).interval
    return graphs.GraphSetting(cell, np.full(n, 1 / n), rate, start, np.zeros((n, n)))


def forecast(setting: graphs.GraphSetting) -> TrainingForecast:
    """Forecast a cell.

    Raises
    ------
    MeaningError
        If it records in the middle of rounds, an agent runs out of releases, gradients are clipped, or the variance of
        the noise is not known.
    SimulationError
        If the forecast grows beyond all numbers.
    """
    cell = cast(Any, setting.cell)
    problem, algorithm, rule = cell.problem, cell.scenario.learning.algorithm, cell.rule
    moments = _moments(setting)
    rounds, most = moments.chances.argmax(axis=1), moments.most
    data, spread = (problem.X, problem.y, problem.offsets), algorithm.batch.spread
    spreads = [spread(int(m)) for m in problem.records]
    agents = QuadraticAgents(*data, 2 * problem.l2, spreads, _variances(setting, most))
    # A graph that changes has made its first change when the first round begins.
    Ws = [mixing_matrix(links, algorithm.mixing).toarray() for links in rounds_of(cell.links)]
    Ws = Ws[1:] + Ws[:1]
    step, wanted = algorithm.step, set(rounds.tolist())
    etas = [size_at(step, t) for t in range(most)]
    curvature = agents.gram.mean(axis=0) + problem.l2 * np.eye(problem.dimension)
    optimum = np.linalg.lstsq(curvature, agents.moment.mean(axis=0))[0]

    def walked(agents: QuadraticAgents) -> dict[int, ModelMoments]:
        path = model_moments(agents, Ws, iter(etas), setting.first, algorithm.order)
        return {k: now for k, now in enumerate(islice(path, most + 1)) if k in wanted}

    def gap(now: ModelMoments) -> np.ndarray:
        mean, square = now.of_mean(agents.agents)
        away = mean - optimum
        return np.array([away @ curvature @ away, (curvature * (square - np.outer(mean, mean))).sum()])

    with np.errstate(over="ignore", invalid="ignore"):
        noisy = walked(agents)
        quiet = walked(replace(agents, noise=np.zeros_like(agents.noise))) if agents.noise.any() else noisy
        of_means, spread = np.array([gap(noisy[k]) for k in rounds]).T
        batches = np.array([gap(quiet[k])[1] for k in rounds])
        distances = np.array([noisy[k].consensus_distance(agents.agents) for k in rounds])
    if not np.isfinite([of_means, spread, distances]).all():
        raise SimulationError("the expected objective grows beyond all numbers")
    if np.isfinite(rule.clip):
        first = algorithm.order == "gossip-then-gradient"
        for k, now in noisy.items():
            _refuse_clipping(agents, now.mixed(Ws[k % len(Ws)]) if first else now, rule.clip, rule.order, k)
    noise, clips = np.maximum(spread - batches, 0.0), bool(np.isfinite(rule.clip))
    reasons = {
        f"gradients {INSIDE:g} standard deviations above their mean may be clipped": clips,
        "rounding to the grid is not in it": rule.grid is not None,
    }
    approximate = those_that_hold(reasons)
    return TrainingForecast(setting, moments, of_means, batches, noise, distances, approximate)


def _moments(setting: graphs.GraphSetting) -> graphs.RecordedMoments:
    """Moments of recording and the end, with the number of rounds by each."""
    setup, n = setting.cell.setup, len(setting.first)
    every, span = between_records(setting.cell.scenario.record.every)
    interval = n / setting.rate
    for key, count in {"learning.algorithm.commits": setup.commits, "record.every": every}.items():
        if count is not None and count % n:
            message = f"forecasts of rounds need whole ones, of {n} commits each; got {count}"
            raise MeaningError(key, message)
    if setup.commits is not None:
        most = setup.commits // n
    else:
        time = float(setup.time or 0.0)
        most = int(upto(interval * np.arange(1, int(time / interval) + 3), time))
    ends = interval * np.arange(1, most + 1)
    if every is None:
        assert span is not None
        end = setup.time or float(ends[-1])
        times = span * np.arange(int(end / span) + 2)
        points = np.append(times[times < end * (1 - 1e-12)], end)
        return graphs.RecordedMoments(
            "time", points, graphs.exactly(np.append(upto(ends, points[:-1]), most), most + 1)
        )
    steps = np.append(np.arange(0, most, every // n), most)
    return graphs.RecordedMoments("commits", steps * n, graphs.exactly(steps, most + 1))


def _variances(setting: graphs.GraphSetting, rounds: int) -> np.ndarray:
    """Variance of a coordinate of the noise of each release, shape (rounds, n): who releases when is known."""
    cell, n = cast(Any, setting.cell), len(setting.first)
    plan, algorithm = cell.setup.plan, cell.scenario.learning.algorithm
    if (short := plan.releases < rounds).any():
        agent = int(short.argmax())
        raise MeaningError(
            "privacy",
            f"forecasts of {algorithm.kind} need a release of each agent in each of {rounds} rounds; "
            f"agent {agent} may make {plan.releases[agent]}",
        )
    numbers = np.repeat(np.arange(rounds), n)
    agents = np.tile(np.arange(n), rounds)
    before = numbers * n + (0 if algorithm.order == "gradient-then-gossip" else agents)
    return release_variances(plan, agents, numbers, before).reshape(rounds, n)


def _refuse_clipping(
    agents: QuadraticAgents, now: ModelMoments, clip: float, order: int, number: int
) -> None:
    """Refuse gradients that are clipped unless they are further than usual from their means."""
    n, p = agents.agents, agents.dimension
    means, blocks = now.mean.reshape(n, p), now.second.reshape(n, p, n, p)
    for i in range(n):
        mean, square = agents.residuals(i, means[i], blocks[i, :, i])
        largest = np.abs(mean) + INSIDE * np.sqrt(np.maximum(square - mean**2, 0.0))
        norm = float((2 * largest * np.linalg.norm(agents.X[agents.rows(i)], ord=order, axis=1)).max())
        if norm > clip:
            raise MeaningError(
                "privacy.sensitivity",
                f"forecasts of decentralised SGD take no gradient to be clipped; after {number} rounds those of agent "
                f"{i} are up to {norm:.3g} long, and are clipped to {clip:g}",
            )
