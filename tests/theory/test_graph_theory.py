"""Bounds and allocations on a graph against exact expectations and independent optimisation."""

import numpy as np
import pytest
import theory_references as references
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from p2psim.theory.bounds import graph


def ring(mu: float, n: int = 5, p: int = 1, curvature: float = 1.0):
    """Hessian of Q_L on a ring for L_i = (curvature/2)‖θ − a_i‖², c_i = 1: from the definition, in one coordinate."""
    laplacian = 2 * np.eye(n) - np.roll(np.eye(n), 1, axis=0) - np.roll(np.eye(n), -1, axis=0)
    return laplacian + mu * 2 * curvature * np.eye(n)


@pytest.mark.parametrize(("mu", "rate"), [(1.0, 0.9), (0.2, 1 - 0.2 / 6)])
def test_contraction_rate_of_the_ring(mu, rate):
    assert graph.contraction_rate(2 * mu, [2 * (1 + mu)] * 5) == pytest.approx(rate, rel=1e-15)
    assert graph.contraction_rate(2 * mu, [2 * (1 + mu)], agents=5) == pytest.approx(rate, rel=1e-15)


@pytest.mark.parametrize(("strong", "lipschitz"), [(0.0, [1.0]), (2.0, [1.0, 1.5]), (float("nan"), [1.0])])
def test_contraction_rate_of_impossible_constants(strong, lipschitz):
    with pytest.raises(ValueError, match="needs 0 < σ ≤ L_max"):
        graph.contraction_rate(strong, lipschitz)


def expected_gap(hessian, start, step, noise):
    """E[Q(t) − Q*] exactly, for t = 0 … T: x ← x − (Hx)_i/L_i·e_i − noise at a uniform i; second moments followed."""
    n = len(hessian)
    moves = []
    for i in range(n):
        A = np.eye(n)
        A[i] -= hessian[i] * step
        moves.append(A)
    second, gaps = np.outer(start, start), []
    for variance in [*noise, None]:
        gaps.append(0.5 * np.trace(hessian @ second))
        if variance is not None:
            second = sum(A @ second @ A.T for A in moves) / n + np.diag(np.full(n, variance)) / n
    return np.array(gaps)


@pytest.mark.parametrize("mu", [0.2, 1.0, 5.0])
def test_convergence_bound_holds(mu):
    H, L = ring(mu), 2 * (1 + mu)
    rate = graph.contraction_rate(2 * mu, [L] * 5)
    for start in (np.ones(5), np.array([1.0, -1, 1, -1, 0]), np.eye(5)[0]):
        gaps = expected_gap(H, start, 1 / L, np.zeros(100))
        assert (gaps <= graph.convergence_bound(gaps[0], rate, np.arange(101)) * (1 + 1e-12)).all()


@pytest.mark.parametrize("p", [1, 3, 20])
def test_one_step_from_the_minimiser_meets_the_corrected_bound_exactly(p):
    """And is p times the printed one."""
    mu, scale = 0.7, 0.3
    H, L = ring(mu), 2 * (1 + mu)
    # A step adds α·μ·η to the block that wakes, α = 1/(1 + μ): variance 2s² in each of p coordinates.
    gap = p * expected_gap(H, np.zeros(5), 1 / L, [2 * (mu * scale / (1 + mu)) ** 2])[1]
    moments = references.noise_moments([2.0] * 5, [1.0] * 5, mu, np.full((1, 5), scale))
    rate = graph.contraction_rate(2 * mu, [L] * 5)
    bounds = {
        form: graph.utility_bound(0.0, rate, [L] * 5, moments, p, form) for form in ("printed", "corrected")
    }
    assert bounds["corrected"] == pytest.approx(gap, rel=1e-12)
    assert bounds["printed"] == pytest.approx(gap / p, rel=1e-12)


@pytest.mark.parametrize("growth", [0.9, 1.0, 1.1])
def test_utility_bound_holds_and_the_printed_one_does_not_where_scales_grow(growth):
    mu, T = 1.0, 60
    H, L = ring(mu), 2 * (1 + mu)
    scales = 0.1 * growth ** np.arange(T)
    gaps = expected_gap(H, np.ones(5), 1 / L, 2 * (mu * scales / (1 + mu)) ** 2)
    rate = graph.contraction_rate(2 * mu, [L] * 5)
    moments = references.noise_moments([2.0] * 5, [1.0] * 5, mu, np.repeat(scales[:, None], 5, axis=1))
    assert gaps[-1] <= graph.utility_bound(gaps[0], rate, [L] * 5, moments, 1)
    if growth > 1:
        assert gaps[-1] > graph.utility_bound(gaps[0], rate, [L] * 5, moments, 1, "printed")


def test_objectives_of_the_allocations_are_the_known_ones():
    """C = .9, T = 50: printed/uniform 4.481, corrected/uniform .5538."""
    uniform = references.allocation_objective(0.9, np.full(50, 1 / 50))
    printed = references.allocation_objective(0.9, references.step_shares(0.9, 50, "printed"))
    corrected = references.allocation_objective(0.9, references.step_shares(0.9, 50))
    assert printed / uniform == pytest.approx(4.481, abs=5e-4)
    assert corrected / uniform == pytest.approx(0.5538, abs=5e-5)


@pytest.mark.parametrize(("power", "exponent"), [(1, references.THIRD), (2, references.QUARTER)])
def test_corrected_allocation_is_the_best_under_its_budget(power, exponent):
    """Against a general optimiser: Σ ε or Σ ε² equal to one."""
    rate, T = 0.8, 12

    def spend(x):
        e = np.exp(x)
        return e / np.sum(e**power) ** (1 / power)

    found = minimize(
        lambda x: np.log(references.allocation_objective(rate, spend(x))),
        np.zeros(T),
        method="BFGS",
        tol=1e-10,
    )
    best = references.step_shares(rate, T, exponent=exponent)
    np.testing.assert_allclose(spend(found.x), spend(np.log(best)), rtol=1e-4)


@given(rate=st.floats(0.5, 0.999), steps=st.integers(1, 200))
def test_corrected_is_never_worse_than_uniform_nor_uniform_than_printed(rate, steps):
    objective = [
        references.allocation_objective(rate, shares)
        for shares in (
            references.step_shares(rate, steps),
            np.full(steps, 1 / steps),
            references.step_shares(rate, steps, "printed"),
        )
    ]
    assert objective[0] <= objective[1] * (1 + 1e-12)
    assert objective[1] <= objective[2] * (1 + 1e-12)


def test_expected_wakes():
    """The k-th success of probability 1/n takes k·n trials on average: negative binomial."""
    from scipy.stats import nbinom

    k = np.array([1, 2, 7])
    np.testing.assert_allclose(references.expected_steps(k, 12), k + nbinom(k, 1 / 12).mean(), rtol=1e-12)
