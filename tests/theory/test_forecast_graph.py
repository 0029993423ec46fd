"""Forecasts of averaging and coordinate descent on graphs against sums over everything that can happen."""

import itertools
import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import ring_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import few
from scipy.sparse import csr_array

from p2psim.privacy.allocations import Contraction
from p2psim.privacy.shares import Releases
from p2psim.theory.bounds.graph import contraction_rate
from p2psim.theory.forecasts.descent import linear_descent
from p2psim.theory.forecasts.descent_orders import Orders, drawn_wakes, sampled
from p2psim.theory.forecasts.descent_path import coefficients, distances, path, terms
from p2psim.theory.forecasts.known_wakes import known_wakes_noise
from p2psim.theory.forecasts.split import accumulate
from p2psim.theory.forecasts.tiles import Tiles


def some_graph(agents, kind, seed):
    random = np.random.default_rng(seed)
    graph = {"ring": nx.cycle_graph, "complete": nx.complete_graph, "path": nx.path_graph}[kind](agents)
    W = np.zeros((agents, agents))
    for i, j in graph.edges:
        W[i, j] = W[j, i] = random.uniform(0.2, 2.0)
    return W


def some_descent(agents, dimension, seed=0, kind="ring", offset=False, start_covariance=None):
    """Weights, sizes and curvatures that differ, and steps as B's: α_i = 1/(1 + μ·c_i·λ_max)."""
    random = np.random.default_rng(seed)
    W = some_graph(agents, kind, seed)
    degrees, mu, confidence = W.sum(axis=1), 0.7, random.uniform(0.2, 1.0, agents)
    halves = random.normal(size=(agents, dimension, dimension))
    curvature = halves @ np.swapaxes(halves, 1, 2) + 0.3 * np.eye(dimension)
    alpha = 1 / (1 + mu * confidence * np.linalg.eigvalsh(curvature)[:, -1])
    optimum, start = random.normal(size=(2, agents, dimension))
    chance = random.uniform(0.5, 1.5, agents)
    other = {}
    if offset:
        other = {"jacobian": 0.6 * curvature, "rest": optimum + 0.1 * random.normal(size=optimum.shape)}
    return linear_descent(
        csr_array(W),
        mu * degrees * confidence,
        alpha,
        curvature,
        start,
        optimum,
        chance / chance.sum(),
        start_covariance=start_covariance,
        **other,
    )


def some_covariance(agents):
    half = np.random.default_rng(7).normal(size=(agents, agents))
    return 0.1 * half @ half.T


def plain_hessians(model):
    """K and H with a loop over the links, shape (n·p, n·p) each."""
    n, p = model.start.shape
    K, H = np.zeros((2, n, p, n, p))
    W = model.weights.toarray()
    for i, j in itertools.product(range(n), repeat=2):
        K[i, :, j] = model.blocks[i] if i == j else -W[i, j] * np.eye(p)
        H[i, :, j] = model.objective[i] if i == j else -W[i, j] * np.eye(p)
    return K.reshape(n * p, n * p), H.reshape(n * p, n * p)


def plain_maps(model):
    n, p = model.start.shape
    K, _ = plain_hessians(model)
    maps = []
    for i in range(n):
        A = np.eye(n * p)
        A[i * p : (i + 1) * p] -= model.step[i] * K[i * p : (i + 1) * p]
        maps.append(A)
    return maps


def enumerated(model, wakes, variances_of):
    """E[½(z + d)ᵀH(z + d)] with the noise of each agent alone, and without, over all orders of so many wakes.

    ``variances_of(order)`` gives the variance of each wake's noise. Noise is followed by its covariance.
    """
    n, p = model.start.shape
    maps, (_, H) = plain_maps(model), plain_hessians(model)
    gap, noise = 0.0, np.zeros(n)
    for order in itertools.product(range(n), repeat=wakes):
        chance = np.prod(model.chance[list(order)])
        z, covariances = model.start.ravel(), np.zeros((n, n * p, n * p))
        for i, variance in zip(order, variances_of(order), strict=True):
            z = maps[i] @ z
            covariances = maps[i] @ covariances @ maps[i].T
            block = np.arange(i * p, (i + 1) * p)
            covariances[i, block, block] += variance * model.noise_step[i] ** 2
        away = z + model.offset.ravel()
        gap += chance * away @ H @ away / 2
        noise += chance * np.einsum("nij,ij->n", covariances, H) / 2
    return gap, noise


