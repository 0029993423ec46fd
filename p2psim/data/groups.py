"""Groups of owners by number of records or by a column, numbers per owner, and steps on records before training.

These steps merge the owners of a group into one larger owner (F, Remark 2), set test records aside, and subtract from
an owner's labels the mean of its training labels.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from p2psim.core.errors import MeaningError
from p2psim.core.options import Count, Options
from p2psim.core.randomness import generator
from p2psim.data.classes import owners_of
from p2psim.data.records import Held, TestSet, Where, offsets_of, row_name


class Groups(Options):
    """Owners grouped by their number of records, or by a column.

    Choices
    -------
    by: records
        by how many records an owner holds
    by: column
        by the value that a column has in all rows of an owner
    """

    unsaid: ClassVar[tuple[str, ...]] = ("cut", "column")

    by: Literal["records", "column"] = Field("records", description="what decides")
    cut: Annotated[list[Count], Field(min_length=1)] | None = Field(
        None, description="by records: ascending; an owner with exactly this many is in the group above"
    )
    column: str | None = Field(
        None, description="by column: its name; all rows of an owner have the same value"
    )
    names: list[str] = Field(
        description="by records: one name more than there are cuts, from the smallest owners on; by column: its values"
    )
    merge: bool = Field(
        False, description="the owners of a group act as one larger owner, called as the group (F, Remark 2)"
    )

    @model_validator(mode="after")
    def _fits(self) -> "Groups":
        if len(set(self.names)) != len(self.names) or not self.names:
            raise ValueError(f"names: must be different names, got {self.names}")
        if self.by == "column":
            if self.column is None or self.cut is not None:
                raise ValueError("column: groups by a column need its name, and no cut")
            if self.merge:
                raise ValueError(
                    "merge: is for groups by records; for a column, give data.partition: {kind: column, …}"
                )
            return self
        if self.cut is None or self.column is not None:
            raise ValueError("cut: groups by records need numbers of records, and no column")
        if sorted(set(self.cut)) != self.cut:
            raise ValueError(f"cut: must ascend, got {self.cut}")
        if len(self.names) != len(self.cut) + 1:
            raise ValueError(f"names: {len(self.cut) + 1} different names are needed, got {self.names}")
        return self


def of_owners(
    values: np.ndarray,
    owners: Sequence[np.ndarray],
    labels: Sequence[str],
    column: str,
    key: str,
    where: Where,
    names: Sequence[str] | None = None,
) -> np.ndarray:
    """Value that a column has in all rows of each owner, shape (N,).

    Parameters
    ----------
    values : ndarray of float or int, shape (n,)
    owners : sequence of ndarray of int
        The rows of each owner.
    labels : sequence of str
        The owners.
    column, key : str
        The column, and the dotted scenario key that names it, for errors.
    where : callable
        Place of a row.
    names : sequence of str, optional
        What values are called; numbers themselves when left out.

    Raises
    ------
    MeaningError
        If an owner has rows with different values.
    """
    for rows, label in zip(owners, labels, strict=True):
        ordered = np.sort(rows)
        other = values[ordered] != values[ordered[0]]
        if other.any():
            places = ordered[[0, int(np.argmax(other))]].tolist()
            given = (
                f"{repr(names[values[row]]) if names else format(values[row], '.12g')} in {where(row)}"
                for row in places
            )
            raise MeaningError(
                key,
                f"owner {label} has {' and '.join(given)}, column {column!r}; one value per owner is expected",
            )
    return values[[rows[0] for rows in owners]]


def groups_in(
    values: Any,
    owners: Sequence[np.ndarray],
    labels: Sequence[str],
    groups: Groups,
    where: Where = row_name,
) -> tuple[str, ...]:
    """Group of each owner, by the value that a column has in its rows.

    Parameters
    ----------
    values : array_like, shape (n,)
        The column, or labels of `p2psim.data.classes.labels_in`.
    owners : sequence of ndarray of int
        The rows of each owner.
    labels : sequence of str
        The owners.
    groups : Groups
    where : callable
        Place of a row.

    Raises
    ------
    MeaningError
        If a value is missing, an owner has two, or one is no name of a group.
    """
    key, column = "data.groups.column", groups.column
    assert column is not None
    held = np.concatenate(owners)
    of_row, names = owners_of(
        values[held], key, lambda marked: f"in the rows of {labels[_owner(owners, marked)]}"
    )
    places = np.zeros(held.max() + 1, dtype=np.int64)
    places[held] = of_row
    of_owner = [names[place] for place in of_owners(places, owners, labels, column, key, where, names)]
    for name, label in zip(of_owner, labels, strict=True):
        if name not in groups.names:
            message = f"owner {label} has {name!r} in column {column!r}; names has {groups.names}"
            raise MeaningError("data.groups.names", message)
    return tuple(of_owner)


def _owner(owners: Sequence[np.ndarray], marked: np.ndarray) -> int:
    """Owner of the first row that is marked among all rows of all owners."""
    ends = np.cumsum([rows.size for rows in owners])
    return int(np.searchsorted(ends, np.argmax(marked), side="right"))


def group_of(groups: Groups, records: np.ndarray) -> tuple[str, ...]:
    """Group of each owner.

    Parameters
    ----------
    groups : Groups
    records : ndarray of int, shape (N,)
        Number of records of each owner.
    """
    return tuple(groups.names[place] for place in _place_of(groups, records))


def _place_of(groups: Groups, records: np.ndarray) -> np.ndarray:
    """Place of each owner's group among the groups."""
    assert groups.cut is not None
    return np.searchsorted(groups.cut, records, side="right")


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
    test = TestSet(held.X[tested], held.y[tested], offsets_of(tests))
    return replace(held, X=held.X[~tested], y=held.y[~tested], offsets=offsets_of(sizes - tests), test=test)


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
    held.tests.y[:] -= np.repeat(means, np.diff(held.tests.offsets))
    if len(held.public_labels):
        held.public_labels[:] -= held.public_labels.mean()


