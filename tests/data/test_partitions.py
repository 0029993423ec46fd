import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.core.errors import MeaningError, OptionError
from p2psim.data.classes import Column
from p2psim.data.groups import Groups, group_of
from p2psim.data.partitions import ByColumn, Contiguous, Equal, OfSizes

sizes = st.lists(st.integers(1, 30), min_size=1, max_size=8)


def divide(partition, rows, agents=None, column=None, seed=0):
    given = None if column is None else Column(column)
    return partition.split(np.zeros(rows), agents, given, np.random.default_rng(seed))


@given(sizes, st.integers(0, 20), st.booleans())
def test_sizes_are_met_and_no_row_is_held_twice(wanted, spare, random):
    kind = OfSizes if random else Contiguous
    owners, labels = divide(kind(sizes=wanted), sum(wanted) + spare)
    assert [len(rows) for rows in owners] == wanted
    together = np.concatenate(owners)
    assert len(set(together.tolist())) == sum(wanted)
    assert set(together.tolist()) <= set(range(sum(wanted) + spare))
    assert labels == tuple(str(i) for i in range(len(wanted)))
    if not random:
        assert together.tolist() == list(range(sum(wanted)))


@given(st.integers(1, 12), st.integers(0, 100))
def test_equal_covers_all_rows_in_order(agents, more):
    rows = agents + more
    owners, _ = divide(Equal(), rows, agents)
    assert np.concatenate(owners).tolist() == list(range(rows))
    counts = [len(held) for held in owners]
    assert max(counts) - min(counts) <= 1


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=60))
def test_column_gives_every_row_to_the_owner_it_names(values):
    owners, labels = divide(ByColumn(column="c"), len(values), column=values)
    assert labels == tuple(sorted(set(values)))
    assert sorted(np.concatenate(owners).tolist()) == list(range(len(values)))
    for rows, label in zip(owners, labels, strict=True):
        assert rows.tolist() == [i for i, value in enumerate(values) if value == label]


def test_column_leaves_out_owners_with_too_few_records():
    values = ["a", "b", "a", "c", "b", "b", "c"]
    owners, labels = divide(ByColumn(column="c", minimum=3), len(values), column=values)
    assert labels == ("b",)
    assert [rows.tolist() for rows in owners] == [[1, 4, 5]]
    owners, labels = divide(ByColumn(column="c", minimum=2), len(values), agents=3, column=values)
    assert labels == ("a", "b", "c")
    with pytest.raises(MeaningError, match=r"data\.partition\.minimum: leaves no owner: the largest has 3"):
        divide(ByColumn(column="c", minimum=4), len(values), column=values)
    with pytest.raises(MeaningError, match="gives 1 owners"):
        divide(ByColumn(column="c", minimum=3), len(values), agents=3, column=values)


def test_equal_with_a_number_of_records():
    owners, _ = divide(Equal(agents=3, records=4), 20)
    assert [rows.tolist() for rows in owners] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_random_sizes_depend_on_the_stream():
    first, again, other = (divide(OfSizes(sizes=[20, 20]), 100, seed=s)[0] for s in (1, 1, 2))
    assert np.array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])


def test_labels_stored_as_floats_are_rounded():
    noisy = [3.6, 3.6000000001, 2.0, 1.9999999999, 10.0, 6.5]
    owners, labels = divide(ByColumn(column="c"), 6, column=noisy)
    assert labels == ("2", "3.6", "6.5", "10")
    assert [rows.tolist() for rows in owners] == [[2, 3], [0, 1], [5], [4]]


@pytest.mark.parametrize(
    ("partition", "rows", "agents", "key"),
    [
        (Contiguous(sizes=[5, 6]), 10, None, "data.partition.sizes"),
        (OfSizes(sizes=[11]), 10, None, "data.partition.sizes"),
        (Contiguous(sizes=[2, 2]), 10, 3, "data.partition.sizes"),
        (Equal(agents=2), 10, 3, "data.partition.agents"),
        (Equal(), 10, None, "data.partition.agents"),
        (Equal(agents=11), 10, None, "data.partition.agents"),
        (Equal(agents=3, records=4), 10, None, "data.partition.records"),
    ],
)
def test_refused(partition, rows, agents, key):
    with pytest.raises(MeaningError) as caught:
        divide(partition, rows, agents)
    assert caught.value.faults[0].key == key


def test_refused_columns():
    with pytest.raises(MeaningError, match=r"gives 2 owners, but network\.topology asks for 3"):
        divide(ByColumn(column="c"), 3, 3, ["a", "b", "a"])
    with pytest.raises(MeaningError, match="2 rows have no value, the first is row 2"):
        divide(ByColumn(column="c"), 4, None, [1.0, np.nan, 2.0, np.nan])
    with pytest.raises(MeaningError, match="the first is row 1"):
        divide(ByColumn(column="c"), 2, None, [None, "a"])


@pytest.mark.parametrize("wanted", [[], [0], [-3], [2.5], "all"])
def test_sizes_must_be_positive_whole_numbers(wanted):
    for kind in (Contiguous, OfSizes):
        with pytest.raises(OptionError):
            kind(sizes=wanted)


def test_groups_by_number_of_records():
    groups = Groups(cut=[10, 100], names=["small", "middle", "large"])
    assert group_of(groups, np.array([9, 10, 99, 100, 5000])) == (
        "small",
        "middle",
        "middle",
        "large",
        "large",
    )


@pytest.mark.parametrize(
    ("cut", "names"),
    [
        ([10], ["a"]),
        ([10], ["a", "b", "c"]),
        ([10, 5], ["a", "b", "c"]),
        ([5, 5], ["a", "b", "c"]),
        ([5], ["a", "a"]),
    ],
)
def test_groups_must_fit(cut, names):
    with pytest.raises(OptionError):
        Groups(cut=cut, names=names)
