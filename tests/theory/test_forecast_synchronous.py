"""Forecasts of synchronous rounds against every outcome, against noise followed one by one, and against plain runs."""

import itertools
import tracemalloc

import numpy as np
import pytest
from forecast_cases import some_statistics
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.theory.forecasts.rounds import answering, rounds
from p2psim.theory.forecasts.split import average_variances
from p2psim.theory.forecasts.statistics import Statistics
from p2psim.theory.forecasts.synchronous import (
    average_kept,
    averaging_steps,
    descent_steps,
    synchronous_forecast,
)

FORMS = ["printed", "corrected"]


def plain(statistics, steps, form, present, noise, q=None, reweight="none"):
    """θ[1 … T] and θ̄[1 … T] as W prints them, and as Shamir and Zhang average, of any number of runs at once.

    present (…, R, N), noise (…, R, N, p); found (…, T, p).
    """
    T, (*runs, _, N, p) = len(steps) + 1, noise.shape
    e = 1 / np.sqrt(T)
    theta, average = [np.zeros((*runs, p))], [np.zeros((*runs, p))]
    for k in range(1, T):
        here, direction = present[..., k - 1, :], 2 * statistics.l2 * theta[-1]
        answered = np.maximum(here @ statistics.shares, 1e-300)
        for i in range(N):
            answer = 2 * (theta[-1] @ statistics.gram[i] - statistics.moment[i]) + noise[..., k - 1, i, :]
            over = {"none": 1.0, "known": 1.0 if q is None else q[i], "answered": answered}[reweight]
            direction = direction + (here[..., i] * statistics.shares[i] / over)[..., None] * answer
        new = theta[-1] - steps[k - 1] * direction
        if form == "printed":
            average.append(((k - 1) / (e + k)) * average[-1] + ((e + 1) / (e + k)) * theta[-1])
        else:
            average.append((k / (k + 1 + e)) * average[-1] + ((e + 1) / (k + 1 + e)) * new)
        theta.append(new)
    return np.stack(theta, axis=-2), np.stack(average, axis=-2)


def forecasts(statistics, c1, T, variances, form, q, reweight):
    made = synchronous_forecast(
        "averaging", statistics, statistics.minimum, c1, T, variances, form, q, reweight
    )
    return made.model, made.average


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reweight", ["none", "known", "answered"])
def test_every_outcome_of_who_answers(form, reweight):
    """Without noise E[ψ] and the variance are sums over all 2^(N·R) outcomes."""
    statistics, T, q = some_statistics(3, 2, seed=3), 4, np.array([0.3, 1.0, 0.8])
    steps = averaging_steps(0.05, T)
    first, second = [0.0, 0.0], [0.0, 0.0]
    psi = [0.0, 0.0]
    for bits in itertools.product([0, 1], repeat=9):
        here = np.array(bits).reshape(3, 3)
        weight = np.prod(np.where(here, q, 1 - q))
        if weight == 0:
            continue
        for which, path in enumerate(plain(statistics, steps, form, here, np.zeros((3, 3, 2)), q, reweight)):
            psi[which] = psi[which] + weight * statistics.excess(path) / statistics.minimum
            first[which] = first[which] + weight * path
            second[which] = second[which] + weight * path**2
    for which, made in enumerate(forecasts(statistics, 0.05, T, np.zeros((3, 3)), form, q, reweight)):
        np.testing.assert_allclose(made.parts.psi, psi[which], rtol=1e-11)
        np.testing.assert_allclose(made.mean, first[which], rtol=1e-11, atol=1e-14)
        np.testing.assert_allclose(made.variances, second[which] - first[which] ** 2, rtol=1e-9, atol=1e-14)
        assert made.parts.order[-1] > 0
        assert (made.parts.noise == 0).all()


