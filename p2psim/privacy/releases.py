"""Counts releases in a stream of events, and draws the noise that they carry."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.compiled import njit
from p2psim.network.events import COMMIT, DROP, SEND
from p2psim.privacy.plan import Plan


@njit()
def tally(events, releases, lost):  # type: ignore[no-untyped-def]
    """Add a chunk's releases, and those of them whose message was dropped, to the counts of each agent.

    A release counts once, where it first appears: at the commit that touches the data or the send that does.
    """
    for e in range(events.size):
        event = events[e]
        if event.release < 0:
            continue
        if (event.kind == SEND or event.kind == COMMIT) and event.agent >= 0:
            if event.release == releases[event.agent]:
                releases[event.agent] += 1
        elif event.kind == DROP and event.peer >= 0:
            lost[event.peer] += 1


@dataclass(frozen=True)
class ReleaseCounts:
    """Releases of each agent up to the end of a chunk: made, and lost on their way. Shape (N,) each."""

    made: np.ndarray
    lost: np.ndarray

    @classmethod
    def none(cls, agents: int) -> ReleaseCounts:
        """Before the first event."""
        return cls(np.zeros(agents, np.int64), np.zeros(agents, np.int64))

    def after(self, events: np.ndarray) -> ReleaseCounts:
        """Counts after a further chunk."""
        counts = ReleaseCounts(self.made.copy(), self.lost.copy())
        tally(events, counts.made, counts.lost)
        return counts


def unit_noise(
    plan: Plan, key: np.ndarray, before: ReleaseCounts, after: ReleaseCounts, dimension: int
) -> np.ndarray:
    """Noise of scale one for the releases of a chunk, ordered by (agent, release).

    Returns
    -------
    ndarray, shape (releases in the chunk, dimension)
    """
    counts = after.made - before.made
    out = np.empty((int(counts.sum()), dimension))
    row = 0
    for agent in np.flatnonzero(counts):
        count = int(counts[agent])
        plan.mechanism.fill_unit(key, int(agent), int(before.made[agent]), out[row : row + count])
        row += count
    return out


def noise_scales(plan: Plan, before: ReleaseCounts, after: ReleaseCounts) -> np.ndarray:
    """Scale of the noise of each release of a chunk, ordered as `unit_noise`: shape (releases in the chunk,)."""
    counts = after.made - before.made
    agents = np.flatnonzero(counts)
    if not agents.size:
        return np.empty(0)
    return np.concatenate([plan.scales(int(i), int(before.made[i]), int(counts[i])) for i in agents])


def first_rows(before: ReleaseCounts, after: ReleaseCounts) -> np.ndarray:
    """Row of release j of agent i in `unit_noise` is first_rows[i] + j: shape (N,)."""
    counts = after.made - before.made
    return np.asarray(np.cumsum(counts) - counts - before.made)
