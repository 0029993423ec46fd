"""Losses against their definitions, finite differences, and their compiled slopes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registered import registered

from p2psim.core.compiled import njit
from p2psim.learning.losses import Hinge, Logistic, Squared
from p2psim.learning.losses.compiled import slope as in_kernels
from p2psim.learning.losses.compiled import value as value_in_kernels
from p2psim.learning.owner_kernel import Records, evaluate, longest_gradient, mean_gradient


@njit()
def slope(loss, z, y):
    return in_kernels(loss, z, y)


@njit()
def value(loss, z, y):
    return value_in_kernels(loss, z, y)


SCORES = st.floats(-50, 50)
ALL = registered("loss")
EACH = pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.kind)


def labels_of(loss):
    return st.sampled_from([-1.0, 1.0]) if loss.needs_classes else st.floats(-50, 50)


#: Definitions of values and slopes, written down once more.
PLAIN = {
    "squared": (lambda z, y: (z - y) * (z - y), lambda z, y: 2 * (z - y)),
    "hinge": (lambda z, y: 1 - y * z if y * z < 1 else 0.0, lambda z, y: -y if y * z < 1 else 0.0),
    "logistic": (lambda z, y: math.log1p(math.exp(-y * z)), lambda z, y: -y / (1 + math.exp(y * z))),
    "huber": (
        lambda z, y: (z - y) ** 2 if abs(z - y) <= 0.7 else 1.4 * abs(z - y) - 0.49,
        lambda z, y: 2 * min(max(z - y, -0.7), 0.7),
    ),
}


def corners(loss, z, y):
    """Whether a central difference would reach over a kink, or over a jump of the second slope."""
    near = z + np.linspace(-1e-4, 1e-4, 9)
    jumps = np.ptp(loss.slopes(near, y)) > 1e-3 or np.ptp(loss.second_slopes(near, y)) > 1e-3
    return bool(jumps)


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.kind in PLAIN], ids=lambda loss: loss.kind)
@given(data=st.data())
def test_values_and_slopes_are_the_definitions(loss, data):
    z, y = data.draw(SCORES), data.draw(labels_of(loss))
    value_, slope_ = PLAIN[loss.kind]
    one_z, one_y = np.array([z]), np.array([y])
    assert loss.values(one_z, one_y)[0] == pytest.approx(value_(z, y), rel=1e-13, abs=1e-300)
    assert loss.slopes(one_z, one_y)[0] == pytest.approx(slope_(z, y), rel=1e-13, abs=1e-300)


@EACH
@given(data=st.data())
def test_slopes_are_those_of_the_values(loss, data):
    """Central differences of step 1e-5: exact but for rounding, and the third derivative (at most .1 for logistic)."""
    z, y = data.draw(st.floats(-8, 8)), data.draw(labels_of(loss))
    if corners(loss, z, y):
        return
    d = 1e-5
    above, below = (loss.values(np.array([z + s]), np.array([y]))[0] for s in (d, -d))
    size = max(1.0, abs(above))
    assert loss.slopes(np.array([z]), np.array([y]))[0] == pytest.approx(
        (above - below) / (2 * d), abs=1e-10 * size
    )


@EACH
@given(data=st.data())
def test_second_slopes_are_those_of_the_slopes(loss, data):
    """Central differences of step 1e-5, as above; the fourth derivative of logistic loss is at most 1/8."""
    z, y = data.draw(st.floats(-8, 8)), data.draw(labels_of(loss))
    if corners(loss, z, y):
        return
    d = 1e-5
    above, below = (loss.slopes(np.array([z + s]), np.array([y]))[0] for s in (d, -d))
    size = max(1.0, abs(above))
    second = loss.second_slopes(np.array([z]), np.array([y]))[0]
    assert second == pytest.approx((above - below) / (2 * d), abs=1e-10 * size)
    assert second <= loss.curvature


@EACH
@given(data=st.data())
def test_compiled_forms_are_numpys(loss, data):
    z, y = data.draw(SCORES), data.draw(labels_of(loss))
    one_z, one_y = np.array([z]), np.array([y])
    assert slope(loss.for_kernel(), z, y) == pytest.approx(
        loss.slopes(one_z, one_y)[0], rel=1e-15, abs=1e-300
    )
    assert value(loss.for_kernel(), z, y) == pytest.approx(
        loss.values(one_z, one_y)[0], rel=1e-14, abs=1e-300
    )


@EACH
@given(data=st.data())
def test_values_are_not_negative_and_slopes_within_their_bound(loss, data):
    z, y = data.draw(st.floats(-1e6, 1e6)), data.draw(labels_of(loss))
    assert loss.values(np.array([z]), np.array([y]))[0] >= 0
    assert abs(loss.slopes(np.array([z]), np.array([y]))[0]) <= loss.slope_bound


@given(code=st.integers(-(2**40), 2**40).filter(lambda code: code not in (0, 1, 2)))
def test_unknown_codes_raise(code):
    """In whatever function of a kernel: none falls through to another loss."""
    X, y, norms, theta, out = np.ones((5, 2)), np.ones(5), np.ones(5), np.zeros(2), np.zeros(2)
    rows, offsets = np.arange(5), np.array([0, 4, 5])
    records = Records(code, X, y, norms, offsets, np.inf, np.inf)
    calls = [
        lambda: slope(code, 0.5, 1.0),
        lambda: value(code, 0.5, 1.0),
        lambda: mean_gradient(records, rows, 5, 5, theta, out),
        lambda: longest_gradient(records, rows, 0, 5, theta),
        lambda: evaluate(records, 0, theta, out),
        lambda: evaluate(records, 1, theta, np.empty(0)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="unknown code of a loss"):
            call()


@pytest.mark.parametrize("z", [-1e308, -1e4, -800.0, 800.0, 1e4, 1e308])
@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_logistic_does_not_overflow(z, y):
    """Far out the value is max(0, −yz) and the slope −y or 0. Warnings are errors in these tests."""
    assert Logistic.values(np.array([z]), np.array([y]))[0] == max(0.0, -y * z)
    expected = -y if y * z < 0 else 0.0
    assert Logistic.slopes(np.array([z]), np.array([y]))[0] == pytest.approx(expected, abs=1e-300)
    assert slope(Logistic.code, z, y) == pytest.approx(expected, abs=1e-300)


def test_logistic_squashes_once():
    """At z = 2, y = 1 a model that squashes twice would give log(1 + exp(−σ(2))) = .347 and a slope within ±.5."""
    assert Logistic.values(np.array([2.0]), np.array([1.0]))[0] == pytest.approx(
        0.12692801104297263, rel=1e-14
    )
    assert Logistic.slopes(np.array([-6.0]), np.array([1.0]))[0] == pytest.approx(
        -0.9975273768433653, rel=1e-14
    )


@pytest.mark.parametrize(("loss", "curvature"), [(Squared(), 2.0), (Logistic(), 0.25)])
def test_curvature_is_the_largest_second_derivative(loss, curvature):
    """The slope's steepest secant on a fine grid; the logistic's maximum 1/4 lies at z = 0."""
    z = np.linspace(-10, 10, 20001)
    secants = np.diff(loss.slopes(z, np.ones_like(z))) / np.diff(z)
    assert loss.curvature == curvature
    assert secants.max() == pytest.approx(curvature, rel=1e-6)


def test_hinge_has_no_curvature():
    assert Hinge.curvature == np.inf
    assert Hinge.slopes(np.array([1.0]), np.array([1.0]))[0] == 0.0
    assert slope(Hinge.code, 1.0, 1.0) == 0.0


@EACH
@given(data=st.data())
def test_slope_bounds_hold_on_the_box(loss, data):
    theta_max = data.draw(st.floats(0.1, 10))
    p = data.draw(st.integers(1, 5))
    x = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=p, max_size=p)))
    theta = theta_max * np.array(data.draw(st.lists(st.floats(-1, 1), min_size=p, max_size=p)))
    y = data.draw(labels_of(loss))
    bound = loss.slope_bounds(np.array([np.abs(x).sum()]), np.array([y]), theta_max)[0]
    # θ is in the box up to rounding of the product.
    assert abs(loss.slopes(np.array([x @ theta]), np.array([y]))[0]) <= bound * (1 + 1e-14)


@pytest.mark.parametrize("loss", [Squared(), Hinge(), Logistic()], ids=lambda loss: loss.kind)
@given(data=st.data())
def test_slope_bounds_are_attained_at_a_corner(loss, data):
    theta_max = data.draw(st.floats(0.1, 10))
    x = np.array(data.draw(st.lists(st.floats(-3, 3), min_size=3, max_size=3)))
    y = data.draw(labels_of(loss))
    corner = -theta_max * np.sign(x) * (1 if y >= 0 else -1)
    bound = loss.slope_bounds(np.array([np.abs(x).sum()]), np.array([y]), theta_max)[0]
    assert abs(loss.slopes(np.array([x @ corner]), np.array([y]))[0]) == pytest.approx(bound, rel=1e-12)


def test_slope_bounds_broadcast():
    for loss in ALL:
        assert loss.slope_bounds(np.ones(4), np.ones(4), 2.0).shape == (4,)


@pytest.mark.parametrize("y", [-1.0, 1.0])
def test_the_logistic_loss_at_scores_without_bound(y):
    """Nothing is lost, and nothing learnt, of a record that is right beyond all numbers; of one that is wrong, all."""
    code = Logistic().for_kernel()
    assert [slope(code, z, y) for z in (y * math.inf, 0.0, -y * math.inf)] == [0.0, -y / 2, -y]
    X, offsets = np.full((1, 1), 1e200), np.array([0, 1])
    records = Records(code, X, np.array([y]), np.abs(X[:, 0]), offsets, math.inf, math.inf)
    gradient = np.empty(1)
    for theta, loss, pulled in ((1e200 * y, 0.0, 0.0), (-1e200 * y, math.inf, -y * 1e200)):
        assert evaluate(records, 0, np.array([theta]), gradient)[0] == loss
        assert gradient[0] == pulled
