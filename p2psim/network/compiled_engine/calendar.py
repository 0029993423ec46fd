"""What is to come: a heap of appointments, the tasks of this instant, and the messages and nodes that both refer to.

Appointments of one instant come by order, agent, number, kind and peer: see the page on events.
"""

from p2psim.core.compiled import njit
from p2psim.network.compiled_engine.arrays import due, due_messages, messages, nodes, out, tasks
from p2psim.network.compiled_engine.codes import ARRIVAL, CHANNEL, NONE


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
    node.next = NONE
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
    return e.receiver if e.order == CHANNEL and e.kind == ARRIVAL else e.sender


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
