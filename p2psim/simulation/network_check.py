"""Compares recorded metrics of the network with those that a plain reading of the events gives."""

from collections.abc import Iterator, Sequence

import numpy as np

from p2psim.core.registry import place_of
from p2psim.network.metrics import NETWORK_METRICS, NetworkState
from p2psim.network.metrics_reference import ReferenceTally, in_words
from p2psim.network.section import Network
from p2psim.network.tally import Tally
from p2psim.scenario.notices import Compared
from p2psim.simulation.outcome import Series
from p2psim.simulation.recorder import Marks, paces


def compare_network(
    network: Network, events: np.ndarray, marks: Marks, series: Sequence[Series], end: float | None = None
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
    end : float, optional
        End of the run.
    """
    if not series:
        return
    metrics, pace = [NETWORK_METRICS[one.metric] for one in series], paces(network)
    known = [metric.name for metric in metrics if place_of(metric) is None]
    others = [metric for metric in metrics if place_of(metric) is not None]
    reading, tally = ReferenceTally(network.links, *pace, end=end), Tally(network.links, end)
    happened, rows, start = in_words(events), [], 0
    for stop, time in zip(marks.places.tolist(), marks.times.tolist(), strict=True):
        reading.read(happened[start:stop])
        row = reading.record(time, known)
        if others:
            tally.count(events[start:stop])
            row |= {metric.name: metric.measure(NetworkState(tally, time, *pace)) for metric in others}
            tally.heard[:] = False
        rows.append(row)
        start = stop
    for one in series:
        yield Compared.of(one.value, np.array([row[one.metric] for row in rows]), least=1.0)
