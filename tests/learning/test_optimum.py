"""Exact minimisers against linear algebra, optimality conditions, duality, and brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from star_cases import random_problem

from p2psim.learning.losses import Hinge, Logistic, Squared
from p2psim.learning.optimum import minimise_hinge, minimise_squared
from p2psim.learning.star.problem import star_problem

pytestmark = pytest.mark.blas


def data(seed, n, p, classes, scale=1.0):
    random = np.random.default_rng(seed)
    X = scale * random.standard_normal((n, p))
    y = X @ random.standard_normal(p) / scale + random.standard_normal(n)
    return X, (np.where(y >= 0, 1.0, -1.0) if classes else y)


def assert_stationary(theta, gradient, theta_max, tolerance):
    """Optimality over a box: no coordinate can move inwards, or along its axis, and decrease the objective."""
    assert np.abs(theta).max() <= theta_max
    inside = np.abs(theta) < theta_max
    assert np.abs(gradient[inside]).max(initial=0.0) <= tolerance
    assert (gradient[theta == theta_max] <= tolerance).all()
    assert (gradient[theta == -theta_max] >= -tolerance).all()


CASES = {"seed": st.integers(0, 10_000), "n": st.integers(1, 40), "p": st.integers(1, 6)}


@given(**CASES, l2=st.floats(1e-6, 10))
def test_squared_without_an_active_box_solves_the_normal_equations(seed, n, p, l2):
    X, y = data(seed, n, p, classes=False)
    gram, moment = X.T @ X / n, X.T @ y / n
    exact = np.linalg.solve(gram + l2 * np.eye(p), moment)
    theta = minimise_squared(gram, moment, l2, 1e9)
    # f is compared: θ itself is only as good as the condition number of the Hessian.
    np.testing.assert_allclose(
        (gram + l2 * np.eye(p)) @ theta, moment, atol=1e-9 * max(1, np.abs(moment).max())
    )
    if n >= 2 * p:
        np.testing.assert_allclose(theta, exact, rtol=1e-6, atol=1e-9)


@given(**CASES, l2=st.floats(1e-3, 1), theta_max=st.floats(0.01, 0.5))
def test_squared_in_an_active_box_is_stationary(seed, n, p, l2, theta_max):
    X, y = data(seed, n, p, classes=False)
    gram, moment = X.T @ X / n, X.T @ y / n
    theta = minimise_squared(gram, moment, l2, theta_max)
    assert_stationary(theta, 2 * (gram @ theta + l2 * theta - moment), theta_max, 1e-9)


def test_squared_in_a_box_is_no_clipped_optimum():
    """Where features correlate, clipping the free optimum is wrong: [[1, .9], [.9, 1]]θ = (1, .5), |θ_j| ≤ 1.

    Free: (2.89, −2.11); with θ₁ held at 1 the best θ₂ is .5 − .9 = −.4, not −1.
    """
    theta = minimise_squared(np.array([[0.9, 0.9], [0.9, 0.9]]), np.array([1.0, 0.5]), 0.1, 1.0)
    np.testing.assert_allclose(theta, [1.0, -0.4], atol=1e-12)


@given(
    **CASES,
    l2=st.floats(1e-5, 1),
    theta_max=st.sampled_from([0.05, 0.5, 5.0, 1e3]),
    scale=st.sampled_from([0.1, 1.0, 30.0]),
)
def test_logistic_is_stationary(seed, n, p, l2, theta_max, scale):
    X, y = data(seed, n, p, classes=True, scale=scale)
    theta = Logistic().minimise(X, y, l2, theta_max)
    weight = 1 / (1 + np.exp(np.clip(y * (X @ theta), -700, 700)))
    assert_stationary(theta, 2 * l2 * theta - X.T @ (y * weight) / n, theta_max, 2e-10)


@settings(max_examples=25)
@given(seed=st.integers(0, 1000), n=st.integers(5, 40), p=st.integers(1, 4), l2=st.floats(1e-2, 1))
def test_logistic_equals_a_general_solver(seed, n, p, l2):
    X, y = data(seed, n, p, classes=True)

    def fitness(theta):
        return np.mean(np.log1p(np.exp(-y * (X @ theta)))) + l2 * theta @ theta

    general = minimize(
        fitness,
        np.zeros(p),
        method="L-BFGS-B",
        bounds=[(-0.4, 0.4)] * p,
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    theta = Logistic().minimise(X, y, l2, 0.4)
    assert fitness(theta) <= general.fun + 1e-13
    np.testing.assert_allclose(theta, general.x, atol=1e-4)


def hinge_dual(X, y, l2, theta_max, a):
    """Lower bound on the hinge fitness over the box from any multipliers 0 ≤ a ≤ 1/n, by weak duality.

    min over s ≥ 0 and the box of l2‖θ‖² + Σ s_r/n + Σ a_r(1 − y_r θᵀx_r − s_r), with s minimised to 0.
    """
    v = X.T @ (a * y)
    best = np.clip(v / (2 * l2), -theta_max, theta_max)
    return a.sum() + l2 * best @ best - v @ best


def hinge_multipliers(X, y, l2, theta):
    """Multipliers that complementary slackness leaves: 1/n inside the margin, 0 outside, free at kinks."""
    n, margin = len(y), y * (X @ theta)
    a = np.where(margin < 1 - 1e-6, 1 / n, 0.0)
    kinks = np.flatnonzero(np.abs(margin - 1) <= 1e-6)
    if kinks.size:
        from scipy.optimize import lsq_linear

        rest = 2 * l2 * theta - X.T @ (a * y)
        a[kinks] = np.clip(lsq_linear((X[kinks] * y[kinks, None]).T, rest, (0, 1 / n), tol=1e-14).x, 0, 1 / n)
    return a


@given(seed=st.integers(0, 10_000), n=st.integers(1, 40), p=st.integers(1, 5), l2=st.floats(1e-2, 1))
def test_hinge_has_a_dual_certificate(seed, n, p, l2):
    """Any feasible multipliers bound the fitness from below; the best ones, found here from θ, meet it."""
    X, y = data(seed, n, p, classes=True)
    theta = minimise_hinge(X, y, l2, 1e3)
    value = np.maximum(0, 1 - y * (X @ theta)).mean() + l2 * theta @ theta
    bound = hinge_dual(X, y, l2, 1e3, hinge_multipliers(X, y, l2, theta))
    assert bound <= value + 1e-12
    assert value - bound <= 1e-7


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 30),
    l2=st.floats(1e-5, 1),
    theta_max=st.sampled_from([0.1, 1.0, 100.0]),
)
def test_hinge_on_a_line_is_the_best_of_its_kinks(seed, n, l2, theta_max):
    """One feature: f is a parabola between kinks 1/(y_r x_r), so that the best point can be listed."""
    X, y = data(seed, n, 1, classes=True)
    slopes, kinks = y * X[:, 0], np.sort(1 / (y * X[:, 0]))
    edges = np.concatenate([[-theta_max], kinks[np.abs(kinks) < theta_max], [theta_max]])
    candidates = list(edges)
    for low, high in itertools.pairwise(edges):
        active = slopes * (low + high) / 2 < 1
        candidates.append(np.clip(slopes[active].sum() / (2 * l2 * n), low, high))
    best = min(np.maximum(0, 1 - slopes * t).mean() + l2 * t * t for t in candidates)
    theta = minimise_hinge(X, y, l2, theta_max)
    value = np.maximum(0, 1 - y * (X @ theta)).mean() + l2 * theta @ theta
    assert best - 1e-14 <= value <= best + 2e-10


def test_separable_data():
    """Two points at ±1: f = max(0, 1 − t) + l2·t² is least at min(1, 1/(2·l2)); the box may come first."""
    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    assert minimise_hinge(X, y, 0.1, 10.0)[0] == pytest.approx(1.0, abs=1e-8)
    assert minimise_hinge(X, y, 2.0, 10.0)[0] == pytest.approx(0.25, abs=1e-5)
    assert minimise_hinge(X, y, 0.1, 0.5)[0] == pytest.approx(0.5, abs=1e-8)
    scalar = minimize_scalar(
        lambda t: np.log1p(np.exp(-t)) + 1e-4 * t * t,
        bounds=(0, 50),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert Logistic().minimise(X, y, 1e-4, 50.0)[0] == pytest.approx(scalar.x, abs=1e-5)
    assert Logistic().minimise(X, y, 1e-4, 2.0)[0] == 2.0


@pytest.mark.parametrize("loss", [Squared(), Hinge(), Logistic()], ids=lambda loss: loss.kind)
def test_isolated_optima_are_the_optima_of_each_owner_alone(loss):
    problem = random_problem(loss, [12, 1, 30], 3, seed=4)
    for i, optimum in enumerate(problem.isolated_optima):
        rows = slice(problem.offsets[i], problem.offsets[i + 1])
        X = problem.X[rows, :-1] if loss.intercept else problem.X[rows]
        alone = star_problem(X, problem.y[rows], np.array([0, len(X)]), loss, problem.l2, problem.theta_max)
        np.testing.assert_allclose(optimum, alone.optimum, atol=1e-6)
        assert problem.relative_fitness(optimum)[0] >= -1e-12


@pytest.mark.parametrize("loss", [Squared(), Hinge(), Logistic()], ids=lambda loss: loss.kind)
def test_minimum_and_relative_fitness_are_those_of_the_definition(loss):
    problem = random_problem(loss, [12, 5, 30], 3, seed=9, theta_max=0.3)
    thetas = np.random.default_rng(0).uniform(-0.3, 0.3, (20, problem.dimension))

    def fitness(theta):
        per_record = [
            loss.values(np.array([x @ theta]), np.array([t]))[0]
            for x, t in zip(problem.X, problem.y, strict=True)
        ]
        return problem.l2 * np.sum(theta**2) + np.mean(per_record)

    assert problem.box_is_active
    assert problem.minimum == pytest.approx(fitness(problem.optimum), rel=1e-12)
    expected = [fitness(theta) / problem.minimum - 1 for theta in thetas]
    np.testing.assert_allclose(problem.relative_fitness(thetas), expected, rtol=1e-9, atol=1e-12)
    assert (problem.relative_fitness(thetas) >= 0).all()


def test_relative_fitness_does_not_cancel_near_the_optimum():
    """ψ of 1e-20 from a quadratic form; the difference of two fitnesses could not tell it from zero."""
    problem = random_problem(Squared(), [50, 50], 2, seed=1, theta_max=100.0)
    hessian = problem.X.T @ problem.X / 100 + problem.l2 * np.eye(2)
    d = np.array([1e-10, -1e-10])
    expected = d @ hessian @ d / problem.minimum
    # θ* + d is rounded at 1e-16, which is 1e-6 of d.
    assert problem.relative_fitness(problem.optimum + d)[0] == pytest.approx(expected, rel=1e-5)
