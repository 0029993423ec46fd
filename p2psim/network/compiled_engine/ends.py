"""How messages end at their receivers: they arrive, are held for who is offline, are lost, or are sent again.

See `p2psim.network.channels.channel` for what is sent again, and `p2psim.network.availability` for who leaves,
comes back, or is gone for good.
"""

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.philox import philox_block, uniform
from p2psim.network.compiled_engine import calendar as cal
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine.agents import deactivate, ended, hand_over, hear_neighbour, settle
from p2psim.network.compiled_engine.learner import hear_asker, hear_server, lose
from p2psim.network.compiled_engine.receptions import link_at, near, other_end
from p2psim.network.compiled_engine.synchronous import end_in_round
from p2psim.network.compiled_engine.travel import copy_to, draw, lacks


@njit()
def end(m, acknowledged, place):  # type: ignore[no-untyped-def]
    """A message ends at its receiver, or is lost on its way."""
    e = cal.messages(m)[place]
    if e.outcome != st.OK:
        fail(m, acknowledged, place, e.outcome)
    elif acknowledged is None:
        arrive(m, m.presence, place)
    else:
        _arrive_once(m, place)


@njit()
def _arrive_once(m, place):  # type: ignore[no-untyped-def]
    """Take in a message that may have been sent again, and acknowledge it."""
    s, e = m.state, cal.messages(m)[place]
    if not _takes_in(m, m.presence, e.receiver):
        fail(m, m.acknowledged, place, st.OFFLINE)
    elif s.acknowledge == 0:
        arrive(m, m.presence, place)
    else:
        cal.push(m, st.ACKNOWLEDGE, place, st.ZERO, st.ZERO)
        if not e.has_arrived:
            arrive(m, m.presence, copy_to(m, place, e.receiver, e.link))


@njit()
def acknowledge(m, place):  # type: ignore[no-untyped-def]
    """Tell a sender that its message has arrived; it sends again if that is lost."""
    s, e = m.state, cal.messages(m)[place]
    who = cal.row(m, e.sender)
    drawn = cal.acknowledged(m)[who]
    cal.acknowledged(m)[who] = drawn + 1
    if uniform(cal.key(m, st.ACKNOWLEDGEMENT), e.sender, drawn) < s.acknowledge and e.tries < s.again:
        e.has_arrived = 1
        wait_to_send(m, place, st.UNACKNOWLEDGED)
    else:
        cal.free_message(m, place)


@njit(forceinline=True)
def _takes_in(m, presence, receiver):  # type: ignore[no-untyped-def]
    """Whether a message that reaches a receiver does not fail there: it is online, or will fetch it."""
    if presence is None:
        return True
    who = cal.row(m, receiver)
    return cal.present(m)[who] != 0 or (m.state.keeps != 0 and cal.absences(m)[who].is_gone == 0)


@njit()
def arrive(m, presence, place):  # type: ignore[no-untyped-def]
    """Deliver a message, hold it, or lose it if the receiver is offline."""
    e = cal.messages(m)[place]
    if presence is not None:
        who = cal.row(m, e.receiver)
        if not cal.present(m)[who]:
            if not _takes_in(m, presence, e.receiver):
                lose_message(m, place, st.OFFLINE)
                return
            last = cal.absences(m)[who].last_held
            e.next = st.NONE
            if last == st.NONE:
                cal.absences(m)[who].first_held = place
            else:
                cal.messages(m)[last].next = place
            cal.absences(m)[who].last_held = place
            return
    delivery = cal.write(m, st.DELIVER, e.receiver, e.sender, e.version, e.number, e.release, st.OK)
    _heard(m, m.gossip, m.request, m.queries, m.synchronous, m.compute, place, delivery)
    cal.free_message(m, place)


@njit(forceinline=True)
def _heard(m, gossip, request, queries, synchronous, compute, place, delivery):  # type: ignore[no-untyped-def]
    """What follows from a delivery."""
    if gossip is not None:
        hear_neighbour(m, compute, place, delivery)
    elif request is not None:
        hear_server(m, compute, place, delivery)
    elif queries is not None:
        hear_asker(m, compute, place, delivery)
    elif synchronous is not None:
        ended(m, cal.messages(m)[place].release)
        end_in_round(m, cal.messages(m)[place].query)


