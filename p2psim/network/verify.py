"""Invariants that every stream of events must keep, whatever made it.

The check is a second, plain reading of the event format: it shares no code with the engines.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.core.events import (
    BUSY,
    COMMIT,
    DELIVER,
    DROP,
    EVENT,
    JOIN,
    KINDS,
    LEARNER,
    LEAVE,
    NOBODY,
    NONE,
    OFFLINE,
    OK,
    OUTCOMES,
    QUEUED,
    RETRY,
    SEND,
    SPENT,
    WAKE,
)
from p2psim.core.times import ROUNDING
from p2psim.network.section import Graph
from p2psim.network.verify_rules import check_commit, check_end, check_send
from p2psim.network.verify_state import NEVER, Must, Resending, VerifierState


class EventsError(SimulationError):
    """A stream of events breaks an invariant."""


class EventChecker:
    """Reads a stream chunk by chunk and raises at the first event that breaks an invariant.

    Checked: sequence numbers count from 0; time is finite, never goes back, and does not pass the end; a poll's queries
    leave at multiples of its interval; kinds, outcomes, agents and peers
    exist, and peers are neighbours; nobody wakes, sends or commits while away; every delivery and every drop of a
    message has a send, of that message and to that receiver, and there is at most one for each; a query is
    superseded, a waiting owner turned away, only once; every commit of a model carries the next version, and its
    cause comes before it; the learner sends the model of that moment, and commits the release that the answer
    carries, or closes the round of its last query to all, once; who hears another agent's model answers and commits
    at that moment or never, once each, and answers before it commits; answers are not answered; a message is sent
    again no more often than allowed, as it was, and after it failed; a query is answered again, with a new release,
    only after the answer was lost; releases of an agent count from 0, each is made once, where the exchange makes
    them, and none exceeds the limit.

    Parameters
    ----------
    links : Graph
        Who is linked with whom.
    limits : ndarray of int, shape (n,), optional
        The most releases that each agent may make.
    goes_on : bool
        Whether agents go on without their data when they may make no more.
    by_edge : bool
        Whether links wake, so that the releases of agents go with their sends, and their commits carry none.
    resending : Resending
        What may be sent again.
    end : float
        Time after which nothing happens.
    polled : float, optional
        Interval of a poll.
    """

    def __init__(
        self,
        links: Graph,
        limits: np.ndarray | None = None,
        goes_on: bool = False,
        by_edge: bool = False,
        resending: Resending = NEVER,
        end: float = np.inf,
        polled: float | None = None,
    ):
        self._seen = VerifierState(links, limits, goes_on, by_edge, resending)
        self._end, self._polled = end, polled

    def check(self, events: np.ndarray) -> None:
        """Check the next chunk.

        Raises
        ------
        EventsError
            Naming the event and the invariant.
        """
        if events.dtype != EVENT:
            raise EventsError(f"events have dtype {events.dtype}, not that of the event format")
        for row in zip(*(events[name].tolist() for name in _FIELDS), strict=True):
            self._check_one(*row)

    def _check_one(
        self,
        seq: int,
        time: float,
        kind: int,
        agent: int,
        peer: int,
        version: int,
        cause: int,
        release: int,
        outcome: int,
    ) -> None:
        seen = self._seen

        def must(holds: bool, what: str) -> None:
            if not holds:
                name = KINDS[kind] if kind < len(KINDS) else str(kind)
                raise EventsError(f"event {seq} ({name} of agent {agent} at time {time}): {what}")

        must(seq == seen.seq, f"its number should be {seen.seq}")
        must(
            bool(np.isfinite(time)) and time >= seen.time,
            f"time goes back or is not finite; it was {seen.time}",
        )
        must(time <= self._end, f"the run ended at {self._end}")
        must(kind < len(KINDS) and outcome < len(OUTCOMES), "unknown kind or outcome")
        must(
            0 <= agent < seen.links.agents or (agent == LEARNER and seen.links.star),
            "there is no such agent",
        )
        must(NONE <= cause < seq, f"its cause, event {cause}, does not come before it")
        if time > seen.time:
            seen.heard.clear()
        seen.seq, seen.time = seq + 1, time
        if kind in (WAKE, SEND, COMMIT, RETRY):
            must(agent not in seen.away, "the agent is away")
        if kind in (SEND, COMMIT):
            must(outcome == OK, "a send or a commit is ok")
        if peer >= LEARNER:
            must(seen.linked(agent, peer), f"it is not linked with {peer}")
        if kind == WAKE:
            must(agent != LEARNER and peer == NOBODY, "only agents wake, and with nobody")
            must(
                (version, cause, release) == (NONE, NONE, NONE),
                "a wake carries and releases nothing, of no cause",
            )
            must(outcome in (OK, QUEUED, BUSY, SPENT, OFFLINE), "its outcome is not that of a wake")
            must(outcome != OFFLINE or LEARNER in seen.away, "the learner is there")
            if outcome in (OK, QUEUED):
                seen.causes[seq] = (kind, agent, peer, outcome, version, release)
        elif kind == SEND:
            if agent == LEARNER and cause == NONE and self._polled is not None:
                must(self._is_due(time), f"it is due at a multiple of {self._polled}")
            check_send(seen, must, seq, agent, peer, version, cause, release)
        elif kind in (DELIVER, DROP):
            check_end(seen, must, seq, kind, agent, peer, version, cause, release, outcome)
        elif kind == COMMIT:
            check_commit(seen, must, seq, agent, peer, version, cause, release)
        elif kind == RETRY:
            seen.retries.check(must, seen.open.get(cause), agent, peer, version, cause, release, outcome)
        elif kind == LEAVE:
            must(agent not in seen.away, "only who is there leaves")
            must((peer, version) == (NOBODY, NONE), "who leaves takes nothing along")
            seen.away.add(agent)
        elif kind == JOIN:
            must(agent in seen.away, "the agent was there already")
            seen.away.discard(agent)
            _check_return(seen, must, peer, version)

    def _is_due(self, time: float) -> bool:
        """Whether a poll's query leaves at a multiple of its interval, or at an end that is one but for rounding."""
        assert self._polled is not None
        due = round(time / self._polled) * self._polled
        return time == due or (time == self._end and abs(due - time) <= ROUNDING * time)


_FIELDS = ("seq", "time", "kind", "agent", "peer", "version", "cause", "release", "outcome")


def verify(
    chunks: Iterable[np.ndarray],
    links: Graph,
    limits: np.ndarray | None = None,
    goes_on: bool = False,
    by_edge: bool = False,
    resending: Resending = NEVER,
    end: float = np.inf,
    polled: float | None = None,
) -> int:
    """Check a whole stream; see `EventChecker`.

    Parameters
    ----------
    chunks : iterable of ndarray
        Chunks of events, in order.
    links : Graph
    limits : ndarray of int, shape (n,), optional
    goes_on, by_edge : bool
    resending : Resending
    end : float
    polled : float, optional
        See `EventChecker`.

    Returns
    -------
    int
        Number of events.

    Raises
    ------
    EventsError
        Naming the first event that breaks an invariant.
    """
    checker = EventChecker(links, limits, goes_on, by_edge, resending, end, polled)
    total = 0
    for events in chunks:
        checker.check(events)
        total += events.size
    return total


def _check_return(seen: VerifierState, must: Must, peer: int, version: int) -> None:
    if peer >= LEARNER:
        must(peer not in seen.away, "it fetches a model from someone who is away")
        must(version == seen.versions.get(peer, 0), "it does not fetch the model of that moment")
    else:
        must(peer == NOBODY and version in (NONE, 0), "it comes back with a model that nobody has")
