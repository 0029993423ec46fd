"""Invariants of commits."""

from __future__ import annotations

from p2psim.network.events import COMMIT, DELIVER, LEARNER, NEIGHBOURS, NOBODY, NONE, OK, WAKE
from p2psim.network.resends import Must
from p2psim.network.verify_state import Seen


def check_commit(
    seen: Seen, must: Must, seq: int, agent: int, peer: int, version: int, cause: int, release: int
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


def _check_round(seen: Seen, must: Must, cause: int, release: int) -> None:
    must(cause != NONE and cause == seen.round, "it closes no round: that is its last query to all, once")
    must(release == NONE, "it carries a release of one owner")
    seen.round = NONE
    # Answers to this query cause no commit of their own.
    seen.causes = {seq: of for seq, of in seen.causes.items() if not (of[0] == DELIVER and of[1] == LEARNER)}
