"""Invariants that every stream of events must keep, whatever made it.

The check is a second, plain reading of the event format: it shares no code with the engines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from p2psim.errors import SimulationError
from p2psim.network.events import (
    BUSY,
    COMMIT,
    DELIVER,
    DROP,
    EVENT,
    FAILURES,
    JOIN,
    KINDS,
    LEARNER,
    LEAVE,
    NEIGHBOURS,
    NOBODY,
    NONE,
    OFFLINE,
    OK,
    OUTCOMES,
    QUEUED,
    RETRY,
    SEND,
    SPENT,
    SUPERSEDED,
    WAKE,
)
from p2psim.network.graphs import Links
from p2psim.network.resends import NEVER, FreshAnswers, Resending, Retries


class EventsError(SimulationError):
    """A stream of events breaks an invariant."""


@dataclass
class _Heard:
    """A delivery from agent to agent, and what it may still cause."""

    agent: int
    sender: int
    version: int
    is_answer: bool
    answers: bool = True
    commits: bool = True


class EventChecker:
    """Reads a stream chunk by chunk and raises at the first event that breaks an invariant.

    Checked: sequence numbers count from 0; time is finite and never goes back; kinds, outcomes, agents and peers
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
    links : Links
        Who is linked with whom.
    limits : ndarray of int, shape (n,), optional
        The most releases that each agent may make.
    goes_on : bool
        Whether agents go on without their data when they may make no more.
    by_edge : bool
        Whether links wake, so that the releases of agents go with their sends, and their commits carry none.
    resending : Resending
        What may be sent again.
    """

    def __init__(
        self,
        links: Links,
        limits: np.ndarray | None = None,
        goes_on: bool = False,
        by_edge: bool = False,
        resending: Resending = NEVER,
    ):
        self._links = links
        self._goes_on = goes_on
        self._by_edge = by_edge
        self._limits = limits
        self._near = [set(links.of(agent).tolist()) for agent in range(links.agents)]
        self._seq = 0
        self._time = 0.0
        self._away: set[int] = set()
        # Messages that may still end, by seq of their send: (sender, receivers to come, version, release, answers).
        self._open: dict[int, tuple[int, set[int], int, int, bool]] = {}
        # What a later event may name as its cause, by seq: (kind, agent, peer, outcome, version, release).
        self._causes: dict[int, tuple[int, int, int, int, int, int]] = {}
        # What agents heard of each other at this moment, by seq of the delivery.
        self._heard: dict[int, _Heard] = {}
        self._versions: dict[int, int] = {}
        self._releases = [0] * links.agents
        self._commits = 0
        # The learner's last query to all, as long as no commit has closed its round.
        self._round = NONE
        self._retries, self._fresh = Retries(resending), FreshAnswers(resending)

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
        def must(holds: bool, what: str) -> None:
            if not holds:
                name = KINDS[kind] if kind < len(KINDS) else str(kind)
                raise EventsError(f"event {seq} ({name} of agent {agent} at time {time}): {what}")

        must(seq == self._seq, f"its number should be {self._seq}")
        must(
            bool(np.isfinite(time)) and time >= self._time,
            f"time goes back or is not finite; it was {self._time}",
        )
        must(kind < len(KINDS) and outcome < len(OUTCOMES), "unknown kind or outcome")
        must(
            0 <= agent < self._links.agents or (agent == LEARNER and self._links.star),
            "there is no such agent",
        )
        must(NONE <= cause < seq, f"its cause, event {cause}, does not come before it")
        if time > self._time:
            self._heard.clear()
        self._seq, self._time = seq + 1, time
        if kind in (WAKE, SEND, COMMIT, RETRY):
            must(agent not in self._away, "the agent is away")
        if kind in (SEND, COMMIT):
            must(outcome == OK, "a send or a commit is ok")
        if peer >= LEARNER:
            must(self._linked(agent, peer), f"it is not linked with {peer}")
        if kind == WAKE:
            must(agent != LEARNER and peer == NOBODY, "only agents wake, and with nobody")
            must(
                (version, cause, release) == (NONE, NONE, NONE),
                "a wake carries and releases nothing, of no cause",
            )
            must(outcome in (OK, QUEUED, BUSY, SPENT, OFFLINE), "its outcome is not that of a wake")
            must(outcome != OFFLINE or LEARNER in self._away, "the learner is there")
            if outcome in (OK, QUEUED):
                self._causes[seq] = (kind, agent, peer, outcome, version, release)
        elif kind == SEND:
            self._check_send(must, seq, agent, peer, version, cause, release)
        elif kind in (DELIVER, DROP):
            self._check_end(must, seq, kind, agent, peer, version, cause, release, outcome)
        elif kind == COMMIT:
            self._check_commit(must, seq, agent, peer, version, cause, release)
        elif kind == RETRY:
            self._retries.check(must, self._open.get(cause), agent, peer, version, cause, release, outcome)
        elif kind == LEAVE:
            must(agent not in self._away, "only who is there leaves")
            must((peer, version) == (NOBODY, NONE), "who leaves takes nothing along")
            self._away.add(agent)
        elif kind == JOIN:
            must(agent in self._away, "the agent was there already")
            self._away.discard(agent)
            self._check_return(must, agent, peer, version)

    def _check_return(self, must, agent, peer, version) -> None:  # type: ignore[no-untyped-def]
        if peer >= LEARNER:
            must(peer not in self._away, "it fetches a model from someone who is away")
            must(version == self._versions.get(peer, 0), "it does not fetch the model of that moment")
        else:
            must(peer == NOBODY and version in (NONE, 0), "it comes back with a model that nobody has")

    def _is_spent(self, agent: int) -> bool:
        return self._limits is not None and agent != LEARNER and self._releases[agent] >= self._limits[agent]

    def _linked(self, agent: int, peer: int) -> bool:
        if agent == LEARNER:
            return 0 <= peer < self._links.agents
        return peer in self._near[agent]

    def _check_send(self, must, seq, agent, peer, version, cause, release) -> None:  # type: ignore[no-untyped-def]
        must(peer >= LEARNER or peer == NEIGHBOURS, "it is sent to nobody")
        receivers = {peer}
        if peer == NEIGHBOURS:
            receivers = set(range(self._links.agents)) if agent == LEARNER else set(self._near[agent])
        if agent != LEARNER:
            self._keep_limit(must, agent, release)
        if agent != LEARNER and not self._links.star:
            answer = self._check_gossip(must, agent, peer, version, cause, release)
            self._open[seq] = (agent, receivers, version, release, answer)
            return
        origin = self._causes.get(cause)
        must(
            cause == NONE or origin is not None,
            f"its cause, event {cause}, cannot cause a send, or has done so",
        )
        if origin is not None:
            if agent == LEARNER:
                must(origin[0] == WAKE and origin[1] == peer, "the learner answers a wake of someone else")
            else:
                must(origin[0] == DELIVER and origin[1] == agent, "its cause did not happen to its sender")
                must(origin[4] == version, "it carries another version than what caused it")
            if origin[0] == DELIVER:
                self._make_release(must, agent, release)
                self._fresh.answer(agent, seq, cause, origin)
            del self._causes[cause]
        else:
            must(agent == LEARNER, "nothing caused it")
        if agent == LEARNER:
            must(release == NONE, "the learner releases nothing")
            must(
                version == self._versions.get(LEARNER, 0),
                "it does not carry the learner's model of that moment",
            )
            # With one owner, that is all.
            self._round = seq if cause == NONE else NONE
        self._open[seq] = (agent, receivers, version, release, False)

    def _check_gossip(self, must, agent, peer, version, cause, release) -> bool:  # type: ignore[no-untyped-def]
        """Check a send from agent to agent; returns whether it answers another."""
        heard, origin = self._heard.get(cause), self._causes.pop(cause, None)
        must(cause != NONE, "nothing caused it")
        must(
            heard is not None or origin is not None,
            f"its cause, event {cause}, cannot cause a send, or has done so",
        )
        if heard is not None:
            must(heard.agent == agent, "its cause did not happen to its sender")
            must(peer == heard.sender, "it answers someone else")
            must(not heard.is_answer, "an answer is not answered")
            must(heard.answers and heard.commits, "it answers twice, or after its update")
            heard.answers = False
        else:
            assert origin is not None
            must(origin[0] in (WAKE, COMMIT) and origin[1] == agent, "its cause did not happen to its sender")
            must(origin[3] == OK, "a wake that waits causes no send")
            if origin[0] == COMMIT:
                must(origin[4] == version, "it carries another version than what caused it")
                must(release == origin[5], "it does not carry the release just made")
                return False
            must(peer != NEIGHBOURS, "only a commit is told to all neighbours")
        asks = version == NONE and heard is None and not self._by_edge
        must(
            asks or version == self._versions.get(agent, 0),
            "it does not carry its sender's model of that moment",
        )
        if self._by_edge:
            self._make_release(must, agent, release)
        else:
            must(release == NONE, "it carries a release that no commit made")
        return heard is not None

    def _check_end(self, must, seq, kind, agent, peer, version, cause, release, outcome) -> None:  # type: ignore[no-untyped-def]
        message = self._open.get(cause)
        if message is None and kind == DROP:
            origin = self._causes.pop(cause, None)
            must(
                origin is not None and origin[1] == agent,
                f"nothing that can be dropped is open at event {cause}",
            )
            assert origin is not None
            must(release == NONE, "an answer that is not given releases nothing")
            if origin[0] == DELIVER:
                must(
                    outcome in (SUPERSEDED, OFFLINE), "a query that was heard is superseded, or not answered"
                )
                must((peer, version) == (origin[2], origin[4]), "it is another query that was heard")
            else:
                must(
                    outcome in (SPENT, OFFLINE) and origin[0] == WAKE and origin[3] == QUEUED,
                    "only who waits can be turned away",
                )
                must(outcome == SPENT or agent in self._away, "who waits is there")
                must((peer, version) == (NOBODY, NONE), "who waits has no message yet")
            return
        must(message is not None, f"no message is open at event {cause}")
        assert message is not None
        sender, receivers, carried, number, is_answer = message
        must(sender == peer, f"the message was sent by {sender}")
        must(agent in receivers, "the message is not for it, or has ended there")
        must((carried, number) == (version, release), "version or release differ from what was sent")
        ends = (OK,) if kind == DELIVER else FAILURES
        must(outcome in ends, "its outcome is not that of a message's end")
        if kind == DELIVER:
            must(agent not in self._away, "the agent is away")
            if not self._links.star:
                self._heard[seq] = _Heard(agent, sender, version, is_answer)
            else:
                self._hear_in_star(seq, agent, peer, version, release)
        elif self._links.star and agent == LEARNER:
            reopened = self._fresh.lose(sender, cause)
            if reopened is not None:
                self._causes[reopened[0]] = reopened[1]
        self._retries.end(cause, agent, sender, version, release, kind == DELIVER)
        receivers.discard(agent)
        if not receivers:
            del self._open[cause]

    def _hear_in_star(self, seq: int, agent: int, peer: int, version: int, release: int) -> None:
        """Take note of what the delivery of a query or an answer may cause, and of what it ends."""
        if agent != LEARNER:
            older = self._fresh.hear(agent)
            if older is not None:
                self._causes.pop(older, None)
        if not self._is_spent(agent):
            self._causes[seq] = (DELIVER, agent, peer, OK, version, release)

    def _check_commit(self, must, seq, agent, peer, version, cause, release) -> None:  # type: ignore[no-untyped-def]
        self._commits += 1
        must(
            version == self._versions.get(agent, 0) + 1,
            f"its version should be {self._versions.get(agent, 0) + 1}",
        )
        self._versions[agent] = version
        if agent == LEARNER and peer == NEIGHBOURS:
            self._check_round(must, cause, release)
            return
        heard = self._heard.get(cause)
        if heard is not None:
            must(heard.agent == agent, f"event {cause} cannot cause it, or has caused another commit")
            must(heard.commits, f"event {cause} cannot cause it, or has caused another commit")
            must(heard.version != NONE, "it commits with a question, which carries no model")
            must(peer == heard.sender, "it commits with another model than it heard")
            heard.commits = False
            if self._by_edge:
                must(heard.is_answer, "a link's commit is that of the agent that woke")
                must(release == NONE, "the releases of a link's ends go with their sends")
            else:
                self._make_release(must, agent, release)
            return
        origin = self._causes.pop(cause, None)
        must(
            origin is not None and origin[1] == agent,
            f"event {cause} cannot cause it, or has caused another commit",
        )
        assert origin is not None
        if agent == LEARNER:
            must(
                origin[0] == DELIVER and origin[2] == peer,
                "the learner commits without an answer of that owner",
            )
            must(release == origin[5], "it uses another release than the answer carries")
        else:
            must(
                origin[0] == WAKE and origin[3] == OK and peer == NOBODY,
                "it commits without a wake, or with someone",
            )
            must(not self._by_edge, "a link's commit is caused by an answer")
            self._make_release(must, agent, release)
            self._causes[seq] = (COMMIT, agent, peer, OK, version, release)

    def _check_round(self, must, cause, release) -> None:  # type: ignore[no-untyped-def]
        must(
            cause != NONE and cause == self._round, "it closes no round: that is its last query to all, once"
        )
        must(release == NONE, "it carries a release of one owner")
        self._round = NONE
        # Answers to this query cause no commit of their own.
        self._causes = {
            seq: of for seq, of in self._causes.items() if not (of[0] == DELIVER and of[1] == LEARNER)
        }

    def _make_release(self, must, agent, release) -> None:  # type: ignore[no-untyped-def]
        if release == NONE and self._goes_on:
            must(self._limits is None or self._is_spent(agent), "it releases nothing, though it may")
            return
        must(release == self._releases[agent], f"its release should be number {self._releases[agent]}")
        self._releases[agent] += 1
        self._keep_limit(must, agent, release)

    def _keep_limit(self, must, agent, release) -> None:  # type: ignore[no-untyped-def]
        if self._limits is not None:
            must(release < self._limits[agent], f"more than {self._limits[agent]} releases")


_FIELDS = ("seq", "time", "kind", "agent", "peer", "version", "cause", "release", "outcome")


def verify(
    chunks: Iterable[np.ndarray],
    links: Links,
    limits: np.ndarray | None = None,
    goes_on: bool = False,
    by_edge: bool = False,
    resending: Resending = NEVER,
) -> int:
    """Check a whole stream; see `EventChecker`.

    Parameters
    ----------
    chunks : iterable of ndarray
        Chunks of events, in order.
    links : Links
    limits : ndarray of int, shape (n,), optional
    goes_on, by_edge : bool
    resending : Resending
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
    checker = EventChecker(links, limits, goes_on, by_edge, resending)
    total = 0
    for events in chunks:
        checker.check(events)
        total += events.size
    return total
