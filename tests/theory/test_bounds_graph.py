"""B Proposition 1 and Theorem 2 on graphs of all kinds, against exact second moments of coordinate descent."""

import numpy as np
import theory_references as references
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.theory.bounds import graph


def random_case(n, p, mu, seed):
    """A connected weighted graph, quadratic L_i = ½(θ − a)ᵀC_i(θ − a), and c_i: Hessian of Q_L, and its constants."""
    random = np.random.default_rng(seed)
    W = np.zeros((n, n))
    for i in range(1, n):
        j = random.integers(0, i)
        W[i, j] = W[j, i] = random.uniform(0.2, 2)
    extra = np.triu(random.random((n, n)) < 0.3, 1) * random.uniform(0.2, 2, (n, n))
    W = np.maximum(W, extra + extra.T)
    D, c = W.sum(axis=1), random.uniform(0.1, 1, n)
    H = np.kron(np.diag(D) - W, np.eye(p))
    local, strong = np.empty(n), np.empty(n)
    for i in range(n):
        A = random.normal(size=(p, p))
        C = A @ A.T / p + 0.1 * np.eye(p)
        strong[i], local[i] = np.linalg.eigvalsh(C)[[0, -1]]
        H[i * p : (i + 1) * p, i * p : (i + 1) * p] += mu * D[i] * c[i] * C
    blocks = D * (1 + mu * c * local)
    return H, D, c, blocks, mu * (D * c * strong).min(), random


def exact_gaps(H, n, p, blocks, start, variances):
    """E[Q − Q*] at 0 … T: Θ_i ← Θ_i − (HΘ)_i/L_i + noise of variances[t, i] a coordinate, i uniform."""
    second, gaps, maps = np.outer(start, start), [], []
    for i in range(n):
        M = np.eye(n * p)
        M[i * p : (i + 1) * p] -= H[i * p : (i + 1) * p] / blocks[i]
        maps.append(M)
    for row in [*variances, None]:
        gaps.append(0.5 * np.trace(H @ second))
        if row is not None:
            second = sum(M @ second @ M.T for M in maps) / n + np.diag(np.repeat(row, p)) / n
    return np.array(gaps)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 7),
    p=st.integers(1, 3),
    mu=st.floats(0.05, 5),
    T=st.integers(1, 60),
    growth=st.floats(0.9, 1.1),
    scale=st.floats(0, 3),
    seed=st.integers(0, 10**6),
)
def test_corrected_bounds_hold(n, p, mu, T, growth, scale, seed):
    H, D, c, blocks, strong, random = random_case(n, p, mu, seed)
    rate = graph.contraction_rate(strong, blocks)
    start = random.normal(size=n * p)
    scales = scale * random.uniform(0.2, 1, n) * growth ** np.arange(T)[:, None]
    # A noisy step moves by α_i·μ·c_i·η = μ·D_ii·c_i/L_i·η; η has variance 2s².
    variances = 2 * (mu * D * c / blocks * scales) ** 2
    gaps = exact_gaps(H, n, p, blocks, start, variances)
    moments = references.noise_moments(D, c, mu, scales)
    for t in range(1, T + 1):
        bound = graph.utility_bound(gaps[0], rate, blocks, moments[:t], p)
        assert gaps[t] <= bound * (1 + 1e-9)
    still = exact_gaps(H, n, p, blocks, start, 0 * variances)
    assert (still <= graph.convergence_bound(still[0], rate, np.arange(T + 1)) * (1 + 1e-9)).all()


@given(p=st.integers(2, 4), mu=st.floats(0.1, 5), seed=st.integers(0, 10**6))
def test_printed_bound_is_broken_by_one_step_from_the_minimiser(p, mu, seed):
    """Equal agents on K₄ with L_i = ½‖θ − a_i‖²: the gap is p times the printed bound."""
    random = np.random.default_rng(seed)
    n, D = 4, np.full(4, 3.0)
    H = np.kron(4 * np.eye(n) - 1 + mu * 3 * np.eye(n), np.eye(p))
    blocks = D * (1 + mu)
    scales = np.full((1, n), random.uniform(0.1, 2))
    gap = exact_gaps(H, n, p, blocks, np.zeros(n * p), 2 * (mu * D / blocks * scales) ** 2)[1]
    moments = references.noise_moments(D, np.ones(n), mu, scales)
    rate = graph.contraction_rate(3 * mu, blocks)
    np.testing.assert_allclose(gap, graph.utility_bound(0.0, rate, blocks, moments, p), rtol=1e-9)
    np.testing.assert_allclose(
        gap, p * graph.utility_bound(0.0, rate, blocks, moments, p, "printed"), rtol=1e-9
    )
