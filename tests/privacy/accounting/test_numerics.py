"""Cumulants and the Gaussian curve where floating point is short of digits, against decimals with 80 of them."""

import math
from decimal import Decimal, localcontext

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from p2psim.privacy.accounting import classical
from p2psim.privacy.accounting.accountants import ACCOUNTANTS, MOST, largest_loss, most_releases
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.gaussian_curves import gaussian_delta, poisson_gaussian_delta
from p2psim.privacy.accounting.grids import least, upper_crossing
from p2psim.privacy.accounting.noises import (
    GAUSSIAN,
    LAPLACE,
    PURE,
    Subsampled,
)


def exactly(laplace: bool, loss: float, power: float) -> float:
    """Cumulants as they are printed, in 80 digits."""
    with localcontext() as context:
        context.prec = 80
        e, a = Decimal(loss), Decimal(power)
        if laplace:
            inside = ((a + 1) * (a * e).exp() + a * (-(a + 1) * e).exp()) / (2 * a + 1)
        else:
            p = 1 / (1 + (-e).exp())
            inside = p * (a * e).exp() + (1 - p) * (-a * e).exp()
        return float(inside.ln())


@settings(max_examples=150)
@given(st.floats(-30, 4), st.floats(-6, 8))
def test_cumulants_have_all_their_digits(log_loss: float, log_power: float) -> None:
    loss, power = math.exp(log_loss), math.exp(log_power)
    for laplace, cumulant in ((True, LAPLACE.cumulant), (False, PURE.cumulant)):
        found = float(cumulant(np.array(loss), np.array(power)))
        assert found == pytest.approx(exactly(laplace, loss, power), rel=2e-14)


@pytest.mark.parametrize("mu", [1e-9, 1e-4, 0.1, 0.49, 0.51, 3.0, 20.0])
@pytest.mark.parametrize("at", [0.0, 0.7, 3.0, 6.0])
def test_gaussian_curve_has_its_digits(mu: float, at: float) -> None:
    """δ = ∫ φ(x)(1 − e^(−μ(x − a))) over x > a, the integral of P − e^ε·Q where it is positive; a = ε/μ − μ/2."""
    epsilon = mu * (at + mu / 2)
    a = epsilon / mu - mu / 2

    def excess(x: float) -> float:
        return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) * -math.expm1(-mu * (x - a))

    exact = quad(excess, a, a + 40, epsabs=0, epsrel=1e-12, limit=200)[0]
    assert float(gaussian_delta(np.array(mu), np.array(epsilon))) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("mu", [1e-9, 1e-3, 0.24, 0.26, 0.49, 0.51, 1.5, 6.0, 40.0])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 0.999])
@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 0.2, 3.0])
def test_curve_of_poisson_samples_has_its_digits(mu: float, rate: float, epsilon: float) -> None:
    """The difference of normal integrals, in 60 digits, where the likelihood ratio is above e^ε."""
    with mpmath.workdps(60):
        r, q, e = mpmath.mpf(mu) / 2, mpmath.mpf(rate), mpmath.mpf(epsilon)
        odds = (1 - q) * mpmath.expm1(e) / (q * mpmath.exp(-(r**2) / 2))
        # e^{rt}: the root of y² − odds·y − e^ε.
        t = mpmath.log((odds + mpmath.sqrt(odds**2 + 4 * mpmath.exp(e))) / 2) / r
        P = (1 - q) * mpmath.ncdf(-t) + q * mpmath.ncdf(r - t)
        Q = (1 - q) * mpmath.ncdf(-t) + q * mpmath.ncdf(-r - t)
        exact = float(P - mpmath.exp(e) * Q)
    found = float(poisson_gaussian_delta(np.array(mu), rate, np.array(epsilon)))
    assert found == pytest.approx(exact, rel=5e-12, abs=1e-300)


def test_tiny_losses_cost_what_their_square_says() -> None:
    """As losses vanish, a Laplace release of ε₀ and a Gaussian one of μ = ε₀ differ by nothing that can be seen."""
    for loss in (1e-5, 1e-9, 1e-12):
        count = round(1 / loss**2) if loss > 1e-6 else 10**12
        laplace = ACCOUNTANTS["rdp"].delta(Charges.of(LAPLACE, [loss], [count]), loss)[0]
        gaussian = ACCOUNTANTS["rdp"].delta(Charges.of(GAUSSIAN, [loss], [count]), loss)[0]
        assert laplace == pytest.approx(gaussian, rel=1e-4)


