"""Releases in a stream of events, and violations of the bound that was claimed on records' gradients.

The privacy guarantee does not hold for releases at which a record's gradient exceeds the claimed bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, SEND
from p2psim.core.philox import prefetch
from p2psim.privacy.shares import Releases

#: How many events ahead an agent's count is fetched, which among those of millions lies in no cache.
_AHEAD = 64


@njit()
def find_releases(events, made, commits, agents, numbers, steps, places):  # type: ignore[no-untyped-def]
    """Write down a chunk's releases in order, and add them to each agent's count.

    A release counts once, where it first appears: at the commit or the send that touches the data. Returns the number
    of releases and of commits.
    """
    found = 0
    for e in range(events.size):
        event = events[e]
        if e + _AHEAD < events.size and events[e + _AHEAD].release >= 0:
            prefetch(made, np.int64(events[e + _AHEAD].agent))
        makes = event.release >= 0 and event.kind in (SEND, COMMIT) and event.agent >= 0
        if makes and event.release == made[event.agent]:
            agents[found], numbers[found], steps[found] = event.agent, event.release, commits
            places[found] = e
            made[event.agent] += 1
            found += 1
        if event.kind == COMMIT:
            commits += 1
    return found, commits


@njit()
def find_each(events, bounds, made, agents, numbers, steps, places, ends):  # type: ignore[no-untyped-def]
    """`find_releases` of several whole runs, of which ``made`` (runs, N) holds zeros.

    The events of run r end at ``bounds[r + 1]``, and its releases at ``ends[r + 1]``.
    """
    for r in range(bounds.size - 1):
        at = ends[r]
        found, _ = find_releases(
            events[bounds[r] : bounds[r + 1]], made[r], 0, agents[at:], numbers[at:], steps[at:], places[at:]
        )
        ends[r + 1] = at + found


def releases_of_runs(events: np.ndarray, bounds: np.ndarray, n: int) -> tuple[Releases, np.ndarray]:
    """Releases of several whole runs of n agents, one run after the other, and where those of each begin and end.

    Parameters
    ----------
    events : ndarray of EVENT
    bounds : ndarray of int64, shape (runs + 1,)
        Those of run r are from bounds[r] to bounds[r + 1].
    n : int
    """
    columns, ends = np.empty((4, events.size), np.int64), np.zeros(bounds.size, np.int64)
    find_each(events, bounds, np.zeros((bounds.size - 1, n), np.int64), *columns, ends)
    return Releases(*columns[:, : ends[-1]].copy()), ends


@dataclass
class ReleaseCounter:
    """Where the count of releases stands between two chunks; it goes on as chunks are read.

    Attributes
    ----------
    made : ndarray of int64, shape (N,)
        Releases of each agent, as events number them.
    commits : int
    queries : int
        Gradients in a release, each of which is charged as one.
    """

    made: np.ndarray
    commits: int
    queries: int = 1

    @classmethod
    def empty(cls, agents: int, queries: int = 1) -> ReleaseCounter:
        """Before the first event."""
        return cls(np.zeros(agents, np.int64), 0, queries)

    def read(self, events: np.ndarray) -> Releases:
        """Releases of a further chunk, query by query, in the order of its events."""
        columns = np.empty((4, events.size), np.int64)
        found, commits = find_releases(events, self.made, self.commits, *columns)
        self.commits = int(commits)
        return Releases(*columns[:, :found].copy()).repeated(self.queries)


def joined(parts: Sequence[Releases]) -> Releases:
    """Releases of several chunks together."""
    if not parts:
        return Releases(*np.empty((3, 0), np.int64))
    if len(parts) == 1:
        return Releases(parts[0].agents, parts[0].numbers, parts[0].steps)
    columns = zip(*((part.agents, part.numbers, part.steps) for part in parts), strict=True)
    return Releases(*map(np.concatenate, columns))


def by_agent(releases: Releases) -> np.ndarray:
    """Order that brings releases from that of the events to (agent, release): an agent's come as they are numbered."""
    agents = releases.agents
    # NumPy sorts numbers of 8 and 16 bits by counting, which is far faster.
    return np.argsort(agents.astype(np.min_scalar_type(agents.max(initial=0))), kind="stable")


class Violations(NamedTuple):
    """Violations of the claimed bound by each agent's records, whether they took part in a release or not.

    Attributes
    ----------
    counts : ndarray of int, shape (N,)
        Releases at which a record exceeded the bound.
    steps : ndarray of int, shape (N,)
        Commits of all agents before the first of them; −1 for none.
    sizes : ndarray, shape (N,)
        Norm of the longest gradient at them, over the bound; 0 for none.
    """

    counts: np.ndarray
    steps: np.ndarray
    sizes: np.ndarray

    @classmethod
    def none(cls, agents: int) -> Violations:
        """Where nobody exceeded anything."""
        return cls(np.zeros(agents, np.int64), np.full(agents, -1), np.zeros(agents))

    @property
    def found(self) -> np.ndarray:
        """Whether an agent's records exceeded the bound, shape (N,)."""
        return self.counts > 0

    def after_start(self, sizes: np.ndarray) -> Violations:
        """With those of a release before the first event; ``sizes`` are the longest gradients over the bound, or 0."""
        broken = sizes > 0
        steps = np.where(broken, 0, self.steps)
        return Violations(self.counts + broken, steps, np.maximum(self.sizes, sizes))
