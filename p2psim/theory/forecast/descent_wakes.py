"""Wakes of a run of coordinate descent, drawn: whose, when, and which of them release something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

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
