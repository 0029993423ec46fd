"""What agents do among neighbours: broadcast, and all modes of gossip.

See `p2psim.network.exchanges.gossip` for what each mode means; steps are in the order in which they are written there.
"""

import numpy as np

from p2psim.core.compiled import njit
from p2psim.network.compiled_engine.arrays import agents, indices, indptr, key, messages, running
from p2psim.network.compiled_engine.calendar import push, write
from p2psim.network.compiled_engine.clocks import draw_link
from p2psim.network.compiled_engine.codes import (
    ANSWER,
    BROADCAST,
    CLOSE,
    EDGE,
    JOIN_BACK,
    NOBODY,
    NONE,
    NOTHING,
    OK,
    PEERS,
    PULL,
    PUSH,
    PUSH_PULL,
    RUNNING,
    SPENT,
    SWAP,
    UPDATE,
    UPDATES,
    WAKE,
    ZERO,
)
from p2psim.network.compiled_engine.sending import (
    commit,
    ended,
    is_spent,
    make_release,
    send,
    send_to_all,
    settle,
)


@njit()
def wake_up(m, agent):  # type: ignore[no-untyped-def]
    """An agent's clock ticked."""
    s, a = m.state, agents(m)[agent]
    tells = s.pattern == PUSH and s.hears
    if not tells and not s.goes_on and is_spent(m, agent):
        write(m, WAKE, agent, NOBODY, NONE, NONE, NONE, SPENT)
        return
    wake = write(m, WAKE, agent, NOBODY, NONE, NONE, NONE, OK)
    cause, version, release = wake, a.version, NONE
    if s.pattern == BROADCAST or (s.pattern == PUSH and not s.hears):
        release = make_release(m, agent)
        cause, version = s.seq, version + 1
        commit(m, agent, NOBODY, wake, release)
        if s.state != RUNNING:
            return
        if s.pattern == BROADCAST:
            send_to_all(m, agent, version, cause, release, NOTHING)
            return
    elif s.pattern == EDGE:
        release = make_release(m, agent)
    elif s.pattern == PULL:
        version = NONE
    what = NOTHING
    if s.pattern == PULL:
        what = ANSWER
    elif s.pattern == PUSH_PULL:
        what = SWAP
    elif s.pattern == EDGE:
        what = JOIN_BACK
    elif s.hears:
        what = UPDATE
    link = draw_link(key(m, PEERS), agent, a.begun, indptr(m), running(m))
    a.begun += 1
    send(m, agent, np.int64(indices(m)[link]), link, version, cause, release, what, NONE, 0)


@njit()
def hear_neighbour(m, place, delivery):  # type: ignore[no-untyped-def]
    """An agent has heard a neighbour; ``delivery`` is the number of that event."""
    s, e = m.state, messages(m)[place]
    sender, agent, link, what = e.sender, e.receiver, e.link, e.what
    ended(m, e.release)
    if what == UPDATE:
        update(m, agent, sender, delivery)
    elif what == CLOSE:
        commit(m, agent, sender, delivery, NONE)
    elif what == ANSWER:
        send(m, agent, sender, link, agents(m)[agent].version, delivery, NONE, UPDATE, NONE, ZERO)
    elif what == SWAP:
        push(m, UPDATES, delivery, agent, sender)
        send(m, agent, sender, link, agents(m)[agent].version, delivery, NONE, UPDATE, NONE, ZERO)
    elif what == JOIN_BACK and (s.goes_on or not is_spent(m, agent)):
        release = make_release(m, agent)
        send(m, agent, sender, link, agents(m)[agent].version, delivery, release, CLOSE, NONE, ZERO)


@njit()
def update(m, agent, peer, delivery):  # type: ignore[no-untyped-def]
    """Commit with a model that was heard, if the agent may make an update."""
    s = m.state
    if not s.goes_on and is_spent(m, agent):
        return
    commit(m, agent, peer, delivery, make_release(m, agent))
    if s.state == RUNNING:
        settle(m)