def test_formulas_are_not_capped() -> None:
    """Advanced composition of 10 releases at ε₀ = 1 and δ = e⁻⁵: 10 + 10(e − 1).

    Of 100 at .1 and 1e-5 its root alone is 4.79852591219: a library that had lost the logarithm told less.
    """
    ones = np.ones(10)
    D = (ones * np.expm1(ones)).sum()
    assert float(classical.advanced(np.array(10.0), D, math.exp(-5))) == pytest.approx(
        27.182818284590452, rel=1e-14
    )
    root = float(classical.advanced(np.array(1.0), np.array(0.0), 1e-5))
    assert root == pytest.approx(4.79852591219, rel=1e-12)
    capped = ACCOUNTANTS["advanced"].epsilon(Charges.of(LAPLACE, ones), math.exp(-5))[0]
    assert capped == 10


@settings(max_examples=20)
@given(st.lists(st.tuples(st.floats(0.01, 2.0), st.integers(1, 5)), min_size=1, max_size=4))
def test_a_count_is_so_many_releases(rows: list[tuple[float, int]]) -> None:
    losses, counts = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    counted, listed = (
        Charges.of(LAPLACE, losses, counts),
        Charges.of(LAPLACE, np.repeat(losses, counts.astype(int))),
    )
    for accountant in ACCOUNTANTS.values():
        if accountant.supports(LAPLACE):
            assert accountant.epsilon(counted, 1e-5)[0] == accountant.epsilon(listed, 1e-5)[0]
            assert accountant.delta(counted, 1.0)[0] == accountant.delta(listed, 1.0)[0]


def test_counts_that_mean_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="counted at least once, got 0"):
        Charges.of(LAPLACE, [0.1], [0])
    with pytest.raises(ValueError, match="do not fit"):
        Charges.of(LAPLACE, [0.1], [1, 2])


def test_millions_of_releases_within_a_budget() -> None:
    """Basic composition: ε by ε₀. Squares of Gaussian losses: no list is written out."""
    assert most_releases(ACCOUNTANTS["basic"], LAPLACE, 2.0**-24, 1.0, 0.0) == 2**24
    assert most_releases(ACCOUNTANTS["basic"], LAPLACE, 0.0, 1.0, 0.0) == MOST
    one = largest_loss(ACCOUNTANTS["gaussian"], GAUSSIAN, np.ones(1), 1.0, 1e-5, 2)
    many = most_releases(ACCOUNTANTS["gaussian"], GAUSSIAN, 1e-4, 1.0, 1e-5)
    assert many == math.floor(one / 1e-8)


def test_best_asks_for_each_agent_who_knows_its_noises() -> None:
    """Beside an agent with Gaussian noise, one with tiny Laplace losses still gets what basic composition says."""
    own = Charges(
        (LAPLACE, GAUSSIAN, Subsampled(GAUSSIAN, 0.1)),
        np.array([0, 1, 2], np.int8),
        np.array([0.3, 0.3, 0.3]),
        np.arange(4),
    )
    found = ACCOUNTANTS["best"].epsilon(own, 1e-9)
    assert found[0] <= 0.3
    assert found[1] == pytest.approx(
        ACCOUNTANTS["gaussian"].epsilon(Charges.of(GAUSSIAN, [0.3]), 1e-9)[0], rel=1e-12
    )
    assert np.isfinite(found[2])


def test_pure_dp_is_not_told_from_the_noise_it_hides() -> None:
    """Who knows ε₀ alone is never told less than who knows that it is Laplace noise."""
    for count in (1, 7, 200):
        laplace, pure = (Charges.of(noise, [0.2], [count]) for noise in (LAPLACE, PURE))
        for name in ("rdp", "pld"):
            assert ACCOUNTANTS[name].epsilon(pure, 1e-5)[0] >= ACCOUNTANTS[name].epsilon(laplace, 1e-5)[0] * (
                1 - 1e-9
            )


def test_searches_find_what_they_look_for() -> None:
    roots = np.array([0.25, 3.0, 1e-9, 7.0])
    found = upper_crossing(lambda x: roots**3 - x**3, np.zeros(4), np.full(4, 10.0))
    assert found == pytest.approx(roots, rel=1e-9)
    assert (roots**3 - found**3 <= 0).all()
    assert upper_crossing(lambda x: -1 - x, np.zeros(1), np.ones(1))[0] == 0
    point, value = least(lambda x: (x - roots) ** 2 + 1, np.full(4, -20.0), np.full(4, 20.0), 60)
    assert point == pytest.approx(roots, abs=1e-6)
    assert value == pytest.approx(np.ones(4))
