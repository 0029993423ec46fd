"""Invariants of events, and what the verifier of a stream remembers to check them.

These are invariants of beginnings of work, of sends, of commits, and of what ends a message, or an exchange before its
next message.
"""

from __future__ import annotations

import numpy as np

from p2psim.core import events as ev
from p2psim.network.changes import ActiveLinks
from p2psim.network.graph import Graph
from p2psim.network.verify_event import Event, EventsError, Heard, OpenMessage
from p2psim.network.verify_resending import NEVER, FreshAnswers, Resending, Retries
from p2psim.network.verify_work import WorkRules

__all__ = [
    "NEVER",
    "Event",
    "EventsError",
    "Heard",
    "OpenMessage",
    "Resending",
    "VerifierState",
    "check_begin",
    "check_commit",
    "check_end",
    "check_send",
]


class VerifierState:
    """The events so far, as far as they bear on later ones; the parameters are those of `EventChecker`."""

    def __init__(
        self,
        links: Graph,
        limits: np.ndarray | None,
        goes_on: bool,
        by_edge: bool,
        resending: Resending,
        end: float = np.inf,
        computes: bool = False,
        own_links: bool = False,
    ):
        self.links, self.limits, self.goes_on, self.by_edge = links, limits, goes_on, by_edge
        self.near = [set(links.of(agent).tolist()) for agent in range(links.agents)]
        self.active = ActiveLinks(links, end)
        self.seq, self.time = 0, 0.0
        self.offline: set[int] = set()
        # By seq: messages by that of their send, what a later event may name as its cause, and what agents heard of
        # each other at this moment by that of the delivery.
        self.open: dict[int, OpenMessage] = {}
        self.causes: dict[int, Event] = {}
        self.heard: dict[int, Heard] = {}
        self.versions: dict[int, int] = {}
        self.releases = [0] * links.agents
        # The learner's last query to all, as long as no commit has closed its round.
        self.round = ev.NONE
        self.retries, self.fresh = Retries(resending), FreshAnswers(resending)
        self.work = WorkRules(computes, own_links)

    def is_spent(self, agent: int) -> bool:
        """Whether an agent may make no more releases."""
        return self.limits is not None and agent != ev.LEARNER and self.releases[agent] >= self.limits[agent]

    def linked(self, agent: int, peer: int) -> bool:
        """Whether two are linked."""
        return 0 <= peer < self.links.agents if agent == ev.LEARNER else peer in self.near[agent]

    def receivers(self, send: Event) -> set[int]:
        """Who is to hear a message."""
        if send.peer != ev.NEIGHBOURS:
            return {send.peer}
        if send.agent == ev.LEARNER:
            return set(range(self.links.agents))
        return set(
            self.near[send.agent] if self.links.changes is None else self.active.of(send.agent).tolist()
        )

    def linked_now(self, agent: int, peer: int) -> bool:
        """Whether two that are linked some time are so at this moment."""
        return self.links.changes is None or self.active.linked(agent, peer)

    def is_alone(self, agent: int) -> bool:
        """Whether an agent has no neighbour at this moment."""
        return self.links.changes is not None and not self.active.degree(agent)

    def make_release(self, event: Event) -> None:
        """Check that an agent makes its next release, if it may."""
        agent, release = event.agent, event.release
        if release == ev.NONE and self.goes_on:
            event.must(self.limits is None or self.is_spent(agent), "it releases nothing, though it may")
            return
        event.must(release == self.releases[agent], f"its release should be number {self.releases[agent]}")
        self.releases[agent] += 1
        self.keep_limit(event)

    def keep_limit(self, event: Event) -> None:
        """Check that an agent does not exceed its limit."""
        if self.limits is not None:
            most = self.limits[event.agent]
            event.must(event.release < most, f"more than {most} releases")


def check_begin(state: VerifierState, event: Event) -> None:
    """Check that an agent begins to compute."""
    agent, cause, must = event.agent, event.cause, event.must
    must(state.work.computes, "nothing takes time to compute here")
    waits, heard = state.work.waiting(agent, cause), state.heard.get(cause)
    if waits is not None or heard is not None:
        heard = waits or heard
        assert heard is not None
        origin = heard.delivery
        is_open = origin.agent == agent and heard.commits and origin.version != ev.NONE
        must(is_open, f"event {cause} cannot cause it, or has caused another update")
        must(not (state.by_edge and heard.is_answer), "an answer ends the exchange of a link")
        heard.commits = False
    else:
        known = state.causes.pop(cause, None)
        kind = ev.DELIVER if state.links.star else ev.WAKE
        must(
            known is not None and known.agent == agent and known.kind == kind,
            f"event {cause} cannot cause it, or has caused another update",
        )
        assert known is not None
        must(known.outcome == ev.OK, "a wake that waits causes nothing")
        origin = known
    if state.links.star:
        must(event.version == origin.version, "it reads another version than the query's")
        state.causes[event.seq] = event
    else:
        is_current = event.version == state.versions.get(agent, 0)
        must(is_current, "it does not read its model of that moment")
    state.work.check_begin(event, origin)