@settings(max_examples=20, deadline=None)
@given(
    agents=st.integers(2, 4),
    dimension=st.integers(1, 2),
    wakes=st.integers(0, 4),
    seed=st.integers(0, 99),
    kind=st.sampled_from(["ring", "complete", "path"]),
    offset=st.booleans(),
)
def test_descent_is_the_sum_over_all_orders(agents, dimension, wakes, seed, kind, offset):
    """The gap, and each agent's share of its noise, with variances that depend on agent and step."""
    model = some_descent(agents, dimension, seed, kind, offset)
    variances = np.random.default_rng(seed).uniform(0, 1, (max(wakes, 1), agents))
    found = path(model, wakes)
    gap, noise = enumerated(model, wakes, lambda order: [variances[t, i] for t, i in enumerate(order)])
    assert found.expected[-1] == pytest.approx(gap, rel=1e-9)
    noisy = path(replace(model, start_covariance=some_covariance(agents)), wakes)
    S = np.kron(some_covariance(agents), np.eye(dimension))
    for order in itertools.product(range(agents), repeat=wakes):
        A = np.eye(agents * dimension)
        for i in order:
            A = plain_maps(model)[i] @ A
        gap += np.prod(model.chance[list(order)]) * np.trace(plain_hessians(model)[1] @ A @ S @ A.T) / 2
    assert noisy.expected[-1] == pytest.approx(gap, rel=1e-9)
    assert noisy.expected - found.expected == pytest.approx(noisy.start_noise, rel=1e-6)
    if wakes:
        assert accumulate(found.gain, variances[:wakes])[-1] == pytest.approx(noise, rel=1e-9, abs=1e-12)


@settings(max_examples=20, deadline=None)
@given(
    agents=st.integers(2, 3),
    wakes=st.integers(1, 4),
    seed=st.integers(0, 99),
    ratio=st.sampled_from([0.8, 1.0, 1.3]),
    power=st.sampled_from([1, 2]),
)
def test_noise_by_all_wakes_is_the_sum_over_all_orders(agents, wakes, seed, ratio, power):
    """Release variances (Σ w_s/w_t)^d over an agent's own wakes of the whole run, at every step of the run."""
    model = some_descent(agents, 2, seed)
    variances = np.random.default_rng(seed).uniform(0.5, 2, agents)
    weights = ratio ** -np.arange(float(wakes))

    def variances_of(order):
        sums = [sum(w for w, j in zip(weights, order, strict=True) if j == i) for i in range(agents)]
        return [variances[i] * (sums[i] / w) ** power for w, i in zip(weights, order, strict=True)]

    found = known_wakes_noise(model, wakes, ratio, power, variances, np.arange(wakes + 1))
    assert found[0] == pytest.approx(np.zeros(agents))
    _, noise = enumerated(model, wakes, variances_of)
    assert found[-1] == pytest.approx(noise, rel=1e-9)
    # On the way, the whole run's wakes are known already: what comes after is forgotten, with no noise in it.
    k = wakes // 2

    def until(order):
        return [one if t < k else 0.0 for t, one in enumerate(variances_of(order))]

    n, p = model.start.shape
    maps, (_, H) = plain_maps(model), plain_hessians(model)
    expected = np.zeros(n)
    for order in itertools.product(range(n), repeat=wakes):
        S = np.zeros((n, n * p, n * p))
        for i, variance in list(zip(order, until(order), strict=True))[:k]:
            S = maps[i] @ S @ maps[i].T
            block = np.arange(i * p, (i + 1) * p)
            S[i, block, block] += variance * model.noise_step[i] ** 2
        expected += np.prod(model.chance[list(order)]) * np.einsum("nij,ij->n", S, H) / 2
    assert found[k] == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(
    ("mu", "wakes", "uniform", "printed", "corrected"),
    [(1.0, 200, 13.1, 260_000, 0.397), (0.2, 600, 7.8, 116_000, 0.208)],
)
def test_the_ring_of_five(mu, wakes, uniform, printed, corrected):
    """Known from 20,000 runs of another simulation, of a standard error below 1 %."""
    ring = ring_cases.problem(mu)
    best = ring_cases.optimum(mu)[:, None]
    W = csr_array((ring.weights, ring.indices, ring.indptr))
    model = linear_descent(W, ring.pull, ring.alpha, np.ones((5, 1, 1)), best + 1, best)
    rate = contraction_rate(2 * mu, np.full(5, 2 * (1 + mu)))
    bias = path(model, wakes, exact=True).expected[-1]
    whole = np.full(5, 2 * (2 / ring_cases.RECORDS) ** 2)

    def gap(ratio):
        return bias + known_wakes_noise(model, wakes, ratio, 2, whole, np.array([wakes])).sum()

    assert gap(1.0) == pytest.approx(uniform, rel=0.01)
    assert gap(rate ** (-1 / 3)) == pytest.approx(printed, rel=0.03)
    assert gap(rate ** (1 / 3)) == pytest.approx(corrected, rel=0.01)


