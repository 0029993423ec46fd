"""Moments of decentralised SGD against every possible batch, against simulation, and against random quadratics."""

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from p2psim.core.errors import InputError
from p2psim.learning.batches import Spread
from p2psim.theory.forecasts.decentralised import ModelMoments, QuadraticAgents, model_moments
from p2psim.theory.quadratics import path

pytestmark = pytest.mark.blas

ORDERS = ("gossip-then-gradient", "gradient-then-gossip", "together")

W = np.array([[0.6, 0.4, 0.0], [0.1, 0.5, 0.4], [0.3, 0.1, 0.6]])  # doubly stochastic, not symmetric
SIZES = (3, 2, 4)


def records(p: int = 2, seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    total = sum(SIZES)
    return random.normal(size=(total, p)), random.normal(size=total), np.concatenate([[0], np.cumsum(SIZES)])


def batches(size: int, how: tuple[str, float]) -> list[tuple[float, tuple[int, ...], float]]:
    """Each batch of so many records: its probability, its rows, and what the sum is divided by."""
    kind, value = how
    if kind == "whole":
        return [(1.0, tuple(range(size)), float(size))]
    if kind == "fixed":
        every = list(combinations(range(size), int(value)))
        return [(1 / len(every), rows, value) for rows in every]
    subsets = [rows for k in range(size + 1) for rows in combinations(range(size), k)]
    return [(value ** len(rows) * (1 - value) ** (size - len(rows)), rows, value * size) for rows in subsets]


def by_enumeration(
    how: tuple[str, float], steps: list[float], order: str, ridge: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """E x and E xxᵀ of all sequences of batches, one after the other: exact, in a time that grows with every round."""
    X, y, offsets = records()
    states = [(1.0, START)]

    def gradient(agent: int, at: np.ndarray, rows: tuple[int, ...], divisor: float) -> np.ndarray:
        total = ridge * at
        for row in rows:
            x, label = X[offsets[agent] + row], y[offsets[agent] + row]
            total = total + 2 * (x @ at - label) * x / divisor
        return total

    drawn = list(product(*(batches(size, how) for size in SIZES)))
    for step in steps:
        after = []
        for weight, models in states:
            for choice in drawn:
                chance = weight * np.prod([probability for probability, _, _ in choice])
                at = W @ models if order == "gossip-then-gradient" else models
                slopes = np.array([gradient(i, at[i], rows, d) for i, (_, rows, d) in enumerate(choice)])
                gossip_last = order == "gradient-then-gossip"
                new = W @ (models - step * slopes) if gossip_last else W @ models - step * slopes
                after.append((chance, new))
        states = after
        flat = [(chance, models.ravel()) for chance, models in states]
        yield (
            np.asarray(sum(chance * x for chance, x in flat)),
            np.asarray(sum(chance * np.outer(x, x) for chance, x in flat)),
        )


START = np.array([[0.5, -1.0], [2.0, 0.3], [-0.7, 1.1]])


def agents_of(how: tuple[str, float], ridge: float = 0.0, noise: float = 0.0) -> QuadraticAgents:
    kind, value = how
    spreads = [
        Spread.whole()
        if kind == "whole"
        else Spread.poisson(value, size)
        if kind == "poisson"
        else Spread.fixed(int(value), size)
        for size in SIZES
    ]
    return QuadraticAgents(*records(), ridge, spreads, np.full(3, noise))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("how", [("whole", 0.0), ("fixed", 1.0), ("fixed", 2.0), ("poisson", 0.4)])
def test_against_every_batch(how: tuple[str, float], order: Any) -> None:
    """Two rounds of all 24 to 512 choices of batches, each in turn."""
    steps = [0.2] if how[0] == "poisson" else [0.2, 0.1]
    found = model_moments(agents_of(how, ridge=0.3), W, iter(steps), START, order)
    assert next(found).mean.tolist() == START.ravel().tolist()
    for moments, (mean, second) in zip(found, by_enumeration(how, steps, order, 0.3), strict=True):
        np.testing.assert_allclose(moments.mean, mean, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(moments.second, second, rtol=1e-11, atol=1e-12)


def test_noise_and_rounds_in_turn_against_simulation() -> None:
    """Four rounds of two matrices with privacy noise, 60,000 times; batches of two records."""
    random, replicas, deviation = np.random.default_rng(4), 60_000, 0.5
    X, y, offsets = records()
    other = np.eye(3)[[1, 2, 0]] * 0.5 + np.eye(3) * 0.5
    models = np.repeat(START[None], replicas, axis=0)
    for number in range(4):
        mixed = (W, other)[number % 2] @ models
        slopes = np.empty_like(mixed)
        for i, size in enumerate(SIZES):
            own = slice(offsets[i], offsets[i + 1])
            taken = random.permuted(np.tile(np.arange(size), (replicas, 1)), axis=1)[:, :2]
            x, label = X[own][taken], y[own][taken]
            residuals = np.einsum("rkp,rp->rk", x, mixed[:, i]) - label
            slopes[:, i] = np.einsum("rk,rkp->rp", residuals, x)  # 2·residual·x/2
        slopes += deviation * random.standard_normal(slopes.shape)
        models = mixed - 0.1 * slopes
    agents = agents_of(("fixed", 2.0), noise=deviation**2)
    last = ModelMoments(np.zeros(0), np.zeros((0, 0)))
    for moments in model_moments(agents, [W, other], iter([0.1] * 4), START, "gossip-then-gradient"):
        last = moments
    flat = models.reshape(replicas, -1)
    error = flat.std(axis=0) / np.sqrt(replicas)
    assert (np.abs(flat.mean(axis=0) - last.mean) < 5 * error).all()
    squares = flat[:, :, None] * flat[:, None, :]
    error = squares.std(axis=0) / np.sqrt(replicas)
    assert (np.abs(squares.mean(axis=0) - last.second) < 5 * error).all()
    mean = models.mean(axis=1)
    distances = ((models - mean[:, None]) ** 2).sum(axis=2).mean(axis=1)
    expected = last.consensus_distance(3)
    assert abs(distances.mean() - expected) < 5 * distances.std() / np.sqrt(replicas)
    np.testing.assert_allclose(last.of_mean(3)[0], mean.mean(axis=0), atol=0.02)


@pytest.mark.parametrize("order", ORDERS)
def test_random_quadratics_are_a_case(order: Any) -> None:
    """Records √(p/2)·e_k, one of them a batch: E ddᵀ = I and ζ = p, and labels of zero have the optimum 0."""
    p, n = 4, 3
    X = np.tile(np.sqrt(p / 2) * np.eye(p), (n, 1))
    agents = QuadraticAgents(
        X, np.zeros(n * p), p * np.arange(n + 1), 0.0, [Spread.fixed(1, p)] * n, np.zeros(n)
    )
    start = np.random.default_rng(2).normal(size=(n, p))
    exact = path(W, 0.15, float(p), start @ start.T, order)
    for moments in model_moments(agents, W, iter([0.15] * 6), start, order):
        traces = np.einsum("ipjp->ij", moments.second.reshape(n, p, n, p))
        np.testing.assert_allclose(traces, next(exact), rtol=1e-11)


def test_matrices_of_other_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="there are 3 agents, but mixing matrices of 4"):
        next(model_moments(agents_of(("whole", 0.0)), np.eye(4), iter([0.1]), START, "together"))
