"""Exact moments of the star against every order of answers, against each other, and against known limits."""

from dataclasses import replace

import numpy as np
import pytest
from forecast_cases import all_orders, one_run, some_statistics
from hypothesis import given, settings
from hypothesis import strategies as st
from theory_references import covariances, growth, stationary_mean

from p2psim.theory.forecasts.linear_star import linear_star
from p2psim.theory.forecasts.split import accumulate, average_variances, geometric_variances, split
from p2psim.theory.forecasts.star_lanczos import contracts
from p2psim.theory.forecasts.star_path import path
from p2psim.theory.forecasts.statistics import Statistics
from p2psim.theory.noise_floor import noise_floor, noise_floor_unequal
from p2psim.theory.star import stability_threshold

pytestmark = pytest.mark.blas

FORMS = {"printed": lambda N: (N - 1) / N, "corrected": lambda N: 0.5}


def frequencies_of(owners, seed):
    weights = np.random.default_rng(seed).uniform(0.2, 1.0, owners)
    return weights / weights.sum()


@settings(max_examples=25, deadline=None)
@given(
    owners=st.integers(1, 4),
    dimension=st.integers(1, 3),
    form=st.sampled_from(["printed", "corrected"]),
    seed=st.integers(0, 99),
)
def test_moments_are_those_of_all_orders_of_answers(owners, dimension, form, seed):
    """Without noise: expected fitness, expected model and covariance, with owners all different, from every order."""
    steps, step = 4, 0.05
    statistics = some_statistics(owners, dimension, seed)
    gamma = frequencies_of(owners, seed)
    reweights = np.random.default_rng(seed + 1).uniform(0.3, 2.0, owners)
    star = linear_star(statistics, step, form, gamma, reweights)
    found = path(star, steps)
    excess, mean, square = 0.0, 0.0, 0.0
    for order, chance in all_orders(owners, steps, gamma):
        theta = one_run(statistics, step, FORMS[form](owners), order, reweights, np.zeros((steps, dimension)))
        excess = excess + chance * statistics.excess(theta)
        mean = mean + chance * theta
        square = square + chance * np.einsum("kp,kq->kpq", theta, theta)
    assert found.expected == pytest.approx(excess, rel=1e-9)
    assert found.mean + statistics.optimum == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert found.mean_excess == pytest.approx(statistics.excess(mean), rel=1e-9, abs=1e-12)
    covariance = covariances(
        linear_star(statistics, step, form, gamma, reweights, together=True), np.zeros((steps, owners))
    )
    exact = square - np.einsum("kp,kq->kpq", mean, mean)
    assert covariance == pytest.approx(exact, rel=1e-7, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(owners=st.integers(1, 4), dimension=st.integers(1, 3), seed=st.integers(0, 99))
def test_noise_adds_what_it_adds_in_every_order(owners, dimension, seed):
    """Noise is independent of all else, so what it adds is the sum over answers and coordinates, one at a time."""
    steps, step = 4, 0.05
    statistics, gamma = some_statistics(owners, dimension, seed), frequencies_of(owners, seed)
    weights = np.random.default_rng(seed + 1).uniform(0.3, 2.0, owners)
    at_learner = np.random.default_rng(seed + 2).uniform(0.3, 2.0, owners)
    variances = np.random.default_rng(seed + 3).uniform(0.0, 1.0, (steps, owners))
    # Of one unit of noise in coordinate j of answer t: the difference that it makes.
    added = np.zeros((steps + 1, owners))
    for order, chance in all_orders(owners, steps, gamma):
        quiet = one_run(statistics, step, 0.5, order, weights, np.zeros((steps, dimension)))
        for t in range(steps):
            for j in range(dimension):
                noise = np.zeros((steps, dimension))
                # The learner's weight multiplies noise as well; the plain form multiplies it by the whole weight.
                noise[t, j] = at_learner[order[t]] / weights[order[t]]
                moved = one_run(statistics, step, 0.5, order, weights, noise) - quiet
                added[:, order[t]] += (
                    chance
                    * variances[t, order[t]]
                    * np.einsum("kp,pq,kq->k", moved, statistics.hessian, moved)
                )
    star = linear_star(statistics, step, "corrected", gamma, weights, at_learner)
    found = accumulate(path(star, steps).gain, variances)
    assert found == pytest.approx(added, rel=1e-8, abs=1e-14)
    together = linear_star(statistics, step, "corrected", gamma, weights, at_learner, together=True)
    forwards = np.einsum("kpq,pq->k", covariances(together, variances), statistics.hessian)
    walked = path(star, steps)
    assert forwards + walked.mean_excess == pytest.approx(walked.expected + added.sum(axis=1), rel=1e-9)


@settings(max_examples=15, deadline=None)
@given(owners=st.integers(1, 6), form=st.sampled_from(["printed", "corrected"]), seed=st.integers(0, 99))
def test_owners_alike_are_owners_who_happen_to_be_alike(owners, form, seed):
    """One class in p modes gives what N classes of one owner in one mode give: these are told apart by rounding."""
    statistics = some_statistics(3, 3, seed).alike(owners)
    nudged = replace(statistics, gram=statistics.gram * (1 + 1e-13 * np.arange(owners))[:, None, None])
    alike, apart = linear_star(statistics, 0.05, form), linear_star(nudged, 0.05, form, together=True)
    assert alike.own.shape == (3, 1, 1, 1)
    assert apart.own.shape == (1, owners, 3, 3)
    one, other = path(alike, 30), path(apart, 30)
    assert one.expected == pytest.approx(other.expected, rel=1e-8)
    assert one.mean == pytest.approx(other.mean, rel=1e-8, abs=1e-10)
    assert one.gain == pytest.approx(other.gain, rel=1e-8)
    assert one.limit == pytest.approx(other.limit, rel=1e-6, abs=1e-9)


def test_classes_of_several_owners_count_as_often():
    """Two kinds of owners, three and two of them, against five told apart by rounding; in one mode and in three."""
    for diagonal in (False, True):
        made = some_statistics(2, 3, 5)
        if diagonal:
            made = replace(made, gram=np.array([np.diag([1.0, 2.0, 3.0]), np.diag([0.5, 2.5, 1.0])]))
        five = made.among(np.array([0, 1, 0, 0, 1]))
        nudged = replace(five, gram=five.gram * (1 + 1e-13 * np.arange(5))[:, None, None])
        few, many = linear_star(five, 0.05), linear_star(nudged, 0.05, together=True)
        assert few.own.shape[:2] == (3 if diagonal else 1, 2)
        assert many.own.shape[:2] == (1, 5)
        one, other = path(few, 20), path(many, 20)
        assert one.expected == pytest.approx(other.expected, rel=1e-8)
        assert one.gain == pytest.approx(other.gain, rel=1e-8)


@pytest.mark.parametrize("kinds", ["different", "classes", "modes", "printed"])
def test_few_forms_are_all_steps(kinds):
    """Lanczos's method against the walk step by step."""
    made, form = some_statistics(6, 3, 3), "printed" if kinds == "printed" else "corrected"
    if kinds == "modes":
        made = replace(made, gram=np.array([np.diag([1.0, 2.0, 0.5 + i]) for i in range(6)]))
    if kinds == "classes":
        made = made.among(np.array([0, 1, 0, 2, 1, 0]))
    gamma = None if kinds == "classes" else frequencies_of(6, 1)
    star = linear_star(made, 0.02, form, gamma)
    assert contracts(star)
    short, long = path(star, 300), path(star, 300, exact=True)
    assert short.expected == pytest.approx(long.expected, rel=1e-11)
    assert short.gain == pytest.approx(long.gain, rel=1e-11)
    assert short.mean == pytest.approx(long.mean, rel=1e-11, abs=1e-13)


def test_steps_that_are_too_long_for_few_forms_are_walked():
    star = linear_star(some_statistics(3, 2), 0.6)
    assert not contracts(star)
    assert np.array_equal(path(star, 150).expected, path(star, 150, exact=True).expected)


@pytest.mark.parametrize(
    ("owners", "threshold"), [(1, 4.00), (2, 3.39), (3, 3.17), (17, 2.81), (86, 2.75), (1000, 2.73)]
)
def test_mean_squares_grow_beyond_the_threshold(owners, threshold):
    """The h at which the recursion stops shrinking, to three digits."""
    one = Statistics(np.ones(1), np.ones((1, 1, 1)), np.ones((1, 1)), np.full(1, 2.0), 1e-12).alike(owners)

    def grows(h):
        return growth(linear_star(one, h / 2)) > 1

    low, high = 2.0, 5.0
    for _ in range(14):
        low, high = ((low + high) / 2, high) if not grows((low + high) / 2) else (low, (low + high) / 2)
    assert low == pytest.approx(threshold, abs=5.1e-3)
    assert low == pytest.approx(stability_threshold(owners), abs=1e-3)


@pytest.mark.parametrize("owners", [1, 3, 17])
def test_noise_tends_to_the_floor_of_equal_owners(owners):
    eigenvalues, step, scale = np.array([0.4, 1.0, 2.0]), 0.6, 0.3
    gram = np.broadcast_to(np.diag(eigenvalues / 2), (owners, 3, 3))
    equal = Statistics(np.ones(owners), gram, np.ones((owners, 3)), np.full(owners, 50.0), 1e-10)
    found = path(linear_star(equal, step), 4000)
    noise = accumulate(found.gain, np.full((4000, owners), 2 * scale**2))[-1]
    assert noise.sum() == pytest.approx(noise_floor(eigenvalues, step, scale, owners), rel=1e-6)
    assert noise == pytest.approx(np.full(owners, noise.mean()))


@pytest.mark.parametrize("weighs", ["nobody", "learner", "owner"])
def test_noise_tends_to_the_floor_of_owners_that_differ(weighs):
    """Shared eigenvectors, unequal sizes, budgets and frequencies, with and without reweighting."""
    records, gamma = np.array([10.0, 30.0, 60.0]), np.array([0.5, 0.2, 0.3])
    eigenvalues = np.array([[0.4, 1.0], [1.5, 0.3], [0.8, 0.8]])  # of owners' Hessians
    scales, step, l2 = np.array([0.5, 0.1, 0.2]), 0.2, 0.05
    gram = np.array([np.diag(v / 2) for v in eigenvalues])
    statistics = Statistics(records, gram, np.ones((3, 2)), np.full(3, 50.0), l2)
    reweights = np.ones(3) if weighs == "nobody" else 1 / (3 * gamma)
    at_learner = np.ones(3) if weighs == "owner" else reweights
    found = path(linear_star(statistics, step, "corrected", gamma, reweights, at_learner), 4000)
    noise = accumulate(found.gain, np.broadcast_to(2 * scales**2, (4000, 3)))[-1].sum()
    steps = 3 * step * records / records.sum()
    floor = noise_floor_unequal(
        eigenvalues, steps, scales, records, l2, gamma, step * l2, step * l2, reweights, at_learner
    )
    assert noise == pytest.approx(floor, rel=1e-6)


def test_the_mean_tends_to_the_stationary_one():
    statistics, gamma = some_statistics(4, 3, 2), frequencies_of(4, 2)
    r = 1 / (4 * gamma)
    found = path(linear_star(statistics, 0.02, "corrected", gamma, r), 3000)
    exact = stationary_mean(
        statistics.gram, statistics.moment, statistics.records, statistics.l2, 0.02, gamma, r
    )
    assert found.limit + statistics.optimum == pytest.approx(exact, rel=1e-9)
    assert found.mean[-1] == pytest.approx(found.limit, abs=1e-9)


def test_a_mean_that_tends_to_nothing_has_no_limit():
    statistics = some_statistics(2, 2)
    found = path(linear_star(statistics, 3.0), 3)
    assert np.isnan(found.limit).all()
    with pytest.raises(FloatingPointError):
        path(linear_star(statistics, 3.0), 2000)


def test_the_printed_form_is_biased_as_its_loss_is():
    """(θ − 3)² with l2 = 1: it tends to 3/(1 + 3/2 − 1/N) = 1.3846 for three owners, not to 1.5."""
    three = Statistics(np.ones(3), np.ones((3, 1, 1)), np.full((3, 1), 3.0), np.full(3, 9.0), 1.0)
    found = path(linear_star(three, 1e-5, "printed"), 10)
    assert three.optimum == pytest.approx([1.5])
    assert found.limit + three.optimum == pytest.approx([1.3846], abs=1e-4)
    parts = split(found, np.zeros((10, 3)), three.minimum)
    assert parts.bias == pytest.approx(2 * (1.5 - 3 / (2.5 - 1 / 3)) ** 2 / 4.5, rel=1e-3)


@settings(max_examples=25, deadline=None)
@given(owners=st.integers(1, 5), steps=st.integers(1, 12), seed=st.integers(0, 99))
def test_parts_add_up_and_are_what_they_are_called(owners, steps, seed):
    statistics = some_statistics(owners, 2, seed)
    variances = np.random.default_rng(seed).uniform(0, 1, (steps, owners))
    found = path(linear_star(statistics, 0.05), steps)
    parts = split(found, variances, statistics.minimum)
    noise = accumulate(found.gain, variances)
    assert parts.psi * statistics.minimum == pytest.approx(found.expected + noise.sum(axis=1), rel=1e-9)
    assert (parts.order >= 0).all()
    assert (parts.noise >= 0).all()
    assert parts.psi[0] == pytest.approx(statistics.excess(np.zeros(2)) / statistics.minimum, rel=1e-9)


def test_noise_by_answers_is_averaged_over_how_many_came_before():
    """Geometric budgets: the closed form, and the sum over Bin(k − 1, γ)."""
    from scipy.stats import binom

    gamma, ratio, first, steps = np.array([0.2, 0.5, 0.3]), 0.9, np.array([1.0, 2.0, 0.5]), 9
    by_answer = first[:, None] * ratio ** (-2.0 * np.arange(steps))
    exact = np.array(
        [
            [sum(binom.pmf(j, k, gamma[i]) * by_answer[i, j] for j in range(k + 1)) for i in range(3)]
            for k in range(steps)
        ]
    )
    assert geometric_variances(first, ratio, gamma, steps) == pytest.approx(exact, rel=1e-12)
    assert average_variances(by_answer, gamma, steps) == pytest.approx(exact, rel=1e-12)


def test_answers_after_the_last_known_one_count_as_it():
    assert average_variances(np.array([[1.0, 4.0]]), np.ones(1), 4)[:, 0] == pytest.approx([1, 4, 4, 4])
    assert average_variances(np.full((2, 1), 3.0), np.array([0.5, 0.5]), 4) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("step", "frequencies", "message"),
    [
        (0.0, None, "step must be positive"),
        (np.inf, None, "step must be positive"),
        (0.1, np.array([0.5, 0.6]), "add up to one"),
        (0.1, np.array([1.0, 0.0]), "must be positive"),
    ],
)
def test_what_means_nothing_is_refused(step, frequencies, message):
    with pytest.raises(ValueError, match=message):
        linear_star(some_statistics(2, 2), step, frequencies=frequencies)


def test_no_fitness_that_vanishes():
    statistics = some_statistics(2, 2)
    with pytest.raises(ValueError, match="f\\(θ\\*\\) > 0"):
        split(path(linear_star(statistics, 0.1), 2), np.zeros((2, 2)), 0.0)


def test_covariances_want_one_mode():
    with pytest.raises(ValueError, match="together=True"):
        covariances(linear_star(some_statistics(1, 2).alike(2), 0.1), np.zeros((1, 2)))
