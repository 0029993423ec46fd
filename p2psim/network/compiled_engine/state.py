"""State of a run of the compiled engine: arrays of records, so that it can stop after any step and go on later.

What a network does not need is None: the compiler makes code of its own without it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

#: Why a kernel has returned: a run goes on, has ended, or needs more room, random numbers or turns before it goes on.
RUNNING, BY_COMMITS, BY_TIME, EXHAUSTED, NEEDS_ROOM, NEEDS_DRAWS, NEEDS_TURNS = range(7)
ENDS = ("", "commits", "time", "exhausted")

#: Numbers of a run that change, and those that it is given.
STATE = np.dtype(
    [
        (name, np.int64)
        for name in (
            # the events: why the kernel returned, next number, place in the array, commits so far and the last one
            "state", "seq", "at", "commits", "last",
            # agents that can still make a release, and releases on their way
            "able", "in_flight", "timed",
            # tasks, appointments, and the list of messages that are free
            "depth", "due", "free", "spare",
            # what the network is
            "star", "pattern", "hears", "goes_on", "again", "fresh", "needy",
            # request: who is served, whether who waits is being called, what a busy learner does
            "served", "calling", "queues", "stops", "first_asked", "last_asked",
            # rounds: number, whole and late rounds since `since`, answers that are waited for
            "rounds", "whole", "late", "left", "is_open", "is_due", "query",
            # presence
            "rejoin", "keeps", "turn", "turns",
            # a shared medium
            "access", "shared", "half_duplex", "one_by_one", "skips", "attempts",
            # nodes of lists, and transmissions as they are received, that are free
            "free_node", "spare_nodes", "free_reception", "spare_receptions",
        )
    ]
    + [
        (name, np.float64)
        for name in (
            "now", "end", "known", "question", "loaded", "acknowledge", "interval", "deadline", "since", "slot",
            "longest", "capture",
        )
    ]
)  # fmt: skip

#: One agent, or the learner, which is the last; a processor fetches it as a whole.
AGENT = np.dtype(
    [
        ("version", np.int64),
        ("release", np.int64),
        ("limit", np.int64),
        ("begun", np.int64),
        ("ticks", np.int64),
        ("asked", np.int64),
        ("rate", np.float64),
        ("is_able", np.int64),
    ]
)

#: A message in flight, or a timer; and what its appointment is sorted by after its time (`calendar.comes_first`).
MESSAGE = np.dtype(
    [
        ("number", np.int64),
        ("version", np.int64),
        ("query", np.int64),
        ("link", np.int64),
        ("next", np.int64),
        ("agent", np.int32),
        ("peer", np.int32),
        ("sender", np.int32),
        ("receiver", np.int32),
        ("release", np.int32),
        ("tries", np.int16),
        ("what", np.uint8),
        ("lane", np.uint8),
        ("outcome", np.uint8),
        ("has_arrived", np.uint8),
        ("order", np.uint8),
        ("kind", np.uint8),
    ]
)

#: Something that follows at once, before anything else; the last one that was written down comes first.
TASK = np.dtype([("what", np.int64), ("message", np.int64), ("link", np.int64), ("last", np.int64)])

#: An element of a list: two times or other numbers, two whole numbers, and the next element.
NODE = np.dtype([("x", np.float64), ("y", np.float64), ("i", np.int64), ("j", np.int64), ("next", np.int64)])

#: A random quantity: its law, a number or the ends of an interval, and its stream.
LAW = np.dtype(
    [
        ("kind", np.int64),
        ("low", np.float64),
        ("width", np.float64),
        ("key", np.int64),
        ("lane", np.int64),
        ("table", np.int64),
    ]
)

#: Of a law and an agent that draws from a table: where its draws begin there, and how many there are.
CURSOR = np.dtype([("first", np.int64), ("count", np.int64)])

#: A change of presence: when, which group of agents, and what happens (`absence`).
TURN = np.dtype([("time", np.float64), ("group", np.int64), ("what", np.int64)])

#: What a group does at its turn; the last goes with the second, or stands alone.
JOINS, LEAVES, GOES = 1, 2, 4

#: What an agent comes back with (`availability.rejoin`).
STALE, RESET, FETCH = range(3)

#: A message on a shared medium: when it began, and its start and end in the unit that transmissions are compared in.
RADIO = np.dtype(
    [
        ("length", np.float64),
        ("began", np.float64),
        ("start", np.float64),
        ("end", np.float64),
        ("slot", np.int64),
        ("tries", np.int64),
        ("fates", np.int64),
        ("receptions", np.int64),
        ("next", np.int64),
    ]
)

#: A transmission as it is received at one place; up to two other senders that were on the air before, and in all.
RECEPTION = np.dtype(
    [
        ("end", np.float64),
        ("next", np.int64),
        ("open_before", np.int64),
        ("open_after", np.int64),
        ("place", np.int32),
        ("sender", np.int32),
        ("before", np.int32, 2),
        ("others", np.int32, 2),
        ("is_open", np.int64),
    ]
)

#: What is on the air at one place.
PLACE = np.dtype(
    [
        ("until", np.float64),
        ("alone", np.int64),
        ("open", np.int64),
        ("latest", np.int64),
        ("ends", np.float64, 3),
        ("senders", np.int64, 3),
    ]
)

#: Purposes of random numbers: rows of `Machine.keys`.
PURPOSES = (
    "clocks", "peers", "latency", "loss", "link-state", "capture", "backoff", "retransmit", "acknowledgement",
    "response", "service", "rejoin",
)  # fmt: skip
(
    CLOCKS, PEERS, LATENCY, LOSS_KEY, LINK_STATE, CAPTURE, BACKOFF, RETRANSMIT, ACKNOWLEDGEMENT, RESPONSE_KEY,
    SERVICE_KEY, REJOIN,
) = range(len(PURPOSES))  # fmt: skip

#: When a sender may begin on a shared medium: at once, at whole slots, or when it hears nobody.
AT_ONCE, SLOTS, QUIET = range(3)

#: Patterns of exchange; the ways of gossip lie between the last two (`gossip`).
REQUEST, BROADCAST, ROUNDS, POLLS = 0, 1, 6, 7

#: What a message leads to where it ends.
(
    NOTHING, UPDATE, ANSWER, SWAP, JOIN_BACK, CLOSE,  # among neighbours
    COMPUTE, SERVED,  # request: the query, the answer
    HEAR, USE,  # poll and rounds: the query, the answer
) = range(10)  # fmt: skip

#: Tasks.
(
    SPREAD, CARRY, END, UPDATES, MAY_END, ACKNOWLEDGE, AGAIN_SAME, AGAIN_WAIT, CALL, SERVE_FOR, RESPOND, FRESH_WAIT,
    ASKED, TURN_GROUP, TAKE_HELD, RETURNED, GO, LOSE_HELD, GONE, FATES, ASK, BEGIN, HEARD_BY, FAIL_ALL, NEXT,
    ANSWER_AGAIN,
) = range(26)  # fmt: skip

#: Events that one step writes at most.
ROOM = 8
#: Messages, tasks and nodes that one step takes at most.
SPARE = 8


def records(size: int, dtype: np.dtype) -> np.ndarray:
    """Records of zeros."""
    return np.zeros(size, dtype)


class Bursts(NamedTuple):
    """State of each link that loses messages in bursts: when it was looked at last, and what it was then.

    ``was`` is −1 before the first time.
    """

    since: np.ndarray
    was: np.ndarray
    law: np.ndarray


class Clocks(NamedTuple):
    """Times of the agents' next wakes, a heap."""

    times: np.ndarray
    agents: np.ndarray


