"""Coordinate descent along orders of wakes that are drawn: for agents whose releases end, or whose budgets know all.

Who has made all its releases goes on in another way, at a wake of its own that depends on the whole past: moments of
all agents do not close. Given the order of the wakes all is linear still. So orders are drawn, and in each the mean of
the models is followed, and noise without drawing it: each release of agent i adds ±√v to each coordinate of a vector
that belongs to agent i alone, with signs drawn anew. The expected square of what becomes of that vector is what the
agent's noise adds: releases meet with random signs, so that products of different ones average out (Hutchinson 1990).
Averages over orders are unbiased; their standard errors are told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from p2psim.theory.forecast.descent import LinearDescent

#: What an agent does that has made all its releases: nothing, average, or average and pull towards its last model that
#: touched its data.
Spent = Literal["silent", "coast", "anchored"]

#: Vectors for noise: each agent has as many as fit.
_VECTORS = 600


@dataclass(frozen=True)
class Orders:
    """How a run goes.

    Attributes
    ----------
    limits : ndarray of int, shape (n,)
        Most releases of each agent.
    spent : {"silent", "coast", "anchored"}
        What it does afterwards.
    alpha : ndarray, shape (n,)
        α_i.
    rest : ndarray, shape (n, p)
        Θ∘.
    anchor : ndarray, shape (n, p)
        What an anchored agent pulls towards before its first release.
    start_factor : ndarray, shape (n, n)
        A square root of the covariance of the first models' noise, alike in all coordinates: covariance = BBᵀ.
    variances : callable
        Variance of a coordinate of each release of a whole run, of its agents, numbers among the agent's, and commits
        before, shape (releases,) each.
    commits, time : optional
        Where the run ends.
    rate : float
        Wakes per unit of time.
    """

    limits: np.ndarray
    spent: Spent
    alpha: np.ndarray
    rest: np.ndarray
    anchor: np.ndarray
    start_factor: np.ndarray
    variances: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    commits: int | None
    time: float | None
    rate: float


@dataclass(frozen=True)
class Sampled:
    """Averages over orders, at some moments.

    Attributes
    ----------
    noiseless, start : ndarray, shape (moments,)
        E[Q_L] − Q_L* without noise, and what the noise of the first models adds.
    noise : ndarray, shape (moments, n)
        What noise of each agent adds.
    mean_gap : ndarray, shape (moments,)
        Q_L − Q_L* at the mean of the models.
    apart : ndarray, shape (n,)
        E‖θ_i − θ*_i‖² at the end.
    error : ndarray, shape (moments,)
        Standard error of the sum of all parts.
    """

    noiseless: np.ndarray
    start: np.ndarray
    noise: np.ndarray
    mean_gap: np.ndarray
    apart: np.ndarray
    error: np.ndarray


@dataclass(frozen=True)
class _Order:
    """Wakes of one run: whose, when, which release each makes (−1 for none), and the commits before."""

    agents: np.ndarray
    times: np.ndarray
    numbers: np.ndarray
    before: np.ndarray


def sampled(
    model: LinearDescent,
    how: Orders,
    axis: Literal["commits", "time"],
    points: np.ndarray,
    orders: int,
    seed: int,
) -> Sampled:
    """Average over orders.

    Parameters
    ----------
    model : LinearDescent
    how : Orders
    axis : {"commits", "time"}
    points : ndarray, shape (moments,)
        Commits or times; the last stands for the end of the run.
    orders : int
        How many, at least 2.
    seed : int
        Of the draws.
    """
    random = np.random.Generator(np.random.PCG64(seed))
    n, p = model.start.shape
    totals, means = [], np.zeros((len(points), n, p))
    sums = np.zeros((len(points), n + 2))
    apart = np.zeros(n)
    for _ in range(orders):
        parts, mean, distances = _along(model, how, _draw(model, how, random), axis, points, random)
        totals.append(parts.sum(axis=1))
        sums += parts / orders
        means += mean / orders
        apart += distances / orders
    error = np.std(totals, axis=0, ddof=1) / np.sqrt(orders)
    optimum = how.rest - model.offset
    return Sampled(
        noiseless=sums[:, 0],
        start=sums[:, 1],
        noise=sums[:, 2:],
        mean_gap=np.array([model.gap(mean - optimum) for mean in means]),
        apart=apart,
        error=error,
    )


def vectors(model: LinearDescent) -> int:
    """How many vectors noise has, at least one an agent."""
    return model.agents * max(1, _VECTORS // model.agents)


def _draw(model: LinearDescent, how: Orders, random: np.random.Generator) -> _Order:
    """Wakes of independent Poisson clocks until the end, or until all are silent."""
    n = model.agents
    if how.time is not None:
        count = int(random.poisson(how.rate * how.time))
        times = np.sort(random.uniform(0, how.time, count))
        agents = random.choice(n, count, p=model.chance)
    else:
        assert how.commits is not None
        # Of silent agents many more wakes than commits may be wanted; all that anybody can make at most.
        agents = random.choice(n, how.commits, p=model.chance)
        most = min(how.commits, int(np.minimum(how.limits, how.commits).sum()))
        while how.spent == "silent" and (_numbers(agents, how) >= 0).sum() < most:
            agents = np.concatenate([agents, random.choice(n, how.commits, p=model.chance)])
        times = np.cumsum(random.exponential(1 / how.rate, len(agents)))
    numbers = _numbers(agents, how)
    commits = numbers >= 0 if how.spent == "silent" else np.ones(len(agents), bool)
    before = np.cumsum(commits) - commits
    kept = before < (np.inf if how.commits is None else how.commits)
    return _Order(agents[kept], times[kept], numbers[kept], before[kept])


def _numbers(agents: np.ndarray, how: Orders) -> np.ndarray:
    """Number of each wake among its agent's, −1 where the agent has made all its releases."""
    order = np.argsort(agents, kind="stable")
    counts = np.bincount(agents, minlength=len(how.limits))
    numbers = np.empty(len(agents), np.int64)
    numbers[order] = np.arange(len(agents)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.where(numbers < how.limits[agents], numbers, -1)


def _along(
    model: LinearDescent,
    how: Orders,
    order: _Order,
    axis: Literal["commits", "time"],
    points: np.ndarray,
    random: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parts of the gap (moments, 2 + n), mean models (moments, n, p), and squared distances at the end (n,)."""
    n, p = model.start.shape
    each = vectors(model) // n
    # The mean, noise of the start, and each agent's vectors.
    X = np.zeros((n, p, 2 + n * each))
    X[:, :, 0] = model.start + how.rest
    if how.start_factor.any():
        X[:, :, 1] = how.start_factor @ random.choice([-1.0, 1.0], (n, p))
    anchors = np.zeros_like(X) if how.spent == "anchored" else None
    if anchors is not None:
        anchors[:, :, 0] = how.anchor
    pushed = model.curve(how.rest.reshape(-1, 1)).reshape(n, p)
    releases = order.numbers >= 0
    steps = np.zeros(len(order.agents))
    steps[releases] = model.noise_step[order.agents[releases]] * np.sqrt(
        how.variances(order.agents[releases], order.numbers[releases], order.before[releases])
    )
    signs = random.choice([-1.0, 1.0], (len(order.agents), p))
    stops = np.searchsorted(order.times if axis == "time" else order.before, points[:-1], side=_SIDES[axis])
    optimum = how.rest - model.offset
    parts, means = np.empty((len(points), 2 + n)), np.empty((len(points), n, p))
    first = 0
    for row, stop in enumerate([*stops.tolist(), len(order.agents)]):
        for t in range(first, max(first, stop)):
            i, number = int(order.agents[t]), int(order.numbers[t])
            if number >= 0:
                X[i] -= model.step[i] * model.curve_of(i, X)
                X[i, :, 0] += model.step[i] * pushed[i]
                X[i, :, 2 + i * each + number % each] += steps[t] * signs[t]
                if anchors is not None:
                    anchors[i] = X[i]
            elif how.spent == "coast":
                X[i] += how.alpha[i] * (model.mix_of(i, X) - X[i])
            elif anchors is not None:
                pull = model.noise_step[i] / how.alpha[i]
                X[i] = (model.mix_of(i, X) + pull * anchors[i]) / (1 + pull)
        first = max(first, stop)
        means[row] = X[:, :, 0]
        away = X.copy()
        away[:, :, 0] -= optimum
        gaps = model.gaps(away)
        parts[row] = np.concatenate([gaps[:2], gaps[2:].reshape(n, each).sum(axis=1)])
    return parts, means, (away**2).sum(axis=(1, 2))


#: A wake at the very time of a moment comes before it; and of k commits, the wakes before which fewer were made.
_SIDES: dict[str, Literal["left", "right"]] = {"time": "right", "commits": "left"}
