"""Compares recorded metrics of the network with those that a plain reading of the events gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from p2psim.network.metrics_reference import PlainReading, in_words
from p2psim.network.simulation import Network
from p2psim.study.compared import Compared
from p2psim.study.families.marks import places_of
from p2psim.study.families.network_watch import paces
from p2psim.study.outcome import Series
from p2psim.study.record import RecordSection


def compare_network(
    network: Network, record: RecordSection, events: np.ndarray, series: Sequence[Series]
) -> Iterator[Compared]:
    """Set recorded metrics of the network beside those of a plain reading.

    Differences are relative to the largest number of a series, at least 1: most are shares.

    Parameters
    ----------
    network : Network
    record : RecordSection
    events : ndarray of EVENT
    series : sequence of Series
        Of the network, recorded at the same moments.
    """
    names = [one.metric for one in series]
    if not names:
        return
    steps, times = series[0].step, series[0].time
    reading, happened = PlainReading(network.links, *paces(network)), in_words(events)
    rows: list[dict[str, float]] = []
    start = 0
    for stop, time in zip(places_of(record.every, events, steps, times), times.tolist(), strict=True):
        reading.read(happened[start:stop])
        rows.append(reading.record(time, names))
        start = stop
    for one in series:
        again = np.array([row[one.metric] for row in rows])
        yield Compared(one.value, again, max(1.0, np.abs(again).max(), np.abs(one.value).max()))
