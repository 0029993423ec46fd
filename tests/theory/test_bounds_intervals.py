"""Intervals of the fitted shape of F (11)."""

import numpy as np
import pytest

from p2psim.theory.bounds.shape import ShapeBound, fit_shape, fit_shape_with_intervals

RECORDS = np.array([100.0, 100.0, 1000.0, 1000.0])
TOTALS = np.array([0.5, 50.0, 5.0, 5000.0])
TRUE = ShapeBound(2.0, 30.0)


def pilots(random, replicas=30, together=True):
    """ψ of replicas that go up and down by 30 %, at all points together or not."""
    shape = (1 if together else len(RECORDS), replicas)
    return TRUE(RECORDS, TOTALS)[:, None] * random.gamma(10, 1 / 10, shape)


@pytest.mark.verification
@pytest.mark.parametrize("together", [True, False])
def test_intervals_cover_at_their_level(together):
    """300 sets of pilots at 90 %: covers ~ Bin(300, .9), standard deviation 5.2.

    Percentile intervals of 30 replicas fall short by a few per cent, hence 6 deviations below and 4 above: a false
    alarm is below 1e-4.
    """
    random, covers = np.random.default_rng(3), np.zeros(3)
    at = (300.0, 2.0)
    for seed in range(300):
        found = fit_shape_with_intervals(RECORDS, TOTALS, pilots(random, 30, together), 0.9, 100, seed)
        low, high = found.interval(*at)
        covers += [
            found.c1[0] <= TRUE.c1 <= found.c1[1],
            found.c2[0] <= TRUE.c2 <= found.c2[1],
            low <= TRUE(*at) <= high,
        ]
    assert (covers >= 270 - 6 * 5.2).all(), covers
    assert (covers <= 270 + 4 * 5.2).all(), covers


def test_fit_is_that_of_the_means_and_is_reproduced():
    psi = pilots(np.random.default_rng(0))
    found = fit_shape_with_intervals(RECORDS, TOTALS, psi, draws=50, seed=4)
    assert found.bound == fit_shape(RECORDS, TOTALS, psi.mean(axis=1))
    again = fit_shape_with_intervals(RECORDS, TOTALS, psi, draws=50, seed=4)
    np.testing.assert_array_equal(found.draws, again.draws)
    assert found.interval(RECORDS, TOTALS).shape == (2, 4)


def test_replicas_all_alike_leave_no_width():
    psi = np.repeat(TRUE(RECORDS, TOTALS)[:, None], 5, axis=1)
    found = fit_shape_with_intervals(RECORDS, TOTALS, psi, draws=20)
    assert found.c1 == pytest.approx((2.0, 2.0), rel=1e-6)
    assert found.c2 == pytest.approx((30.0, 30.0), rel=1e-6)


@pytest.mark.parametrize(
    ("psi", "level", "match"),
    [
        (np.ones((4, 4)), 0.9, "at least 5 replicas"),
        (np.ones(4), 0.9, "at least 5 replicas"),
        (np.ones((4, 5)), 1.0, "level"),
        (-np.ones((4, 5)), 0.9, "positive and finite"),
    ],
)
def test_what_cannot_be_fitted(psi, level, match):
    with pytest.raises(ValueError, match=match):
        fit_shape_with_intervals(RECORDS, TOTALS, psi, level)
