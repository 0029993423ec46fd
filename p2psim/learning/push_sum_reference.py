"""Push-sum in plain NumPy: to be read beside the paper, and to test against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from p2psim.network.events import COMMIT, DELIVER, SEND


def push_sum_plainly(start: np.ndarray, events: Iterable[np.void]) -> Iterator[np.ndarray]:
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
    s, w = np.array(start, dtype=float), np.ones(len(start))
    sent: dict[int, tuple[np.ndarray, float]] = {}
    heard: dict[int, tuple[np.ndarray, float]] = {}
    models = s.copy()
    yield models.copy()
    for event in events:
        i, seq, cause = int(event["agent"]), int(event["seq"]), int(event["cause"])
        if event["kind"] == SEND and event["version"] >= 0:
            s[i], w[i] = s[i] / 2, w[i] / 2
            sent[seq] = s[i].copy(), float(w[i])
        elif event["kind"] == DELIVER and cause in sent:
            heard[seq] = sent[cause]
        elif event["kind"] == COMMIT:
            s[i], w[i] = s[i] + heard[cause][0], w[i] + heard[cause][1]
            models[i] = s[i] / w[i]
            yield models.copy()
