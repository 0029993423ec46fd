"""The forecast of gossip averaging in one cell: how far apart agents are, and how far their mean has moved."""

from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from p2psim.analysis.forecasts import graph_setting as graphs
from p2psim.core.errors import MeaningError
from p2psim.network.spectrum import weight_matrix
from p2psim.scenario.model import Scenario
from p2psim.simulation.prepared import PreparedData
from p2psim.theory.forecasts import gossip


@dataclass(frozen=True)
class AveragingForecast(graphs.GraphForecast):
    """Expected models at all moments.

    Attributes
    ----------
    setting, moments
        As in `GraphForecast`.
    spread : ndarray, shape (moments,)
        E of the mean of ‖x_i − x̄‖², x̄ the mean at that moment.
    drift : ndarray, shape (moments,)
        E‖x̄ − x̄₀‖², x̄₀ the mean of expected first models.
    bias : ndarray, shape (moments,)
        ‖E x̄ − x̄₀‖, at most.
    rates : ContractionRates
        By which an exchange that leads to a commit contracts.
    """

    metric = symbol = key = "consensus_distance"
    approximate: ClassVar[tuple[str, ...]] = ()
    error: ClassVar[float] = 0.0

    spread: np.ndarray
    drift: np.ndarray
    bias: np.ndarray
    rates: gossip.ContractionRates

    @property
    def expected(self) -> np.ndarray:
        """What is compared with runs."""
        return self.spread

    @property
    def end(self) -> dict[str, Any]:
        """The end in its parts: a line of a table."""
        bias = {"bias of the mean": float(self.bias[-1])}
        return self.parts_at(-1) | bias | {"λ₂": self.rates.mean, "r": self.rates.square}

    def parts_at(self, moment: int) -> dict[str, float]:
        """A moment of the run: a line of a table."""
        parts = {"consensus distance": self.spread, "drift of the mean": self.drift}
        return {name: float(values[moment]) for name, values in parts.items()}

    @property
    def run(self) -> dict[str, np.ndarray]:
        """All moments beside what is expected."""
        return {"drift": self.drift, "bias": self.bias}

    @property
    def more(self) -> dict[str, Any]:
        """What else is forecast, as plain values."""
        return {"rates": {"lambda2": self.rates.mean, "r": self.rates.square}}


def setting(scenario: Scenario, case: PreparedData, replica: int = 0) -> graphs.GraphSetting:
    """See `p2psim.analysis.forecasts.forecast.setting`."""
    exchange, modes = scenario.network.exchange, ("push", "pull", "push-pull")
    needs = graphs.Needs(exchange.pattern, modes, "gossip: push, pull or push-pull", False)
    return graphs.graph_setting(scenario, case, replica, needs)


def forecast(setting: graphs.GraphSetting) -> AveragingForecast:
    """Forecast a cell.

    Raises
    ------
    MeaningError
        If a run that ends with a number of updates is recorded by time, or there are too many agents.
    """
    setup, n, every = setting.cell.setup, len(setting.first), setting.cell.scenario.record.every
    graphs.refuse_larger(graphs.MOST_NUMBERS, "agents of averaging", n)
    step = _step(setting)
    rate = setting.rate * step.effective
    if setup.commits is not None and not isinstance(every, int):
        message = "forecasts of averaging that ends with a number of commits need steps, not times"
        raise MeaningError("record.every", message)
    moments, _ = graphs.recorded_moments(every, setup.commits, setup.time, rate * step.commits)

    def walked(steps: int, walk: gossip.Walk = gossip.commits) -> gossip.AveragingPath:
        return gossip.averaging_path(step, setting.first, steps, setting.first_covariance, walk)

    if setup.commits is not None:
        path = walked(moments.most).mixed(moments.chances)
    else:
        # Both commits of an exchange fall in one moment, so that by a time there are whole exchanges alone.
        times = moments.points if moments.axis == "time" else np.array([setup.time])
        by_exchange = graphs.by_time(rate * times)
        path = walked(by_exchange.shape[1] - 1, gossip.exchanges).mixed(by_exchange)
        if moments.axis == "commits":
            steps = moments.points[:-1].astype(int)
            before = walked(int(steps[-1]))
            path = gossip.AveragingPath(*(np.append(a[steps], b) for a, b in zip(before, path, strict=True)))
    rates = gossip.contraction(step, n)
    return AveragingForecast(setting, moments, path.spread / n, path.drift, path.bias, rates)


def _step(setting: graphs.GraphSetting) -> gossip.GossipStep:
    """What an exchange does, with the losses of each link and direction."""
    cell = setting.cell
    exchange, losses = cast(Any, cell.scenario.network.exchange), cell.scenario.network.channel.losses
    links = weight_matrix(cell.links)
    lost = np.zeros(links.shape)
    rows = np.repeat(np.arange(cell.links.agents), np.diff(cell.links.indptr))
    lost[rows, cell.links.indices] = losses.chances(cell.links)
    chances = gossip.partner_chances(links, setting.frequencies, exchange.partner == "weight")
    return gossip.averaging(exchange.mode, chances, lost)
