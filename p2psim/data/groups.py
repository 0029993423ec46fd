"""Groups of owners by number of records, and steps on each owner's own records before training.

These steps set test records aside, and subtract from an owner's labels the mean of its training labels.
"""

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from p2psim.core.options import Count, Options
from p2psim.core.randomness import generator
from p2psim.data.records import Held, TestSet, offsets_of


class Groups(Options):
    """Owners grouped by their number of records."""

    by: Literal["records"] = Field("records", description="what decides")
    cut: Annotated[list[Count], Field(min_length=1)] = Field(
        description="ascending; who has exactly so many is above"
    )
    names: list[str] = Field(description="one name more than there are cuts, from the smallest owners on")
    merge: bool = Field(
        False, description="the owners of a group act as one larger owner, called as the group (F, Remark 2)"
    )

    @model_validator(mode="after")
    def _fits(self) -> "Groups":
        if sorted(set(self.cut)) != self.cut:
            raise ValueError(f"cut: must ascend, got {self.cut}")
        if len(self.names) != len(self.cut) + 1 or len(set(self.names)) != len(self.names):
            raise ValueError(f"names: {len(self.cut) + 1} different names are needed, got {self.names}")
        return self


def group_of(groups: Groups, records: np.ndarray) -> tuple[str, ...]:
    """Group of each owner.

    Parameters
    ----------
    groups : Groups
    records : ndarray of int, shape (N,)
        Number of records of each owner.
    """
    return tuple(groups.names[place] for place in np.searchsorted(groups.cut, records, side="right"))


def no_test(held: Held) -> TestSet:
    """A test set in which nobody has a record."""
    return TestSet(np.empty((0, held.X.shape[1])), np.empty(0), np.zeros_like(held.offsets))


def set_aside(held: Held, fraction: float, key: np.ndarray) -> Held:
    """Let every owner keep a part of its records from training.

    An owner with m records keeps fraction·m of them, to the nearest whole number (halves up) but never the
    last training record, drawn without return from the owner's own stream. So whom it tests with depends
    on no other owner; and nobody is left without a record to train with.

    Parameters
    ----------
    held : Held
    fraction : float
        In (0, 1).
    key : ndarray of uint64, shape (2,)
        Key of the stream; owner i draws from agent i's.

    Returns
    -------
    Held
        With `test`; both parts keep the order of the records.
    """
    sizes = np.diff(held.offsets)
    tests = np.minimum(np.floor(fraction * sizes + 0.5).astype(np.int64), sizes - 1)
    tested = np.zeros(len(held.y), dtype=bool)
    for owner, (start, size, kept) in enumerate(zip(held.offsets[:-1], sizes, tests, strict=True)):
        if kept:
            tested[start + generator(key, owner).permutation(size)[:kept]] = True
    return replace(
        held,
        X=held.X[~tested],
        y=held.y[~tested],
        offsets=offsets_of(sizes - tests),
        test=TestSet(held.X[tested], held.y[tested], offsets_of(tests)),
    )


def owner_of_row(offsets: np.ndarray) -> np.ndarray:
    """Owner of each row, shape (n,), of rows that lie owner by owner."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def centre_labels(held: Held) -> None:
    """Subtract from each owner's labels, in place, the mean of its training labels.

    Its test labels are centred by the same mean, public labels by their own.
    """
    totals = np.bincount(owner_of_row(held.offsets), weights=held.y, minlength=len(held.labels))
    means = totals / np.diff(held.offsets)
    held.y[:] -= np.repeat(means, np.diff(held.offsets))
    if held.test is not None:
        held.test.y[:] -= np.repeat(means, np.diff(held.test.offsets))
    if len(held.public_labels):
        held.public_labels[:] -= held.public_labels.mean()
