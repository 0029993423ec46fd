"""The course of Q_L and of communication over the commits of a run: to compare algorithms on one problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from p2psim.core.events import COMMIT, SEND


class Tracked(Protocol):
    """A replay that keeps Q_L up to date: of coordinate descent, or of gossip ADMM."""

    @property
    def objective(self) -> float:
        """Q_L."""

    @property
    def vectors_sent(self) -> int:
        """Vectors of length p sent so far."""

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """Replay events."""


@dataclass(frozen=True)
class Trace:
    """Q_L and the vectors sent after some numbers of commits.

    Attributes
    ----------
    commits, vectors : ndarray of int64, shape (k,)
    objective : ndarray, shape (k,)
    """

    commits: np.ndarray
    vectors: np.ndarray
    objective: np.ndarray

    def at_vectors(self, sent: np.ndarray) -> np.ndarray:
        """Q_L where at most so many vectors had been sent, as it was recorded last before; NaN before the first."""
        place = np.searchsorted(self.vectors, sent, side="right") - 1
        return np.where(place < 0, np.nan, self.objective[np.maximum(place, 0)])


def trace(replay: Tracked, dimension: int, events: np.ndarray, commits: Iterable[int]) -> Trace:
    """Replay a run without noise, and record it.

    Parameters
    ----------
    replay : GraphReplay or AdmmReplay
        At its start, with ``track``.
    dimension : int
        p.
    events : ndarray of EVENT
        The whole run.
    commits : iterable of int
        After how many commits to record; those that the run does not reach are left out.
    """
    ends = np.flatnonzero(events["kind"] == COMMIT) + 1
    wanted = np.unique(np.fromiter(commits, np.int64))
    wanted = wanted[(wanted >= 0) & (wanted <= ends.size)]
    vectors, objective, done = [], [], 0
    for count in wanted.tolist():
        piece = events[done : int(ends[count - 1]) if count else 0]
        done += piece.size
        touching = np.isin(piece["kind"], [COMMIT, SEND]) & (piece["release"] >= 0)
        replay.feed(piece, np.zeros((int(touching.sum()), dimension)))
        vectors.append(replay.vectors_sent)
        objective.append(replay.objective)
    return Trace(wanted, np.array(vectors, np.int64), np.array(objective))