@settings(max_examples=10, deadline=None)
@given(agents=st.integers(2, 6), seed=st.integers(0, 99), kind=st.sampled_from(["ring", "complete"]))
def test_few_polynomials_are_all_steps(agents, seed, kind):
    model = some_descent(agents, 2, seed, kind, start_covariance=some_covariance(agents))
    short, long = path(model, 700), path(model, 700, exact=True)
    assert short.error > 0 == long.error
    assert short.expected == pytest.approx(long.expected, rel=1e-9, abs=short.error * long.expected[0])
    assert short.gain == pytest.approx(long.gain, rel=1e-9, abs=short.error * long.gain.max())
    assert short.start_noise == pytest.approx(long.start_noise, rel=1e-9, abs=short.error * long.expected[0])


@pytest.mark.parametrize("spread", [1.0, 0.3, 0.01])
@pytest.mark.parametrize("wakes", [1, 7, 300, 3000])
def test_coefficients_are_probabilities(wakes, spread):
    """Of a walk that goes up or down with a quarter of w each; powers of numbers between 1 − w and 1."""
    rows = np.concatenate(list(coefficients(wakes, terms(wakes, spread), spread)))
    assert (rows >= 0).all()
    assert rows.sum(axis=1) == pytest.approx(np.ones(wakes + 1), abs=1e-15 * wakes)
    y = np.linspace(-1, 1, 7)
    polynomials = np.polynomial.chebyshev.chebval(y, rows.T)
    powers = (1 - spread * (1 - y) / 2) ** np.arange(wakes + 1)[:, None]
    assert polynomials == pytest.approx(powers, abs=1e-12)
    if wakes == 7:
        walk = np.array([1.0])
        for _ in range(7):
            walk = np.convolve(walk, [spread / 4, 1 - spread / 2, spread / 4])
        assert rows[7, 1:8] / 2 == pytest.approx(walk[8:], rel=1e-9, abs=1e-15)
        assert rows[7, 0] == pytest.approx(walk[7], rel=1e-9)


