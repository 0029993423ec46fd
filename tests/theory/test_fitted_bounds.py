"""The fitted shape of F (11) and slopes of power laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.theory.bounds.shape import ShapeBound, fit_shape, inverse_square_sum
from p2psim.theory.noise_floor import fit_power_law


def test_inverse_square_sum_by_hand() -> None:
    assert inverse_square_sum([1.0, 2.0, np.inf]) == pytest.approx(1.25)


def test_shape_by_hand() -> None:
    # n = 10, three owners at ε = .5: Σ1/ε² = 12.
    assert ShapeBound(2.0, 30.0)(10, 12.0) == pytest.approx(2 / 10 * 12**0.5 + 30 / 100 * 12)


@given(
    c1=st.floats(1e-3, 1e3),
    c2=st.floats(1e-3, 1e6),
    n=st.integers(100, 10**6),
)
def test_fit_recovers_the_constants(c1: float, c2: float, n: int) -> None:
    total = 3 / np.geomspace(c2 / c1 / n, 100 * c2 / c1 / n, 7) ** 2 / 9  # both terms matter somewhere
    psi = c1 / n * np.sqrt(total) + c2 / n**2 * total
    fit = fit_shape(np.full(7, n), total, psi)
    assert fit.c1 == pytest.approx(c1, rel=1e-4)
    assert fit.c2 == pytest.approx(c2, rel=1e-4)


def test_fit_is_of_relative_errors_and_never_negative() -> None:
    epsilon = np.array([1.0, 10.0, 100.0])
    fit = fit_shape(1000, 3 / epsilon**2, 5.0 / epsilon**2)
    assert fit.c1 == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(fit(1000, 3 / epsilon**2), 5.0 / epsilon**2, rtol=1e-6)
    # Steeper than any shape: the constants stay at or above 0.
    steep = fit_shape(1000, 3 / epsilon**2, 5.0 / epsilon**4)
    assert min(steep.c1, steep.c2) >= 0


@pytest.mark.parametrize("psi", [[1.0, 0.0], [1.0, np.nan], [np.inf, 1.0]])
def test_fit_refuses_values_without_a_relative_error(psi: list[float]) -> None:
    with pytest.raises(ValueError, match="psi must be positive and finite"):
        fit_shape(10, 1.0, psi)


def test_power_law_is_recovered() -> None:
    x = np.array([1.0, 3.0, 10.0, 40.0])
    fit = fit_power_law(x, 7 * x**-1.5)
    assert fit.slope == pytest.approx(-1.5)
    assert fit.factor == pytest.approx(7)
    assert fit.low == pytest.approx(-1.5)
    np.testing.assert_allclose(fit([2.0]), 7 * 2**-1.5)


def test_interval_covers_at_its_level() -> None:
    # 2,000 independent data sets of 5 points: the count of covers is Binomial(2000, .9), standard
    # deviation 13.4; five of them either side is a false alarm of 6e-7.
    rng = np.random.default_rng(1)
    x = np.geomspace(1, 100, 5)
    covers = 0
    for _ in range(2000):
        fit = fit_power_law(x, x**-2 * np.exp(0.3 * rng.normal(size=5)), level=0.9)
        covers += fit.low <= -2 <= fit.high
    assert abs(covers - 1800) < 5 * 13.4


def test_interval_by_hand() -> None:
    # log y = (0, 1, 1) on log x = (0, 1, 2): slope 1/2, residual sum 1/6, standard error √(1/12),
    # and Student's 97.5 % quantile with one degree of freedom is 12.7062.
    fit = fit_power_law(np.exp([0.0, 1, 2]), np.exp([0.0, 1, 1]))
    assert fit.slope == pytest.approx(0.5)
    assert fit.high - fit.slope == pytest.approx(12.7062 * (1 / 12) ** 0.5, rel=1e-5)


def test_two_points_leave_no_interval_and_one_no_slope() -> None:
    fit = fit_power_law([1, 10], [1, 100])
    assert (fit.slope, fit.low, fit.high) == (pytest.approx(2), -np.inf, np.inf)
    with pytest.raises(ValueError, match="two different x"):
        fit_power_law([1, 1], [1, 2])
    with pytest.raises(ValueError, match="positive, finite"):
        fit_power_law([1, 2], [0.0, 2])
