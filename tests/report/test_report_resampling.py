"""The bootstrap of a slope: exact where replicas go up and down together, and a stated coverage."""

import itertools

import numpy as np
import pytest

from p2psim.report.figures.power import FEWEST, slope_interval

X = np.array([1.0, 10.0, 100.0])
REPLICAS = [np.arange(7)] * 3


def test_replicas_that_move_together_leave_no_doubt() -> None:
    factors = np.array([0.2, 0.5, 0.9, 1.0, 1.5, 3.0, 8.0])
    values = [factors * x**-1.5 for x in X]
    assert slope_interval(X, values, REPLICAS) == pytest.approx((-1.5, -1.5))


def test_all_resamples_of_five_replicas_are_the_limit_of_many() -> None:
    # Two points, the second of which alone varies: the slope is log(median of 5) / log 10. Every sample of 5 with
    # replacement is as likely; the quantiles of its median are known by listing all 5^5.
    own = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    medians = np.sort([np.median(own[list(draw)]) for draw in itertools.product(range(5), repeat=5)])
    exact = np.log10(np.quantile(medians, [0.025, 0.975]))
    found = slope_interval([1.0, 10.0], [np.ones(5), own], [np.arange(5)] * 2)
    assert found == pytest.approx(exact)


def test_too_few_replicas_and_medians_without_logarithm_give_none() -> None:
    few = [np.ones(FEWEST - 1)] + [np.ones(FEWEST)] * 2
    assert slope_interval(X, few, [np.arange(v.size) for v in few]) is None
    for bad in (np.inf, np.nan, 0.0, -1.0):
        values = [np.full(7, 2.0), np.full(7, 3.0), np.array([bad] * 3 + [4.0] * 4)]
        assert slope_interval(X, values, REPLICAS) is None


def test_replicas_that_a_point_lacks_are_not_made_up() -> None:
    factors = np.array([0.2, 0.5, 0.9, 1.0, 1.5, 3.0, 8.0])
    # Equal values where a replica is missing too: whatever is drawn, the medians are 2 and 4.
    values = [np.full(7, 2.0), np.full(5, 4.0)]
    assert slope_interval([1.0, 2.0], values, [np.arange(7), np.arange(1, 6)]) == pytest.approx((1.0, 1.0))
    assert slope_interval([1.0, 2.0], [factors, factors[:5]], [np.arange(7), np.arange(5)]) is not None


def test_the_interval_covers_the_slope_about_as_often_as_it_says() -> None:
    # 200 studies of 20 replicas of log-normal values around x^−2. A coverage below .90 of a true .95 would be an
    # event of probability 1e-3 (binomial).
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        values = [x**-2.0 * np.exp(rng.normal(size=20)) for x in X]
        found = slope_interval(X, values, [np.arange(20)] * 3)
        assert found is not None
        hits += found[0] <= -2 <= found[1]
    assert hits >= 180
