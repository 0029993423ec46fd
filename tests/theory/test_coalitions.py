"""The Shapley value by its axioms, which no other value has (Shapley 1953), and sampled against exact."""

import itertools

import numpy as np
import pytest
from forecast_cases import all_orders, one_run, some_statistics
from hypothesis import given
from hypothesis import strategies as st

from p2psim.theory.forecasts.linear_star import LocalModel, linear_star
from p2psim.theory.forecasts.star_path import path
from p2psim.theory.star import exact_shapley, members_of, sampled_shapley

OWNERS = st.integers(1, 6)
SEED = st.integers(0, 10_000)


def game(owners, seed):
    """A worth of every coalition; none of the empty one."""
    worth = np.random.default_rng(seed).normal(size=1 << owners)
    worth[0] = 0.0
    return worth


def swapped(coalition, i, j):
    """The coalition with owners i and j in each other's place."""
    if (coalition >> i & 1) == (coalition >> j & 1):
        return coalition
    return coalition ^ (1 << i | 1 << j)


@given(OWNERS, SEED)
def test_all_that_all_are_worth_is_shared(owners, seed):
    worth = game(owners, seed) + 3.0
    assert exact_shapley(worth).values.sum() == pytest.approx(worth[-1] - worth[0])


@given(st.integers(2, 6), SEED)
def test_owners_who_add_the_same_get_the_same(owners, seed):
    worth = game(owners, seed)
    i, j = np.random.default_rng(seed).choice(owners, 2, replace=False).tolist()
    same = np.array([(worth[c] + worth[swapped(c, i, j)]) / 2 for c in range(worth.size)])
    values = exact_shapley(same).values
    assert values[i] == pytest.approx(values[j])


@given(OWNERS, SEED)
def test_who_adds_nothing_gets_nothing(owners, seed):
    worth, null = game(owners, seed), seed % owners
    useless = np.array([worth[c & ~(1 << null)] for c in range(worth.size)])
    assert exact_shapley(useless).values[null] == pytest.approx(0.0, abs=1e-12)


@given(OWNERS, SEED, st.floats(-5, 5))
def test_values_of_a_sum_of_games_add_up(owners, seed, factor):
    one, other = game(owners, seed), game(owners, seed + 1)
    together = exact_shapley(one + factor * other).values
    assert together == pytest.approx(exact_shapley(one).values + factor * exact_shapley(other).values)


@given(st.integers(1, 5), SEED)
def test_it_is_the_mean_over_all_orders(owners, seed):
    """The definition, written out."""
    worth, total = game(owners, seed), np.zeros(owners)
    orders = list(itertools.permutations(range(owners)))
    for order in orders:
        inside = 0
        for i in order:
            total[i] += worth[inside | 1 << i] - worth[inside]
            inside |= 1 << i
    assert exact_shapley(worth).values == pytest.approx(total / len(orders))


def test_the_glove_game():
    """One left glove and two right ones: 2/3, 1/6, 1/6 (textbook)."""
    worth = np.array([float(c & 1 and c & 6 != 0) for c in range(8)])
    assert exact_shapley(worth).values == pytest.approx([2 / 3, 1 / 6, 1 / 6])


@pytest.mark.parametrize("owners", [3, 8, 12])
def test_sampled_values_are_within_their_errors(owners):
    """|z| < 4 for each owner: odds of a false alarm below 1e-3 a case; fixed seeds."""
    worth = game(owners, owners)
    exact = exact_shapley(worth)
    found = sampled_shapley(lambda c: float(worth[c]), owners, 2000, np.random.default_rng(1))
    assert np.abs((found.values - exact.values) / found.errors).max() < 4
    assert found.values.sum() == pytest.approx(worth[-1])
    assert (exact.errors == 0).all()


def test_beyond_64_owners_each_coalition_is_asked_once():
    """An additive game: every order says the same."""
    asked = []

    def worth(coalition):
        asked.append(coalition)
        return float(members_of(coalition).sum())

    found = sampled_shapley(worth, 70, 3, np.random.default_rng(0))
    assert found.values == pytest.approx(np.arange(70.0))
    assert found.errors == pytest.approx(np.zeros(70))
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("length", [0, 1, 3])
def test_incomplete_games_are_refused(length):
    with pytest.raises(ValueError, match="entries"):
        exact_shapley(np.zeros(length))


def test_one_order_has_no_error():
    with pytest.raises(ValueError, match="at least 2"):
        sampled_shapley(lambda _: 0.0, 2, 1, np.random.default_rng(0))


def test_some_owners_are_judged_on_the_records_of_all():
    """E[f] of two of three owners over all 2⁵ orders, f that of all three: exactly."""
    everybody = some_statistics(3, 2)
    model = LocalModel(
        everybody.records,
        everybody.gram,
        everybody.moment,
        everybody.l2,
        everybody.optimum,
        everybody.hessian,
        everybody.minimum,
        np.zeros(3),
    )
    members, step = np.array([0, 2]), 0.3
    found = path(linear_star(model.among(members), step), 5).expected
    pair = everybody.among(members)
    expected = np.zeros(6)
    for order, chance in all_orders(2, 5, np.full(2, 0.5)):
        run = one_run(pair, step, 0.5, order, np.ones(2), np.zeros((5, 2)))
        expected += chance * everybody.excess(run)
    assert found == pytest.approx(expected)
