"""Rates of decentralised SGD on random quadratics: known values, full matrices, simulation, and n_W."""

from typing import Any

import numpy as np
import pytest

from p2psim.core.errors import InputError
from p2psim.network.graph import TopologyInputs
from p2psim.network.mixing import mixing_matrix
from p2psim.network.topologies import (
    BinaryTree,
    Complete,
    Exponential,
    Hypercube,
    Ring,
    StarOfAgents,
    Topology,
    draw_links,
)
from p2psim.theory import quadratics
from p2psim.theory.neighbours import effective_neighbours, one_peer_exponential
from p2psim.theory.quadratics import best_step, noise_of_batches, path, rate, rate_alone

pytestmark = pytest.mark.blas

ORDERS = ("gossip-then-gradient", "gradient-then-gossip", "together")
STEPS = (0.01, 0.02, 0.05)


def metropolis(topology: Topology) -> np.ndarray:
    found: np.ndarray = mixing_matrix(draw_links(topology, TopologyInputs()), "metropolis").toarray()
    return found


MIXING: dict[str, Any] = {
    "ring": metropolis(Ring(agents=32)),
    "hypercube": metropolis(Hypercube(agents=32)),
    "complete": metropolis(Complete(agents=32)),
    "one-peer": one_peer_exponential(32),
    "star": metropolis(StarOfAgents(agents=32)),
    "tree": metropolis(BinaryTree(agents=32)),
    "exponential": metropolis(Exponential(agents=32)),
}


@pytest.mark.parametrize("order", ORDERS[:2])
@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("ring", (0.019744, 0.038942, 0.091202)),
        ("hypercube", (0.019747, 0.038985, 0.093561)),
        ("complete", (0.019747, 0.038987, 0.093672)),
        ("one-peer", (0.019746, 0.038977, 0.093201)),
    ],
)
def test_known_rates_of_32_agents(name: str, known: tuple[float, ...], order: Any) -> None:
    found = [rate(MIXING[name], step, 50, order) for step in STEPS]
    assert found == pytest.approx(known, abs=6e-7)


def test_known_rates_of_the_third_form() -> None:
    found = [rate(MIXING["ring"], step, 50, "together") for step in STEPS]
    assert found == pytest.approx((0.019743, 0.038929, 0.089965), abs=6e-7)


def test_alone() -> None:
    assert rate_alone(0.02, 50) == pytest.approx(0.02)
    assert max(rate_alone(step, 50) for step in np.linspace(0.001, 0.06, 600)) == pytest.approx(
        0.02, abs=1e-6
    )
    for step in STEPS:
        assert rate(np.eye(1), step, 50) == pytest.approx(rate_alone(step, 50), rel=1e-12)
        assert rate(np.eye(20), step, 50) == pytest.approx(rate_alone(step, 50), rel=1e-9)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("order", ORDERS[:2])
def test_the_mean_of_all_is_the_rate_of_a_batch_of_all(step: float, order: Any) -> None:
    """With W = 11ᵀ/n all models are one, and the gradient is the mean of n draws."""
    for n in (4, 32):
        found = rate(np.full((n, n), 1 / n), step, 50, order)
        assert found == pytest.approx(rate_alone(step, noise_of_batches(50, n)), rel=1e-9)


@pytest.mark.parametrize("name", ["ring", "hypercube", "complete", "exponential"])
@pytest.mark.parametrize("step", STEPS)
def test_rates_follow_from_effective_neighbours_where_all_agents_are_alike(name: str, step: float) -> None:
    zeta = 50.0
    radius = 1 - rate(MIXING[name], step, zeta)
    gamma = (1 - step) ** 2 / radius
    left = 1 / ((1 - gamma) * effective_neighbours(MIXING[name], gamma))
    assert left == pytest.approx(1 + (1 - step) ** 2 / (step**2 * (zeta - 1)), rel=1e-6)


def kronecker(W: np.ndarray, step: float, zeta: float, order: str) -> np.ndarray:
    """The map of second moments written out: row (i, j), column (k, l)."""
    n = len(W)
    A = np.zeros((n * n, n * n))
    for k in range(n):
        for m in range(n):
            C = np.zeros((n, n))
            C[k, m] = 1
            after = np.zeros((n, n))
            if order != "together":
                mixed = W @ C @ W.T if order == "gossip-then-gradient" else C
                for i in range(n):
                    for j in range(n):
                        keep = 1 - 2 * step + zeta * step**2 if i == j else (1 - step) ** 2
                        after[i, j] = keep * mixed[i, j]
                if order == "gradient-then-gossip":
                    after = W @ after @ W.T
            else:  # E (Wx − ηDx)_i·(Wx − ηDx)_j term by term
                for i in range(n):
                    for j in range(n):
                        after[i, j] = sum(W[i, a] * W[j, b] * C[a, b] for a in range(n) for b in range(n))
                        after[i, j] -= step * sum(W[i, a] * C[a, j] + W[j, a] * C[i, a] for a in range(n))
                        after[i, j] += step**2 * C[i, j] * (zeta if i == j else 1)
            A[:, k * n + m] = after.ravel()
    return A


