"""Noise scales, caps and budgets against their formulas."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p2psim.core.errors import MeaningError
from p2psim.privacy.allocations import Cap, Geometric, Horizon, binomial_cap
from p2psim.privacy.mechanisms import Laplace, NoNoise
from p2psim.privacy.plan import Limit
from p2psim.privacy.planning import plan
from p2psim.privacy.shares import UNLIMITED, Releases, RunForecast


def plans(allocation, budget=(1.0, 2.0, 4.0), mechanism=None, scale_records=1.0, bound=1.5, horizon=1000):
    budget = np.array(budget)
    records = 100 * np.arange(1, budget.size + 1)
    shares = np.full(budget.size, 1 / budget.size)
    return plan(
        mechanism or Laplace(), allocation, Limit(budget), bound, records, horizon, shares, scale_records
    )


def some(agent, first, count):
    """Releases first … first + count − 1 of one agent."""
    return Releases(np.full(count, agent), np.arange(first, first + count), np.zeros(count, np.int64))


def shares(allocation, limit, first, count):
    outlook = RunForecast(np.array([100.0]), np.array([3.0]))
    return allocation.weights(some(0, first, count), np.full(count, limit), outlook)


def test_horizon_scale_is_the_papers():
    """b = 2ΞT/(n_i·ε_i): Ξ = 1.5, T = 1000, n = (100, 200, 300), ε = (1, 2, 4)."""
    made = plans(Horizon())
    assert [made.scales(some(i, 0, 3)).tolist() for i in range(3)] == [
        pytest.approx([30.0] * 3, rel=1e-15),
        pytest.approx([7.5] * 3, rel=1e-15),
        pytest.approx([2.5] * 3, rel=1e-15),
    ]
    assert made.limits.tolist() == [1000] * 3


def test_cap_has_less_noise_by_horizon_over_cap():
    horizon, cap = plans(Horizon()), plans(Cap(releases=40))
    for i in range(3):
        np.testing.assert_allclose(
            horizon.scales(some(i, 0, 2)) / cap.scales(some(i, 0, 2)), 1000 / 40, rtol=1e-15
        )
    assert cap.limits.tolist() == [40] * 3


def test_scaled_records_make_noise_smaller():
    plain, scaled = plans(Horizon()), plans(Horizon(), scale_records=50.0)
    np.testing.assert_allclose(plain.scales(some(1, 0, 2)) / scaled.scales(some(1, 0, 2)), 50.0, rtol=1e-15)


@pytest.mark.parametrize(
    ("owners", "tail", "cap"),
    [(3, 1e-2, 368), (3, 1e-6, 405), (10, 1e-2, 123), (10, 1e-6, 148), (86, 1e-2, 20), (86, 1e-6, 31)],
)
def test_known_caps(owners, tail, cap):
    assert binomial_cap(1000, 1 / owners, tail) == cap
    assert plans(Cap(tail=tail), budget=(1.0,) * owners).limits.tolist() == [cap] * owners


@given(
    horizon=st.integers(1, 60),
    share=st.sampled_from([Fraction(1, 1), Fraction(1, 2), Fraction(1, 3), Fraction(3, 4), Fraction(1, 50)]),
    tail=st.floats(1e-9, 0.5),
)
def test_cap_is_the_least_that_the_exact_tail_allows(horizon, share, tail):
    """The binomial tail in rational numbers."""

    def exceeds(m):
        terms = (
            math.comb(horizon, j) * share**j * (1 - share) ** (horizon - j) for j in range(m + 1, horizon + 1)
        )
        return sum(terms, Fraction(0))

    m = binomial_cap(horizon, float(share), tail)
    assert 1 <= m <= horizon
    margin = 1 + 1e-9  # of the library's floating point
    assert exceeds(m) <= Fraction(tail) * Fraction(margin)
    assert m == 1 or exceeds(m - 1) > Fraction(tail) / Fraction(margin)


@given(budget=st.floats(1e-3, 1e3), ratio=st.floats(0.01, 0.999), count=st.integers(1, 3000))
def test_geometric_never_spends_its_budget(budget, ratio, count):
    epsilons = budget * shares(Geometric(ratio=ratio), UNLIMITED, 0, count)
    exact = budget * (1 - ratio**count)
    assert math.fsum(epsilons) == pytest.approx(exact, rel=1e-12)
    assert math.fsum(epsilons) <= budget * (1 + 1e-13)
    assert (np.diff(epsilons) <= 0).all()
    # In any pieces, the same.
    split = count // 3
    parts = [
        budget * shares(Geometric(ratio=ratio), UNLIMITED, a, b - a) for a, b in ((0, split), (split, count))
    ]
    np.testing.assert_array_equal(np.concatenate(parts), epsilons)


@given(budget=st.floats(1e-3, 1e3), m=st.integers(1, 3000))
def test_equal_parts_spend_the_budget_and_no_more(budget, m):
    for epsilons in (budget * shares(Horizon(), m, 0, m), budget * shares(Cap(releases=m), m, 0, m)):
        assert math.fsum(epsilons) == pytest.approx(budget, rel=1e-13)


@pytest.mark.parametrize("bound", [1.5, 1e-3, 1e6])
def test_noise_without_end_is_an_error(bound):
    """ratio .5: b = 2Ξ/(n·ε·.5^(j+1)) passes 1e300 near j = 1000; the draws of what is let through are finite."""
    made = plans(Geometric(ratio=0.5), bound=bound)
    last = math.floor(math.log2(1e300 / (2 * bound / 100 / 1.0))) - 1
    scales = made.scales(some(0, 0, last + 1))
    assert np.isfinite(scales * 37.5).all()
    with pytest.raises(MeaningError) as error:
        made.scales(some(0, last - 1, 5))
    message = f"the noise of release {last + 1} of agent 0 overflows; its share of the budget is too small"
    assert str(error.value) == f"privacy.allocation: {message}"
    with pytest.raises(MeaningError, match="release 5000 of agent 0"):
        made.scales(some(0, 5000, 1))


def test_infinite_budgets_and_no_noise_limit_nobody():
    for allocation in (Horizon(), Cap(releases=3), Geometric()):
        for made in (
            plans(allocation, (math.inf,) * 3),
            plans(allocation, (math.inf,) * 3, mechanism=NoNoise()),
        ):
            assert made.limits is None
            assert made.scales(some(0, 0, 4)).tolist() == [0.0] * 4
            assert made.claimed(some(0, 0, 2)).tolist() == [math.inf] * 2
    mixed = plans(Cap(releases=3), (1.0, math.inf, 2.0))
    assert mixed.limits.tolist() == [3, UNLIMITED, 3]
    assert mixed.scales(some(1, 0, 1))[0] == 0.0 < mixed.scales(some(2, 0, 1))[0]
