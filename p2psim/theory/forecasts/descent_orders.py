"""Coordinate descent along drawn orders of wakes, for agents whose releases end or whose budgets know all wakes.

An agent that has made all its releases goes on in another way, from a wake of its own that depends on the whole past:
moments of all agents do not close. Given the order of the wakes, all is linear still. So orders are drawn: whose each
wake is, when it is, and whether it releases something. In each order the mean of the models is followed, and noise is
followed without drawing it: each release of agent i adds ±√v to each coordinate of a vector that belongs to agent i
alone, with signs drawn anew. The expected square of what becomes of that vector is what the agent's noise adds:
releases meet with random signs, so that products of different ones average out (Hutchinson 1990). Averages over orders
are unbiased; their standard errors are reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from p2psim.core.compiled import njit, unwritten
from p2psim.theory.forecasts.descent import LinearDescent

#: Vectors for noise: each agent has as many as fit. With more, fewer orders are drawn in the same time, and errors are
#: larger: who wakes when matters more than signs do.
_VECTORS = 40

#: Numbers in the models of orders that are followed side by side.
_AT_ONCE = 500_000


@dataclass(frozen=True)
class GapMoments:
    """What descent reaches at some moments, in its parts: exact, or averages over orders.

    Attributes
    ----------
    noiseless, start : ndarray, shape (moments,)
        E[Q_L] − Q_L* without noise, and what the noise of the first models adds.
    noise : ndarray, shape (moments, n)
        What noise of each agent adds.
    mean_gap : ndarray, shape (moments,)
        Q_L − Q_L* at the mean of the models.
    apart : ndarray, shape (n,)
        E‖θ_i − θ*_i‖² at the end; NaN where the moments are exact, since `distances` takes as long as all else.
    error : ndarray, shape (moments,)
        Standard error of the sum of all parts; 0 where they are exact.
    orders : int
        Over how many orders it is an average; 0 where it is exact.
    """

    noiseless: np.ndarray
    start: np.ndarray
    noise: np.ndarray
    mean_gap: np.ndarray
    apart: np.ndarray
    error: np.ndarray
    orders: int = 0


def sampled(
    model: LinearDescent,
    how: Orders,
    axis: Literal["commits", "time"],
    points: np.ndarray,
    orders: int,
    seed: int,
) -> GapMoments:
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
    together = int(np.clip(_AT_ONCE // (model.size * (2 + vectors(model))), 1, orders))
    totals: list[np.ndarray] = []
    means, sums, apart = np.zeros((len(points), n, p)), np.zeros((len(points), n + 2)), np.zeros(n)
    for first in range(0, orders, together):
        drawn = [drawn_wakes(how, model.chance, random) for _ in range(min(together, orders - first))]
        batch = _Batch(model, how, drawn, axis, points, random)
        batch.play()
        totals.extend(batch.parts.sum(axis=2))
        sums += batch.parts.sum(axis=0) / orders
        means += batch.means.sum(axis=0) / orders
        apart += batch.apart.sum(axis=0) / orders
    error = np.std(totals, axis=0, ddof=1) / np.sqrt(orders)
    optimum = how.rest - model.offset
    mean_gap = np.array([model.gap(mean - optimum) for mean in means])
    noiseless, start, noise = sums[:, 0], sums[:, 1], sums[:, 2:]
    return GapMoments(noiseless, start, noise, mean_gap, apart, error, orders)


def vectors(model: LinearDescent) -> int:
    """How many vectors noise has, at least one an agent."""
    return model.agents * max(1, _VECTORS // model.agents)


class _Batch:
    """Several orders, one after the other.

    Attributes
    ----------
    parts : ndarray, shape (orders, moments, 2 + n)
        Of the gap: of the mean, of the noise of the start, and of each agent's noise.
    means : ndarray, shape (orders, moments, n, p)
        Mean models.
    """

    def __init__(
        self,
        model: LinearDescent,
        how: Orders,
        drawn: list[Wakes],
        axis: Literal["commits", "time"],
        points: np.ndarray,
        random: np.random.Generator,
    ):
        self._model, self._how = model, how
        (n, p), B, rows = model.start.shape, len(drawn), len(points)
        self._each = vectors(model) // n
        lengths = np.array([len(wakes.agents) for wakes in drawn])
        shape = B, int(lengths.max(initial=0))
        self._agents, self._numbers, self._steps = np.full(shape, -1), np.full(shape, -1), np.zeros(shape)
        self._stops = np.empty((B, rows), np.int64)
        for b, wakes in enumerate(drawn):
            releasing = np.flatnonzero(wakes.numbers >= 0)
            agents = wakes.agents[releasing]
            self._agents[b, : lengths[b]], self._numbers[b, : lengths[b]] = wakes.agents, wakes.numbers
            variances = how.variances(agents, wakes.numbers[releasing], wakes.before[releasing])
            self._steps[b, releasing] = model.noise_step[agents] * np.sqrt(variances)
            when = wakes.times if axis == "time" else wakes.before
            self._stops[b] = np.append(np.searchsorted(when, points[:-1], side=_SIDES[axis]), lengths[b])
        self._signs = random.choice([-1.0, 1.0], (*shape, p))
        # The mean, noise of the start, and each agent's vectors.
        self._X = np.zeros((B, n, p, 2 + n * self._each))
        self._X[..., 0] = model.start + how.rest
        if how.start_factor.any():
            self._X[..., 1] = how.start_factor @ random.choice([-1.0, 1.0], (B, n, p))
        self._anchors = np.zeros_like(self._X[0])
        self._optimum = how.rest - model.offset
        self.parts, self.means = np.empty((B, rows, 2 + n)), np.empty((B, rows, n, p))

    def play(self) -> None:
        """Go through all wakes, and look where that is wanted."""
        model, how, none = self._model, self._how, np.empty(0)
        pushed = model.curve(how.rest.reshape(-1, 1)).reshape(model.start.shape)
        # Of μ·c_i, by which an anchored agent pulls.
        alpha = how.alpha if how.spent == "coast" else none
        pull = model.noise_step / how.alpha if how.spent == "anchored" else none
        of_all = model.blocks, model.objective, model.step, model.degrees, pushed, self._optimum, alpha, pull
        of_each = self._agents, self._numbers, self._steps, self._signs, self._stops
        for b, rows in enumerate(np.argsort(self._stops, axis=1, kind="stable")):
            if pull.size:
                self._anchors[:], self._anchors[..., 0] = 0.0, how.anchor
            given = [unwritten(array) for array in (*of_all, *(array[b] for array in of_each), rows)]
            _play(*model.links, *given, self._each, self._X[b], self._anchors, self.parts[b], self.means[b])

    @property
    def apart(self) -> np.ndarray:
        """‖θ_i − θ*_i‖², noise averaged over, as it is now, shape (orders, n)."""
        means = ((self._X[..., 0] - self._optimum) ** 2).sum(axis=2)
        return np.asarray(means + (self._X[..., 1:] ** 2).sum(axis=(2, 3)))


@njit()
def _around(starts, others, weights, X, i, out):  # type: ignore[no-untyped-def]
    """Σ_j W_ij·X_j in ``out``, shape (p, m), four neighbours at once."""
    out[:] = 0.0
    e, end = starts[i], starts[i + 1]
    while e < end:
        # Of weight zero where there are not four.
        f, g, h = min(e + 1, end - 1), min(e + 2, end - 1), min(e + 3, end - 1)
        s, t = weights[e], weights[f] if e + 1 < end else 0.0
        u, v = weights[g] if e + 2 < end else 0.0, weights[h] if e + 3 < end else 0.0
        for a in range(out.shape[0]):
            row, at_s, at_t = out[a], X[others[e], a], X[others[f], a]
            at_u, at_v = X[others[g], a], X[others[h], a]
            for c in range(row.size):
                row[c] += s * at_s[c] + t * at_t[c] + u * at_u[c] + v * at_v[c]
        e += 4


@njit()
def _turned(block, own, out):  # type: ignore[no-untyped-def]
    """A block times the models of an agent, shape (p, m), less what is in ``out``, in ``out``."""
    for a in range(out.shape[0]):
        row = out[a]
        for c in range(row.size):
            row[c] = -row[c]
        for b in range(own.shape[0]):
            factor, right = block[a, b], own[b]
            for c in range(row.size):
                row[c] += factor * right[c]


@njit()
def _look(starts, others, weights, objective, optimum, X, each, away, moved, parts, mean):  # type: ignore[no-untyped-def]
    """Note the gap's parts, and the mean."""
    n, columns = X.shape[0], X.shape[2]
    away[:] = X
    for i in range(n):
        for a in range(X.shape[1]):
            mean[i, a] = X[i, a, 0]
            away[i, a, 0] -= optimum[i, a]
    parts[:] = 0.0
    for i in range(n):
        _around(starts, others, weights, away, i, moved)
        _turned(objective[i], away[i], moved)
        for a in range(X.shape[1]):
            row, own = moved[a], away[i, a]
            for c in range(columns):
                parts[c if c < 2 else 2 + (c - 2) // each] += row[c] * own[c] / 2


@njit()
def _play(  # type: ignore[no-untyped-def]
    starts,
    others,
    weights,
    blocks,
    objective,
    step,
    degrees,
    pushed,
    optimum,
    alpha,
    pull,
    agents,
    numbers,
    steps,
    signs,
    stops,
    rows,
    each,
    X,
    anchors,
    parts,
    means,
):
    """Go through the wakes of one order; ``alpha`` or ``pull`` has numbers if agents coast or are anchored."""
    p, columns = X.shape[1], X.shape[2]
    away, moved = np.empty_like(X), np.empty((p, columns))
    looked = 0
    for t in range(agents.size + 1):
        while looked < rows.size and stops[rows[looked]] <= t:
            r = rows[looked]
            _look(starts, others, weights, objective, optimum, X, each, away, moved, parts[r], means[r])
            looked += 1
        if t == agents.size or agents[t] < 0:
            continue
        i = agents[t]
        own, releases = X[i], numbers[t] >= 0
        if not releases and not (alpha.size or pull.size):
            continue
        _around(starts, others, weights, X, i, moved)
        if releases:
            _turned(blocks[i], own, moved)
            noisy = 2 + i * each + numbers[t] % each
            for a in range(p):
                row, change = own[a], moved[a]
                for c in range(columns):
                    row[c] -= step[i] * change[c]
                row[0] += step[i] * pushed[i, a]
                row[noisy] += steps[t] * signs[t, a]
            if pull.size:
                anchors[i] = own
        elif alpha.size:
            for a in range(p):
                row, mix = own[a], moved[a]
                for c in range(columns):
                    row[c] += alpha[i] * (mix[c] / degrees[i] - row[c])
        else:
            for a in range(p):
                row, mix, anchor = own[a], moved[a], anchors[i, a]
                for c in range(columns):
                    row[c] = (mix[c] / degrees[i] + pull[i] * anchor[c]) / (1 + pull[i])


#: A wake at the very time of a moment comes before it; and of k commits, the wakes before which fewer were made.
_SIDES: dict[str, Literal["left", "right"]] = {"time": "right", "commits": "left"}

#: What an agent does that has made all its releases: nothing, average, or average and pull towards its last model that
#: touched its data.
Spent = Literal["silent", "coast", "anchored"]


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
class Wakes:
    """Wakes of one run, in their order.

    Attributes
    ----------
    agents : ndarray of int, shape (wakes,)
    times : ndarray, shape (wakes,)
    numbers : ndarray of int, shape (wakes,)
        Which of its agent's releases each makes; −1 for none.
    before : ndarray of int, shape (wakes,)
        Commits before each.
    """

    agents: np.ndarray
    times: np.ndarray
    numbers: np.ndarray
    before: np.ndarray


def drawn_wakes(how: Orders, chance: np.ndarray, random: np.random.Generator) -> Wakes:
    """Wakes of independent Poisson clocks until the end, or until all are silent.

    Parameters
    ----------
    how : Orders
    chance : ndarray, shape (n,)
        γ_i.
    random : Generator
    """
    n = len(chance)
    if how.time is not None:
        count = int(random.poisson(how.rate * how.time))
        times = np.sort(random.uniform(0, how.time, count))
        agents = random.choice(n, count, p=chance)
    else:
        assert how.commits is not None
        # Of silent agents many more wakes than commits may be wanted; all that anybody can make at most.
        agents = random.choice(n, how.commits, p=chance)
        most = min(how.commits, int(np.minimum(how.limits, how.commits).sum()))
        while how.spent == "silent" and (_numbers(agents, how) >= 0).sum() < most:
            agents = np.concatenate([agents, random.choice(n, how.commits, p=chance)])
        times = np.cumsum(random.exponential(1 / how.rate, len(agents)))
    numbers = _numbers(agents, how)
    commits = numbers >= 0 if how.spent == "silent" else np.ones(len(agents), bool)
    before = np.cumsum(commits) - commits
    kept = before < (np.inf if how.commits is None else how.commits)
    return Wakes(agents[kept], times[kept], numbers[kept], before[kept])


def _numbers(agents: np.ndarray, how: Orders) -> np.ndarray:
    """Number of each wake among its agent's, −1 where the agent has made all its releases."""
    order = np.argsort(agents, kind="stable")
    counts = np.bincount(agents, minlength=len(how.limits))
    numbers = np.empty(len(agents), np.int64)
    numbers[order] = np.arange(len(agents)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.where(numbers < how.limits[agents], numbers, -1)