def check_send(state: VerifierState, event: Event) -> None:
    """Check a send."""
    agent, peer, cause, must = event.agent, event.peer, event.cause, event.must
    must(peer >= ev.LEARNER or peer == ev.NEIGHBOURS, "it is sent to nobody")
    must(peer == ev.NEIGHBOURS or state.linked_now(agent, peer), "its link is not there now")
    receivers = state.receivers(event)
    must(bool(receivers), "it is sent to nobody")
    if agent != ev.LEARNER:
        state.keep_limit(event)
    if agent != ev.LEARNER and not state.links.star:
        state.open[event.seq] = OpenMessage(event, receivers, _check_gossip(state, event))
        return
    origin = state.causes.get(cause)
    must(
        cause == ev.NONE or origin is not None,
        f"its cause, event {cause}, cannot cause a send, or has done so",
    )
    if origin is not None:
        if agent == ev.LEARNER:
            must(
                origin.kind == ev.WAKE and origin.agent == peer, "the learner answers a wake of someone else"
            )
        else:
            kind = ev.BEGIN if state.work.computes else ev.DELIVER
            must(origin.kind == kind and origin.agent == agent, "its cause did not happen to its sender")
            must(origin.version == event.version, "it carries another version than what caused it")
            state.work.end(agent, cause)
            state.make_release(event)
            state.fresh.answer(event, origin)
        del state.causes[cause]
    else:
        must(agent == ev.LEARNER, "nothing caused it")
    if agent == ev.LEARNER:
        must(event.release == ev.NONE, "the learner releases nothing")
        current = state.versions.get(ev.LEARNER, 0)
        must(event.version == current, "it does not carry the learner's model of that moment")
        # With one owner, that is all.
        state.round = event.seq if cause == ev.NONE else ev.NONE
    state.open[event.seq] = OpenMessage(event, receivers)


def _check_gossip(state: VerifierState, event: Event) -> bool:
    """Check a send from agent to agent; returns whether it answers another."""
    agent, cause, must = event.agent, event.cause, event.must
    begun = state.work.end(agent, cause) if state.by_edge else None
    if begun is not None:
        answers = begun[1].kind == ev.DELIVER
        must(not answers or event.peer == begun[1].peer, "it answers someone else")
        must(event.peer != ev.NEIGHBOURS, "only a commit is told to all neighbours")
        is_current = event.version == state.versions.get(agent, 0)
        must(is_current, "it does not carry its sender's model of that moment")
        state.make_release(event)
        return answers
    must(not (state.by_edge and state.work.computes), "its local steps were not computed")
    heard, origin = state.heard.get(cause), state.causes.pop(cause, None)
    must(cause != ev.NONE, "nothing caused it")
    must(
        heard is not None or origin is not None,
        f"its cause, event {cause}, cannot cause a send, or has done so",
    )
    if heard is not None:
        must(heard.delivery.agent == agent, "its cause did not happen to its sender")
        must(event.peer == heard.delivery.peer, "it answers someone else")
        must(not heard.is_answer, "an answer is not answered")
        must(heard.answers and heard.commits, "it answers twice, or after its update")
        heard.answers = False
    else:
        assert origin is not None
        is_own = origin.kind in (ev.WAKE, ev.COMMIT) and origin.agent == agent
        must(is_own, "its cause did not happen to its sender")
        must(origin.outcome == ev.OK, "a wake that waits causes no send")
        if origin.kind == ev.COMMIT:
            must(origin.version == event.version, "it carries another version than what caused it")
            must(event.release == origin.release, "it does not carry the release just made")
            return False
        must(event.peer != ev.NEIGHBOURS, "only a commit is told to all neighbours")
    asks = event.version == ev.NONE and heard is None and not state.by_edge
    is_current = asks or event.version == state.versions.get(agent, 0)
    must(is_current, "it does not carry its sender's model of that moment")
    if state.by_edge:
        state.make_release(event)
    else:
        must(event.release == ev.NONE, "it carries a release that no commit made")
    return heard is not None