def merge_groups(held: Held, groups: Groups) -> Held:
    """Give all records of a group's owners to one owner, who is called as the group.

    Owners are merged before anything is done to their records, so that a merged one keeps test records, centres its
    labels, answers and spends as any owner of that size does. Its records are those of its members, in their order.

    Parameters
    ----------
    held : Held
    groups : Groups

    Returns
    -------
    Held
        An owner for each name of the groups, in the order of the names. There are no ``targets``: the models that
        labels were drawn from differ among the members of a group.

    Raises
    ------
    MeaningError
        If a group has no owner, or rows are ratings: they belong to persons, whom a group would confuse.
    """
    key = "data.groups.merge"
    if held.items is not None:
        message = "ratings of several people cannot become the ratings of one person; merge other data"
        raise MeaningError(key, message)
    member_of = _place_of(groups, np.diff(held.offsets))
    for place, name in enumerate(groups.names):
        if place not in member_of:
            message = f"no owner is in group {name!r}, so that it cannot act; change data.groups.cut"
            raise MeaningError(key, message)
    rows, offsets = _gathered(held.offsets, member_of)
    tests, test_offsets = _gathered(held.tests.offsets, member_of)
    test = TestSet(held.tests.X[tests], held.tests.y[tests], test_offsets)
    held = replace(held, X=held.X[rows], y=held.y[rows], offsets=offsets, test=test)
    return replace(held, labels=tuple(groups.names), targets=None)


def _gathered(offsets: np.ndarray, member_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order of the groups, and the groups' offsets among them."""
    of_row = member_of[owner_of_row(offsets)]
    sizes = np.bincount(of_row, minlength=int(member_of.max()) + 1)
    return np.argsort(of_row, kind="stable"), offsets_of(sizes)
