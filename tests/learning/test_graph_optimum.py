"""Exact minimisers on a graph, against general solvers of linear systems and of smooth problems."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from graph_cases import LOSSES, SLOPES, problem_of, random_links, record_counts
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse.linalg import spsolve

from p2psim.core.errors import SimulationError
from p2psim.learning.graph.optimum import (
    from_private_records,
    global_model,
    minimise_alone,
    minimise_together,
    newton,
)
from p2psim.learning.losses import Logistic, Squared
from p2psim.network.graph import TopologyInputs, from_edges
from p2psim.network.topologies import RandomRegular, draw_links

pytestmark = pytest.mark.blas


def gradient(problem, theta):
    """∇Q_L from its definition, and the largest of what is added up in it."""
    W = sp.csr_array((problem.weights, problem.indices, problem.indptr), shape=(problem.agents,) * 2)
    D = np.asarray(W.sum(axis=1)).ravel()
    owner = np.repeat(np.arange(problem.agents), np.diff(problem.offsets))
    z = (problem.X * theta[owner]).sum(axis=1)
    slopes = SLOPES[problem.loss.kind](z, problem.y)
    sums = sp.csr_array((np.ones(owner.size), (owner, np.arange(owner.size)))) @ (slopes[:, None] * problem.X)
    local = sums / np.diff(problem.offsets)[:, None] + 2 * problem.ridge[:, None] * theta
    parts = D[:, None] * theta, W @ theta, (problem.mu * D * problem.confidence)[:, None] * local
    return parts[0] - parts[1] + parts[2], max(np.abs(part).max() for part in parts)


@settings(max_examples=30)
@given(
    sizes=record_counts,
    seed=st.integers(0, 10_000),
    mu=st.sampled_from([0.01, 1.0, 50.0]),
    intercept=st.booleans(),
)
def test_squared_loss_is_one_linear_system(sizes, seed, mu, intercept):
    problem = problem_of(Squared(intercept=intercept), random_links(len(sizes), seed, 5), sizes, 3, mu, seed)
    n, p = problem.agents, problem.dimension
    W = sp.csr_array((problem.weights, problem.indices, problem.indptr), shape=(n, n))
    D = np.asarray(W.sum(axis=1)).ravel()
    blocks, right = [], []
    for i in range(n):
        X, y = (rows[problem.offsets[i] : problem.offsets[i + 1]] for rows in (problem.X, problem.y))
        weight = mu * D[i] * problem.confidence[i]
        blocks.append(weight * (2 * X.T @ X / len(y) + 2 * problem.ridge[i] * np.eye(p)))
        right.append(weight * 2 * X.T @ y / len(y))
    matrix = sp.kron(sp.diags_array(D) - W, sp.eye_array(p)) + sp.block_diag(blocks)
    expected = spsolve(matrix.tocsc(), np.concatenate(right)).reshape(n, p)
    np.testing.assert_allclose(
        minimise_together(problem), expected, rtol=0, atol=1e-9 * np.abs(expected).max()
    )


@settings(max_examples=20)
@given(sizes=record_counts, seed=st.integers(0, 10_000), mu=st.sampled_from([0.05, 1.0, 10.0]))
def test_logistic_loss_is_what_a_general_method_finds(sizes, seed, mu):
    problem = problem_of(Logistic(), random_links(len(sizes), seed, 5), sizes, 3, mu, seed)
    shape = problem.agents, problem.dimension
    theta = minimise_together(problem)
    away = newton(problem, 5 * np.random.default_rng(seed).standard_normal(shape))
    np.testing.assert_allclose(away, theta, rtol=0, atol=1e-7 * max(np.abs(theta).max(), 1e-3))
    found = minimize(
        lambda flat: problem.objective(flat.reshape(shape)),
        np.zeros(theta.size),
        jac=lambda flat: gradient(problem, flat.reshape(shape))[0].ravel(),
        method="BFGS",
        options={"gtol": 1e-7, "maxiter": 2000},
    )
    assert problem.objective(theta) <= found.fun * (1 + 1e-12)
    np.testing.assert_allclose(
        theta, found.x.reshape(shape), rtol=0, atol=1e-3 * max(np.abs(theta).max(), 1e-2)
    )
    slope, scale = gradient(problem, theta)
    assert np.abs(slope).max() <= 1e-10 * scale


@settings(max_examples=20)
@given(
    kind=st.sampled_from(sorted(LOSSES)), sizes=record_counts, seed=st.integers(0, 10_000),
    mu=st.sampled_from([1e3, 1e6, 1e9, 1e15, 1e290]),
)  # fmt: skip
def test_the_larger_mu_the_nearer_to_the_local_models(kind, sizes, seed, mu):
    """∇Q = 0 gives ‖∇L_i(θ_i)‖ ≤ 2·max‖θ_j‖/(μc_i), and L_i is 2λ_i-strongly convex."""
    problem = problem_of(LOSSES[kind](), random_links(len(sizes), seed, 5), sizes, 3, mu, seed)
    together, alone = minimise_together(problem), minimise_alone(problem)
    largest = np.linalg.norm(together, axis=1).max()
    most = 2 * largest / (mu * problem.confidence * 2 * problem.ridge)
    apart = np.linalg.norm(together - alone, axis=1)
    # Both are found to about 1e-10 of their gradients' terms.
    assert (apart <= most + 1e-7 * max(1.0, largest)).all()


def common_model(problem, agents):
    """Minimiser of Σ D_ii·c_i·L_i over one model for these agents, by Newton's method."""
    degrees = np.add.reduceat(problem.weights, problem.indptr[:-1])
    theta = np.zeros(problem.dimension)
    for _ in range(50):
        slope, curvature = np.zeros(theta.size), np.zeros((theta.size, theta.size))
        for i in agents:
            rows = slice(problem.offsets[i], problem.offsets[i + 1])
            X, y, m = problem.X[rows], problem.y[rows], problem.offsets[i + 1] - problem.offsets[i]
            z = X @ theta
            first, second = SLOPES[problem.loss.kind](z, y), problem.loss.second_slopes(z, y)
            weight = degrees[i] * problem.confidence[i]
            slope += weight * (X.T @ first / m + 2 * problem.ridge[i] * theta)
            curvature += weight * (X.T * second @ X / m + 2 * problem.ridge[i] * np.eye(theta.size))
        theta -= np.linalg.solve(curvature, slope)
    return theta