@settings(max_examples=25, deadline=None)
@given(
    owners=st.integers(1, 4),
    dimension=st.integers(1, 4),
    T=st.integers(2, 7),
    form=st.sampled_from(FORMS),
    seed=st.integers(0, 10**6),
)
def test_noise_shares_are_what_each_draw_of_noise_moves(owners, dimension, T, form, seed):
    """All answer: the run is affine in each draw, so its second moment is a sum over draws."""
    random = np.random.default_rng(seed)
    statistics, c1 = some_statistics(owners, dimension, seed=seed), 0.02
    variances = random.uniform(0.1, 2, (T - 1, owners))
    here, steps = np.ones((T - 1, owners)), averaging_steps(c1, T)

    def run(noise):
        return np.array(plain(statistics, steps, form, here, noise))

    still = run(np.zeros((T - 1, owners, dimension)))
    shares, spread = np.zeros((2, T, owners)), np.zeros((2, T, dimension))
    for k, i, j in itertools.product(range(T - 1), range(owners), range(dimension)):
        one = np.zeros((T - 1, owners, dimension))
        one[k, i, j] = np.sqrt(variances[k, i])
        moved = run(one) - still
        shares[:, :, i] += np.einsum("wkp,pq,wkq->wk", moved, statistics.hessian, moved)
        spread += moved**2
    for which, made in enumerate(forecasts(statistics, c1, T, variances, form, None, "none")):
        np.testing.assert_allclose(
            made.parts.noise, shares[which] / statistics.minimum, rtol=1e-9, atol=1e-15
        )
        np.testing.assert_allclose(made.variances, spread[which], rtol=1e-9, atol=1e-15)
        np.testing.assert_allclose(
            made.parts.noiseless, statistics.excess(still[which]) / statistics.minimum, rtol=1e-9, atol=1e-13
        )
        np.testing.assert_allclose(made.mean, still[which], rtol=1e-9, atol=1e-13)


