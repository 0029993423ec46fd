"""Invariants of events: of sends, of commits, and of what ends a message, or an exchange before its next message."""

from __future__ import annotations

from p2psim.core.events import (
    COMMIT,
    DELIVER,
    DROP,
    FAILURES,
    LEARNER,
    NEIGHBOURS,
    NOBODY,
    NONE,
    OFFLINE,
    OK,
    QUEUED,
    SPENT,
    SUPERSEDED,
    WAKE,
)
from p2psim.network.verify_state import Heard, Must, VerifierState


def check_send(
    seen: VerifierState, must: Must, seq: int, agent: int, peer: int, version: int, cause: int, release: int
) -> None:
    """Check a send."""
    must(peer >= LEARNER or peer == NEIGHBOURS, "it is sent to nobody")
    receivers = {peer}
    if peer == NEIGHBOURS:
        receivers = set(range(seen.links.agents)) if agent == LEARNER else set(seen.near[agent])
    if agent != LEARNER:
        seen.keep_limit(must, agent, release)
    if agent != LEARNER and not seen.links.star:
        answer = _check_gossip(seen, must, agent, peer, version, cause, release)
        seen.open[seq] = (agent, receivers, version, release, answer)
        return
    origin = seen.causes.get(cause)
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
            seen.make_release(must, agent, release)
            seen.fresh.answer(agent, seq, cause, origin)
        del seen.causes[cause]
    else:
        must(agent == LEARNER, "nothing caused it")
    if agent == LEARNER:
        must(release == NONE, "the learner releases nothing")
        must(
            version == seen.versions.get(LEARNER, 0),
            "it does not carry the learner's model of that moment",
        )
        # With one owner, that is all.
        seen.round = seq if cause == NONE else NONE
    seen.open[seq] = (agent, receivers, version, release, False)


def _check_gossip(
    seen: VerifierState, must: Must, agent: int, peer: int, version: int, cause: int, release: int
) -> bool:
    """Check a send from agent to agent; returns whether it answers another."""
    heard, origin = seen.heard.get(cause), seen.causes.pop(cause, None)
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
    asks = version == NONE and heard is None and not seen.by_edge
    must(
        asks or version == seen.versions.get(agent, 0),
        "it does not carry its sender's model of that moment",
    )
    if seen.by_edge:
        seen.make_release(must, agent, release)
    else:
        must(release == NONE, "it carries a release that no commit made")
    return heard is not None


def check_commit(
    seen: VerifierState, must: Must, seq: int, agent: int, peer: int, version: int, cause: int, release: int
) -> None:
    """Check a commit."""
    must(
        version == seen.versions.get(agent, 0) + 1,
        f"its version should be {seen.versions.get(agent, 0) + 1}",
    )
    seen.versions[agent] = version
    if agent == LEARNER and peer == NEIGHBOURS:
        _check_round(seen, must, cause, release)
        return
    heard = seen.heard.get(cause)
    if heard is not None:
        must(heard.agent == agent, f"event {cause} cannot cause it, or has caused another commit")
        must(heard.commits, f"event {cause} cannot cause it, or has caused another commit")
        must(heard.version != NONE, "it commits with a question, which carries no model")
        must(peer == heard.sender, "it commits with another model than it heard")
        heard.commits = False
        if seen.by_edge:
            must(heard.is_answer, "a link's commit is that of the agent that woke")
            must(release == NONE, "the releases of a link's ends go with their sends")
        else:
            seen.make_release(must, agent, release)
        return
    origin = seen.causes.pop(cause, None)
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
        must(not seen.by_edge, "a link's commit is caused by an answer")
        seen.make_release(must, agent, release)
        seen.causes[seq] = (COMMIT, agent, peer, OK, version, release)


def _check_round(seen: VerifierState, must: Must, cause: int, release: int) -> None:
    must(cause != NONE and cause == seen.round, "it closes no round: that is its last query to all, once")
    must(release == NONE, "it carries a release of one owner")
    seen.round = NONE
    # Answers to this query cause no commit of their own.
    seen.causes = {seq: of for seq, of in seen.causes.items() if not (of[0] == DELIVER and of[1] == LEARNER)}


def check_end(
    seen: VerifierState,
    must: Must,
    seq: int,
    kind: int,
    agent: int,
    peer: int,
    version: int,
    cause: int,
    release: int,
    outcome: int,
) -> None:
    """Check a delivery or a drop."""
    message = seen.open.get(cause)
    if message is None and kind == DROP:
        _check_undone(seen, must, agent, peer, version, cause, release, outcome)
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
        must(agent not in seen.away, "the agent is away")
        if not seen.links.star:
            seen.heard[seq] = Heard(agent, sender, version, is_answer)
        else:
            _hear_in_star(seen, seq, agent, peer, version, release)
    elif seen.links.star and agent == LEARNER:
        reopened = seen.fresh.lose(sender, cause)
        if reopened is not None:
            seen.causes[reopened[0]] = reopened[1]
    seen.retries.end(cause, agent, sender, version, release, kind == DELIVER)
    receivers.discard(agent)
    if not receivers:
        del seen.open[cause]


def _check_undone(
    seen: VerifierState,
    must: Must,
    agent: int,
    peer: int,
    version: int,
    cause: int,
    release: int,
    outcome: int,
) -> None:
    """Check the drop of an answer, or of a wait, that will come to nothing."""
    origin = seen.causes.pop(cause, None)
    must(
        origin is not None and origin[1] == agent,
        f"nothing that can be dropped is open at event {cause}",
    )
    assert origin is not None
    must(release == NONE, "an answer that is not given releases nothing")
    if origin[0] == DELIVER:
        must(outcome in (SUPERSEDED, OFFLINE), "a query that was heard is superseded, or not answered")
        must((peer, version) == (origin[2], origin[4]), "it is another query that was heard")
    else:
        must(
            outcome in (SPENT, OFFLINE) and origin[0] == WAKE and origin[3] == QUEUED,
            "only who waits can be turned away",
        )
        must(outcome == SPENT or agent in seen.away, "who waits is there")
        must((peer, version) == (NOBODY, NONE), "who waits has no message yet")


def _hear_in_star(seen: VerifierState, seq: int, agent: int, peer: int, version: int, release: int) -> None:
    """Take note of what the delivery of a query or an answer may cause, and of what it ends."""
    if agent != LEARNER:
        older = seen.fresh.hear(agent)
        if older is not None:
            seen.causes.pop(older, None)
    if not seen.is_spent(agent):
        seen.causes[seq] = (DELIVER, agent, peer, OK, version, release)