@settings(max_examples=20)
@given(
    kind=st.sampled_from(["logistic", "squared"]),
    seed=st.integers(0, 10_000),
    mu=st.sampled_from([1e-6, 1e-8, 1e-10, 1e-12, 1e-15]),
)
def test_the_smaller_mu_the_nearer_to_one_model_in_each_part(kind, seed, mu):
    """Rounding of the neighbours' side, 1e-16, is no smaller than what all agents of a part depend on."""
    ends = [
        (first + np.repeat(np.arange(n), np.diff(part.indptr)), first + part.indices, part.weights)
        for first, n, part in ((0, 5, random_links(5, seed, 2)), (5, 4, random_links(4, seed, 1)))
    ]
    a, b, weights = map(np.concatenate, zip(*ends, strict=True))
    once = a < b
    where = from_edges(9, a[once], b[once], weights[once])
    problem = problem_of(LOSSES[kind](), where, list(range(2, 11)), 3, mu, seed)
    theta = minimise_together(problem)
    for agents in (range(5), range(5, 9)):
        expected = common_model(problem, agents)
        atol = (1e4 * mu + 1e-9) * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(theta[agents], np.tile(expected, (len(agents), 1)), rtol=0, atol=atol)


@pytest.mark.parametrize("mu", [1e-30, 1e-300, 1e-308])
def test_what_cannot_be_minimised_is_refused_with_its_mu(mu):
    problem = problem_of(Logistic(), random_links(12, 0, 6), list(range(3, 15)), 4, mu)
    with pytest.raises(SimulationError, match=f"mu is {mu:g}"):
        minimise_together(problem)


def test_equal_problems_share_their_minimisers():
    where = random_links(4, 1)
    one, same = (problem_of(Logistic(), where, [3, 2, 5, 9], 3, 1.0, 7) for _ in range(2))
    found = minimise_together(one)
    assert minimise_together(same) is found
    assert minimise_alone(one) is minimise_alone(same)
    assert (minimise_alone(one, "sum") != minimise_alone(one)).any()
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0] = 1.0
    for changed in (
        problem_of(Logistic(), where, [3, 2, 5, 9], 3, 2.0, 7),
        problem_of(Logistic(), where, [3, 2, 5, 9], 3, 1.0, 8),
        problem_of(Logistic(), random_links(4, 2), [3, 2, 5, 9], 3, 1.0, 7),
    ):
        assert (minimise_together(changed) != found).any()


def test_records_of_very_unequal_number_and_agents_without_any():
    """c = 1e-3 and no loss but the regulariser's for an agent without records."""
    for loss in LOSSES.values():
        problem = problem_of(loss(), random_links(5, 1, 3), [1, 2000, 0, 3, 0], 3, 1.0)
        assert problem.confidence.tolist() == [1 / 2000, 1.0, 1e-3, 3 / 2000, 1e-3]
        theta = minimise_together(problem)
        eps = 1e-6
        for agent, coordinate in ((0, 0), (1, 1), (2, 2), (4, 0)):
            moved = np.zeros_like(theta)
            moved[agent, coordinate] = eps
            slope = (problem.objective(theta + moved) - problem.objective(theta - moved)) / (2 * eps)
            assert slope == pytest.approx(0, abs=1e-8)


