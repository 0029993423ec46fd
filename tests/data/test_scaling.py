import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pydantic import ValidationError

from p2psim.core.errors import MeaningError
from p2psim.data.scaling import Quantile, ScaleX, ScaleY, scale_x, scale_y

matrix = arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 6)), elements=st.floats(-1e6, 1e6))


def norms(X):
    return np.array([math.fsum(map(abs, row)) for row in X.tolist()])


@given(matrix, st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_the_bound_holds_for_every_record_however_it_is_added_up(X, radius, bound):
    before = X.copy()
    scale_x(ScaleX(bound=bound, at=radius), X, X[:0].copy(), False)
    assert (norms(X) <= bound).all()
    assert (np.abs(X).sum(axis=1) <= bound).all()
    assert (np.abs(X[:, ::-1]).sum(axis=1) <= bound).all()
    expected = bound * before / np.maximum(radius, norms(before))[:, None]
    np.testing.assert_allclose(X, expected, rtol=1e-13, atol=1e-300)


@given(matrix)
def test_each_record_gets_the_whole_bound_and_zero_stays_zero(X):
    before = X.copy()
    scale_x(ScaleX(bound=2.0, at="each-record"), X, X[:0].copy(), True)
    for old, new, norm in zip(norms(before), X, norms(X), strict=True):
        assert norm <= 2
        assert norm == pytest.approx(2 if old else 0, rel=1e-12) or old < 1e-290
        assert old or not new.any()


def test_the_radius_is_a_quantile_of_the_public_rows():
    random = np.random.default_rng(0)
    X, public = random.normal(size=(50, 3)) * 100, random.normal(size=(200, 3))
    expected = np.quantile(norms(public), 0.9)
    fitted = scale_x(ScaleX(at=Quantile(quantile=0.9)), X, public, False)
    assert fitted["radius"] == pytest.approx(expected, rel=1e-14)
    assert (norms(public) < 1 - 1e-9).sum() == 180
    assert fitted["pulled"] == (norms(X) > 1 - 1e-9).sum()


def test_labels_are_centred_and_divided_by_the_largest_public_one():
    y, public = np.array([0.0, 10.0, 30.0]), np.array([4.0, 8.0, 12.0, 12.0])  # mean 9, largest distance 5
    fitted = scale_y(ScaleY(bound=2.0), y, public)
    np.testing.assert_allclose(y, [-2.0, 0.4, 2.0], rtol=1e-15)
    assert fitted == {"mean": 9.0, "divisor": 5.0, "clipped": 2}


def test_labels_by_public_numbers_need_no_public_rows():
    y = np.array([-3.0, 1.0, 2.0])
    assert scale_y(ScaleY(center=False, at=2.0), y, np.empty(0)) == {
        "mean": 0.0,
        "divisor": 2.0,
        "clipped": 1,
    }
    np.testing.assert_array_equal(y, [-1.0, 0.5, 1.0])


@given(arrays(np.float64, 20, elements=st.floats(-1e9, 1e9)), st.floats(1e-3, 1e3))
def test_the_bound_on_labels_holds(y, bound):
    scale_y(ScaleY(bound=bound), y, np.array([1.0, 3.0]))
    assert (np.abs(y) <= bound).all()


def test_refused():
    none = np.empty((0, 2))
    with pytest.raises(MeaningError, match=r"data\.scale\.x\.at: each-record is for labels that are classes"):
        scale_x(ScaleX(at="each-record"), np.ones((3, 2)), none, False)
    with pytest.raises(MeaningError, match=r"data\.public"):
        scale_x(ScaleX(), np.ones((3, 2)), none, False)
    with pytest.raises(MeaningError, match=r"data\.scale\.x\.at: the 0.95 quantile .* is 0"):
        scale_x(ScaleX(), np.ones((3, 2)), np.zeros((5, 2)), False)
    with pytest.raises(MeaningError, match=r"data\.public"):
        scale_y(ScaleY(), np.ones(3), np.empty(0))
    with pytest.raises(MeaningError, match=r"data\.public"):
        scale_y(ScaleY(at=2.0), np.ones(3), np.empty(0))
    for options, labels in ((ScaleY(), 0.1), (ScaleY(center=False), 0.0)):
        with pytest.raises(MeaningError, match=r"data\.scale\.y\.at: public labels are all the same"):
            scale_y(options, np.ones(3), np.full(7, labels))


@pytest.mark.parametrize(
    "tree",
    [
        {"at": 0},
        {"at": -1.0},
        {"at": "each"},
        {"at": {"quantile": 0.0}},
        {"at": {"quantile": 1.5}},
        {"bound": 0.0},
        {"bound": float("nan")},
        {"norm": "l2"},
        {"radius": 1.0},
    ],
)
def test_malformed(tree):
    with pytest.raises(ValidationError):
        ScaleX.model_validate(tree)