def a_mixing_matrix(n: int, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.ones(4))
    return np.asarray(sum(w * np.eye(n)[random.permutation(n)] for w in weights))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [3, 8, 10])
def test_rates_against_the_matrix_written_out(n: int, order: Any) -> None:
    """Small n takes full matrices and large n iteration; several matrices make a turn."""
    first, second = a_mixing_matrix(n, 1), a_mixing_matrix(n, 2)
    for step in (0.03, 0.2):
        A, B = (kronecker(W, step, 9.0, order) for W in (first, second))
        radius = np.abs(np.linalg.eigvals(A)).max()
        assert rate(first, step, 9.0, order) == pytest.approx(1 - radius, abs=1e-9)
        turn = np.abs(np.linalg.eigvals(B @ A)).max()
        assert rate([first, second], step, 9.0, order) == pytest.approx(1 - np.sqrt(turn), abs=1e-9)


def simulated(W: np.ndarray, step: float, order: str, rounds: int, replicas: int) -> np.ndarray:
    """Mean over replicas of xᵀx between agents, with Gaussian draws in p = 3 dimensions (ζ = 5)."""
    random, n, p = np.random.default_rng(5), len(W), 3
    x = np.zeros((replicas, n, p))
    x[:, :, 0] = np.arange(n) / n + 0.5

    def gradient(at: np.ndarray) -> np.ndarray:
        d = random.standard_normal((replicas, n, p))
        return d * (d * at).sum(axis=-1, keepdims=True)

    for _ in range(rounds):
        mixed = W @ x
        if order == "gossip-then-gradient":
            x = mixed - step * gradient(mixed)
        elif order == "gradient-then-gossip":
            x = W @ (x - step * gradient(x))
        else:
            x = mixed - step * gradient(x)
    products = np.einsum("rip,rjp->rij", x, x)
    return np.stack([products.mean(axis=0), products.std(axis=0) / np.sqrt(replicas)])


@pytest.mark.parametrize("order", ORDERS)
def test_moments_are_those_of_simulated_agents(order: Any) -> None:
    W, n, step = a_mixing_matrix(5, 7), 5, 0.15
    start = np.arange(n) / n + 0.5
    moments = path(W, step, 5.0, np.outer(start, start), order)
    expected = [next(moments) for _ in range(5)][-1]
    mean, error = simulated(W, step, order, 4, 100_000)
    assert (np.abs(mean - expected) < 5 * error).all()


def test_both_sequential_orders_have_one_rate() -> None:
    for name, mixing in MIXING.items():
        rates = [rate(mixing, 0.07, 50, order) for order in ORDERS[:2]]  # type: ignore[arg-type]
        assert rates[0] == pytest.approx(rates[1], abs=1e-10), name


@pytest.mark.parametrize("name", ["ring", "star", "tree", "one-peer", "complete"])
def test_the_best_step_beats_all_others(name: str) -> None:
    best = best_step(MIXING[name], 50)
    assert rate(MIXING[name], best.step, 50) == pytest.approx(best.rate, rel=1e-6)
    assert all(rate(MIXING[name], step, 50) <= best.rate + 1e-9 for step in np.geomspace(0.01, 1.9, 40))


def test_the_best_step_of_the_mean_of_all() -> None:
    zeta = noise_of_batches(50, 32)
    step, best = best_step(MIXING["complete"], 50)
    assert (step, best) == pytest.approx((1 / zeta, 1 / zeta), rel=1e-3)
    assert best == pytest.approx(1 / zeta, rel=1e-6)


@pytest.mark.parametrize(
    ("step", "zeta", "order", "message"),
    [
        (0.0, 50.0, "together", "step size must be a positive number, got 0"),
        (float("nan"), 50.0, "together", "positive number, got nan"),
        (0.1, 0.5, "together", "zeta must be a number of at least 1"),
        (0.1, float("inf"), "together", "zeta must be a number of at least 1"),
        (0.1, 50.0, "neither", "gossip-then-gradient, gradient-then-gossip, together"),
    ],
)
def test_what_is_refused(step: float, zeta: float, order: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rate(np.eye(3), step, zeta, order)


def test_numbers_of_a_batch_and_of_first_moments() -> None:
    with pytest.raises(InputError, match="at least one draw, got 0"):
        quadratics.noise_of_batches(50, 0)
    with pytest.raises(InputError, match=r"shape \(3, 3\), got \(2, 2\)"):
        next(path(np.eye(3), 0.1, 5, np.eye(2)))
