"""Invariants of sends."""

from __future__ import annotations

from p2psim.network.events import COMMIT, DELIVER, LEARNER, NEIGHBOURS, NONE, OK, WAKE
from p2psim.network.resends import Must
from p2psim.network.verify_state import Seen


def check_send(
    seen: Seen, must: Must, seq: int, agent: int, peer: int, version: int, cause: int, release: int
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
    seen: Seen, must: Must, agent: int, peer: int, version: int, cause: int, release: int
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
