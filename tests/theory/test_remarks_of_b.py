"""Remarks 1 and 4 of B.

**Remark 1**: without strong convexity the gap of coordinate descent falls as O(1/t). Wright (2015), Theorem 1:
E[Q(t)] − Q* ≤ 2n·L_max·R²/t, R the largest distance of models from the minimisers. The proof needs R along the path
alone: with φ the expected gap, φ ≤ R·‖∇Q‖ and φ(t + 1) ≤ φ(t) − ‖∇Q‖²/(2n·L_max).

**Remark 4** prints Gaussian noise of scale 2L₀*·√(2 ln(2/δ))/ε, without 1/m_i and for every ε.
"""

from dataclasses import replace

import numpy as np
import pytest
from graph_cases import graph_events, paths, problem_of, random_links
from scipy.stats import norm

from p2psim.learning.graph.problem import GraphProblem, GraphRule
from p2psim.learning.losses import Squared
from p2psim.privacy.accounting.noises import GAUSSIAN

N, P, T, RUNS = 6, 12, 1600, 10


def flat() -> tuple[GraphProblem, np.ndarray, np.ndarray]:
    """A problem without regulariser, with its Hessian and a minimiser, shape (n·p,).

    Features lie in ten of twelve dimensions, with scales that fall as 1/j^1.5: Q_L is flat in two, nearly so in many.
    """
    problem = problem_of(Squared(), random_links(N, 3, 4), [4] * N, P, 1.0, seed=5)
    X = problem.X / np.arange(1, P + 1) ** 1.5
    X[:, -2:] = 0.0
    truth = np.random.default_rng(0).standard_normal(P)
    peaks = [np.linalg.norm(rows, 2) ** 2 / len(rows) for rows in np.split(X, problem.offsets[1:-1])]
    problem = replace(
        problem, X=X, y=X @ truth, ridge=np.zeros(N), confidence=np.ones(N), smoothness=2 * np.array(peaks)
    )
    means = np.zeros((N, N))
    for i in range(N):
        means[:, i] = problem.neighbour_means(np.eye(N)[:, i : i + 1])[:, 0]
    hessian = np.kron(np.diag(problem.degrees) @ (np.eye(N) - means), np.eye(P))
    moment = np.zeros(N * P)
    for i in range(N):
        rows, block = slice(problem.offsets[i], problem.offsets[i + 1]), slice(i * P, (i + 1) * P)
        hessian[block, block] += problem.pull[i] * 2 * X[rows].T @ X[rows] / 4
        moment[block] = problem.pull[i] * 2 * X[rows].T @ problem.y[rows] / 4
    return problem, hessian, np.linalg.lstsq(hessian, moment, rcond=None)[0]


def test_the_gap_falls_at_least_as_one_over_t_and_not_geometrically():
    problem, hessian, best = flat()
    assert np.linalg.eigvalsh(hessian)[:2] == pytest.approx(0, abs=1e-12)
    assert problem.strong_convexity == 0
    assert problem.contraction == 1  # of which Proposition 1 makes nothing
    rule, start = GraphRule(np.inf, 1, np.inf, None, False), np.zeros((N, P))
    where = random_links(N, 3, 4)
    gaps, far = [], 0.0
    onto = hessian @ np.linalg.pinv(hessian)  # away from the flat directions
    for seed in range(RUNS):
        off = paths(problem, rule, start, graph_events(where, T, seed), np.zeros((T, P))).reshape(T + 1, -1)
        off = off - best
        gaps.append(0.5 * np.einsum("ti,ij,tj->t", off, hessian, off))
        far = max(far, float(((off @ onto) ** 2).sum(axis=1).max()))
    gap = np.mean(gaps, axis=0)
    assert gap[0] == pytest.approx(problem.objective(start), rel=1e-9)  # labels fit exactly: Q* = 0
    t = np.arange(1, T + 1)
    bound = 2 * N * problem.lipschitz.max() * far / t
    assert (gap[1:] <= bound).all()
    # At a geometric rate each of these would be the square of the one before; a power of t repeats them.
    falls = gap[[200, 400, 800, 1600]] / gap[[100, 200, 400, 800]]
    assert falls.min() > 0.65
    assert falls.max() < 0.85


@pytest.mark.parametrize(
    ("epsilon", "delta", "true"), [(10.0, 0.1, 0.264), (1.0, 0.1, None), (9.0, 1e-5, None)]
)
def test_the_scale_of_remark_4_is_not_private_at_a_large_epsilon(epsilon, delta, true):
    """One record, so that the missing 1/m_i does not matter; beside the exact δ of Balle and Wang (2018)."""
    mu = epsilon / np.sqrt(2 * np.log(2 / delta))
    exact = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert GAUSSIAN.delta(np.array(mu), np.array(epsilon)) == pytest.approx(exact, rel=1e-9)
    if true is None:
        assert exact <= delta
    else:
        assert exact == pytest.approx(true, abs=5e-4)


def test_the_scale_of_remark_4_is_m_times_what_an_agent_needs():
    """At ε = 1 and δ = .1, with 50 records: the loss is a fiftieth of that of a scale with 1/m_i."""
    mu = 1 / np.sqrt(2 * np.log(20))
    spent = [float(GAUSSIAN.delta(np.array(mu / m), np.array(1.0))) for m in (1, 50)]
    assert spent[1] < 1e-20 < spent[0]