@pytest.mark.verification
@pytest.mark.parametrize("kind", ["logistic", "squared"])
def test_ten_thousand_agents(kind):
    where = draw_links(RandomRegular(degree=10), TopologyInputs(10_000), seed=0, replica=0)
    problem = problem_of(LOSSES[kind](), where, [5 + i % 20 for i in range(10_000)], 20, 1.0)
    begun = time.perf_counter()
    theta = minimise_together(problem)
    seconds = time.perf_counter() - begun
    print(f"{kind}: minimised in {seconds:.1f} s")
    slope, scale = gradient(problem, theta)
    assert np.abs(slope).max() <= 1e-10 * scale
    assert seconds < 60


@pytest.mark.parametrize("kind", sorted(LOSSES))
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_agents_alone(kind, reduction):
    """Zero gradient of the mean, or the sum, of an agent's losses plus λ_i‖θ‖²."""
    problem = problem_of(LOSSES[kind](), random_links(6, 1), [1, 2, 5, 9, 40, 0], 3, 1.0)
    theta = minimise_alone(problem, reduction)
    assert (theta[5] == 0).all()
    assert (minimise_alone(problem, reduction) == theta).all()
    for i in range(5):
        X, y = (rows[problem.offsets[i] : problem.offsets[i + 1]] for rows in (problem.X, problem.y))
        z = X @ theta[i]
        slopes = SLOPES[kind](z, y)
        weight = 1 if reduction == "sum" else len(y)
        np.testing.assert_allclose(X.T @ slopes / weight + 2 * problem.ridge[i] * theta[i], 0, atol=1e-8)


@pytest.mark.parametrize("kind", sorted(LOSSES))
def test_one_model_for_all(kind):
    problem = problem_of(LOSSES[kind](), random_links(4, 1), [3, 2, 5, 9], 3, 1.0)
    theta = global_model(problem)
    assert (theta == theta[0]).all()
    z = problem.X @ theta[0]
    slopes = SLOPES[kind](z, problem.y)
    np.testing.assert_allclose(problem.X.T @ slopes / 19 + 2 * theta[0] / 19, 0, atol=1e-9)


def perturbed_by_hand(problem, epsilon, x_l1, random):
    """Records as theory's local privacy makes them: draws for x row by row, then for the labels."""
    half = np.repeat(epsilon, problem.records) / 2
    X = problem.X.copy()
    X[:, :3] += np.array([random.laplace(size=3) * 2 * x_l1 / e for e in half])
    told = np.array([random.random() < np.exp(e) / (1 + np.exp(e)) for e in half])
    return X, np.where(told, problem.y, -problem.y)


def test_local_privacy_minimises_on_private_records():
    from dataclasses import replace

    problem = problem_of(Logistic(intercept=True), random_links(4, 1), [3, 2, 5, 9], 3, 1.0)
    epsilon = np.array([1.0, 5.0, 0.5, 20.0])
    theta = from_private_records(problem, epsilon, (2.0, 1.0), np.random.default_rng(7))
    X, y = perturbed_by_hand(problem, epsilon, 2.0, np.random.default_rng(7))
    assert (X[:, 3] == 1).all()
    slope, scale = gradient(replace(problem, X=X, y=y), theta)
    assert np.abs(slope).max() <= 1e-10 * scale
    # Without a limit on ε nothing is changed.
    free = from_private_records(problem, np.full(4, np.inf), (2.0, 1.0), np.random.default_rng(7))
    np.testing.assert_array_equal(free, minimise_together(problem))


def test_agents_may_learn_alone_from_private_records():
    """B, figure 4: the same records, and no graph."""
    from dataclasses import replace

    problem = problem_of(Logistic(intercept=True), random_links(4, 1), [3, 2, 5, 9], 3, 1.0)
    epsilon = np.array([1.0, 5.0, 0.5, 20.0])
    theta = from_private_records(problem, epsilon, (2.0, 1.0), np.random.default_rng(7), alone=True)
    X, y = perturbed_by_hand(problem, epsilon, 2.0, np.random.default_rng(7))
    np.testing.assert_allclose(theta, minimise_alone(replace(problem, X=X, y=y)), rtol=1e-9)
    free = from_private_records(problem, np.full(4, np.inf), (2.0, 1.0), np.random.default_rng(7), alone=True)
    np.testing.assert_array_equal(free, minimise_alone(problem))
