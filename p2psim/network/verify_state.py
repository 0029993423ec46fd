"""What the verifier of an event stream remembers: events so far, messages sent again, and answers given again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from p2psim.core.events import FAILURES, LEARNER, NONE, UNACKNOWLEDGED
from p2psim.network.graph import Graph


@dataclass
class Heard:
    """A delivery from agent to agent, and what it may still cause."""

    agent: int
    sender: int
    version: int
    is_answer: bool
    answers: bool = True
    commits: bool = True


class VerifierState:
    """The events so far, as far as they bear on later ones; the parameters are those of `EventChecker`."""

    def __init__(
        self,
        links: Graph,
        limits: np.ndarray | None,
        goes_on: bool,
        by_edge: bool,
        resending: Resending,
    ):
        self.links = links
        self.goes_on = goes_on
        self.by_edge = by_edge
        self.limits = limits
        self.near = [set(links.of(agent).tolist()) for agent in range(links.agents)]
        self.seq = 0
        self.time = 0.0
        self.away: set[int] = set()
        # Messages that may still end, by seq of their send: (sender, receivers to come, version, release, answers).
        self.open: dict[int, tuple[int, set[int], int, int, bool]] = {}
        # What a later event may name as its cause, by seq: (kind, agent, peer, outcome, version, release).
        self.causes: dict[int, tuple[int, int, int, int, int, int]] = {}
        # What agents heard of each other at this moment, by seq of the delivery.
        self.heard: dict[int, Heard] = {}
        self.versions: dict[int, int] = {}
        self.releases = [0] * links.agents
        # The learner's last query to all, as long as no commit has closed its round.
        self.round = NONE
        self.retries, self.fresh = Retries(resending), FreshAnswers(resending)

    def is_spent(self, agent: int) -> bool:
        """Whether an agent may make no more releases."""
        return self.limits is not None and agent != LEARNER and self.releases[agent] >= self.limits[agent]

    def linked(self, agent: int, peer: int) -> bool:
        """Whether two are linked."""
        if agent == LEARNER:
            return 0 <= peer < self.links.agents
        return peer in self.near[agent]

    def make_release(self, must: Must, agent: int, release: int) -> None:
        """Check that an agent makes its next release, if it may."""
        if release == NONE and self.goes_on:
            must(self.limits is None or self.is_spent(agent), "it releases nothing, though it may")
            return
        must(release == self.releases[agent], f"its release should be number {self.releases[agent]}")
        self.releases[agent] += 1
        self.keep_limit(must, agent, release)

    def keep_limit(self, must: Must, agent: int, release: int) -> None:
        """Check that an agent does not exceed its limit."""
        if self.limits is not None:
            must(release < self.limits[agent], f"more than {self.limits[agent]} releases")


Must = Callable[[bool, str], None]

#: What can cause an answer: (kind, agent, peer, outcome, version, release) of the query's delivery.
Origin = tuple[int, int, int, int, int, int]


@dataclass(frozen=True)
class Resending:
    """What a channel may send again.

    Attributes
    ----------
    retries : int
        The most times that a message is sent again, with the same bytes, to a receiver.
    loses_acknowledgements : bool
        Whether also what has arrived may be sent again.
    fresh : int
        The most times that an owner answers a query again, with a new release, because its answer was lost.
    """

    retries: int = 0
    loses_acknowledgements: bool = False
    fresh: int = 0


#: Of a channel on which what is lost is gone.
NEVER: Final = Resending()


class Retries:
    """Counts how often each message was sent again to each receiver.

    Where acknowledgements are lost it remembers each delivery, since the sender may send again for ever so long after.
    """

    def __init__(self, allowed: Resending):
        self._allowed = allowed
        # By (seq of the send, receiver): of what is under way, and of what has arrived.
        self._counts: dict[tuple[int, int], int] = {}
        self._arrived: dict[tuple[int, int], tuple[int, int, int]] = {}

    def end(self, cause: int, receiver: int, sender: int, version: int, release: int, arrived: bool) -> None:
        """Take note that a message has ended at a receiver."""
        if arrived and self._allowed.loses_acknowledgements:
            self._arrived[cause, receiver] = sender, version, release
        else:
            self._counts.pop((cause, receiver), None)

    def check(
        self,
        must: Must,
        open_to: tuple[int, set[int], int, int, bool] | None,
        agent: int,
        peer: int,
        version: int,
        cause: int,
        release: int,
        outcome: int,
    ) -> None:
        """Check a retry.

        Parameters
        ----------
        must : callable
        open_to : tuple, optional
            The message, if it has not ended everywhere: (sender, receivers to come, version, release, answers).
        agent, peer, version, cause, release, outcome : int
            Of the event.
        """
        place = cause, peer
        must(self._allowed.retries > 0, "on this channel nothing is sent again")
        must(outcome in (*FAILURES, UNACKNOWLEDGED), "its outcome is not why a message is sent again")
        if open_to is not None and peer in open_to[1]:
            must(outcome != UNACKNOWLEDGED, "the message has not arrived there")
            sent = open_to[0], open_to[2], open_to[3]
        else:
            must(place in self._arrived, "no such message was sent, or it has ended there")
            sent = self._arrived[place]
            must(
                outcome == UNACKNOWLEDGED or self._counts.get(place, 0) > 0,
                "the message has arrived there",
            )
        must(sent == (agent, version, release), "it is not the message that was sent")
        self._counts[place] = count = self._counts.get(place, 0) + 1
        must(count <= self._allowed.retries, f"it is sent again more than {self._allowed.retries} times")


class FreshAnswers:
    """Knows which query an owner may answer again."""

    def __init__(self, allowed: Resending):
        self._most = allowed.fresh
        # Of each owner: seq of its last answer, of the query, where the query came from, how often it was answered.
        self._last: dict[int, tuple[int, int, Origin, int]] = {}
        self._reopened: dict[int, int] = {}

    def answer(self, owner: int, seq: int, query: int, origin: Origin) -> None:
        """Take note of an answer."""
        if not self._most:
            return
        last = self._last.get(owner)
        count = last[3] + 1 if last is not None and last[1] == query else 1
        self._last[owner] = seq, query, origin, count
        self._reopened.pop(owner, None)

    def lose(self, owner: int, seq: int) -> tuple[int, Origin] | None:
        """Take note that an answer was lost; returns the query that may then be answered again."""
        last = self._last.get(owner)
        if last is None or last[0] != seq or last[3] > self._most:
            return None
        self._reopened[owner] = last[1]
        return last[1], last[2]

    def hear(self, owner: int) -> int | None:
        """Take note of a newer query; returns the older one that may not be answered again any more."""
        self._last.pop(owner, None)
        return self._reopened.pop(owner, None)