def check_commit(state: VerifierState, event: Event) -> None:
    """Check a commit."""
    agent, peer, cause, release, must = event.agent, event.peer, event.cause, event.release, event.must
    due = state.versions.get(agent, 0) + 1
    must(event.version == due, f"its version should be {due}")
    state.versions[agent] = event.version
    if agent == ev.LEARNER and peer == ev.NEIGHBOURS:
        _check_round(state, event)
        return
    begun = state.work.end(agent, cause) if not state.by_edge and agent != ev.LEARNER else None
    if begun is not None:
        origin = begun[1]
        must(
            peer == (origin.peer if origin.kind == ev.DELIVER else ev.NOBODY), "it commits with someone else"
        )
        state.make_release(event)
        if origin.kind == ev.WAKE:
            state.causes[event.seq] = event
        return
    computes = state.work.computes and not state.by_edge and agent != ev.LEARNER
    must(not computes, "its update was not computed")
    heard, no_cause = state.heard.get(cause), f"event {cause} cannot cause it, or has caused another commit"
    if heard is not None:
        must(heard.delivery.agent == agent and heard.commits, no_cause)
        must(heard.delivery.version != ev.NONE, "it commits with a question, which carries no model")
        must(peer == heard.delivery.peer, "it commits with another model than it heard")
        heard.commits = False
        if state.by_edge:
            must(heard.is_answer, "a link's commit is that of the agent that woke")
            must(release == ev.NONE, "the releases of a link's ends go with their sends")
        else:
            state.make_release(event)
        return
    known = state.causes.pop(cause, None)
    must(known is not None and known.agent == agent, no_cause)
    assert known is not None
    origin = known
    if agent == ev.LEARNER:
        is_answer = origin.kind == ev.DELIVER and origin.peer == peer
        must(is_answer, "the learner commits without an answer of that owner")
        must(release == origin.release, "it uses another release than the answer carries")
    else:
        is_wake = origin.kind == ev.WAKE and origin.outcome == ev.OK and peer == ev.NOBODY
        must(is_wake, "it commits without a wake, or with someone")
        must(not state.by_edge, "a link's commit is caused by an answer")
        state.make_release(event)
        state.causes[event.seq] = event


def _check_round(state: VerifierState, event: Event) -> None:
    is_open = event.cause != ev.NONE and event.cause == state.round
    event.must(is_open, "it closes no round: that is its last query to all, once")
    event.must(event.release == ev.NONE, "it carries a release of one owner")
    state.round = ev.NONE
    # Answers to this query cause no commit of their own.
    state.causes = {
        seq: of for seq, of in state.causes.items() if not (of.kind == ev.DELIVER and of.agent == ev.LEARNER)
    }


def check_end(state: VerifierState, event: Event) -> None:
    """Check a delivery or a drop."""
    agent, must, message = event.agent, event.must, state.open.get(event.cause)
    if message is None and event.kind == ev.DROP:
        _check_undone(state, event)
        return
    must(message is not None, f"no message is open at event {event.cause}")
    assert message is not None
    send = message.send
    must(send.agent == event.peer, f"the message was sent by {send.agent}")
    must(agent in message.receivers, "the message is not for it, or has ended there")
    is_same = (send.version, send.release) == (event.version, event.release)
    must(is_same, "version or release differ from what was sent")
    ends = (ev.OK,) if event.kind == ev.DELIVER else ev.FAILURES
    must(event.outcome in ends, "its outcome is not that of a message's end")
    if event.kind == ev.DELIVER:
        must(agent not in state.offline, "the agent is offline")
        if not state.links.star:
            heard = state.heard[event.seq] = Heard(event, message.is_answer)
            if not (state.by_edge and message.is_answer):
                state.work.hear(heard)
        else:
            _hear_in_star(state, event)
    elif state.links.star and agent == ev.LEARNER:
        reopened = state.fresh.lose(send.agent, event.cause)
        if reopened is not None:
            state.causes[reopened.seq] = reopened
    state.retries.end(event)
    message.receivers.discard(agent)
    if not message.receivers:
        del state.open[event.cause]


def _check_undone(state: VerifierState, event: Event) -> None:
    """Check the drop of an answer, or of a wait, that will come to nothing."""
    agent, outcome, must = event.agent, event.outcome, event.must
    if not state.links.star:
        is_spent = state.is_spent(agent) and not state.goes_on

        def linked(peer: int | None) -> bool:
            return not state.is_alone(agent) if peer is None else state.linked_now(agent, peer)

        if state.work.drop(event, agent in state.offline, is_spent, linked):
            must(event.release == ev.NONE, "what is not computed releases nothing")
            return
    state.work.end(agent, event.cause)
    origin = state.causes.pop(event.cause, None)
    is_open = origin is not None and origin.agent == agent
    must(is_open, f"nothing that can be dropped is open at event {event.cause}")
    assert origin is not None
    must(event.release == ev.NONE, "an answer that is not given releases nothing")
    about = event.peer, event.version
    if origin.kind in (ev.DELIVER, ev.BEGIN):
        must(outcome in (ev.SUPERSEDED, ev.OFFLINE), "a query that was heard is superseded, or not answered")
        must(about == (ev.LEARNER, origin.version), "it is another query that was heard")
    else:
        waits = outcome in (ev.SPENT, ev.OFFLINE) and origin.kind == ev.WAKE and origin.outcome == ev.QUEUED
        must(waits, "only who waits can be turned away")
        must(outcome == ev.SPENT or agent in state.offline, "who waits is online")
        must(about == (ev.NOBODY, ev.NONE), "who waits has no message yet")


def _hear_in_star(state: VerifierState, event: Event) -> None:
    """Take note of what the delivery of a query or an answer may cause, and of what it ends."""
    if event.agent != ev.LEARNER:
        older = state.fresh.hear(event.agent)
        if older is not None:
            state.causes.pop(older, None)
    if not state.is_spent(event.agent):
        state.causes[event.seq] = event
