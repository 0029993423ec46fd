"""What features and partitions must do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from p2psim.data.features import Feature, apply_features
from p2psim.data.labels import Column
from p2psim.data.partitions import Partition, check_division
from p2psim.data.records import Held
from p2psim.errors import MeaningError
from p2psim.randomness import stream_key


def check_partition(part: Partition) -> Iterator[str]:
    """Yield what is wrong with how a partition divides 60 rows."""
    labels = np.random.default_rng(0).choice([-1.0, 1.0], 60)
    column = Column(np.arange(60) % 3) if part.divides_by is not None else None
    agents = getattr(part, "agents", None)
    owners, names = part.split(labels, agents or 3, column, np.random.default_rng(1))
    again, _ = part.split(labels, agents or 3, column, np.random.default_rng(1))
    try:
        check_division(owners, names, 60, agents or 3, part.kind)
    except MeaningError as error:
        yield str(error)
    if len(owners) != len(again) or not all(map(np.array_equal, owners, again)):
        yield "the same generator gives other owners: take random numbers from the argument `random` alone"


def check_feature(part: Feature) -> Iterator[str]:
    """Yield what is wrong with the features of 30 records of two owners, with 20 public rows."""
    random, ratings = np.random.default_rng(0), part.needs_ratings
    X, public = (
        random.integers(0, 5, (rows, 1)).astype(np.float64) if ratings else random.standard_normal((rows, 6))
        for rows in (30, 20)
    )
    columns = tuple(f"x{j + 1}" for j in range(X.shape[1]))
    y, offsets = random.standard_normal(30), np.array([0, 12, 30])
    held = Held(X, y, offsets, columns, ("0", "1"), public, np.zeros(20), items=5 if ratings else None)
    key = stream_key(0, None, "data")
    before = X.copy(), public.copy()
    done, (fitted,) = apply_features([part], held, key)
    if not (np.array_equal(X, before[0]) and np.array_equal(public, before[1])):
        yield "it changes the rows that it is given: return a new array"
        return
    again, (fitted_again,) = apply_features([part], held, key)
    if fitted != fitted_again or not np.array_equal(done.X, again.X):
        yield "the same generator gives other features: take random numbers from the argument `random` alone"
    if not np.isfinite(done.X).all():
        yield "features of finite records are not finite"
    if len(set(done.names)) != len(done.names):
        yield f"two features have one name: {', '.join(done.names)}"
    if not part.data_dependent:
        turned, (of_others,) = apply_features([part], _turned(held), key)
        if of_others != fitted or not np.allclose(turned.X[::-1], done.X, rtol=1e-9, atol=1e-9):
            yield "a record's features depend on other records: map each row by itself, or set `data_dependent`"


def _turned(held: Held) -> Held:
    return Held(**(vars(held) | {"X": held.X[::-1].copy()}))
