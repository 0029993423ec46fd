"""The forecast of gossip averaging in one cell: how far apart agents are, and how far their mean has moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from p2psim.analysis.forecasts.graph_setting import GraphSetting, Moments, by_time, moments_of
from p2psim.core.errors import MeaningError
from p2psim.theory.forecasts.gossip import Averaging, exchanges
from p2psim.theory.forecasts.gossip import AveragingPath, Contraction, averaging_path, contraction


@dataclass(frozen=True)
class AveragingForecast:
    """Expected models at all moments.

    Attributes
    ----------
    setting : GraphSetting
    moments : Moments
    spread : ndarray, shape (moments,)
        E of the mean of ‖x_i − x̄‖², x̄ the mean at that moment.
    drift : ndarray, shape (moments,)
        E‖x̄ − x̄₀‖², x̄₀ the mean of expected first models.
    bias : ndarray, shape (moments,)
        ‖E x̄ − x̄₀‖, at most.
    rates : Contraction
        By which an exchange that leads to a commit contracts.
    """

    metric: ClassVar[str] = "consensus_distance"
    noiseless: ClassVar[None] = None
    alone: ClassVar[None] = None
    #: Nobody averages alone.
    agents: ClassVar[tuple[dict[str, Any], ...]] = ()

    setting: GraphSetting
    moments: Moments
    spread: np.ndarray
    drift: np.ndarray
    bias: np.ndarray
    rates: Contraction

    @property
    def approximate(self) -> tuple[str, ...]:
        """Why it is not exact: it is."""
        return self.setting.approximate

    @property
    def error(self) -> np.ndarray:
        """Standard error of what is expected: none, shape (moments,)."""
        return np.zeros(len(self.spread))

    @property
    def expected(self) -> np.ndarray:
        """What is compared with runs."""
        return self.spread

    @property
    def parts(self) -> dict[str, Any]:
        """The end in its parts: a line of a table."""
        return {
            "consensus distance": float(self.spread[-1]),
            "drift of the mean": float(self.drift[-1]),
            "bias of the mean": float(self.bias[-1]),
            "λ₂": self.rates.mean,
            "r": self.rates.square,
        }

    def parts_at(self, moment: int) -> dict[str, float]:
        """A moment of the run: a line of a table."""
        return {
            "consensus distance": float(self.spread[moment]),
            "drift of the mean": float(self.drift[moment]),
        }

    @property
    def run(self) -> dict[str, Any]:
        """All moments in their parts, as plain values."""
        return {"drift": self.drift.tolist(), "bias": self.bias.tolist()}

    @property
    def more(self) -> dict[str, Any]:
        """What else is forecast, as plain values."""
        return {"rates": {"lambda2": self.rates.mean, "r": self.rates.square}}


def averaging_forecast(setting: GraphSetting) -> AveragingForecast:
    """Forecast a cell.

    Raises
    ------
    MeaningError
        If a run that ends with a number of updates is recorded by time.
    """
    step, setup, n = setting.step, setting.cell.setup, len(setting.first)
    assert isinstance(step, Averaging)
    every = setting.cell.scenario.record.every
    if setup.commits is not None and not isinstance(every, int):
        raise MeaningError(
            "record.every", "forecasts of averaging that ends with a number of commits need steps, not times"
        )
    moments, _ = moments_of(every, setup.commits, setup.time, setting.rate * step.commits)
    if setup.commits is not None:
        found = _walked(setting, step, moments.most).mixed(moments.chances)
    else:
        # Both commits of an exchange fall in one moment, so that by a time there are whole exchanges alone.
        by_exchange = by_time(
            setting.rate * (moments.points if moments.axis == "time" else np.array([setup.time]))
        )
        found = _walked(setting, step, by_exchange.shape[1] - 1, whole=True).mixed(by_exchange)
        if moments.axis == "commits":
            before = _walked(setting, step, int(moments.points[-2]))[moments.points[:-1].astype(int)]
            found = AveragingPath(
                *(
                    np.append(getattr(before, name), getattr(found, name))
                    for name in ("spread", "drift", "bias")
                )
            )
    return AveragingForecast(
        setting, moments, found.spread / n, found.drift, found.bias, contraction(step, n)
    )


def _walked(setting: GraphSetting, step: Averaging, steps: int, whole: bool = False) -> AveragingPath:
    noise = setting.first_factor @ setting.first_factor.T
    if whole:
        return averaging_path(step, setting.first, steps, noise, exchanges)
    return averaging_path(step, setting.first, steps, noise)
