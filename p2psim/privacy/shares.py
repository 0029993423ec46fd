"""Shares of budgets for releases, what is known of a run before it, and records that several owners hold.

A record that owners i and j both hold takes part in the releases of both, and loses ε_i + ε_j at δ_i + δ_j (basic
composition). W (Wu, Farokhi, Smith, Kaafar 2020) divides each budget by κ, the most owners that hold the same record:
that keeps the largest promise only, since the loss is then the mean of the holders' ε. min_j ε_j/κ keeps all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from pydantic import Field

from p2psim.core.options import Count, Options

#: Stands for no limit on releases.
UNLIMITED = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Releases:
    """Some releases, in the order of the events: whose, its number among that agent's, and the commits before it.

    Shape (releases,) each. ``places`` are those in the chunk of events that they were read from; empty when they were
    not read from one.
    """

    agents: np.ndarray
    numbers: np.ndarray
    steps: np.ndarray
    places: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def repeated(self, queries: int) -> Releases:
        """The queries of releases, each numbered release·queries and on."""
        if queries == 1:
            return self
        agents, numbers, steps, places = (
            np.repeat(column, queries) for column in (self.agents, self.numbers, self.steps, self.places)
        )
        numbers = numbers * queries + np.tile(np.arange(queries), self.agents.size)
        return Releases(agents, numbers, steps, places)


@dataclass(frozen=True)
class RunForecast:
    """What anybody can know of a run before it.

    Attributes
    ----------
    expected : ndarray, shape (N,)
        Releases that each agent is expected to make when nothing limits it, at least one.
    periods : ndarray, shape (N,)
        Commits of all agents from one of an agent to its next, on average: n where all clocks are equal.
    contraction : float or None
        C, by which a commit contracts the objective on average (B, Proposition 1); None where no theory gives one.
    """

    expected: np.ndarray
    periods: np.ndarray
    contraction: float | None = None


@dataclass(frozen=True)
class Totals:
    """Sum of each agent's weights over all releases that it makes: what a clairvoyant allocation divides by.

    Weights may lie far outside the range of floating point, such as C^{t/3} at t = 1e6, so they are told by their
    natural logarithms, and sums are kept relative to the largest weight of their agent.

    Attributes
    ----------
    peaks : ndarray, shape (N,)
        Logarithm of each agent's largest weight; −∞ before its first.
    sums : ndarray, shape (N,)
        Sum of its weights divided by the largest.
    """

    peaks: np.ndarray
    sums: np.ndarray

    def add(self, agents: np.ndarray, logarithms: np.ndarray) -> Totals:
        """Sums with the weights of further releases, given by agent and logarithm, shape (releases,) each."""
        peaks = self.peaks.copy()
        np.maximum.at(peaks, agents, logarithms)
        seen = np.isfinite(self.peaks)
        sums = self.sums.copy()
        sums[seen] *= np.exp(self.peaks[seen] - peaks[seen])
        np.add.at(sums, agents, np.exp(logarithms - peaks[agents]))
        return Totals(peaks, sums)

    def shares(self, agents: np.ndarray, logarithms: np.ndarray) -> np.ndarray:
        """Share of its agent's sum that each weight is, shape (releases,); 0 below the range of floating point."""
        return np.asarray(np.exp(logarithms - self.peaks[agents]) / self.sums[agents])


class Overlap(Options):
    """How many owners may hold the same record, and what they do about it.

    Choices
    -------
    form: printed
        ε_i/κ: the loss of a record is at most the mean of its holders' promises
    form: corrected
        min_j ε_j/κ: at most the least of them
    """

    holders: Count = Field(1, description="κ, the most owners that hold the same record")
    form: Literal["printed", "corrected"] = Field(
        "corrected",
        description="each owner spends ε_i/κ, which breaks promises below the mean, or min_j ε_j/κ",
    )


def budgets_of(overlap: Overlap, epsilon: np.ndarray) -> np.ndarray:
    """What each owner spends of its promise ε_i, shape (N,)."""
    if overlap.holders == 1:
        return epsilon
    if overlap.form == "printed":
        return epsilon / overlap.holders
    return np.full(epsilon.size, epsilon.min() / overlap.holders)


def of_shared_record(losses: np.ndarray, holders: int) -> np.ndarray:
    """Most that a record of each owner loses if up to κ − 1 others hold it as well, shape (N,).

    Its owner's ε, and the largest κ − 1 of the others', by basic composition across owners.

    Parameters
    ----------
    losses : ndarray, shape (N,)
        ε of each owner's releases, each at the same δ; the sum holds at as many times that.
    holders : int
        κ.
    """
    others = min(holders, losses.size) - 1
    if others < 1:
        return losses
    falling = np.sort(losses)[::-1]
    sums = np.cumsum(falling)
    # Who is among the largest itself is counted once, and the next takes its place.
    return np.where(losses >= falling[others - 1], sums[others], sums[others - 1] + losses)
