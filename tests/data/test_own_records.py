from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from p2psim.core.errors import MeaningError
from p2psim.data.prepare import prepare
from p2psim.data.section import DataSection
from p2psim.data.sources.arrays import Arrays


def numbered(sizes):
    """Owners' records that can be told apart: y is the record's number, x follows from it."""
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    y = [np.arange(a, b, dtype=float) for a, b in pairwise(bounds)]
    return Arrays.per_agent([np.column_stack([v + 1, v**2]) for v in y], y)


def section(sizes=(10, 20, 5), **tree):
    return DataSection.model_validate({"source": numbered(sizes), "test_fraction": 0.2, **tree})


def split(data, owner):
    train, test = (
        values[slice(*offsets[owner : owner + 2])]
        for values, offsets in ((data.y, data.offsets), (data.test_y, data.test_offsets))
    )
    return train.tolist(), test.tolist()


def whole(data, owner):
    train, test = split(data, owner)
    return sorted(train + test)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.floats(0.01, 0.99), st.integers(0, 50))
@settings(deadline=None, max_examples=60)
def test_every_record_trains_or_tests_and_every_owner_trains(sizes, fraction, seed):
    data = prepare(section(sizes, test_fraction=fraction), seed, 0)
    start = 0
    for owner, size in enumerate(sizes):
        train, test = split(data, owner)
        assert sorted(train + test) == list(range(start, start + size))
        assert train == sorted(train)
        assert test == sorted(test)
        assert train
        assert abs(len(test) - fraction * size) <= 0.5 + 1e-9 or len(train) == 1
        start += size
    for X, y in ((data.X, data.y), (data.test_X, data.test_y)):
        np.testing.assert_array_equal(X, np.column_stack([y + 1, y**2]))


def test_halves_are_rounded_up():
    data = prepare(section([5, 15, 1], test_fraction=0.5), 0, 0)
    assert np.diff(data.test_offsets).tolist() == [3, 8, 0]


def test_the_split_differs_between_replicas_while_the_records_do_not():
    plain = section()
    assert plain.redrawn
    assert not plain.records_redrawn
    first, other = prepare(plain, 0, 0), prepare(plain, 0, 1)
    assert split(first, 1) != split(other, 1)
    assert whole(first, 1) == whole(other, 1)
    fixed = section(redraw="never")
    assert not fixed.redrawn
    assert split(prepare(fixed, 0, 0), 1) == split(prepare(fixed, 0, 1), 1)
    assert prepare(plain, 0, None).test_y.tobytes() == first.test_y.tobytes()
    assert prepare(plain, 1, 0).test_y.tobytes() != first.test_y.tobytes()


def test_rows_are_shuffled_alike_in_all_replicas_that_split_them_anew():
    rows = Arrays.rows(np.arange(60.0)[:, None], np.arange(60.0))
    tree = {"source": rows, "partition": {"kind": "equal", "agents": 2}, "test_fraction": 0.5}
    drawn = [prepare(DataSection.model_validate(tree), 0, replica) for replica in range(3)]
    held = [[whole(data, owner) for owner in range(2)] for data in drawn]
    assert held[0] == held[1] == held[2]
    assert len({data.test_y.tobytes() for data in drawn}) == 3
    anew = DataSection.model_validate({**tree, "redraw": "replica"})
    assert whole(prepare(anew, 0, 0), 0) != whole(prepare(anew, 0, 1), 0)


def test_whom_an_owner_tests_with_depends_on_no_other_owner():
    few, many = prepare(section([10, 20]), 3, 0), prepare(section([10, 20, 7, 9]), 3, 0)
    assert [split(few, owner) for owner in range(2)] == [split(many, owner) for owner in range(2)]


def test_generated_records_can_be_kept_for_tests_and_stay_what_they_were():
    tree = {"source": {"kind": "linear-regression", "agents": 3, "points": 20}}
    whole = prepare(DataSection.model_validate(tree), 0, 0)
    parts = prepare(DataSection.model_validate({**tree, "test_fraction": 0.25}), 0, 0)
    assert np.diff(parts.test_offsets).tolist() == [5, 5, 5]
    assert sorted(whole.y.tolist()) == sorted(parts.y.tolist() + parts.test_y.tolist())
    assert parts.x_l1 == 1.0


def test_test_records_are_refused_where_the_source_gives_them():
    tree = {"source": {"kind": "linear-classification", "agents": 2}, "test_fraction": 0.2}
    with pytest.raises(MeaningError, match=r"data\.test_fraction: linear-classification gives each owner"):
        prepare(DataSection.model_validate(tree), 0, 0)
    tree["source"]["test_points"] = 0
    assert np.diff(prepare(DataSection.model_validate(tree), 0, 0).test_offsets).tolist() == [20, 20]


def test_labels_are_centred_by_the_owners_training_mean():
    plain, centred = prepare(section(), 0, 0), prepare(section(center="user"), 0, 0)
    for owner in range(3):
        (train, test), (train_after, test_after) = split(plain, owner), split(centred, owner)
        np.testing.assert_allclose(train_after, np.array(train) - np.mean(train), atol=1e-12)
        np.testing.assert_allclose(test_after, np.array(test) - np.mean(train), atol=1e-12)
    assert centred.X.tobytes() == plain.X.tobytes()
    assert (plain.data_dependent, centred.data_dependent) == ((), ("user means",))
    assert centred.fitted["center"] == "user"


def test_public_labels_are_centred_by_their_own_mean():
    rows = Arrays.rows(np.ones((30, 1)), np.arange(30.0) + 5)
    tree = {
        "source": rows,
        "shuffle": False,
        "public": {"last": 10},
        "partition": {"kind": "equal", "agents": 2},
        "center": "user",
        "scale": {"y": {"center": False, "bound": 1.0}},
    }
    data = prepare(DataSection.model_validate(tree), 0, 0)
    assert data.fitted["scale"]["y"]["divisor"] == pytest.approx(4.5)
    np.testing.assert_allclose(data.y, np.tile(np.arange(-4.5, 5), 2) / 4.5)


def test_test_records_are_mapped_and_scaled_as_the_others():
    tree = {
        "source": Arrays.rows(np.random.default_rng(0).normal(size=(100, 3)), np.linspace(-1, 8, 100)),
        "public": {"last": 30},
        "partition": {"kind": "equal", "agents": 2},
        "features": ["standardise", {"kind": "pca", "components": 2}, "whiten"],
        "scale": {"x": {}, "y": {}},
    }
    whole = prepare(DataSection.model_validate(tree), 0, 0)
    parts = prepare(DataSection.model_validate({**tree, "test_fraction": 0.3}), 0, 0)
    together = np.column_stack([np.vstack([parts.X, parts.test_X]), np.r_[parts.y, parts.test_y]])
    expected = np.column_stack([whole.X, whole.y])
    np.testing.assert_allclose(
        together[np.lexsort(together.T)], expected[np.lexsort(expected.T)], rtol=1e-10, atol=1e-12
    )
    assert whole.test_X.shape == (0, 2)
    assert whole.test_offsets.tolist() == [0, 0, 0]


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, "some"])
def test_malformed_fractions(fraction):
    with pytest.raises(ValidationError):
        section(test_fraction=fraction)
    with pytest.raises(ValidationError):
        section(center="agent")
