"""Codes of events, of their order, and of the engine itself, all of one type.

For each value of a number of Python's that a kernel hands to a function, the compiler would make that function anew.
"""

from __future__ import annotations

import numpy as np

from p2psim.core import events as ev
from p2psim.network import order

WAKE, SEND, DELIVER, DROP, COMMIT, JOIN, LEAVE, RETRY = map(np.int64, range(len(ev.KINDS)))
(
    OK, QUEUED, BUSY, SPENT, LOSS, COLLISION, OFFLINE, SUPERSEDED, GAVE_UP, UNACKNOWLEDGED
) = map(np.int64, range(len(ev.OUTCOMES)))  # fmt: skip
LEARNER, NOBODY, NEIGHBOURS, NONE = map(np.int64, (ev.LEARNER, ev.NOBODY, ev.NEIGHBOURS, ev.NONE))

WAIT, CHANNEL, REGULAR = map(np.int64, (order.WAIT, order.CHANNEL, order.REGULAR))
AIRTIME, ARRIVAL = map(np.int64, (order.AIRTIME, order.ARRIVAL))
DEADLINE, SLOT, POLL, ROUND, RESPONSE, SERVICE, SENSING, RESENDING = map(np.int64, range(order.OTHER))

#: Where nothing else is to be said.
ZERO = np.int64(0)
#: Whether a sender has waited for the medium.
AT_THE_SEND, AFTER_WAITING = map(np.int64, range(2))
#: Who is served where nobody is.
FREE = np.int64(-2)
#: Where there is no other sender; that of agents is 0 or more, and −1 is the learner.
EMPTY = np.int64(-9)

#: Why a kernel has returned: a run goes on, has ended, or needs more room, random numbers or turns before it goes on.
RUNNING, BY_COMMITS, BY_TIME, EXHAUSTED, NEEDS_ROOM, NEEDS_DRAWS, NEEDS_TURNS = map(np.int64, range(7))
ENDS = ("", "commits", "time", "exhausted")

#: What a group does at its turn; the last goes with the second, or stands alone.
JOINS, LEAVES, GOES = map(np.int64, (1, 2, 4))

#: What an agent comes back with (`availability.rejoin`).
STALE, RESET, FETCH = map(np.int64, range(3))

#: Purposes of random numbers: rows of the array of keys.
PURPOSES = (
    "clocks", "peers", "latency", "loss", "link-state", "capture", "backoff", "retransmit", "acknowledgement",
    "response", "service", "rejoin",
)  # fmt: skip
(
    CLOCKS, PEERS, LATENCY, LOSS_KEY, LINK_STATE, CAPTURE, BACKOFF, RETRANSMIT, ACKNOWLEDGEMENT, RESPONSE_KEY,
    SERVICE_KEY, REJOIN,
) = map(np.int64, range(len(PURPOSES)))  # fmt: skip

#: How messages are lost: not at all, with one chance, with a chance of each link, or in bursts.
NEVER, BY_CHANCE, BY_LINK, IN_BURSTS = map(np.int64, range(4))

#: When a sender may begin on a shared medium: at once, at whole slots, or when it hears nobody.
AT_ONCE, SLOTS, QUIET = map(np.int64, range(3))

#: Patterns of exchange, and the modes of gossip among them.
REQUEST, BROADCAST, PUSH, PULL, PUSH_PULL, EDGE, ROUNDS, POLLS = map(np.int64, range(8))
MODES: dict[str, np.int64] = {"push": PUSH, "pull": PULL, "push-pull": PUSH_PULL, "edge": EDGE}

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
    ANSWER_AGAIN,
) = map(np.int64, range(26))  # fmt: skip

#: Laws of random quantities.
CONSTANT, UNIFORM, TABLE, OF_LINK = map(np.int64, range(4))

#: Rows of laws. The second of latency is for what is sent again: it moves no draw of other messages.
TRAVEL, TRAVEL_AGAIN, WAIT_AGAIN, RESPONSE_TIME, SERVICE_TIME, SENSE_TIME = map(np.int64, range(6))
