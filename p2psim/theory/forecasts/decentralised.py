"""Decentralised SGD in rounds on squared losses: exact first and second moments of all agents' models.

Agent i holds m_i records; its mean loss is (1/m_i)·Σ_r (x_rᵀθ − y_r)², and its gradient has c·θ added by regularisers.
One round mixes the models by W and takes a step of size η along gradients of batches, in one of three orders. Gradients
are linear in θ, so that a round is x ← Lx + ηo + η·e for all models x together. The noise e has a mean of zero and a
covariance that is quadratic in the models: with S_i = E g_r g_rᵀ over the agent's records and ḡ_i the mean of these
gradients,

    Cov e_i = α_i·S_i − β_i·ḡ_iḡ_iᵀ + v_i·I,

(α, β) = ((1 − q)/(q·m), 0) where each record is drawn with probability q, α = β = (m − b)/(b·(m − 1)) for b of m
records without replacement, and v_i the variance of privacy noise in the mean gradient. E x and E xxᵀ therefore follow
a recursion that is exact for any records, whether or not all agents have the same optimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from p2psim.core.errors import InputError
from p2psim.learning.batches import Spread
from p2psim.theory.neighbours import as_rounds
from p2psim.theory.quadratics import Order


@dataclass(frozen=True)
class QuadraticAgents:
    """Records of all agents, and how their gradients are computed.

    Attributes
    ----------
    X : ndarray, shape (records, p)
    y : ndarray, shape (records,)
    offsets : ndarray of int, shape (n + 1,)
        Agent i holds rows ``offsets[i]`` to ``offsets[i + 1]``, at least one.
    ridge : float
        c: gradients have c·θ added.
    spreads : sequence of Spread
        One for each agent.
    noise : ndarray, shape (n,) or (rounds, n)
        v_i, the variance of noise in each coordinate of a mean gradient, of all rounds or of each.
    """

    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    ridge: float
    spreads: Sequence[Spread]
    noise: np.ndarray

    @property
    def agents(self) -> int:
        """Number of agents, n."""
        return self.offsets.size - 1

    @property
    def dimension(self) -> int:
        """Number of parameters, p."""
        return int(self.X.shape[1])

    def rows(self, agent: int) -> slice:
        """Rows of an agent's records."""
        return slice(int(self.offsets[agent]), int(self.offsets[agent + 1]))

    @cached_property
    def gram(self) -> np.ndarray:
        """A_i, the mean of xxᵀ, shape (n, p, p)."""
        rows = map(self.rows, range(self.agents))
        return np.array([self.X[own].T @ self.X[own] / len(self.y[own]) for own in rows])

    @cached_property
    def moment(self) -> np.ndarray:
        """b_i, the mean of x·y, shape (n, p)."""
        rows = map(self.rows, range(self.agents))
        return np.array([self.X[own].T @ self.y[own] / len(self.y[own]) for own in rows])

    @cached_property
    def hessian(self) -> np.ndarray:
        """2·A_i + c·I, shape (n, p, p)."""
        return np.asarray(2 * self.gram + self.ridge * np.eye(self.dimension))

    def residuals(self, agent: int, mean: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First two moments of xᵀθ − y over models of one agent, for each of its records, shape (m,) each."""
        X, y = self.X[self.rows(agent)], self.y[self.rows(agent)]
        scores = X @ mean
        return scores - y, ((X @ second) * X).sum(axis=1) - 2 * y * scores + y * y

    def covariance(self, mean: np.ndarray, second: np.ndarray, number: int = 0) -> np.ndarray:
        """Covariance of the gradients' noise in a round at models of these moments, shape (n·p, n·p)."""
        n, p = self.agents, self.dimension
        means, blocks = mean.reshape(n, p), second.reshape(n, p, n, p)
        full = np.zeros((n, p, n, p))
        for i, spread in enumerate(self.spreads):
            m, R, own = means[i], blocks[i, :, i], self.rows(i)
            noise = (self.noise[number, i] if self.noise.ndim == 2 else self.noise[i]) * np.eye(p)
            if spread.raw:
                X, (_, squares) = self.X[own], self.residuals(i, m, R)
                noise += spread.raw * 4 / len(X) * (X.T * squares) @ X
            if spread.centred:
                A, b = self.gram[i], self.moment[i]
                cross = np.outer(A @ m, b)
                noise -= spread.centred * 4 * (A @ R @ A - cross - cross.T + np.outer(b, b))
            full[i, :, i] = noise
        return full.reshape(n * p, n * p)


class ModelMoments(NamedTuple):
    """Moments of all agents' models after some rounds.

    Attributes
    ----------
    mean : ndarray, shape (n·p,)
        E x, agent by agent.
    second : ndarray, shape (n·p, n·p)
        E xxᵀ.
    """

    mean: np.ndarray
    second: np.ndarray

    def of_mean(self, agents: int) -> tuple[np.ndarray, np.ndarray]:
        """E θ̄ and E θ̄θ̄ᵀ of the agents' mean θ̄, shapes (p,) and (p, p)."""
        p = self.mean.size // agents
        second = self.second.reshape(agents, p, agents, p).mean(axis=(0, 2))
        return self.mean.reshape(agents, p).mean(axis=0), np.asarray(second)

    def mixed(self, mixing: np.ndarray) -> ModelMoments:
        """The moments after mixing by W, shape (n, n)."""
        return ModelMoments(_mixed(mixing, self.mean), _mixed(mixing, _mixed(mixing, self.second).T))

    def consensus_distance(self, agents: int) -> float:
        """Expected mean of ‖θ_i − θ̄‖² over the agents."""
        return max(0.0, float(np.trace(self.second) / agents - np.trace(self.of_mean(agents)[1])))


def model_moments(
    agents: QuadraticAgents, mixing: Any, steps: Iterator[float], start: np.ndarray, order: Order
) -> Iterator[ModelMoments]:
    """Moments before the first round and after each, for as long as there are step sizes.

    Parameters
    ----------
    agents : QuadraticAgents
    mixing : array_like or sparse array, shape (n, n), or a sequence of such
        W; several are taken in turn.
    steps : iterator of float
        η of each round.
    start : ndarray, shape (n, p)
        First models, which are not random.
    order : {"gossip-then-gradient", "gradient-then-gossip", "together"}

    Raises
    ------
    InputError
        If the matrices are not for so many agents.
    """
    rounds, n, p = as_rounds(mixing), agents.agents, agents.dimension
    if len(rounds[0]) != n:
        raise InputError(f"there are {n} agents, but mixing matrices of {len(rounds[0])}")
    first = np.asarray(start, dtype=np.float64).ravel()
    now = ModelMoments(first, np.outer(first, first))
    yield now
    for number, step in enumerate(steps):
        W = rounds[number % len(rounds)]
        if order == "gossip-then-gradient":
            now = now.mixed(W)

        def linear(x: np.ndarray, step: float = step, W: np.ndarray = W) -> np.ndarray:
            sloped = (agents.hessian @ x.reshape(n, p, -1)).reshape(x.shape)
            return np.asarray((_mixed(W, x) if order == "together" else x) - step * sloped)

        moved, push = linear(now.mean), 2 * step * agents.moment.ravel()
        cross = np.outer(moved, push)
        second = linear(linear(now.second).T) + cross + cross.T + np.outer(push, push)
        now = ModelMoments(moved + push, second + step**2 * agents.covariance(*now, number))
        if order == "gradient-then-gossip":
            now = now.mixed(W)
        yield now


def _mixed(mixing: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """(W ⊗ I) times all models, shape (n·p,) or (n·p, k)."""
    return np.asarray((mixing @ columns.reshape(len(mixing), -1)).reshape(columns.shape))
