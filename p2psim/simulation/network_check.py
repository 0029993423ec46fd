"""Compares recorded metrics of the network with those that a plain reading of the events gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from p2psim.core.registry import place_of
from p2psim.network.metrics import NETWORK_METRICS, NetworkMetric, NetworkState
from p2psim.network.metrics_reference import ReferenceTally, in_words
from p2psim.network.section import Network
from p2psim.network.tally import Tally
from p2psim.scenario.notices import Compared
from p2psim.simulation.outcome import Series
from p2psim.simulation.recorder import Marks, paces


def compare_network(
    network: Network, events: np.ndarray, marks: Marks, series: Sequence[Series]
) -> Iterator[Compared]:
    """Set recorded metrics of the network beside those of a plain reading.

    Metrics from outside p2psim, which the plain reading does not know, are measured again. Differences are relative
    to the largest number of a series, at least 1: most are shares.

    Parameters
    ----------
    network : Network
    events : ndarray of EVENT
    marks : Marks
        Where in them the series were recorded.
    series : sequence of Series
        Of the network.
    """
    if not series:
        return
    places = list(zip(marks.places.tolist(), marks.times.tolist(), strict=True))
    metrics = [NETWORK_METRICS[one.metric] for one in series]
    others = [metric for metric in metrics if place_of(metric) is not None]
    rows = _read(network, events, places, [metric.name for metric in metrics if metric not in others])
    if others:
        rows = [old | new for old, new in zip(rows, _counted(network, events, places, others), strict=True)]
    for one in series:
        yield Compared.of(one.value, np.array([row[one.metric] for row in rows]), least=1.0)


def _read(
    network: Network, events: np.ndarray, places: Sequence[tuple[int, float]], names: Sequence[str]
) -> list[dict[str, float]]:
    """Metrics of a plain reading at places in the stream, each with its time."""
    reading, happened = ReferenceTally(network.links, *paces(network)), in_words(events)
    rows, start = [], 0
    for stop, time in places:
        reading.read(happened[start:stop])
        rows.append(reading.record(time, names))
        start = stop
    return rows


def _counted(
    network: Network,
    events: np.ndarray,
    places: Sequence[tuple[int, float]],
    metrics: Sequence[type[NetworkMetric]],
) -> list[dict[str, float]]:
    """The same of metrics that are functions of the tally alone."""
    tally, pace = Tally(network.links), paces(network)
    rows, start = [], 0
    for stop, time in places:
        tally.count(events[start:stop])
        rows.append({metric.name: metric.measure(NetworkState(tally, time, *pace)) for metric in metrics})
        tally.heard[:] = False
        start = stop
    return rows
