"""Batches in plain Python, from NumPy's own Philox: what the compiled draws are tested against."""

from __future__ import annotations

import math

import numpy as np

from p2psim.learning.batches import POISSON, Sampling


def drawn(sampling: Sampling, agent: int, release: int, records: int) -> list[int]:
    """Places of the records that take part in an agent's numbered release."""
    counter = np.array([0, release, agent, 0], dtype=np.uint64)
    random = np.random.Generator(np.random.Philox(counter=counter, key=sampling.key)).random
    if sampling.code == POISSON:
        return _poisson(random, records, float(sampling.rates[agent]))
    return _fixed(random, records, int(sampling.sizes[agent]))


def _poisson(random, records: int, rate: float) -> list[int]:  # type: ignore[no-untyped-def]
    if rate == 1:
        return list(range(records))
    rows: list[int] = []
    at = -1
    while True:
        skipped = math.log(1 - random()) / math.log1p(-rate)
        if at + 1 + skipped >= records:
            return rows
        at += 1 + math.floor(skipped)
        rows.append(at)


def _fixed(random, records: int, size: int) -> list[int]:  # type: ignore[no-untyped-def]
    rows: list[int] = []
    for last in range(records - size, records):
        place = math.floor(random() * (last + 1))
        rows.append(last if place in rows else place)
    return rows