@njit(forceinline=True)
def _lost(m, gossip, request, queries, synchronous, place):  # type: ignore[no-untyped-def]
    """What follows from a loss."""
    if gossip is not None:
        if m.state.blocking:
            # An agent waits for an answer that will not come.
            e = cal.messages(m)[place]
            cal.asked(m)[e.sender if e.what == st.SWAP else e.receiver] = 0
    elif request is not None or queries is not None:
        lose(m, place)
    elif synchronous is not None:
        end_in_round(m, cal.messages(m)[place].query)


@njit()
def lose_message(m, place, outcome):  # type: ignore[no-untyped-def]
    """Drop a message on its way to a receiver."""
    e = cal.messages(m)[place]
    cal.write(m, st.DROP, e.receiver, e.sender, e.version, e.number, e.release, outcome)
    ended(m, e.release)
    _lost(m, m.gossip, m.request, m.queries, m.synchronous, place)
    cal.free_message(m, place)


@njit()
def fail(m, acknowledged, place, outcome):  # type: ignore[no-untyped-def]
    """Send a message again, or give up."""
    e = cal.messages(m)[place]
    if acknowledged is not None and e.tries < m.state.again:
        wait_to_send(m, place, outcome)
    else:
        _give_up(m, place, outcome)


@njit()
def _give_up(m, place, outcome):  # type: ignore[no-untyped-def]
    """Send a message no more; it may have arrived."""
    if cal.messages(m)[place].has_arrived:
        cal.free_message(m, place)
    else:
        lose_message(m, place, outcome)


@njit()
def wait_to_send(m, place, outcome):  # type: ignore[no-untyped-def]
    """Send a message again after a while."""
    s, e = m.state, cal.messages(m)[place]
    e.outcome = outcome
    who = cal.row(m, e.sender)
    if lacks(m, st.WAIT_AGAIN, who):
        cal.push(m, st.AGAIN_WAIT, place, outcome, st.ZERO)
        return
    wait = draw(m, st.WAIT_AGAIN, who)
    if wait == 0.0:
        send_again(m, place)
    else:
        cal.appoint(m, s.now + wait, place, st.WAIT, st.RESENDING, e.number, e.receiver)


@njit()
def send_again(m, place):  # type: ignore[no-untyped-def]
    """Send a message again, unless its sender is offline."""
    e = cal.messages(m)[place]
    if not cal.present(m)[cal.row(m, e.sender)]:
        _give_up(m, place, e.outcome)
        return
    e.tries += 1
    cal.write(m, st.RETRY, e.sender, e.receiver, e.version, e.number, e.release, e.outcome)
    e.lane, e.outcome = 1, st.OK
    hand_over(m, m.radio, place)


@njit()
def take_turn(m):  # type: ignore[no-untyped-def]
    """Let the next group come or go."""
    s = m.state
    turn = cal.turns(m)[s.turn]
    s.turn += 1
    s.now = max(s.now, turn.time)
    group, what = turn.group, turn.what
    first, last = cal.group_starts(m)[group], cal.group_starts(m)[group + 1]
    if what & st.GOES:
        cal.push(m, st.GO, st.ZERO, first, last)
    if what & (st.JOINS | st.LEAVES):
        cal.push(m, st.TURN_GROUP, what, first, last)


@njit()
def turn_group(m, compute):  # type: ignore[no-untyped-def]
    """Let the next agent of a group come or go."""
    s = m.state
    task = cal.tasks(m)[s.depth - 1]
    if task.link == task.last:
        s.depth -= 1
        return
    agent, joins = cal.group_agents(m)[task.link], task.message & st.JOINS
    task.link += 1
    who = cal.row(m, agent)
    cal.absences(m)[who].reasons += -1 if joins else 1
    if not joins:
        if cal.absences(m)[who].reasons == 1:
            cal.present(m)[who] = 0
            cal.write(m, st.LEAVE, agent, st.NOBODY, st.NONE, st.NONE, st.NONE, st.OK)
            _change_work(m, compute, st.STOPS_WORK, agent)
    elif cal.absences(m)[who].reasons == 0:
        cal.present(m)[who] = 1
        peer, version = _model_on_return(m, agent)
        cal.write(m, st.JOIN, agent, peer, version, st.NONE, st.NONE, st.OK)
        cal.push(m, st.RETURNED, agent, st.ZERO, st.ZERO)
        _change_work(m, compute, st.RESUME_WORK, agent)
        _empty_held(m, who, st.TAKE_HELD)


