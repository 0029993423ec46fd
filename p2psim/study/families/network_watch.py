"""Records metrics of the network, of any family, from the events alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from p2psim.errors import MeaningError, SimulationError
from p2psim.network.channels.timing import Airtime, airtime_of
from p2psim.network.metrics import NETWORK_METRICS, NetworkMetric, Seen
from p2psim.network.simulation import Network
from p2psim.network.tally import Tally
from p2psim.study.families.marks import Marks
from p2psim.study.outcome import Series
from p2psim.study.record import RecordSection


class NetworkWatch:
    """Series of network metrics in progress; idle where none is recorded.

    Parameters
    ----------
    record : RecordSection
    network : Network

    Raises
    ------
    MeaningError
        If a metric is not found for so many agents.
    """

    def __init__(self, record: RecordSection, network: Network):
        self._metrics = [NETWORK_METRICS[name] for name in record.metrics if name in NETWORK_METRICS]
        if not self._metrics:
            return
        links = network.links
        for metric in self._metrics:
            if metric.most_agents is not None and links.agents > metric.most_agents:
                raise MeaningError(
                    f"record.metrics.{record.metrics.index(metric.name)}",
                    f"is found for up to {metric.most_agents} agents, there are {links.agents}",
                )
        self._marks = Marks(record.every)
        self._tally = Tally(links)
        self._rate, self._airtime = paces(network)
        self._rows: list[tuple[int, float, list[float]]] = []

    def feed(self, events: np.ndarray) -> None:
        """Read the next chunk of the stream."""
        if not self._metrics or not events.size:
            return
        start = 0
        for stop, step, time in self._marks.places(events):
            self._tally.count(events[start:stop])
            self._note(step, time)
            start = stop
        self._tally.count(events[start:])

    def finish(self) -> tuple[Series, ...]:
        """Record the last moment, and return all series."""
        if not self._metrics:
            return ()
        if not self._rows:
            self._note(0, 0.0)
        elif not self._marks.is_last(self._rows[-1][:2]):
            self._note(self._marks.step, self._marks.time)
        steps = np.array([row[0] for row in self._rows], np.int64)
        times = np.array([row[1] for row in self._rows])
        values = np.array([row[2] for row in self._rows])
        return tuple(
            Series(metric.name, "main", None, steps, times, np.ascontiguousarray(values[:, i]))
            for i, metric in enumerate(self._metrics)
        )

    def _note(self, step: int, time: float) -> None:
        seen = Seen(self._tally, time, self._rate, self._airtime)
        self._rows.append((step, time, measured(self._metrics, seen)))
        self._tally.heard[:] = False


def measured(metrics: Sequence[type[NetworkMetric]], seen: Seen) -> list[float]:
    """Values of metrics at one moment.

    Raises
    ------
    SimulationError
        If one is not finite.
    """
    values = [metric.measure(seen) for metric in metrics]
    if not all(map(isfinite, values)):
        wrong = next(
            metric.name for metric, value in zip(metrics, values, strict=True) if not isfinite(value)
        )
        raise SimulationError(f"{wrong} is not finite at time {seen.time:g}")
    return values


def paces(network: Network) -> tuple[float, Airtime]:
    """Ticks of all clocks per unit of time, 0 where nobody has a clock, and the time that transmissions take."""
    channel = network.channel
    rates = network.rates if network.rates is not None else np.ones(network.links.agents)
    rate = float(rates.sum()) if network.exchange.has_clocks else 0.0
    return rate, airtime_of(channel.airtime, channel.bandwidth, network.vectors)
