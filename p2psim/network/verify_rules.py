"""Invariants of beginnings of work, of sends, of commits, and of what ends a message or an exchange."""

from p2psim.core import events as ev
from p2psim.network.verify_messages import Event, Heard, OpenMessage
from p2psim.network.verify_rounds import LearnersRound
from p2psim.network.verify_state import VerifierState


def check_begin(state: VerifierState, event: Event) -> None:
    """Check that an agent begins to compute."""
    agent, cause, must = event.agent, event.cause, event.must
    must(state.work.computes, "nothing takes time to compute here")
    if state.conduct.in_rounds:
        must(event.version == state.versions.get(agent, 0), "it does not read its model of that moment")
        state.work.check_begin(event, state.rounds.begin(event, state.open))
        return
    no_cause = f"event {cause} cannot cause it, or has caused another update"
    if (heard := state.work.waiting(agent, cause) or state.heard.get(cause)) is not None:
        origin = heard.delivery
        is_open = origin.agent == agent and heard.commits and origin.version != ev.NONE
        must(is_open, no_cause)
        must(not (state.by_edge and heard.is_answer), "an answer ends the exchange of a link")
        heard.commits = False
    else:
        origin = event.known(state.causes.pop(cause, None), no_cause)
        kind = ev.DELIVER if state.links.star else ev.WAKE
        must(origin.agent == agent and origin.kind == kind, no_cause)
        must(origin.outcome == ev.OK, "a wake that waits causes nothing")
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
    if state.conduct.in_rounds:
        is_to_all = (
            peer == ev.NEIGHBOURS or state.own_links or receivers == set(state.active.of(agent).tolist())
        )
        must(is_to_all, "it is not sent to all neighbours")
        is_current = event.version == state.versions.get(agent, 0)
        must(is_current, "it does not carry its sender's model of that moment")
        state.rounds.send(event)
        state.work.end(agent, cause)
        _release_in_round(state, event, state.conduct.releases == "sends")
        state.open[event.seq] = OpenMessage(event, receivers)
        return
    if agent != ev.LEARNER and not state.links.star:
        message = OpenMessage(event, receivers, _check_gossip(state, event))
        if state.conduct.blocks:
            state.waits.send(event, message.is_answer)
        state.open[event.seq] = message
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
        if cause == ev.NONE:
            state.learners_round.ask(event)
        else:
            state.learners_round = LearnersRound()
    state.open[event.seq] = OpenMessage(event, receivers)


def _check_gossip(state: VerifierState, event: Event) -> bool:
    """Check a send from agent to agent; returns whether it answers another."""
    agent, cause, must = event.agent, event.cause, event.must
    works_first = state.by_edge or state.conduct.works_first
    begun = state.work.end(agent, cause) if works_first else None
    if begun is not None:
        answers = begun[1].kind == ev.DELIVER
        must(not answers or event.peer == begun[1].peer, "it answers someone else")
        must(event.peer != ev.NEIGHBOURS, "only a commit is sent to all neighbours")
        is_current = event.version == state.versions.get(agent, 0)
        must(is_current, "it does not carry its sender's model of that moment")
        if state.by_edge:
            state.make_release(event)
        else:
            must(event.release == ev.NONE, "it carries a release that no commit made")
        return answers
    must(not (state.by_edge and state.work.computes), "its local steps were not computed")
    is_rash = works_first and state.work.computes and cause not in state.heard
    must(not is_rash, "what comes before it was not computed")
    heard, origin = state.heard.get(cause), state.causes.pop(cause, None)
    must(cause != ev.NONE, "nothing caused it")
    if heard is not None:
        must(heard.delivery.agent == agent, "its cause did not happen to its sender")
        must(event.peer == heard.delivery.peer, "it answers someone else")
        must(not heard.is_answer, "an answer is not answered")
        must(heard.answers and heard.commits, "it answers twice, or after its update")
        heard.answers = False
    else:
        origin = event.known(origin, f"its cause, event {cause}, cannot cause a send, or has done so")
        is_own = origin.kind in (ev.WAKE, ev.COMMIT) and origin.agent == agent
        must(is_own, "its cause did not happen to its sender")
        must(origin.outcome == ev.OK, "a wake that waits causes no send")
        if origin.kind == ev.COMMIT:
            must(origin.version == event.version, "it carries another version than what caused it")
            must(event.release == origin.release, "it does not carry the release just made")
            return False
        must(event.peer != ev.NEIGHBOURS, "only a commit is sent to all neighbours")
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
        state.learners_round.close(event)
        # Answers to these queries cause no commit of their own.
        state.causes = {seq: of for seq, of in state.causes.items() if not _is_answer(of)}
        return
    if state.conduct.in_rounds:
        must(state.rounds.owns(event), f"event {cause} is not its agent's wake in the round that is open")
        has_sent = _end_in_round(state, event)
        _release_in_round(state, event, state.conduct.releases == "commits" or not has_sent)
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
    answers = cause in state.heard and not state.heard[cause].is_answer and state.conduct.releases == "wakers"
    computes = state.work.computes and not (state.by_edge or state.conduct.works_first or answers)
    must(not computes or agent == ev.LEARNER, "its update was not computed")
    heard, no_cause = state.heard.get(cause), f"event {cause} cannot cause it, or has caused another commit"
    if heard is not None:
        must(heard.delivery.agent == agent and heard.commits, no_cause)
        must(heard.delivery.version != ev.NONE, "it commits with a question, which carries no model")
        must(peer == heard.delivery.peer, "it commits with another model than it heard")
        heard.commits = False
        if state.by_edge:
            must(heard.is_answer, "a link's commit is that of the agent that woke")
            must(release == ev.NONE, "the releases of a link's ends go with their sends")
        elif state.conduct.releases == "wakers" and not heard.is_answer:
            must(release == ev.NONE, "an agent that answers makes no release")
        else:
            state.make_release(event)
        return
    origin = event.known(state.causes.pop(cause, None), no_cause)
    must(origin.agent == agent, no_cause)
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


