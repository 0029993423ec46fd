"""The verifier refuses streams in which work breaks a rule: right streams first, then each with one thing changed."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from network_cases import Graph, ring, star

from p2psim.core.events import (
    BEGIN,
    BUSY,
    COMMIT,
    DELIVER,
    DROP,
    EVENT,
    JOIN,
    LEARNER,
    LEAVE,
    NOBODY,
    NONE,
    OFFLINE,
    OK,
    SEND,
    SUPERSEDED,
    WAKE,
)
from p2psim.network.verify import EventsError, verify
from p2psim.network.verify_order import Ordering


class Line(NamedTuple):
    """An event; its number is its place."""

    time: float
    kind: int
    agent: int
    peer: int = NOBODY
    version: int = NONE
    cause: int = NONE
    release: int = NONE
    outcome: int = OK


def check(lines: list[Line], where: Graph, computes: bool = True, **options: Any) -> int:
    events = np.zeros(len(lines), EVENT)
    for seq, line in enumerate(lines):
        events[seq]["seq"] = seq
        for name, value in line._asdict().items():
            events[seq][name] = value
    return verify([events], where, order=Ordering("at once", True, computes=computes), **options)


WAKING = [
    Line(1.0, WAKE, 0),
    Line(1.0, BEGIN, 0, version=0, cause=0),
    Line(1.5, WAKE, 0, outcome=BUSY),
    Line(2.0, COMMIT, 0, version=1, cause=1, release=0),
    Line(2.0, SEND, 0, 1, 1, 3, 0),
    Line(2.0, DELIVER, 1, 0, 1, 4, 0),
    Line(2.5, WAKE, 0),
    Line(2.5, BEGIN, 0, version=1, cause=6),
    Line(3.0, LEAVE, 0),
    Line(3.0, DROP, 0, NOBODY, 1, 7, NONE, OFFLINE),
    Line(4.0, JOIN, 0),
]

#: Agent 0 tells its model three times; agent 1 computes with the first, the second is superseded, the third waits.
HEARING = [
    Line(1.0, WAKE, 0),
    Line(1.0, SEND, 0, 1, 0, 0),
    Line(1.0, DELIVER, 1, 0, 0, 1),
    Line(1.0, BEGIN, 1, version=0, cause=2),
    Line(1.2, WAKE, 0),
    Line(1.2, SEND, 0, 1, 0, 4),
    Line(1.2, DELIVER, 1, 0, 0, 5),
    Line(1.4, WAKE, 0),
    Line(1.4, SEND, 0, 1, 0, 7),
    Line(1.4, DELIVER, 1, 0, 0, 8),
    Line(1.4, DROP, 1, NOBODY, NONE, 6, NONE, SUPERSEDED),
    Line(2.0, COMMIT, 1, 0, 1, 3, 0),
    Line(2.0, BEGIN, 1, version=1, cause=9),
    Line(3.0, COMMIT, 1, 0, 2, 12, 1),
]

LINKS = [
    Line(1.0, WAKE, 0),
    Line(1.0, BEGIN, 0, version=0, cause=0),
    Line(2.0, SEND, 0, 1, 0, 1, 0),
    Line(2.0, DELIVER, 1, 0, 0, 2, 0),
    Line(2.0, BEGIN, 1, version=0, cause=3),
    Line(3.0, SEND, 1, 0, 0, 4, 0),
    Line(3.0, DELIVER, 0, 1, 0, 5, 0),
    Line(3.0, COMMIT, 0, 1, 1, 6),
]

POLL = [
    Line(1.0, SEND, LEARNER, 0, 0),
    Line(1.0, DELIVER, 0, LEARNER, 0, 0),
    Line(1.0, BEGIN, 0, version=0, cause=1),
    Line(2.0, SEND, LEARNER, 0, 0),
    Line(2.0, DELIVER, 0, LEARNER, 0, 3),
    Line(2.0, DROP, 0, LEARNER, 0, 2, NONE, SUPERSEDED),
    Line(2.0, BEGIN, 0, version=0, cause=4),
    Line(2.5, SEND, 0, LEARNER, 0, 6, 0),
    Line(2.5, DELIVER, LEARNER, 0, 0, 7, 0),
    Line(2.5, COMMIT, LEARNER, 0, 1, 8, 0),
]

STREAMS: dict[str, tuple[list[Line], Graph, dict[str, Any]]] = {
    "waking": (WAKING, ring(3), {}),
    "hearing": (HEARING, ring(3), {}),
    "links": (LINKS, ring(3), {"by_edge": True}),
    "poll": (POLL, star(1), {}),
}

Change = Callable[[list[Line]], list[Line]]


def put(place: int, **fields: Any) -> Change:
    """Change an event."""
    return lambda lines: [*lines[:place], lines[place]._replace(**fields), *lines[place + 1 :]]


def upto(place: int, *more: Line) -> Change:
    """End with other events from a place on."""
    return lambda lines: [*lines[:place], *more]


BREAKS: list[tuple[str, str, Change, str]] = [
    ("another version", "waking", put(7, version=0), "does not read its model of that moment"),
    ("a peer", "waking", put(1, peer=1), "only agents compute, by themselves"),
    ("a release", "waking", put(1, release=0), "it releases nothing"),
    ("a cause of another", "waking", put(0, agent=1), "cannot cause it"),
    ("no cause", "waking", put(1, cause=NONE), "cannot cause it"),
    ("a refused wake", "waking", upto(3, Line(1.5, BEGIN, 0, version=0, cause=2)), "cannot cause it"),
    (
        "two things at a time",
        "waking",
        upto(2, Line(1.5, WAKE, 0), Line(1.5, BEGIN, 0, version=0, cause=2)),
        "it computes already",
    ),
    ("busy with nothing", "waking", put(0, outcome=BUSY), "it is not busy"),
    ("a commit because of the wake", "waking", put(3, cause=0), "its update was not computed"),
    ("a commit with somebody", "waking", put(3, peer=1), "it commits with someone else"),
    (
        "two commits",
        "waking",
        upto(6, Line(2.0, COMMIT, 0, version=2, cause=1, release=1)),
        "its update was not computed",
    ),
    ("who is offline", "waking", upto(9, Line(3.0, BEGIN, 0, version=1, cause=7)), "the agent is offline"),
    ("dropped while online", "waking", lambda lines: [*lines[:8], lines[9]], "only when its agent leaves"),
    ("a drop of another version", "waking", put(9, version=0), "it is other work that was begun"),
    ("no work but its message", "waking", put(9, cause=6), "nothing that can be dropped"),
    ("a commit with another", "hearing", put(11, peer=2), "it commits with someone else"),
    ("the newest is superseded", "hearing", put(10, cause=9), "no reason to drop"),
    ("dropped as if it had left", "hearing", put(10, outcome=OFFLINE), "no reason to drop"),
    ("dropped as if it were spent", "hearing", put(10, outcome=3), "no reason to drop"),
    ("a message still", "hearing", put(10, peer=0), "it is the message of no agent any more"),
    (
        "an older one that waits",
        "hearing",
        lambda lines: [*lines[:10], lines[11], Line(2.0, BEGIN, 1, version=1, cause=6)],
        "a newer model has taken the place",
    ),
    (
        "one that waits too long",
        "hearing",
        lambda lines: [*lines[:12], Line(2.5, BEGIN, 1, version=1, cause=9)],
        "cannot cause it",
    ),
    ("a model heard twice", "hearing", put(12, cause=2), "cannot cause it"),
    ("steps that were not computed", "links", put(2, cause=0), "its local steps were not computed"),
    ("steps to another", "links", put(5, peer=2), "it answers someone else"),
    ("an answer begins", "links", upto(7, Line(3.0, BEGIN, 0, version=0, cause=6)), "an answer ends the exchange"),
    ("another version than the query's", "poll", put(2, version=1), "another version than the query's"),
    ("an answer because of the query", "poll", put(6, kind=SEND, peer=LEARNER, release=0), "did not happen to its"),
    ("an answer twice", "poll", upto(8, Line(2.5, SEND, 0, LEARNER, 0, 6, 1)), "cannot cause a send"),
    ("nobody's drop", "poll", put(5, peer=NOBODY), "it is another query that was heard"),
    ("a drop without a reason", "poll", put(5, outcome=BUSY), "superseded, or not answered"),
]  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_a_right_stream_is_accepted(name: str) -> None:
    lines, where, options = STREAMS[name]
    assert check(lines, where, **options) == len(lines)
    with pytest.raises(EventsError, match="nothing takes time to compute here"):
        check(lines, where, computes=False, **options)


@pytest.mark.parametrize(
    ("name", "change", "message"), [row[1:] for row in BREAKS], ids=[row[0] for row in BREAKS]
)
def test_a_broken_one_is_refused(name: str, change: Change, message: str) -> None:
    lines, where, options = STREAMS[name]
    with pytest.raises(EventsError, match=message):
        check(change(lines), where, **options)
