"""Agents that leave, come back, or are gone for good (`p2psim.network.availability`)."""

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.philox import philox_block
from p2psim.network.compiled_engine.arrays import (
    absences,
    agents,
    group_agents,
    group_starts,
    indices,
    indptr,
    key,
    messages,
    present,
    tasks,
    turns,
)
from p2psim.network.compiled_engine.calendar import push, row, write
from p2psim.network.compiled_engine.codes import (
    GO,
    GOES,
    GONE,
    JOIN,
    JOINS,
    LEARNER,
    LEAVE,
    LEAVES,
    LOSE_HELD,
    NOBODY,
    NONE,
    OFFLINE,
    OK,
    REJOIN,
    RESET,
    RETURNED,
    STALE,
    TAKE_HELD,
    TURN_GROUP,
    ZERO,
)
from p2psim.network.compiled_engine.ends import arrive, lose_message
from p2psim.network.compiled_engine.sending import deactivate, settle


@njit()
def take_turn(m):  # type: ignore[no-untyped-def]
    """Let the next group come or go."""
    s = m.state
    turn = turns(m)[s.turn]
    s.turn += 1
    s.now = max(s.now, turn.time)
    group, what = turn.group, turn.what
    first, last = group_starts(m)[group], group_starts(m)[group + 1]
    if what & GOES:
        push(m, GO, ZERO, first, last)
    if what & (JOINS | LEAVES):
        push(m, TURN_GROUP, what, first, last)


@njit()
def turn_group(m):  # type: ignore[no-untyped-def]
    """Let the next agent of a group come or go."""
    s = m.state
    task = tasks(m)[s.depth - 1]
    if task.link == task.last:
        s.depth -= 1
        return
    agent, joins = group_agents(m)[task.link], task.message & JOINS
    task.link += 1
    who = row(m, agent)
    absences(m)[who].reasons += -1 if joins else 1
    if not joins:
        if absences(m)[who].reasons == 1:
            present(m)[who] = 0
            write(m, LEAVE, agent, NOBODY, NONE, NONE, NONE, OK)
    elif absences(m)[who].reasons == 0:
        present(m)[who] = 1
        peer, version = _model_on_return(m, agent)
        write(m, JOIN, agent, peer, version, NONE, NONE, OK)
        push(m, RETURNED, agent, ZERO, ZERO)
        _empty_held(m, who, TAKE_HELD)


@njit()
def _empty_held(m, who, what):  # type: ignore[no-untyped-def]
    """Write down what becomes of messages that are held for an agent."""
    first = absences(m)[who].first_held
    if first != NONE:
        push(m, what, first, ZERO, ZERO)
        absences(m)[who].first_held = absences(m)[who].last_held = NONE


@njit()
def take_held(m, is_lost):  # type: ignore[no-untyped-def]
    """Let the next message that was held arrive, or be lost."""
    s = m.state
    task = tasks(m)[s.depth - 1]
    place = task.message
    task.message = messages(m)[place].next
    if task.message == NONE:
        s.depth -= 1
    if is_lost:
        lose_message(m, place, OFFLINE)
    else:
        arrive(m, m.presence, place)


@njit()
def go_for_good(m):  # type: ignore[no-untyped-def]
    """Let the next agent of a group be gone for good: what is held for it is lost."""
    s = m.state
    task = tasks(m)[s.depth - 1]
    if task.link == task.last:
        s.depth -= 1
        return
    agent = group_agents(m)[task.link]
    task.link += 1
    who = row(m, agent)
    if not absences(m)[who].is_gone:
        absences(m)[who].is_gone = 1
        push(m, GONE, agent, ZERO, ZERO)
        _empty_held(m, who, LOSE_HELD)


@njit()
def be_gone(m, agent):  # type: ignore[no-untyped-def]
    """Take note that an agent that is gone makes no release any more."""
    if agent != LEARNER:
        deactivate(m, agent)
        settle(m)


@njit()
def _model_on_return(m, agent):  # type: ignore[no-untyped-def]
    """Peer and version of the model that an agent comes back with."""
    s = m.state
    if agent == LEARNER or s.rejoin == STALE:
        return NOBODY, NONE
    if s.rejoin == RESET:
        return NOBODY, 0
    online = 0
    for link in range(indptr(m)[agent], indptr(m)[agent + 1]):
        online += present(m)[row(m, np.int64(indices(m)[link]))] != 0
    if online == 0:
        return NOBODY, NONE
    left = _below(m, agent, online)
    for link in range(indptr(m)[agent], indptr(m)[agent + 1]):
        peer = np.int64(indices(m)[link])
        if present(m)[row(m, peer)]:
            if left == 0:
                return peer, s.commits if peer == LEARNER else agents(m)[peer].version
            left -= 1
    return NOBODY, NONE


@njit()
def _half_word(m, agent):  # type: ignore[no-untyped-def]
    """The next 32 bits of an agent's stream: the lower half of a word, then the upper half."""
    place = absences(m)[agent].halves
    absences(m)[agent].halves = place + 1
    word = philox_block(key(m, REJOIN), agent, place >> 3)[(place >> 1) & 3]
    return np.int64((word >> np.uint64(32 * (place & 1))) & np.uint64(0xFFFFFFFF))


@njit()
def _below(m, agent, bound):  # type: ignore[no-untyped-def]
    """A whole number below a bound, as ``Generator.integers`` of NumPy draws it (Lemire 2019)."""
    if bound == 1:
        return 0
    product = np.uint64(_half_word(m, agent)) * np.uint64(bound)
    least = (1 << 32) % bound
    while np.int64(product & np.uint64(0xFFFFFFFF)) < least:
        product = np.uint64(_half_word(m, agent)) * np.uint64(bound)
    return np.int64(product >> np.uint64(32))