def _is_computed_with(state: VerifierState, is_answer: bool) -> bool:
    """Whether a model that an agent has heard from another one, or its answer, leads to work."""
    if state.by_edge:
        return not is_answer
    return not state.conduct.works_first and (is_answer or state.conduct.releases != "wakers")


def _is_answer(event: Event) -> bool:
    return event.kind == ev.DELIVER and event.agent == ev.LEARNER


def _end_in_round(state: VerifierState, event: Event) -> bool:
    """Check the end of an agent's part in a round; returns whether it has sent its model."""
    may_be_alone = state.own_links or state.links.changes is not None
    has_sent = state.rounds.end(event, state.open, event.agent in state.offline, may_be_alone)
    state.work.end(event.agent, event.cause)
    return has_sent


def _release_in_round(state: VerifierState, event: Event, makes_it: bool) -> None:
    if makes_it:
        state.make_release(event)
    else:
        event.must(event.release == ev.NONE, "it carries a release that another event of its round makes")


def check_end(state: VerifierState, event: Event) -> None:
    """Check a delivery or a drop."""
    agent, must, message = event.agent, event.must, state.open.get(event.cause)
    if state.rounds.owns(event):
        _end_in_round(state, event)
        return
    if message is None and event.kind == ev.DROP:
        _check_undone(state, event)
        return
    message = event.known(message, f"no message is open at event {event.cause}")
    send = message.send
    must(send.agent == event.peer, f"the message was sent by {send.agent}")
    must(agent in message.receivers, "the message is not for it, or has ended there")
    is_same = (send.version, send.release) == (event.version, event.release)
    must(is_same, "version or release differ from what was sent")
    ends = (ev.OK,) if event.kind == ev.DELIVER else ev.FAILURES
    must(event.outcome in ends, "its outcome is not that of a message's end")
    if event.kind == ev.DELIVER:
        must(agent not in state.offline, "the agent is offline")
        if state.links.star:
            _hear_in_star(state, event)
        elif not state.conduct.in_rounds:
            heard = state.heard[event.seq] = Heard(event, message.is_answer)
            # Where local steps could not be sent back, none are made.
            can_answer = not state.by_edge or state.linked_now(agent, event.peer)
            if can_answer and _is_computed_with(state, message.is_answer):
                state.work.hear(heard)
    elif state.links.star and agent == ev.LEARNER:
        reopened = state.fresh.lose(send.agent, event.cause)
        if reopened is not None:
            state.causes[reopened.seq] = reopened
    state.retries.end(event)
    state.waits.end(event)
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
    not_open = f"nothing that can be dropped is open at event {event.cause}"
    origin = event.known(state.causes.pop(event.cause, None), not_open)
    must(origin.agent == agent, not_open)
    must(event.release == ev.NONE, "an answer that is not given releases nothing")
    about = event.peer, event.version
    if origin.kind in (ev.DELIVER, ev.BEGIN):
        must(outcome in (ev.SUPERSEDED, ev.OFFLINE), "a query that was heard is superseded, or not answered")
        must(about == (ev.LEARNER, origin.version), "it is another query that was heard")
    else:
        waits = outcome in (ev.SPENT, ev.OFFLINE) and origin.kind == ev.WAKE and origin.outcome == ev.QUEUED
        must(waits, "only an owner that waits can be turned away")
        must(outcome == ev.SPENT or agent in state.offline, "an owner that waits is online")
        must(about == (ev.NOBODY, ev.NONE), "an owner that waits has no message yet")


def _hear_in_star(state: VerifierState, event: Event) -> None:
    """Take note of what the delivery of a query or an answer may cause, and of what it ends."""
    if event.agent != ev.LEARNER:
        older = state.fresh.hear(event.agent)
        if older is not None:
            state.causes.pop(older, None)
    if not state.is_spent(event.agent):
        state.causes[event.seq] = event
