"""Owners of a group that act as one larger owner (F, Remark 2)."""

from dataclasses import replace

import numpy as np

from p2psim.data.groups import Groups, group_of
from p2psim.data.records import Held, TestSet, offsets_of
from p2psim.errors import MeaningError


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
        raise MeaningError(key, "ratings of several people do not make those of one; merge other data")
    member_of = np.array(
        [groups.names.index(name) for name in group_of(groups, np.diff(held.offsets))], dtype=np.int64
    )
    for place, name in enumerate(groups.names):
        if place not in member_of:
            raise MeaningError(
                key, f"no owner is in group {name!r}, so that it cannot act; change data.groups.cut"
            )
    rows, offsets = _gathered(held.offsets, member_of)
    test = None
    if held.test is not None:
        tests, test_offsets = _gathered(held.test.offsets, member_of)
        test = TestSet(held.test.X[tests], held.test.y[tests], test_offsets)
    return replace(
        held,
        X=held.X[rows],
        y=held.y[rows],
        offsets=offsets,
        labels=tuple(groups.names),
        test=test,
        targets=None,
    )


def _gathered(offsets: np.ndarray, member_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order of the groups, and the groups' offsets among them."""
    of_row = np.repeat(member_of, np.diff(offsets))
    sizes = np.bincount(of_row, minlength=int(member_of.max()) + 1)
    return np.argsort(of_row, kind="stable"), offsets_of(sizes)


def names_of_groups(
    groups: Groups | None, labels: tuple[str, ...], records: np.ndarray
) -> tuple[str, ...] | None:
    """Group of each owner; of a merged one, who is called as its group, its own name.

    Parameters
    ----------
    groups : Groups or None
    labels : tuple of str
        The N owners.
    records : ndarray of int, shape (N,)
    """
    if groups is None:
        return None
    return labels if groups.merge else group_of(groups, records)