@pytest.mark.parametrize(
    ("wakes", "spread", "least"), [(3000, 0.02, 0.004), (300, 0.3, 0.1), (800, 1.0, 0.2)]
)
def test_a_gap_makes_fewer_coefficients_do(wakes, spread, least):
    """Of powers of numbers between 1 − w and 1 − a."""
    degree = terms(wakes, spread, least=least)
    assert degree < terms(wakes, spread)
    rows = np.concatenate(list(coefficients(wakes, degree, spread, least)))
    assert (rows >= 0).all()
    y = np.linspace(-1, 1, 7)
    powers = (1 - least - (spread - least) * (1 - y) / 2) ** np.arange(wakes + 1)[:, None]
    assert np.polynomial.chebyshev.chebval(y, rows.T) == pytest.approx(powers, abs=3e-12)


@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.parametrize("kind", ["ring", "complete"])
def test_eigenvalues_of_both_maps_leave_a_gap_below_one(kind, seed):
    """And it is not much too small: within a factor of two of what there is."""
    model = some_descent(11, 2, seed, kind)
    moves = sum(g * np.kron(A, A) for g, A in zip(model.chance, plain_maps(model), strict=True))
    largest = np.linalg.eigvals(moves).real.max()
    assert (1 - largest) / 2 < model.least <= 1 - largest + 1e-12


@pytest.mark.parametrize("kind", ["ring", "complete"])
def test_eigenvalues_of_both_maps_lie_within_the_width(kind):
    model = some_descent(5, 2, 4, kind)
    moves = sum(g * np.kron(A, A) for g, A in zip(model.chance, plain_maps(model), strict=True))
    eigenvalues = np.linalg.eigvals(moves)
    assert np.abs(eigenvalues.imag).max() < 1e-9
    assert 1 - model.spread - 1e-12 <= eigenvalues.real.min()
    assert eigenvalues.real.max() <= 1 + 1e-12


@pytest.mark.parametrize(("ratio", "power"), [(1.0, 2), (0.993, 2), (1.004, 2), (1.004, 1), (1.0, 1)])
def test_noise_by_all_wakes_in_few_polynomials(ratio, power):
    model, at = some_descent(8, 2, 3, "complete"), np.array([0, 60, 399, 400])
    short, long = (
        known_wakes_noise(model, 400, ratio, power, np.ones(8), at, exact) for exact in (False, True)
    )
    assert short == pytest.approx(long, rel=1e-10)
    assert not np.array_equal(short, long)


def plain_noise_by_all_wakes(model, wakes, ratio, power):
    """Noise of each agent at the end, by moments walked forwards with the plain maps.

    Beside the covariance C of what releases of variance w_t^{−d} became, E[S^m·C] for the sum S of the agent's weights.
    """
    n, p = model.start.shape
    maps, (_, H) = plain_maps(model), plain_hessians(model)
    noise = np.zeros(n)
    for i in range(n):
        sums, C = np.zeros(power + 1), np.zeros((power + 1, n * p, n * p))
        sums[0], block = 1.0, np.arange(i * p, (i + 1) * p)
        for w in ratio ** -np.arange(float(wakes)):
            moved = [sum(model.chance[j] * maps[j] @ c @ maps[j].T for j in range(n) if j != i) for c in C]
            woken = np.array([maps[i] @ c @ maps[i].T for c in C])
            woken[:, block, block] += sums[:, None] * w**-power * model.noise_step[i] ** 2
            terms_of = [[(m - k, math.comb(m, k) * w**k) for k in range(m + 1)] for m in range(power + 1)]
            C = np.array(
                [
                    moved[m] + model.chance[i] * sum(share * woken[k] for k, share in terms_of[m])
                    for m in range(power + 1)
                ]
            )
            added = np.array([sum(share * sums[k] for k, share in terms) for terms in terms_of])
            sums = sums + model.chance[i] * (added - sums)
        noise[i] = np.sum(C[power] * H) / 2
    return noise


