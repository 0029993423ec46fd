"""When a forecast of a graph is asked for, and how many steps will have been made by then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from p2psim.study.record import EveryTime

#: Most moments of recording that are shown.
_MOST = 400

#: Numbers of steps by a time are left out beyond this probability.
_TAIL = 1e-13


@dataclass(frozen=True)
class Moments:
    """Moments of recording, and the end.

    Attributes
    ----------
    axis : {"commits", "time"}
    points : ndarray, shape (moments,)
        Number of commits or time of each; the last is the end, at the expected number where that is random.
    chances : ndarray, shape (moments, K + 1)
        Distribution of the number of steps by each.
    """

    axis: Literal["commits", "time"]
    points: np.ndarray
    chances: np.ndarray

    @property
    def most(self) -> int:
        """K, the most steps."""
        return self.chances.shape[1] - 1

    @property
    def needed(self) -> np.ndarray:
        """Numbers of steps that have a probability at some moment, shape (some,)."""
        return np.flatnonzero(self.chances.any(axis=0))


def moments_of(
    every: int | EveryTime, commits: int | None, time: float | None, rate: float
) -> tuple[Moments, int]:
    """Moments at which a run is recorded, and the number of steps that it is expected to have.

    Parameters
    ----------
    every : int or EveryTime
        As in the record section.
    commits, time : optional
        Where the run ends; one of them is given.
    rate : float
        Steps per unit of time, Poisson.
    """
    mean = float(commits) if commits is not None else rate * float(time or 0.0)
    expected = max(1, round(mean))
    if isinstance(every, EveryTime):
        end = time if time is not None else mean / rate
        at = np.arange(0.0, end * (1 - 1e-12), every.time)[:: _stride(end / every.time)]
        points = np.append(at, end)
        chances = by_time(rate * points, commits)
        if commits is not None:
            chances[-1] = _exactly(np.array([commits]), chances.shape[1])[0]
        return Moments("time", points, chances), expected
    steps = np.arange(0, expected, every)[:: _stride(expected / every)]
    last = _exactly(np.array([expected]), expected + 1) if commits is not None else by_time(np.array([mean]))
    width = last.shape[1]
    return Moments(
        "commits", np.append(steps, mean), np.concatenate([_exactly(steps, width), last])
    ), expected


def by_time(means: np.ndarray, most: int | None = None) -> np.ndarray:
    """Distributions of Poisson numbers of steps, stopped at a number if one is given, shape (moments, K + 1)."""
    from scipy.stats import poisson

    width = int(poisson.isf(_TAIL, means.max())) + 2
    chances = np.array(poisson.pmf(np.arange(width), means[:, None]))
    chances[chances < _TAIL / width] = 0.0
    if most is not None:
        beyond = chances[:, most:].sum(axis=1)
        chances = np.pad(chances[:, : most + 1], ((0, 0), (0, max(0, most + 1 - width))))
        chances[:, most] = beyond
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _exactly(steps: np.ndarray, width: int) -> np.ndarray:
    made = np.zeros((len(steps), width))
    made[np.arange(len(steps)), steps] = 1.0
    return made


def _stride(points: float) -> int:
    return max(1, int(np.ceil(points / _MOST)))
