"""How messages end at their receivers: they arrive, are held for who is offline, are lost, or are sent again.

See `p2psim.network.channels.retransmission` for what is sent again, and why.
"""

from p2psim.core.compiled import njit
from p2psim.core.philox import uniform
from p2psim.network.compiled_engine.arrays import absences, acknowledged, key, messages, present
from p2psim.network.compiled_engine.calendar import appoint, free_message, push, row, write
from p2psim.network.compiled_engine.codes import (
    ACKNOWLEDGE,
    ACKNOWLEDGEMENT,
    AGAIN_WAIT,
    DELIVER,
    DROP,
    NONE,
    OFFLINE,
    OK,
    RESENDING,
    RETRY,
    UNACKNOWLEDGED,
    WAIT,
    WAIT_AGAIN,
    ZERO,
)
from p2psim.network.compiled_engine.laws import draw, lacks
from p2psim.network.compiled_engine.learner import hear_asker, hear_server, lose
from p2psim.network.compiled_engine.neighbours import hear_neighbour
from p2psim.network.compiled_engine.sending import ended, hand_over
from p2psim.network.compiled_engine.travel import copy_to


@njit()
def end(m, acknowledged, place):  # type: ignore[no-untyped-def]
    """A message ends at its receiver, or is lost on its way."""
    e = messages(m)[place]
    if e.outcome != OK:
        fail(m, acknowledged, place, e.outcome)
    elif acknowledged is None:
        arrive(m, m.presence, place)
    else:
        _arrive_once(m, place)


@njit()
def _arrive_once(m, place):  # type: ignore[no-untyped-def]
    """Take in a message that may have been sent again, and acknowledge it."""
    s, e = m.state, messages(m)[place]
    if not _takes_in(m, m.presence, e.receiver):
        fail(m, m.acknowledged, place, OFFLINE)
    elif s.acknowledge == 0:
        arrive(m, m.presence, place)
    else:
        push(m, ACKNOWLEDGE, place, ZERO, ZERO)
        if not e.has_arrived:
            arrive(m, m.presence, copy_to(m, place, e.receiver, e.link))


@njit()
def acknowledge(m, place):  # type: ignore[no-untyped-def]
    """Tell a sender that its message has arrived; it sends again if that is lost."""
    s, e = m.state, messages(m)[place]
    who = row(m, e.sender)
    drawn = acknowledged(m)[who]
    acknowledged(m)[who] = drawn + 1
    if uniform(key(m, ACKNOWLEDGEMENT), e.sender, drawn) < s.acknowledge and e.tries < s.again:
        e.has_arrived = 1
        wait_to_send(m, place, UNACKNOWLEDGED)
    else:
        free_message(m, place)


@njit(forceinline=True)
def _takes_in(m, presence, receiver):  # type: ignore[no-untyped-def]
    """Whether a message that reaches a receiver does not fail there: it is online, or will fetch it."""
    if presence is None:
        return True
    who = row(m, receiver)
    return present(m)[who] != 0 or (m.state.keeps != 0 and absences(m)[who].is_gone == 0)


@njit()
def arrive(m, presence, place):  # type: ignore[no-untyped-def]
    """Deliver a message, hold it, or lose it if the receiver is offline."""
    e = messages(m)[place]
    if presence is not None:
        who = row(m, e.receiver)
        if not present(m)[who]:
            if not _takes_in(m, presence, e.receiver):
                lose_message(m, place, OFFLINE)
                return
            last = absences(m)[who].last_held
            e.next = NONE
            if last == NONE:
                absences(m)[who].first_held = place
            else:
                messages(m)[last].next = place
            absences(m)[who].last_held = place
            return
    delivery = write(m, DELIVER, e.receiver, e.sender, e.version, e.number, e.release, OK)
    _heard(m, m.gossip, m.request, m.queries, place, delivery)
    free_message(m, place)


@njit(forceinline=True)
def _heard(m, gossip, request, queries, place, delivery):  # type: ignore[no-untyped-def]
    """What follows from a delivery."""
    if gossip is not None:
        hear_neighbour(m, place, delivery)
    elif request is not None:
        hear_server(m, place, delivery)
    elif queries is not None:
        hear_asker(m, place, delivery)


@njit(forceinline=True)
def _lost(m, request, queries, place):  # type: ignore[no-untyped-def]
    """What follows from a loss."""
    if request is not None or queries is not None:
        lose(m, place)


@njit()
def lose_message(m, place, outcome):  # type: ignore[no-untyped-def]
    """Drop a message on its way to a receiver."""
    e = messages(m)[place]
    write(m, DROP, e.receiver, e.sender, e.version, e.number, e.release, outcome)
    ended(m, e.release)
    _lost(m, m.request, m.queries, place)
    free_message(m, place)


@njit()
def fail(m, acknowledged, place, outcome):  # type: ignore[no-untyped-def]
    """Send a message again, or give up."""
    e = messages(m)[place]
    if acknowledged is not None and e.tries < m.state.again:
        wait_to_send(m, place, outcome)
    else:
        _give_up(m, place, outcome)


@njit()
def _give_up(m, place, outcome):  # type: ignore[no-untyped-def]
    """Send a message no more; it may have arrived."""
    if messages(m)[place].has_arrived:
        free_message(m, place)
    else:
        lose_message(m, place, outcome)


@njit()
def wait_to_send(m, place, outcome):  # type: ignore[no-untyped-def]
    """Send a message again after a while."""
    s, e = m.state, messages(m)[place]
    e.outcome = outcome
    who = row(m, e.sender)
    if lacks(m, WAIT_AGAIN, who):
        push(m, AGAIN_WAIT, place, outcome, ZERO)
        return
    wait = draw(m, WAIT_AGAIN, who)
    if wait == 0.0:
        send_again(m, place)
    else:
        appoint(m, s.now + wait, place, WAIT, RESENDING, e.number, e.receiver)


@njit()
def send_again(m, place):  # type: ignore[no-untyped-def]
    """Send a message again, unless its sender is offline."""
    e = messages(m)[place]
    if not present(m)[row(m, e.sender)]:
        _give_up(m, place, e.outcome)
        return
    e.tries += 1
    write(m, RETRY, e.sender, e.receiver, e.version, e.number, e.release, e.outcome)
    e.lane, e.outcome = 1, OK
    hand_over(m, m.radio, place)