@pytest.mark.parametrize("kind", ["ring", "complete"])
@pytest.mark.parametrize(("ratio", "power"), [(1.0, 2), (1.004, 1), (0.993, 2)])
def test_noise_by_all_wakes_is_what_plain_maps_give(kind, ratio, power):
    model = some_descent(8, 2, 5, kind)
    expected = plain_noise_by_all_wakes(model, 120, ratio, power)
    for exact in (True, False):
        found = known_wakes_noise(model, 120, ratio, power, np.ones(8), np.array([120]), exact)
        assert found[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", ["ring", "complete"])
@pytest.mark.parametrize("exact", [True, False])
def test_walks_are_what_plain_maps_give(kind, exact):
    """Forms, traces, the gap at the mean and final distances after 500 wakes, beside a loop over plain maps."""
    model = some_descent(9, 2, 5, kind, offset=True)
    n, p = model.start.shape
    maps, (_, H) = plain_maps(model), plain_hessians(model)
    z, d, Q = model.start.ravel(), model.offset.ravel(), H / 2
    S, added = np.outer(z, z), model.chance * model.noise_step**2
    expected, gaps, traces = [], [], []
    for _ in range(500):
        mean = sum(g * A for g, A in zip(model.chance, maps, strict=True))
        expected.append(model.start.ravel() @ Q @ model.start.ravel() + z @ H @ d + d @ H @ d / 2)
        gaps.append((z + d) @ H @ (z + d) / 2)
        traces.append(added * np.diag(Q).reshape(n, p).sum(axis=1))
        Q = sum(g * A.T @ Q @ A for g, A in zip(model.chance, maps, strict=True))
        S = sum(g * A @ S @ A.T for g, A in zip(model.chance, maps, strict=True))
        S[np.diag_indices(n * p)] += np.repeat(added, p)
        z = mean @ z
    found = path(model, 500, exact)
    assert (found.error == 0) == exact
    assert found.expected[:-1] == pytest.approx(np.array(expected), rel=1e-12, abs=1e-12 * expected[0])
    assert found.mean_gap[:-1] == pytest.approx(np.array(gaps), rel=1e-12, abs=1e-12 * gaps[0])
    assert found.gain == pytest.approx(np.array(traces), rel=1e-12, abs=1e-12 * np.max(traces))
    apart = np.diag(S).reshape(n, p).sum(axis=1) + (2 * z * d + d**2).reshape(n, p).sum(axis=1)
    assert distances(model, np.ones((500, n)), exact) == pytest.approx(apart, rel=1e-12)


@settings(max_examples=20, deadline=None)
@given(agents=st.integers(2, 5), dimension=st.integers(1, 3), seed=st.integers(0, 99))
def test_both_maps_are_what_they_say(agents, dimension, seed):
    """Against the plain maps; each is the other's adjoint."""
    model = some_descent(agents, dimension, seed, offset=bool(seed % 2))
    random, size = np.random.default_rng(seed), agents * dimension
    Q, S = random.normal(size=(2, size, size))
    Q, S = Q + Q.T, S + S.T
    maps = plain_maps(model)
    parts = np.array([g * A.T @ Q @ A for g, A in zip(model.chance, maps, strict=True)])
    assert model.dual(Q) == pytest.approx(parts.sum(axis=0), rel=1e-9, abs=1e-9)
    assert model.dual(np.array([Q, 2 * S])) == pytest.approx(np.array([model.dual(Q), model.dual(2 * S)]))
    primal = sum(g * A @ S @ A.T for g, A in zip(model.chance, maps, strict=True))
    assert model.primal(S) == pytest.approx(primal, rel=1e-9, abs=1e-9)
    mean = sum(g * A @ model.start.ravel() for g, A in zip(model.chance, maps, strict=True))
    assert model.mean(model.start).ravel() == pytest.approx(mean, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("agents", "dimension", "kind"),
    few([(41, 5, "ring"), (20, 5, "complete"), (3, 40, "ring"), (97, 1, "path"), (2, 110, "path")], 2),
)
def test_maps_of_matrices_larger_than_a_tile(agents, dimension, kind):
    """Against K and the plain maps, entry by entry; what follows the map is written over what was before."""
    model = some_descent(agents, dimension, 3, kind)
    maps, (K, _), size = plain_maps(model), plain_hessians(model), agents * dimension
    Q, S = np.random.default_rng(1).normal(size=(2, size, size))
    Q, S = Q + Q.T, S + S.T
    dual = sum(g * A.T @ Q @ A for g, A in zip(model.chance, maps, strict=True))
    primal = sum(g * A @ S @ A.T for g, A in zip(model.chance, maps, strict=True))
    assert model.matrix == pytest.approx(K)
    assert model.dual(Q) == pytest.approx(dual, rel=1e-12, abs=1e-12)
    assert model.primal(S) == pytest.approx(primal, rel=1e-12, abs=1e-12)
    tiles, z = Tiles(model), np.arange(float(size))
    held, vector = tiles.of(Q), np.outer(z, z)
    assert tiles.traces(held) == pytest.approx(np.diag(Q).reshape(agents, dimension).sum(axis=1))
    assert tiles.form(held, z) == pytest.approx(z @ Q @ z)
    C = np.random.default_rng(2).normal(size=(agents, agents))
    each = np.einsum("iaja->ij", Q.reshape(agents, dimension, agents, dimension))
    assert tiles.traces_with(held, C + C.T) == pytest.approx(np.sum((C + C.T) * each))
    after = tiles.of(Q)
    tiles.primal_into(tiles.of(S), after, 2.0, 3.0, 0.5, tiles.of(vector), 0.7)
    expected = 2 * S - 3 * (S - primal) - 0.5 * Q + 0.7 * vector
    assert after == pytest.approx(tiles.of(expected), rel=1e-12, abs=1e-9)
    after = tiles.of(S)
    tiles.dual_into(held, after, 2.0, 3.0, 0.5)
    expected = 2 * Q - 3 * (Q - dual) - 0.5 * S
    assert after == pytest.approx(tiles.of(expected), rel=1e-12, abs=1e-9)
    tiles.add_to_diagonal(after, z)
    assert after == pytest.approx(tiles.of(expected + np.diag(z)), rel=1e-12, abs=1e-9)


def test_a_walk_that_grows_beyond_all_numbers_is_an_error():
    """A step of 1000 multiplies models by about that in each wake: after 200 wakes squares exceed all numbers."""
    model = replace(some_descent(3, 2), step=np.full(3, 1000.0))
    with np.errstate(over="ignore", invalid="ignore"):
        for walk in (lambda: path(model, 200), lambda: distances(model, np.ones((200, 3)))):
            with pytest.raises(FloatingPointError, match="beyond all numbers"):
                walk()


@settings(max_examples=10, deadline=None)
@given(agents=st.integers(2, 4), wakes=st.integers(1, 4), seed=st.integers(0, 99))
def test_distances_at_the_end_are_sums_over_all_orders(agents, wakes, seed):
    model = some_descent(agents, 2, seed, offset=True, start_covariance=some_covariance(agents))
    variances = np.random.default_rng(seed).uniform(0, 1, (wakes, agents))
    maps, n, p = plain_maps(model), *model.start.shape
    expected = np.zeros(n)
    for order in itertools.product(range(n), repeat=wakes):
        z, S = model.start.ravel(), np.kron(model.start_covariance, np.eye(p))
        for t, i in enumerate(order):
            z, S = maps[i] @ z, maps[i] @ S @ maps[i].T
            block = np.arange(i * p, (i + 1) * p)
            S[block, block] += variances[t, i] * model.noise_step[i] ** 2
        away = (z + model.offset.ravel()).reshape(n, p)
        squares = (away**2).sum(axis=1) + S.diagonal().reshape(n, p).sum(axis=1)
        expected += np.prod(model.chance[list(order)]) * squares
    assert distances(model, variances) == pytest.approx(expected, rel=1e-9)


def test_distances_of_a_long_run_take_few_polynomials():
    model = some_descent(6, 2, 1, start_covariance=some_covariance(6))
    variances = np.random.default_rng(0).uniform(0, 1, (900, 6))
    assert distances(model, variances) == pytest.approx(distances(model, variances, exact=True), rel=1e-8)


def orders_of(model, **changes):
    """A run of 40 commits in which nothing ends, with variances that grow with an agent's releases."""
    n, p = model.start.shape
    half = np.linalg.cholesky(model.start_covariance) if model.start_covariance.any() else np.zeros((n, n))
    made = Orders(
        limits=np.full(n, 100),
        spent="silent",
        alpha=np.full(n, 0.5),
        rest=np.random.default_rng(5).normal(size=(n, p)),
        anchor=np.zeros((n, p)),
        start_factor=half,
        variances=lambda agents, numbers, steps: 0.3 * (1 + agents) * (1 + steps / 40),
        commits=40,
        time=None,
        rate=2.0,
    )
    return replace(made, **changes)


def test_averages_over_drawn_orders_are_the_moments():
    """|z| < 4 of the gap at each of four commits; parts and distances within a few per cent. Fixed seeds."""
    model = some_descent(4, 2, 2, offset=True, start_covariance=some_covariance(4))
    points = np.array([1, 10, 25, 40])
    found = sampled(model, orders_of(model), "commits", points, 6000, 0)
    exact = path(model, 40)
    variances = 0.3 * (1 + np.arange(4)) * (1 + np.arange(40)[:, None] / 40)
    noise = accumulate(exact.gain, variances)[points]
    total = found.noiseless + found.start + found.noise.sum(axis=1)
    assert (np.abs(total - exact.expected[points] - noise.sum(axis=1)) < 4 * found.error).all()
    assert found.noise == pytest.approx(noise, rel=0.1)
    assert found.start == pytest.approx(exact.start_noise[points], rel=0.15)
    assert found.noiseless == pytest.approx((exact.expected - exact.start_noise)[points], rel=0.12)
    assert found.mean_gap == pytest.approx(exact.mean_gap[points], rel=0.1)
    assert found.apart == pytest.approx(distances(model, variances), rel=0.1)


@pytest.mark.parametrize("spent", ["silent", "coast", "anchored"])
@pytest.mark.parametrize("axis", ["commits", "time"])
def test_parts_along_drawn_orders_are_those_of_every_release_followed_alone(spent, axis):
    """With one coordinate, and a vector for each release, no signs meet: averages over the orders drawn are exact."""
    model, orders, limits, seed = some_descent(3, 1, 4, offset=True), 12, np.array([4, 13, 2]), 8
    changes = {"limits": limits, "spent": spent, "anchor": np.array([[0.3], [-1.0], [0.5]])}
    how = orders_of(
        model, **changes, **({"commits": None, "time": 12.0} if axis == "time" else {"commits": 25})
    )
    points = np.array([0.0, 3.5, 7.0, 12.0]) if axis == "time" else np.array([0, 1, 12, 25])
    found = sampled(model, how, axis, points, orders, seed)
    random = np.random.Generator(np.random.PCG64(seed))
    drawn = [drawn_wakes(how, model.chance, random) for _ in range(orders)]
    K, H, W = model.matrix, model.hessian, model.weights.toarray()
    mu, degrees, best = model.noise_step / how.alpha, W.sum(axis=1), how.rest - model.offset
    gaps, noise, apart = np.zeros((orders, 4)), np.zeros((4, 3)), np.zeros(3)
    for b, wakes in enumerate(drawn):
        # The mean first, then a column for each release, beside its anchor's.
        columns = 1 + len(wakes.agents)
        theta, anchors = np.zeros((3, columns)), np.zeros((3, columns))
        theta[:, :1], anchors[:, :1] = model.start + how.rest, how.anchor
        owner = np.concatenate([[-1], wakes.agents])
        when = wakes.times if axis == "time" else wakes.before
        for t in range(columns):
            for row, point in enumerate(points):
                before = (
                    len(when)
                    if row == 3
                    else int((when <= point).sum() if axis == "time" else (when < point).sum())
                )
                if before == t:
                    away = theta.copy()
                    away[:, :1] -= best
                    each = np.einsum("ic,ij,jc->c", away, H, away) / 2
                    gaps[b, row] = each[0]
                    noise[row] += np.bincount(owner[1:], each[1:], minlength=3) / orders
            if t == len(wakes.agents):
                break
            i = wakes.agents[t]
            mix = W[i] @ theta / degrees[i]
            if wakes.numbers[t] >= 0:
                still = theta.copy()
                still[:, :1] -= how.rest
                theta[i] -= model.step[i] * (K[i] @ still)
                variance = how.variances(
                    *(np.array([part[t]]) for part in (wakes.agents, wakes.numbers, wakes.before))
                )
                theta[i, 1 + t] += model.noise_step[i] * np.sqrt(variance[0])
                anchors[i] = theta[i]
            elif spent == "coast":
                theta[i] += how.alpha[i] * (mix - theta[i])
            elif spent == "anchored":
                theta[i] = (mix + mu[i] * anchors[i]) / (1 + mu[i])
        away = theta.copy()
        away[:, :1] -= best
        apart += (away**2).sum(axis=1) / orders
    assert found.noiseless == pytest.approx(gaps.mean(axis=0), rel=1e-12)
    assert found.noise == pytest.approx(noise, rel=1e-12, abs=1e-14)
    assert found.apart == pytest.approx(apart, rel=1e-12)


def test_budgets_by_expected_wakes_on_the_ring_of_five():
    """3.68 in 20,000 other runs of 200 wakes, those of agents who are silent by then included; four errors."""
    mu, wakes = 1.0, 200
    ring, best = ring_cases.problem(mu), ring_cases.optimum(mu)[:, None]
    W = csr_array((ring.weights, ring.indices, ring.indptr))
    model = linear_descent(W, ring.pull, ring.alpha, np.ones((5, 1, 1)), best + 1, best)
    made = ring_cases.plan_of(Contraction(), mu, wakes)
    how = Orders(
        limits=made.releases,
        spent="coast",
        alpha=np.zeros(5),  # a wake that counts and does nothing
        rest=best,
        anchor=best,
        start_factor=np.zeros((5, 5)),
        variances=lambda *releases: 2 * made.scales(Releases(*releases)) ** 2,
        commits=wakes,
        time=None,
        rate=5.0,
    )
    found = sampled(model, how, "commits", np.array([wakes]), 8000, 0)
    total = found.noiseless[0] + found.noise[0].sum()
    assert found.error[0] < 0.05 * total
    assert total == pytest.approx(3.68, abs=4 * np.hypot(found.error[0], 0.01 * 3.68))


def test_silent_agents_end_a_run_and_keep_their_models():
    """Two releases each, all made long before as many commits as are asked for: eight commits, and no more noise."""
    model = some_descent(4, 2, 2)
    how = orders_of(
        model, limits=np.full(4, 2), variances=lambda agents, numbers, steps: np.ones(len(agents))
    )
    found = sampled(model, how, "commits", np.array([8, 20, 40]), 20, 0)
    assert found.noise[0] == pytest.approx(found.noise[2])
    assert found.noiseless[1] == pytest.approx(found.noiseless[2])
    alike = sampled(model, replace(how, spent="coast"), "commits", np.array([1, 40]), 20, 0)
    assert alike.noise[1].sum() < found.noise[2].sum()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chance": np.array([0.5, 0.6, 0.1])}, "add up to one"),
        ({"alpha": np.zeros(3)}, "steps must be positive"),
    ],
)
def test_what_means_nothing_is_refused(change, message):
    W = csr_array(some_graph(3, "ring", 0))
    given_parts = {"alpha": np.full(3, 0.5), "chance": None} | change
    with pytest.raises(ValueError, match=message):
        linear_descent(
            W,
            np.ones(3),
            given_parts["alpha"],
            np.ones((3, 1, 1)),
            np.zeros((3, 1)),
            np.zeros((3, 1)),
            given_parts["chance"],
        )
