"""Intervals against SciPy, and how often they hold what they should."""

import numpy as np
import pytest
from scipy import stats

from p2psim.core.intervals import mean_interval, median_interval, ratio_interval, welch_interval


def test_mean_interval_is_that_of_scipy() -> None:
    values = np.random.default_rng(0).normal(3, 2, 17)
    ours, theirs = mean_interval(values, 0.9), stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert ours.estimate == pytest.approx(values.mean())


def test_small_samples_have_no_interval_instead_of_a_wrong_one() -> None:
    assert not mean_interval(np.array([1.0])).known
    assert not median_interval(np.arange(4.0)).known
    assert not welch_interval(np.array([1.0]), np.arange(5.0)).known
    assert mean_interval(np.array([2.0, 2.0])).low == 2.0
    assert welch_interval(np.full(3, 1.0), np.full(4, 2.5)).high == 1.5


def test_median_interval_covers_at_its_level() -> None:
    # 400 samples of 25 exponentials; the percentile bootstrap of a median covers a little less than 95 %. Below 89 % or
    # above 99 % would be 5 standard errors from 94 %: a false alarm in 3 million, for this fixed seed never.
    random = np.random.default_rng(1)
    truth = np.log(2)
    intervals = [median_interval(random.exponential(size=25)) for _ in range(400)]
    held = sum(interval.low <= truth <= interval.high for interval in intervals)
    assert 0.89 <= held / 400 <= 0.99


def test_median_of_diverged_values_stays_one_of_them() -> None:
    interval = median_interval(np.array([1.0, 2.0, 3.0, np.inf, np.inf, np.inf]))
    assert interval.high == np.inf
    assert interval.low >= 1.0


def test_ratio_of_what_is_twice_as_large_is_two() -> None:
    a = np.random.default_rng(2).lognormal(size=9)
    interval = ratio_interval(a, 2 * a)
    assert (interval.estimate, interval.low, interval.high) == pytest.approx((2, 2, 2))


def test_where_all_values_of_one_sample_agree_the_interval_is_that_of_the_other() -> None:
    """Welch's degrees of freedom are then those of the sample that varies; nothing warns."""
    interval = welch_interval(np.full(5, 1.0), np.array([1.0, 2.0, 3.0]))
    half = 4.302652729911275 / np.sqrt(
        3
    )  # Student's t with 2 degrees of freedom at 97.5 %, standard deviation 1
    assert interval.estimate == 1.0
    assert [interval.low, interval.high] == pytest.approx([1.0 - half, 1.0 + half])
