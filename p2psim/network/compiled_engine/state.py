"""State of a run of the compiled engine: arrays of records, so that it can stop after any step and go on later.

Codes are all of one type: for each value of a number of Python's that a kernel hands to a function, the compiler would
make that function anew. What a network does not need is None: the compiler makes code of its own without it.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from p2psim.core import events as ev
from p2psim.network import order

WAKE, SEND, DELIVER, DROP, COMMIT, JOIN, LEAVE, RETRY, BEGINS = map(np.int64, range(len(ev.KINDS)))
(
    OK, QUEUED, BUSY, SPENT, LOSS, COLLISION, OFFLINE, SUPERSEDED, GAVE_UP, UNACKNOWLEDGED, ALONE
) = map(np.int64, range(len(ev.OUTCOMES)))  # fmt: skip
LEARNER, NOBODY, NEIGHBOURS, NONE = map(np.int64, (ev.LEARNER, ev.NOBODY, ev.NEIGHBOURS, ev.NONE))

WAIT, CHANNEL, REGULAR = map(np.int64, (order.WAIT, order.CHANNEL, order.REGULAR))
AIRTIME, ARRIVAL = map(np.int64, (order.AIRTIME, order.ARRIVAL))
DEADLINE, SLOT, POLL, ROUND, RESPONSE, SERVICE, SENSING, RESENDING, COMPUTING = map(
    np.int64, range(order.OTHER)
)

#: Where nothing else is to be said.
ZERO = np.int64(0)
#: Whether a sender has waited for the medium.
AT_THE_SEND, AFTER_WAITING = map(np.int64, range(2))
#: Where there is no other sender; that of agents is 0 or more, and −1 is the learner.
EMPTY = np.int64(-9)

#: Why a kernel has returned: a run goes on, has ended, or needs more room, random numbers, turns or changes of links
#: before it goes on.
(
    RUNNING, BY_COMMITS, BY_TIME, EXHAUSTED, NEEDS_ROOM, NEEDS_DRAWS, NEEDS_TURNS, NEEDS_LINKS,
) = map(np.int64, range(8))  # fmt: skip
ENDS = ("", "commits", "time", "exhausted")

#: What a group does at its turn; the last goes with the second, or stands alone.
JOINS, LEAVES, GOES = map(np.int64, (1, 2, 4))

#: What an agent comes back with (`availability.rejoin`).
STALE, RESET, FETCH = map(np.int64, range(3))

#: Purposes of random numbers: rows of the array of keys.
PURPOSES = (
    "clocks", "peers", "latency", "loss", "link-state", "capture", "backoff", "retransmit", "acknowledgement",
    "response", "service", "rejoin", "compute", "participants",
)  # fmt: skip
(
    CLOCKS, PEERS, LATENCY, LOSS_KEY, LINK_STATE, CAPTURE, BACKOFF, RETRANSMIT, ACKNOWLEDGEMENT, RESPONSE_KEY,
    SERVICE_KEY, REJOIN, COMPUTE_KEY, PARTICIPANTS,
) = map(np.int64, range(len(PURPOSES)))  # fmt: skip

#: How messages are lost: not at all, with one chance, with a chance of each link, or in bursts.
NEVER, BY_CHANCE, BY_LINK, IN_BURSTS = map(np.int64, range(4))

#: When a sender may begin on a shared medium: at once, at whole slots, or when it hears nobody.
AT_ONCE, SLOTS, QUIET = map(np.int64, range(3))

#: Patterns of exchange, the modes of gossip among them, and their names.
REQUEST, BROADCAST, PUSH, PULL, PUSH_PULL, EDGE, ROUNDS, POLLS, SYNCHRONOUS = map(np.int64, range(9))
PATTERNS: dict[str, np.int64] = {
    "request": REQUEST, "broadcast": BROADCAST, "push": PUSH, "pull": PULL, "push-pull": PUSH_PULL, "edge": EDGE,
    "rounds": ROUNDS, "polls": POLLS, "synchronous": SYNCHRONOUS,
}  # fmt: skip

#: What a message leads to where it ends.
(
    NOTHING, UPDATE, ANSWER, SWAP, JOIN_BACK, CLOSE,  # among neighbours
    COMPUTE, SERVED,  # request: the query, the answer
    HEAR, USE,  # poll and rounds: the query, the answer
) = map(np.int64, range(10))  # fmt: skip

#: Tasks.
(
    SPREAD, CARRY, END, UPDATES, MAY_END, ACKNOWLEDGE, AGAIN_SAME, AGAIN_WAIT, CALL, SERVE_FOR, RESPOND, FRESH_WAIT,
    ASKED, TURN_GROUP, TAKE_HELD, RETURNED, GO, LOSE_HELD, GONE, FATES, ASK, BEGIN, HEARD_BY, FAIL_ALL, NEXT,
    ANSWER_AGAIN, AVERAGES, WAKING, CLOSING, ASKING, SENT,
    START_WORK, DONE, NEXT_WORK, STOPS_WORK, RESUME_WORK, GONE_WORK,  # of those who take time to compute
) = map(np.int64, range(37))  # fmt: skip

#: Laws of random quantities.
CONSTANT, UNIFORM, TABLE, OF_LINK = map(np.int64, range(4))

#: Rows of laws. The second of latency is for what is sent again: it moves no draw of other messages.
TRAVEL, TRAVEL_AGAIN, WAIT_AGAIN, RESPONSE_TIME, SERVICE_TIME, SENSE_TIME, COMPUTE_TIME = map(
    np.int64, range(7)
)
MANY_LAWS = 7


#: A part of a network that kernels are compiled with, or not.
Part = tuple[()] | None

#: Arrays of a run, by name; the state has their addresses (`calendar`).
ARRAYS = (
    "out", "agents", "present", "is_able", "due", "due_messages", "messages", "tasks", "nodes", "indptr", "indices",
    "running",
    "keys", "laws", "places", "cursors", "table", "clock_times", "clock_agents", "missed_keys", "miss_chances", "turns",
    "group_starts", "group_agents", "absences", "travel_times", "chances", "drawn", "link_states", "blackouts",
    "acknowledged", "owners", "radios", "receptions", "air", "senders", "workers",
    "active", "degrees", "is_active", "link_weights", "link_turns", "asked", "asks", "wakes",
)  # fmt: skip

#: Whole numbers of a run.
NUMBERS = (
    # why the kernel returned, number of the next event, its place in the array, room there, commits, the last commit
    "state", "seq", "at", "most_events", "commits", "last",
    # agents, those that can still make a release, releases on their way, whether the run has an end in time
    "n", "able", "in_flight", "timed",
    # tasks and their room, appointments, messages that are free
    "depth", "most_tasks", "due_count", "free", "spare",
    # what the network is
    "pattern", "hears", "goes_on", "one_sided", "blocking", "again", "fresh", "needy", "by_weight", "links", "loses",
    "reasons", "spans",
    # request: how many are served and can be, whether who waits is being called, what a busy learner does
    "served", "places", "calling", "queues", "stops", "first_asked", "last_asked",
    # whether agents take time to compute, and what they compute is dropped when they leave
    "computes", "cancels",
    # rounds: number, whole and late rounds since `since`, answers or messages that are waited for; how many owners are
    # drawn for each, 0 for all, and how many draws that has taken
    "rounds", "whole", "late", "left", "is_open", "is_due", "query", "some", "choices",
    # presence
    "rejoin", "keeps", "turn", "turn_count",
    # changes of links
    "link_turn", "link_turn_count",
    # a shared medium
    "access", "shared", "half_duplex", "one_by_one", "skips", "attempts",
    # nodes of lists, and transmissions as they are received, that are free
    "free_node", "spare_nodes", "free_reception", "spare_receptions",
)  # fmt: skip

#: Times and chances of a run.
FLOATS = (
    "now", "end", "known", "links_known", "question", "loaded", "acknowledge", "interval", "deadline", "since", "slot",
    "longest", "capture", "good", "bad", "bad_share", "relaxation",
)  # fmt: skip

#: All of them.
STATE = np.dtype(
    [(name, np.int64) for name in NUMBERS + tuple(f"at_{name}" for name in ARRAYS)]
    + [(name, np.float64) for name in FLOATS]
)

Kind = type[np.generic] | tuple[type[np.generic], int]
WHOLE, REAL = np.int64, np.float64


def _record(*fields: tuple[Kind, str]) -> np.dtype:
    """A type of records, from the types of its fields and their names."""
    return np.dtype([(name, kind) for kind, names in fields for name in names.split()])


#: One agent, or the learner, which is the last; a processor fetches it as a whole: its model's version, releases and
#: their limit, and how many partners, ticks, losses and latencies it has drawn.
AGENT = _record((WHOLE, "version release limit begun ticks lost travelled"), (REAL, "rate"))

#: A message in flight, or a timer; and what its appointment is sorted by after its time (`calendar.comes_first`). All
#: are of one type, so that functions that take them are compiled once.
MESSAGE = _record(
    (WHOLE, "number version sender receiver release link what outcome"),
    (WHOLE, "query next peer tries lane has_arrived order kind"),
)

#: Something that follows at once, before anything else; the last one that was written down comes first.
TASK = _record((WHOLE, "what message link last"))

#: An element of a list: two times or other numbers, two whole numbers, and the next element.
NODE = _record((REAL, "x y"), (WHOLE, "i j next"))

#: A random quantity: its law, a number or the ends of an interval, and its stream.
LAW = _record((WHOLE, "kind"), (REAL, "low width"), (WHOLE, "key lane table"))

#: Of a law and an agent that draws from a table: where its draws begin there, and how many there are.
CURSOR = _record((WHOLE, "first count"))

#: A change of presence: when, which group of agents, and what happens (`absence`).
TURN = _record((REAL, "time"), (WHOLE, "group what"))

#: A link, in one direction, that comes or goes: when, whose it is, and its place.
LINK_TURN = _record((REAL, "time"), (WHOLE, "agent link comes"))

#: A message on a shared medium: when it began, and its start and end in the unit that transmissions are compared in.
RADIO = _record((REAL, "length began start end"), (WHOLE, "slot tries fates receptions next"))

#: A transmission as it is received at one place; up to two other senders that were on the air before, and in all.
RECEPTION = _record(
    (REAL, "end"), (WHOLE, "next open_before open_after place sender is_open"), ((WHOLE, 2), "before others")
)

#: What is on the air at one place.
PLACE = _record((REAL, "until"), (WHOLE, "alone open latest"), ((REAL, 3), "ends"), ((WHOLE, 3), "senders"))

#: An agent that comes and goes: why it is offline, and the messages that are held for it.
ABSENCE = _record((WHOLE, "reasons is_gone first_held last_held halves"))

#: State of a link that loses messages in bursts: when it was looked at last, and what it was; −1 before the first time.
LINK = _record((REAL, "since"), (WHOLE, "was"))

#: An owner: the newest query that it has heard, the one that it owes an answer to, the one it may answer again, and
#: whether it is being served.
OWNER = _record((WHOLE, "newest owed wanted served"))

#: An agent that computes: what its draws are multiplied by, when it is done, what is left while it is offline; number
#: of the event with which it began, how often it has begun, gone on, or stopped; the version that it has read, and what
#: follows; delivery and sender of the model that waits.
WORKER = _record(
    (REAL, "factor until rest"),
    (WHOLE, "begin stretch is_paused version what peer link waiting waiting_peer waiting_link"),
)

#: A sender on a shared medium: whether it sends, what waits, when it has sent, and its draws of luck.
SENDER = _record((WHOLE, "is_sending first_waiting last_waiting spans captured"))

#: Events that one step writes at most.
ROOM = 8
#: Messages, tasks and nodes that one step takes at most.
SPARE = 8


def records(size: int, dtype: np.dtype) -> np.ndarray:
    """Records of zeros."""
    return np.zeros(size, dtype)


def _unused(made: Sequence[np.ndarray], size: int) -> np.ndarray:
    """Room for events: the first array that was made, if nobody refers to it any more, not even to a part of it.

    The system takes longer to give memory that is new than kernels take to fill it. What is there already is
    overwritten but for the padding, which is zero in all events: streams are compared byte by byte.
    """
    # The list refers to it, and the call.
    is_free = bool(made) and made[0].size == size and sys.getrefcount(made[0]) <= 2
    return made[0] if is_free else records(size, ev.EVENT)


def in_chunks(
    chunk: int,
    room: int,
    goes_on: Callable[[], bool],
    write: Callable[[np.ndarray, int], int],
    expected: float = math.inf,
) -> Iterator[np.ndarray]:
    """Events of a run, in chunks.

    Parameters
    ----------
    chunk : int
        Events in a chunk.
    room : int
        Events that one step writes at most.
    goes_on : callable
        Whether the run does.
    write : callable
        Writes events to an array, after a number of events that it holds; returns how many it holds then.
    expected : float, optional
        Events that the run may have: memory for more is not touched before they are there.
    """
    kept, size, made = np.empty(0, ev.EVENT), int(min(chunk, expected)), deque[np.ndarray](maxlen=2)
    while goes_on():
        made.append(_unused(made, size + room))
        out, size = made[-1], chunk
        out[: kept.size] = kept
        out = out[: write(out, kept.size)]
        whole = out.size - out.size % chunk
        for start in range(0, whole, chunk):
            yield out[start : start + chunk]
        kept = out[whole:]
    if kept.size:
        yield kept


class Machine(NamedTuple):
    """A run as kernels see it: its state, which has the addresses of all arrays, and which parts the network has.

    A part that is None is not compiled; the others are empty. To hand on many arrays from function to function would
    cost more than what the functions do.
    """

    state: np.void
    presence: Part
    acknowledged: Part
    radio: Part
    gossip: Part
    request: Part
    queries: Part
    changing: Part
    synchronous: Part
    compute: Part


def part(is_there: object) -> Part:
    """What stands for a part in `Machine`."""
    return () if is_there else None
