"""Tests that audits make of noise itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from p2psim.audit import noise as audited_noise
from p2psim.audit.noise import GAUSSIAN, LAPLACE, NoiseDistribution, log_ratio, most_shared


def p_value(law: NoiseDistribution, noise: np.ndarray, step: float = 0.0) -> float:
    return audited_noise.p_value(law, noise[:, None, None], np.array([step]))


LAWS = [(LAPLACE, stats.laplace), (GAUSSIAN, stats.norm)]


@pytest.mark.parametrize(("law", "known"), LAWS)
def test_laws_are_those_of_scipy(law: NoiseDistribution, known: stats.rv_continuous) -> None:
    x = np.linspace(-30, 30, 601)
    assert law.cumulative is not None
    assert np.allclose(law.cumulative(x, np.zeros(1)), known.cdf(x), rtol=1e-12, atol=0)
    assert np.allclose(law.distance(x), known.logpdf(0) - known.logpdf(x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("law", "known"), LAWS)
@pytest.mark.parametrize("rate", [1.0, 0.3])
def test_the_score_is_the_ratio_of_densities(
    law: NoiseDistribution, known: stats.rv_continuous, rate: float
) -> None:
    rng = np.random.default_rng(3)
    seen = rng.normal(size=(7, 4, 2))
    mean_p, mean_q = rng.normal(size=(2, 1, 4, 2))

    def density(mean: np.ndarray) -> np.ndarray:
        there, absent = known.pdf(seen - mean).prod(axis=2), known.pdf(seen).prod(axis=2)
        return np.asarray(rate * there + (1 - rate) * absent)

    expected = np.log(density(mean_p) / density(mean_q))
    assert np.allclose(log_ratio(law, seen, mean_p, mean_q, rate), expected, rtol=1e-10)


@given(st.integers(0, 1000), st.integers(1, 300))
def test_p_values_are_those_of_scipy(seed: int, n: int) -> None:
    values = np.random.default_rng(seed).random(n)
    assert p_value(GAUSSIAN, stats.norm.ppf(values)) == pytest.approx(
        stats.kstest(values, "uniform", method="exact").pvalue, rel=1e-6, abs=1e-12
    )


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN])
def test_noise_of_another_scale_or_law_does_not_pass(law: NoiseDistribution) -> None:
    rng = np.random.default_rng(5)
    right, other = rng.laplace(size=20_000), rng.normal(size=20_000)
    if law is GAUSSIAN:
        right, other = other, right
    assert p_value(law, right) > 1e-6  # false alarm 1e-6
    assert p_value(law, 0.9 * right) < 1e-6
    assert p_value(law, other) < 1e-6


@pytest.mark.parametrize("step", [0.01, 0.5, 3.0])
def test_noise_on_a_grid_passes_by_the_law_of_the_grid_alone(step: float) -> None:
    rng = np.random.default_rng(5)
    # The difference of two geometric numbers has this law: SciPy's dlaplace, of rate step.
    right = step * stats.dlaplace.rvs(step, size=20_000, random_state=rng)
    assert p_value(LAPLACE, right, step) > 1e-6  # false alarm 1e-6
    assert p_value(LAPLACE, 2 * right, step) < 1e-6
    k = np.arange(-20, 21)
    assert LAPLACE.cumulative is not None
    at = LAPLACE.cumulative(step * k, np.full(k.size, step))
    assert np.allclose(at, stats.dlaplace.cdf(k, step), rtol=1e-9, atol=0)


def test_independent_noise_is_not_taken_for_shared() -> None:
    # 100 looks at 190 pairs each; each look is wrong with probability at most 1e-4 by the corrected p-value.
    for seed in range(100):
        shared = most_shared(np.random.default_rng(seed).laplace(size=(500, 20)))
        assert shared is not None
        assert shared.p_value > 1e-4


@pytest.mark.parametrize("factor", [1.0, -1.0, 0.25])
def test_shared_noise_is_found_where_it_is(factor: float) -> None:
    noise = np.random.default_rng(1).laplace(size=(200, 12))
    noise[:, 9] = factor * noise[:, 4]
    shared = most_shared(noise)
    assert shared is not None
    assert (shared.first, shared.second) == (4, 9)
    assert shared.p_value < 1e-6
    assert shared.agreement == (1.0 if factor > 0 else 0.0)


def test_noise_that_no_sample_draws_anew_is_found() -> None:
    noise = np.tile(np.random.default_rng(1).laplace(size=12), (200, 1))
    shared = most_shared(noise)
    assert shared is not None
    assert shared.p_value < 1e-6


def test_one_column_shares_with_nobody() -> None:
    assert most_shared(np.ones((10, 1))) is None