@given(
    owners=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    spread=st.floats(0, 12),
    reweight=st.sampled_from(["none", "known", "answered"]),
)
def test_moments_of_multipliers_are_sums_over_who_answers(owners, seed, spread, reweight):
    """Shares may differ by e¹²; some owners always answer."""
    random = np.random.default_rng(seed)
    sizes = np.exp(spread * random.random(owners))
    shares = sizes / sizes.sum()
    q = np.where(random.random(owners) < 0.2, 1.0, random.uniform(0.01, 1, owners))
    mean, second = np.zeros(owners), np.zeros((owners, owners))
    for bits in itertools.product([0.0, 1.0], repeat=owners):
        Y = np.array(bits)
        over = {"none": 1.0, "known": q, "answered": max(shares @ Y, 1e-300)}[reweight]
        weight = np.prod(np.where(Y > 0, q, 1 - q))
        mean += weight * Y / over
        second += weight * np.outer(Y / over, Y / over)
    made = answering(q, shares, reweight)
    scale = second.max()
    np.testing.assert_allclose(made.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(made.covariance + np.outer(mean, mean), second, rtol=1e-9, atol=1e-12 * scale)
    np.testing.assert_allclose(made.square, np.diag(second), rtol=1e-10)


@given(
    kinds=st.integers(1, 3),
    seed=st.integers(0, 10**6),
    reweight=st.sampled_from(["none", "known", "answered"]),
)
def test_owners_that_are_alike_count_as_one_kind(kinds, seed, reweight):
    """Moments by kinds are those of all owners, one by one, added up."""
    random = np.random.default_rng(seed)
    members = random.integers(1, 5, kinds)
    sizes, q = random.uniform(0.1, 1, kinds), random.uniform(0.05, 1, kinds)
    shares = sizes / (members @ sizes)
    of_each = np.repeat(np.arange(kinds), members)
    every = answering(q[of_each], shares[of_each], reweight)
    made = answering(q, shares, reweight, members)
    sums = (of_each == np.arange(kinds)[:, None]).astype(float)
    np.testing.assert_allclose(made.mean[of_each], every.mean, rtol=1e-12)
    np.testing.assert_allclose(made.square[of_each], every.square, rtol=1e-12)
    np.testing.assert_allclose(made.covariance, sums @ every.covariance @ sums.T, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("reweight", ["none", "known", "answered"])
def test_ten_thousand_owners_that_are_alike_need_little_memory(reweight):
    """A matrix of all pairs of owners would take 800 MB; the moments of one kind take next to nothing."""
    N = 10_000
    statistics = some_statistics(3, 2, seed=3).alike(N)
    tracemalloc.start()
    try:
        star = rounds(statistics, np.full(N, 0.7), reweight)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 50e6
    # The shares of those that answer add up to one, and the sum of all answers does not vary.
    assert reweight != "answered" or np.abs(star.scatter).max(initial=0.0) < 1e-5 * np.abs(star.drift).max()


def moderate(statistics):
    """A step at which no outcome is rare and huge at once: half the inverse of the largest curvature."""
    return 0.25 / np.linalg.eigvalsh(statistics.hessian)[-1]


def agrees(statistics, steps, T, form, q, reweight, scales, made, seed, replicas=1000):
    """|z| < 4 at every round: up to 2·20 looks a case, false alarm 2.6e-3; seeds are fixed."""
    random = np.random.default_rng(seed)
    N, p = statistics.owners, statistics.dimension
    here = random.random((replicas, T - 1, N)) < q
    noise = random.laplace(size=(replicas, T - 1, N, p)) * scales[:, None]
    paths = plain(statistics, steps, form, here.astype(float), noise, q, reweight)
    psi = [statistics.excess(path) / statistics.minimum for path in paths]
    for which, one in enumerate(made):
        error = psi[which].std(axis=0, ddof=1) / np.sqrt(replicas)
        moved = error > 1e-12
        assert moved.any()
        z = (psi[which].mean(axis=0) - one.parts.psi)[moved] / error[moved]
        assert np.abs(z).max() < 4, z
        np.testing.assert_allclose(one.parts.psi[~moved], psi[which].mean(axis=0)[~moved], rtol=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("reweight", [None, "none", "known", "answered"])
@pytest.mark.parametrize("owners", [1, 3])
def test_forecast_is_the_mean_of_plain_runs(owners, form, reweight):
    random, T = np.random.default_rng(owners), 16
    statistics = some_statistics(owners, 3, seed=owners)
    step = moderate(statistics)
    q = np.ones(owners) if reweight is None else random.uniform(0.4, 1, owners)
    scales = random.uniform(0.5, 3, owners)
    variances = np.broadcast_to(2 * scales**2, (T - 1, owners))
    made = forecasts(statistics, step, T, variances, form, q, reweight or "none")
    agrees(statistics, averaging_steps(step, T), T, form, q, reweight or "none", scales, made, 5)
    descent = synchronous_forecast(
        "descent", statistics, statistics.minimum, step, T, variances, form, q, reweight or "none"
    ).model
    assert made[1].parts.noise[-1].sum() > 0.02 * made[1].parts.psi[-1]
    agrees(
        statistics,
        descent_steps(step, T, form),
        T,
        form,
        q,
        reweight or "none",
        scales,
        [descent],
        6,
        replicas=400,
    )


@pytest.mark.parametrize("owners", [17, 86])
@pytest.mark.parametrize("reweight", [None, "known", "answered"])
def test_forecast_is_the_mean_of_plain_runs_of_many_owners(owners, reweight):
    random, T = np.random.default_rng(owners), 16
    statistics = some_statistics(owners, 3, seed=owners)
    step = moderate(statistics)
    q = np.ones(owners) if reweight is None else random.uniform(0.4, 1, owners)
    scales = random.uniform(0.5, 5, owners)
    variances = np.broadcast_to(2 * scales**2, (T - 1, owners))
    made = forecasts(statistics, step, T, variances, "corrected", q, reweight or "none")
    agrees(statistics, averaging_steps(step, T), T, "corrected", q, reweight or "none", scales, made, 7)


def test_budgets_by_the_answer_count_only_the_answers_given():
    """Noise that grows with the answers an owner has given: in expectation over how many came before."""
    statistics, T, q = some_statistics(2, 1, seed=8), 4, np.array([0.5, 0.7])
    by_answer = np.array([[1.0, 4.0, 16.0], [2.0, 3.0, 4.0]])
    made = synchronous_forecast(
        "descent", statistics, statistics.minimum, 0.02, T, average_variances(by_answer, q, T - 1), present=q
    ).model
    exact = np.zeros(2)
    steps = descent_steps(0.02, T)
    for bits in itertools.product([0, 1], repeat=6):
        here = np.array(bits).reshape(3, 2)
        weight = np.prod(np.where(here, q, 1 - q))
        still = plain(statistics, steps, "corrected", here, np.zeros((3, 2, 1)))[0][-1]
        for k, i in itertools.product(range(3), range(2)):
            one = np.zeros((3, 2, 1))
            one[k, i] = np.sqrt(by_answer[i, here[:k, i].sum()])
            moved = plain(statistics, steps, "corrected", here, one)[0][-1] - still
            exact[i] += weight * (moved @ statistics.hessian @ moved) / statistics.minimum
    np.testing.assert_allclose(made.parts.noise[-1], exact, rtol=1e-11)


@pytest.mark.parametrize("reweight", ["none", "known", "answered"])
def test_owners_that_always_answer_need_no_matrices_and_agree_with_those_that_almost_do(reweight):
    statistics, T = some_statistics(4, 3), 30
    variances = np.broadcast_to(np.arange(1.0, 5), (T - 1, 4))
    exact = forecasts(statistics, 0.05, T, variances, "corrected", None, reweight)
    almost = forecasts(statistics, 0.05, T, variances, "corrected", np.full(4, 1 - 1e-12), reweight)
    for a, b in zip(exact, almost, strict=True):
        np.testing.assert_allclose(a.parts.noise, b.parts.noise, rtol=1e-9)
        np.testing.assert_allclose(a.variances, b.variances, rtol=1e-6)
        assert (a.parts.order == 0).all()


def test_bias_is_that_of_owners_who_seldom_answer_and_weighing_removes_it():
    statistics, q = some_statistics(3, 2, seed=1), np.array([1.0, 0.1, 0.5])
    none = np.zeros((9, 3))
    seldom = synchronous_forecast("descent", statistics, statistics.minimum, 0.1, 10, none, present=q).model
    H = statistics.l2 * np.eye(2) + np.tensordot(statistics.shares * q, statistics.gram, 1)
    limit = np.linalg.solve(H, (statistics.shares * q) @ statistics.moment)
    assert seldom.parts.bias == pytest.approx(statistics.excess(limit) / statistics.minimum, rel=1e-9)
    weighed = synchronous_forecast(
        "descent", statistics, statistics.minimum, 0.1, 10, none, present=q, reweight="known"
    ).model
    assert weighed.parts.bias == pytest.approx(0, abs=1e-20)


def test_printed_descent_freezes_as_rounds_grow():
    """Its steps add up to ρ·ln T/T² or so: ψ stays where it starts, for all that noise grows as T²."""
    statistics = some_statistics(3, 2)
    starts = statistics.excess(np.zeros(2)) / statistics.minimum
    left = []
    for T in (10, 100, 1000):
        made = synchronous_forecast(
            "descent", statistics, statistics.minimum, 0.1, T, np.full((T - 1, 3), 1e-4 * T**2), "printed"
        ).model
        assert descent_steps(0.1, T, "printed").sum() <= 0.1 * (1 + np.log(T)) / T**2
        left.append(made.parts.psi[-1] / starts)
    assert left[0] < left[1] < left[2]
    assert left[2] == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("present", [None, np.array([0.5, 0.9, 1.0])])
def test_what_noise_costs_falls_as_the_square_of_budgets_and_of_records(form, present):
    """W Algorithm 2 at given c₁: slopes of −2 exactly, where W (11) promises −1; a hundredfold from ε = 1 to 10."""
    statistics, T, xi = some_statistics(3, 2), 30, 1.0

    def cost(epsilon, factor):
        scales = 2 * xi * T / (factor * statistics.records * epsilon)
        variances = np.broadcast_to(2 * scales**2, (T - 1, 3))
        return forecasts(statistics, 0.05, T, variances, form, present, "none")[1].parts.noise[-1].sum()

    assert cost(1.0, 1.0) / cost(10.0, 1.0) == pytest.approx(100, rel=1e-9)
    assert cost(1.0, 1.0) / cost(1.0, 10.0) == pytest.approx(100, rel=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_averages_are_convex_combinations(form):
    kept = average_kept(50, form)
    assert ((kept >= 0) & (kept < 1)).all()


def test_printed_average_forgets_the_first_model_and_leaves_out_the_last():
    statistics, none = some_statistics(1, 1), np.zeros((1, 1))
    made = synchronous_forecast("averaging", statistics, statistics.minimum, 0.1, 2, none, "printed")
    assert made.average.mean[1] == pytest.approx([0.0])  # θ[1], not θ[2]
    right = synchronous_forecast("averaging", statistics, statistics.minimum, 0.1, 2, none)
    e = 1 / np.sqrt(2)
    np.testing.assert_allclose(right.average.mean[1], (e + 1) / (e + 2) * made.model.mean[1])


def test_bad_input_and_long_steps():
    statistics, none = some_statistics(2, 2), np.zeros((9, 2))
    with pytest.raises(ValueError, match="shape"):
        synchronous_forecast("descent", statistics, statistics.minimum, 0.1, 10, none[:5])
    with pytest.raises(ValueError, match="probabilities"):
        synchronous_forecast(
            "descent", statistics, statistics.minimum, 0.1, 10, none, present=np.array([0.0, 1.0])
        )
    with pytest.raises(ValueError, match="steps"):
        synchronous_forecast("descent", statistics, statistics.minimum, -0.1, 10, none)
    with pytest.raises(ValueError, match="f"):
        synchronous_forecast("descent", statistics, 0.0, 0.1, 10, none)
    with pytest.raises(FloatingPointError, match="steps are too long"):
        synchronous_forecast("descent", statistics, statistics.minimum, 1e200, 10, none)


def test_one_round_less_than_the_horizon_and_none_at_all():
    statistics = some_statistics(2, 2)
    made = synchronous_forecast("descent", statistics, statistics.minimum, 0.1, 1, np.zeros((0, 2))).model
    np.testing.assert_allclose(made.parts.psi, [statistics.excess(np.zeros(2)) / statistics.minimum])


@pytest.mark.parametrize("reweight", ["none", "known", "answered"])
def test_owners_who_are_alike_count_by_the_sum_of_their_multipliers(reweight):
    """Taking them together changes nothing: beside owners who differ by less than any rounding shows."""
    random = np.random.default_rng(5)
    gram, moment = np.diag([0.3, 0.5]), random.normal(size=2)
    grams = np.stack([gram, gram, 2 * gram, gram, 2 * gram])
    moments = np.stack([moment, moment, 2 * moment, moment, 2 * moment])
    records = np.array([10.0, 10.0, 20.0, 10.0, 20.0])
    made = []
    for away in (0.0, 1e-13):
        moved = grams + away * np.arange(5)[:, None, None] * np.eye(2)
        statistics = Statistics(records, moved, moments, np.full(5, 30.0), 0.1)
        found = synchronous_forecast(
            "descent",
            statistics,
            1.0,
            0.5,
            8,
            np.full((7, 5), 0.2),
            present=np.full(5, 0.6),
            reweight=reweight,
        ).model
        made.append(found)
    np.testing.assert_allclose(made[0].parts.psi, made[1].parts.psi, rtol=1e-9)
    np.testing.assert_allclose(made[0].variances, made[1].variances, rtol=1e-9)