@njit(forceinline=True)
def _change_work(m, compute, what, agent):  # type: ignore[no-untyped-def]
    """Write down what becomes of the work of an agent that leaves, comes back, or is gone."""
    if compute is not None and m.state.computes != 0 and agent != st.LEARNER:
        cal.push(m, what, agent, st.ZERO, st.ZERO)


@njit()
def _empty_held(m, who, what):  # type: ignore[no-untyped-def]
    """Write down what becomes of messages that are held for an agent."""
    first = cal.absences(m)[who].first_held
    if first != st.NONE:
        cal.push(m, what, first, st.ZERO, st.ZERO)
        cal.absences(m)[who].first_held = cal.absences(m)[who].last_held = st.NONE


@njit()
def take_held(m, is_lost):  # type: ignore[no-untyped-def]
    """Let the next message that was held arrive, or be lost."""
    s = m.state
    task = cal.tasks(m)[s.depth - 1]
    place = task.message
    task.message = cal.messages(m)[place].next
    if task.message == st.NONE:
        s.depth -= 1
    if is_lost:
        lose_message(m, place, st.OFFLINE)
    else:
        arrive(m, m.presence, place)


@njit()
def go_for_good(m, compute):  # type: ignore[no-untyped-def]
    """Let the next agent of a group be gone for good: what is held for it is lost."""
    s = m.state
    task = cal.tasks(m)[s.depth - 1]
    if task.link == task.last:
        s.depth -= 1
        return
    agent = cal.group_agents(m)[task.link]
    task.link += 1
    who = cal.row(m, agent)
    if not cal.absences(m)[who].is_gone:
        cal.absences(m)[who].is_gone = 1
        cal.push(m, st.GONE, agent, st.ZERO, st.ZERO)
        _change_work(m, compute, st.GONE_WORK, agent)
        _empty_held(m, who, st.LOSE_HELD)


@njit()
def be_gone(m, agent):  # type: ignore[no-untyped-def]
    """Take note that an agent that is gone makes no release any more."""
    if agent != st.LEARNER:
        deactivate(m, agent)
        settle(m)


@njit()
def _model_on_return(m, agent):  # type: ignore[no-untyped-def]
    """Peer and version of the model that an agent comes back with."""
    s = m.state
    if agent == st.LEARNER or s.rejoin == st.STALE:
        return st.NOBODY, st.NONE
    if s.rejoin == st.RESET:
        return st.NOBODY, 0
    online = 0
    first, last = near(m, agent)
    for at in range(first, last):
        online += cal.present(m)[cal.row(m, other_end(m, agent, link_at(m, at)))] != 0
    if online == 0:
        return st.NOBODY, st.NONE
    left = online_below(m, agent, online)
    for at in range(first, last):
        peer = other_end(m, agent, link_at(m, at))
        if cal.present(m)[cal.row(m, peer)]:
            if left == 0:
                return peer, s.commits if peer == st.LEARNER else cal.agents(m)[peer].version
            left -= 1
    return st.NOBODY, st.NONE


@njit()
def _half_word(m, agent):  # type: ignore[no-untyped-def]
    """The next 32 bits of an agent's stream: the lower half of a word, then the upper half."""
    place = cal.absences(m)[agent].halves
    cal.absences(m)[agent].halves = place + 1
    word = philox_block(cal.key(m, st.REJOIN), agent, place >> 3)[(place >> 1) & 3]
    return np.int64((word >> np.uint64(32 * (place & 1))) & np.uint64(0xFFFFFFFF))


@njit()
def online_below(m, agent, bound):  # type: ignore[no-untyped-def]
    """A whole number below a bound, as ``Generator.integers`` of NumPy draws it (Lemire 2019)."""
    if bound == 1:
        return 0
    product = np.uint64(_half_word(m, agent)) * np.uint64(bound)
    least = (1 << 32) % bound
    while np.int64(product & np.uint64(0xFFFFFFFF)) < least:
        product = np.uint64(_half_word(m, agent)) * np.uint64(bound)
    return np.int64(product >> np.uint64(32))
