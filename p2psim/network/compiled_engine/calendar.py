"""The arrays of a run, and what is to come: a heap of appointments, and the tasks of this instant.

Kernels find arrays by their addresses in the state of the run, so that its functions hand on one state and not forty
arrays. The run keeps them alive, and writes their addresses anew when one is replaced by a larger one (`run`). Each
name of an array here is a function that kernels call with the machine (`state.Machine`). Appointments of one instant
come in the order of `p2psim.network.order`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from p2psim.core.compiled import njit
from p2psim.core.events import EVENT
from p2psim.core.philox import intrinsic
from p2psim.network.compiled_engine import state as st

#: Length of an array as kernels see it: who reads it knows how many elements there are.
_MANY = 1 << 40


def _array(name: str, dtype: Any) -> Callable[[Any], np.ndarray]:
    """What gives kernels an array of a run, by its name in the state and the type of its elements."""
    kind = types.Array(from_dtype(np.dtype(dtype)), 1, "C")
    assert st.STATE.fields is not None
    place = st.STATE.fields[f"at_{name}"][1]

    @intrinsic
    def array(typing_context: Any, m: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            byte, word = ir.IntType(8).as_pointer(), ir.IntType(64)
            state = builder.bitcast(builder.extract_value(arguments[0], 0), byte)
            address = builder.load(builder.bitcast(builder.gep(state, [word(place)]), word.as_pointer()))
            made = make_array(kind)(context, builder)  # type: ignore[no-untyped-call]
            size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
            data = builder.inttoptr(address, made.data.type)
            parts = data, [word(_MANY)], [word(size)], word(size), None
            populate_array(made, *parts)  # type: ignore[no-untyped-call]
            return made._getvalue()

        return kind(m), generate

    return array


#: The array of events.
out = _array("out", EVENT)
#: Agents, and the learner last.
agents = _array("agents", st.AGENT)
#: 1 where an agent is online; the learner is last.
present = _array("present", np.uint8)
#: 1 where an agent can still make a release.
is_able = _array("is_able", np.uint8)
#: Times of appointments, a heap.
due = _array("due", np.float64)
#: Their messages.
due_messages = _array("due_messages", np.int64)
#: Messages in flight and timers.
messages = _array("messages", st.MESSAGE)
#: Tasks, a stack.
tasks = _array("tasks", st.TASK)
#: Elements of lists.
nodes = _array("nodes", st.NODE)
#: Where each agent's links begin.
indptr = _array("indptr", np.int64)
#: Other ends of links.
indices = _array("indices", np.int32)
#: Laws of random quantities.
laws = _array("laws", st.LAW)
#: Draws made of each law by each agent.
places = _array("places", np.int64)
#: Where draws of an agent are in the table.
cursors = _array("cursors", st.CURSOR)
#: Draws that NumPy made.
table = _array("table", np.float64)
#: Times of the agents' next wakes, a heap.
clock_times = _array("clock_times", np.float64)
#: Their agents.
clock_agents = _array("clock_agents", np.int32)
#: Keys of the reasons for missed wakes, two words each.
missed_keys = _array("missed_keys", np.uint64)
#: Of each reason, each agent's chance to miss a wake.
miss_chances = _array("miss_chances", np.float64)
#: Turns of presence, in order.
turns = _array("turns", st.TURN)
#: Where each group begins in `group_agents`.
group_starts = _array("group_starts", np.int64)
#: Agents of the groups that turn.
group_agents = _array("group_agents", np.int64)
#: Why agents are offline; the learner is last.
absences = _array("absences", st.ABSENCE)
#: Latency of each link.
travel_times = _array("travel_times", np.float64)
#: Chance that a delivery is lost, of all links or of each.
chances = _array("chances", np.float64)
#: Draws of losses by each sender for what it sends again.
drawn = _array("drawn", np.int64)
#: States of links that lose in bursts.
link_states = _array("link_states", st.LINK)
#: Draws of acknowledgements by each sender.
acknowledged = _array("acknowledged", np.int64)
#: What owners have heard and owe.
owners = _array("owners", st.OWNER)
#: Of each message what a shared medium needs.
radios = _array("radios", st.RADIO)
#: Transmissions as they are received.
receptions = _array("receptions", st.RECEPTION)
#: What is on the air at each place.
air = _array("air", st.PLACE)
#: Senders on a shared medium; the learner is last.
senders = _array("senders", st.SENDER)
#: On a graph that changes, places of the links of each agent that are there, in rising order, from its ``indptr`` on.
active = _array("active", np.int64)
#: How many there are.
degrees = _array("degrees", np.int64)
#: 1 where a link is there.
is_active = _array("is_active", np.uint8)
#: Weights of all links.
link_weights = _array("link_weights", np.float64)
#: Links that come and go, in order.
link_turns = _array("link_turns", st.LINK_TURN)
#: Who computes what.
workers = _array("workers", st.WORKER)
#: 1 where an owner was drawn for this round, an agent has sent its model in it, or waits for an answer.
asked = _array("asked", np.uint8)
#: 1 where an agent is of the side that asks.
asks = _array("asks", np.uint8)
#: The wake by which each agent takes part in the round that is open.
wakes = _array("wakes", np.int64)
_keys = _array("keys", np.uint64)
_running = _array("running", np.float64)
#: Begins and ends of spans in which nothing gets through, by turns.
blackouts = _array("blackouts", np.float64)


@njit(forceinline=True)
def key(m, purpose):  # type: ignore[no-untyped-def]
    """Key of the stream of a purpose (`state.PURPOSES`)."""
    keys = _keys(m)
    return keys[2 * purpose], keys[2 * purpose + 1]


@njit(forceinline=True)
def running(m):  # type: ignore[no-untyped-def]
    """Sums of weights of links (`clocks.running_weights`); empty where all weigh alike."""
    return _running(m)[: m.state.links * m.state.by_weight]


@njit(forceinline=True)
def write(m, kind, agent, peer, version, cause, release, outcome):  # type: ignore[no-untyped-def]
    """Write one event; returns its number."""
    s = m.state
    event = out(m)[s.at]
    seq = s.seq
    event.seq = seq
    event.time = s.now
    event.version = version
    event.cause = cause
    event.agent = agent
    event.peer = peer
    event.release = release
    event.kind = kind
    event.outcome = outcome
    s.at += 1
    s.seq = seq + 1
    return seq


@njit(forceinline=True)
def take_message(m):  # type: ignore[no-untyped-def]
    """Place of a free message; the machine sees that there is one before each step."""
    s = m.state
    place = s.free
    s.free = messages(m)[place].next
    s.spare -= 1
    return place


@njit(forceinline=True)
def free_message(m, place):  # type: ignore[no-untyped-def]
    """Let a message be used again."""
    s = m.state
    messages(m)[place].next = s.free
    s.free = place
    s.spare += 1


@njit(forceinline=True)
def timer(m, agent, number, version):  # type: ignore[no-untyped-def]
    """Place of a new timer."""
    place = take_message(m)
    e = messages(m)[place]
    e.sender = agent
    e.query = number
    e.version = version
    return place


@njit()
def take_node(m, x, y, i, j):  # type: ignore[no-untyped-def]
    """Place of a new node, the last of its list."""
    s = m.state
    place = s.free_node
    node = nodes(m)[place]
    s.free_node = node.next
    s.spare_nodes -= 1
    node.x = x
    node.y = y
    node.i = i
    node.j = j
    node.next = st.NONE
    return place


@njit()
def free_node(m, place):  # type: ignore[no-untyped-def]
    """Let a node be used again."""
    s = m.state
    nodes(m)[place].next = s.free_node
    s.free_node = place
    s.spare_nodes += 1


@njit(forceinline=True)
def push(m, what, message, link, last):  # type: ignore[no-untyped-def]
    """Write down a task that follows at once, before those that are written down already."""
    s = m.state
    task = tasks(m)[s.depth]
    task.what = what
    task.message = message
    task.link = link
    task.last = last
    s.depth += 1


@njit(forceinline=True)
def _agent_of(e):  # type: ignore[no-untyped-def]
    """The agent that an appointment is sorted by: who gets a message that arrives, and otherwise who acts."""
    return e.receiver if e.order == st.CHANNEL and e.kind == st.ARRIVAL else e.sender


@njit()
def _ordered(m, one, other):  # type: ignore[no-untyped-def]
    """Whether an appointment comes before another one of the same instant."""
    a, b = messages(m)[one], messages(m)[other]
    if a.order != b.order:
        return a.order < b.order
    agent, other_agent = _agent_of(a), _agent_of(b)
    if agent != other_agent:
        return agent < other_agent
    if a.number != b.number:
        return a.number < b.number
    if a.kind != b.kind:
        return a.kind < b.kind
    return a.peer < b.peer


@njit(forceinline=True)
def comes_first(m, time, message, other_time, other):  # type: ignore[no-untyped-def]
    """Whether one appointment comes before another."""
    return time < other_time or (time == other_time and _ordered(m, message, other))


@njit()
def appoint(m, time, message, order, kind, number, peer):  # type: ignore[no-untyped-def]
    """Have a message or a timer come up at a time."""
    e = messages(m)[message]
    e.order = order
    e.kind = kind
    e.number = number
    e.peer = peer
    s = m.state
    place = s.due_count
    s.due_count = place + 1
    times, refs = due(m), due_messages(m)
    while place > 0:
        above = (place - 1) >> 2
        if not comes_first(m, time, message, times[above], refs[above]):
            break
        times[place] = times[above]
        refs[place] = refs[above]
        place = above
    times[place] = time
    refs[place] = message


@njit()
def take_first(m):  # type: ignore[no-untyped-def]
    """Take the first appointment off the heap, and let it be now; returns its message. Each place has four below it."""
    s = m.state
    times, refs = due(m), due_messages(m)
    s.now = times[0]
    first = refs[0]
    size = s.due_count - 1
    s.due_count = size
    time, message = times[size], refs[size]
    place = 0
    while True:
        below = (place << 2) + 1
        if below >= size:
            break
        best = below
        for other in range(below + 1, min(below + 4, size)):
            if comes_first(m, times[other], refs[other], times[best], refs[best]):
                best = other
        if not comes_first(m, times[best], refs[best], time, message):
            break
        times[place] = times[best]
        refs[place] = refs[best]
        place = best
    times[place] = time
    refs[place] = message
    return first


@njit(forceinline=True)
def row(m, agent):  # type: ignore[no-untyped-def]
    """Place of an agent, or of the learner, in arrays that have both."""
    return agent if agent >= 0 else m.state.n
