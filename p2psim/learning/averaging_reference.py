"""Gossip averaging in plain NumPy: to be read beside the paper, and to test against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from p2psim.network.events import COMMIT, DELIVER, SEND


def average_plainly(start: np.ndarray, events: Iterable[np.void]) -> Iterator[np.ndarray]:
    """All models after every commit.

    Parameters
    ----------
    start : ndarray, shape (n, p)
    events : iterable of EVENT records

    Yields
    ------
    ndarray, shape (n, p)
        The first is the start.
    """
    x = np.array(start, dtype=float)
    sent: dict[int, np.ndarray] = {}
    heard: dict[int, np.ndarray] = {}
    yield x.copy()
    for event in events:
        i, seq, cause = int(event["agent"]), int(event["seq"]), int(event["cause"])
        if event["kind"] == SEND and event["version"] >= 0:
            sent[seq] = x[i].copy()
        elif event["kind"] == DELIVER and cause in sent:
            heard[seq] = sent[cause]
        elif event["kind"] == COMMIT:
            x[i] = (x[i] + heard[cause]) / 2
            yield x.copy()