class Missed(NamedTuple):
    """Of each reason for missed wakes: the key of its stream, and each agent's chance."""

    keys: np.ndarray
    chances: np.ndarray


class Presence(NamedTuple):
    """Who is offline, why, and what is held for them."""

    turns: np.ndarray
    group_starts: np.ndarray
    group_agents: np.ndarray
    reasons: np.ndarray
    is_gone: np.ndarray
    first_held: np.ndarray
    last_held: np.ndarray
    halves: np.ndarray


class Radio(NamedTuple):
    """A shared medium."""

    messages: np.ndarray
    receptions: np.ndarray
    places: np.ndarray
    is_sending: np.ndarray
    first_waiting: np.ndarray
    last_waiting: np.ndarray
    spans: np.ndarray
    captured: np.ndarray


class Owners(NamedTuple):
    """What the learner's owners have heard, owe, and may give again; see `learner`."""

    newest: np.ndarray
    owed: np.ndarray
    wanted: np.ndarray


class Losses(NamedTuple):
    """Chance that a delivery is lost, one for all or one for each link, and the draws made by lane and sender."""

    chances: np.ndarray
    drawn: np.ndarray


class Machine(NamedTuple):
    """Everything of a run."""

    out: np.ndarray
    state: np.ndarray
    agents: np.ndarray
    present: np.ndarray
    due: np.ndarray
    due_messages: np.ndarray
    messages: np.ndarray
    tasks: np.ndarray
    nodes: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    running: np.ndarray
    keys: np.ndarray
    laws: np.ndarray
    places: np.ndarray
    cursors: np.ndarray
    table: np.ndarray
    clocks: Clocks | None
    missed: Missed | None
    presence: Presence | None
    travels: np.ndarray | None
    losses: Losses | None
    bursts: Bursts | None
    blackouts: np.ndarray | None
    acknowledged: np.ndarray | None
    radio: Radio | None
    gossip: tuple[()] | None
    request: Owners | None
    queries: Owners | None
