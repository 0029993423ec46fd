"""Compares recorded metrics of the network with those that a plain reading of the events gives."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np

from p2psim.network.metrics import NETWORK_METRICS
from p2psim.network.metrics_reference import Happened, PlainReading, in_words
from p2psim.network.simulation import Network
from p2psim.study.compared import Compared
from p2psim.study.families.network_watch import paces
from p2psim.study.outcome import Series
from p2psim.study.record import RecordSection


def apart(series: Sequence[Series]) -> tuple[tuple[Series, ...], tuple[Series, ...]]:
    """Series of the network, and all others."""
    counted = tuple(one for one in series if one.metric in NETWORK_METRICS)
    return counted, tuple(one for one in series if one.metric not in NETWORK_METRICS)


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
    for stop, time in zip(_places(record, happened, steps, times), times.tolist(), strict=True):
        reading.read(happened[start:stop])
        rows.append(reading.record(time, names))
        start = stop
    for one in series:
        again = np.array([row[one.metric] for row in rows])
        yield Compared(one.value, again, max(1.0, np.abs(again).max(), np.abs(one.value).max()))


def _places(
    record: RecordSection, happened: Sequence[Happened], steps: np.ndarray, times: np.ndarray
) -> list[int]:
    """How many events come before each record: none before the first."""
    if isinstance(record.every, int):
        commits = [place for place, event in enumerate(happened, 1) if event.kind == "commit"]
        # The last record is of the end, unless it is one by count.
        at = [len(happened) if step % record.every else commits[step - 1] for step in steps[1:].tolist()]
        return [0, *at]
    moments = [event.time for event in happened]
    return [0, *(bisect_right(moments, time) for time in times[1:-1].tolist()), len(happened)][: len(times)]
