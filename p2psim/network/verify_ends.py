"""Invariants of what ends a message, or an exchange before its next message."""

from __future__ import annotations

from p2psim.network.events import (
    DELIVER,
    DROP,
    FAILURES,
    LEARNER,
    NOBODY,
    NONE,
    OFFLINE,
    OK,
    QUEUED,
    SPENT,
    SUPERSEDED,
    WAKE,
)
from p2psim.network.resends import Must
from p2psim.network.verify_state import Heard, Seen


def check_end(
    seen: Seen,
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
    seen: Seen, must: Must, agent: int, peer: int, version: int, cause: int, release: int, outcome: int
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


def _hear_in_star(seen: Seen, seq: int, agent: int, peer: int, version: int, release: int) -> None:
    """Take note of what the delivery of a query or an answer may cause, and of what it ends."""
    if agent != LEARNER:
        older = seen.fresh.hear(agent)
        if older is not None:
            seen.causes.pop(older, None)
    if not seen.is_spent(agent):
        seen.causes[seq] = (DELIVER, agent, peer, OK, version, release)
