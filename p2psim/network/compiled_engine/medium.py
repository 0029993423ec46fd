"""A shared medium: when a sender may begin, and what becomes of a message whose sender is busy.

See `p2psim.network.channels.channel.Channel` for the rules.
"""

import math

from p2psim.core.compiled import njit
from p2psim.core.times import ROUNDING
from p2psim.network.compiled_engine import calendar as cal
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine import travel
from p2psim.network.compiled_engine.receptions import hears, is_busy, near, put_on_air, take_off_air

#: As in `simpy_engine.channel`: a moment that rounding puts after the beginning of a slot is in time for it.
_IN_TIME = 1 - ROUNDING


@njit()
def offer(m, place):  # type: ignore[no-untyped-def]
    """Hand a message that takes airtime over to the medium."""
    s, e = m.state, cal.messages(m)[place]
    r = cal.radios(m)[place]
    r.length = s.question if e.version == st.NONE else s.loaded
    r.tries, r.fates, r.receptions, r.next = 0, st.NONE, st.NONE, st.NONE
    if travel.has_fates(m):
        first, last = travel.links_of(m, place)
        cal.push(m, st.FATES, place, first, last)
    else:
        _wait_for_sender(m, place)


@njit()
def draw_fates(m):  # type: ignore[no-untyped-def]
    """Draw how long a message travels to each receiver, and whether it is lost; then let it wait for its turn."""
    s = m.state
    task = cal.tasks(m)[s.depth - 1]
    place, last = task.message, task.last
    sender, lane = cal.messages(m)[place].sender, cal.messages(m)[place].lane
    r = cal.radios(m)[place]
    while task.link < last:
        if s.spare_nodes < st.SPARE:
            s.state = st.NEEDS_ROOM
            return
        if travel.lacks_delay(m, sender, lane):
            return
        link = travel.link_over(m, place, task.link)
        task.link += 1
        delay = travel.delay_of(m, sender, link, lane)
        lost = travel.is_lost(m, sender, travel.receiver_of(m, place, link), link, lane)
        node = cal.take_node(m, delay, 0.0, 1 if lost else 0, link)
        # `next` is the last of the list so far.
        if r.fates == st.NONE:
            r.fates = node
        else:
            cal.nodes(m)[r.next].next = node
        r.next = node
    r.next = st.NONE
    s.depth -= 1
    _wait_for_sender(m, place)


@njit(forceinline=True)
def _first_link(m, place):  # type: ignore[no-untyped-def]
    """The first of the links that a message goes over."""
    return (
        cal.nodes(m)[cal.radios(m)[place].fates].j if m.changing is not None else travel.links_of(m, place)[0]
    )


@njit(forceinline=True)
def first_receiver(m, place):  # type: ignore[no-untyped-def]
    """The first of a message's receivers."""
    return travel.receiver_of(m, place, _first_link(m, place))


@njit()
def _wait_for_sender(m, place):  # type: ignore[no-untyped-def]
    """Ask for the medium unless the sender is busy with another message."""
    s = m.state
    who = cal.row(m, cal.messages(m)[place].sender)
    if s.one_by_one:
        if cal.senders(m)[who].is_sending:
            if s.skips:
                cal.push(m, st.FAIL_ALL, place, _first_link(m, place), st.BUSY)
            else:
                last = cal.senders(m)[who].last_waiting
                if last == st.NONE:
                    cal.senders(m)[who].first_waiting = place
                else:
                    cal.radios(m)[last].next = place
                cal.senders(m)[who].last_waiting = place
            return
        cal.senders(m)[who].is_sending = 1
    ask(m, place, st.AT_THE_SEND)


@njit()
def ask(m, place, has_waited):  # type: ignore[no-untyped-def]
    """Begin when the rules of access allow; `has_waited`: the sender may have left meanwhile."""
    s = m.state
    r, e = cal.radios(m)[place], cal.messages(m)[place]
    if s.access == st.SLOTS:
        number = math.ceil(s.now / s.slot * _IN_TIME)
        r.slot = number
        when = number * s.slot
        if when > s.now:
            cal.appoint(m, when, place, st.REGULAR, st.SLOT, e.number, first_receiver(m, place))
            return
    elif s.access == st.QUIET:
        while is_busy(m, e.sender):
            if r.tries + 1 == s.attempts:
                refuse(m, place, st.GAVE_UP)
                return
            if travel.lacks(m, st.SENSE_TIME, cal.row(m, e.sender)):
                cal.push(m, st.ASK, place, has_waited, st.ZERO)
                return
            r.tries += 1
            again = s.now + travel.draw(m, st.SENSE_TIME, cal.row(m, e.sender))
            if again > s.now:
                cal.appoint(m, again, place, st.WAIT, st.SENSING, e.number, first_receiver(m, place))
                return
    begin(m, place, has_waited)


@njit()
def begin(m, place, has_waited):  # type: ignore[no-untyped-def]
    """Put a transmission on the air."""
    s = m.state
    r, e = cal.radios(m)[place], cal.messages(m)[place]
    if has_waited and not cal.present(m)[cal.row(m, e.sender)]:
        refuse(m, place, st.OFFLINE)
        return
    first, last = near(m, e.sender)
    wanted = 1 if s.shared else last - first
    if m.changing is not None:
        wanted += _count_fates(m, place)
    if s.spare_receptions < wanted or s.spare_nodes < st.SPARE:
        cal.push(m, st.BEGIN, place, has_waited, st.ZERO)
        s.state = st.NEEDS_ROOM
        return
    put_on_air(m, place)
    end = (r.slot + r.length / s.slot) * s.slot if s.access == st.SLOTS else s.now + r.length
    cal.appoint(m, end, place, st.CHANNEL, st.AIRTIME, e.number, first_receiver(m, place))


@njit()
def _count_fates(m, place):  # type: ignore[no-untyped-def]
    """To how many a message is to go."""
    count, node = 0, cal.radios(m)[place].fates
    while node != st.NONE:
        count += 1
        node = cal.nodes(m)[node].next
    return count


@njit()
def refuse(m, place, outcome):  # type: ignore[no-untyped-def]
    """Give a transmission up that would have been next."""
    cal.push(m, st.NEXT, cal.messages(m)[place].sender, st.ZERO, st.ZERO)
    cal.push(m, st.FAIL_ALL, place, _first_link(m, place), outcome)


@njit()
def send_next(m, sender):  # type: ignore[no-untyped-def]
    """Send what the sender has waiting, or let it be free."""
    who = cal.row(m, sender)
    place = cal.senders(m)[who].first_waiting
    if place == st.NONE:
        cal.senders(m)[who].is_sending = 0
        return
    r = cal.radios(m)[place]
    cal.senders(m)[who].first_waiting = r.next
    if r.next == st.NONE:
        cal.senders(m)[who].last_waiting = st.NONE
    r.next = st.NONE
    ask(m, place, st.AFTER_WAITING)


@njit()
def end_airtime(m, place):  # type: ignore[no-untyped-def]
    """A transmission ends: each receiver has heard it or not, and then its sender goes on."""
    r = cal.radios(m)[place]
    r.next = r.receptions
    first, last = travel.links_of(m, place)
    cal.push(m, st.NEXT, cal.messages(m)[place].sender, st.ZERO, st.ZERO)
    cal.push(m, st.HEARD_BY, place, first, last)


@njit()
def end_at_next(m):  # type: ignore[no-untyped-def]
    """Let a transmission end at its next receiver."""
    s = m.state
    task = cal.tasks(m)[s.depth - 1]
    template, link = task.message, task.link
    r = cal.radios(m)[template]
    if (r.fates == st.NONE) if m.changing is not None else (link == task.last):
        s.depth -= 1
        take_off_air(m, template)
        cal.free_message(m, template)
        return
    task.link = link + 1
    if m.changing is not None:
        link = cal.nodes(m)[r.fates].j
    receiver = travel.receiver_of(m, template, link)
    delay, lost = cal.laws(m)[st.TRAVEL].low, False
    node = r.fates
    if node != st.NONE:
        delay, lost = cal.nodes(m)[node].x, cal.nodes(m)[node].i != 0
        r.fates = cal.nodes(m)[node].next
        cal.free_node(m, node)
    is_heard = hears(m, template, receiver)
    place = travel.copy_to(m, template, receiver, link)
    e = cal.messages(m)[place]
    arrival = s.now + delay
    if travel.is_blacked_out(m, r.began, arrival):
        lost = True
    if not is_heard:
        e.outcome = st.COLLISION
        cal.push(m, st.END, place, st.ZERO, st.ZERO)
        return
    e.outcome = st.LOSS if lost else st.OK
    if delay == 0.0:
        cal.push(m, st.END, place, st.ZERO, st.ZERO)
    else:
        cal.appoint(m, arrival, place, st.CHANNEL, st.ARRIVAL, e.number, st.ZERO)


@njit()
def fail_at_next(m):  # type: ignore[no-untyped-def]
    """Let a message that does not go out fail at its next receiver."""
    s = m.state
    task = cal.tasks(m)[s.depth - 1]
    template, link = task.message, task.link
    r = cal.radios(m)[template]
    if (r.fates == st.NONE) if m.changing is not None else (link == travel.links_of(m, template)[1]):
        s.depth -= 1
        _free_fates(m, template)
        cal.free_message(m, template)
        return
    task.link = link + 1
    if m.changing is not None:
        node = r.fates
        link = cal.nodes(m)[node].j
        r.fates = cal.nodes(m)[node].next
        cal.free_node(m, node)
    place = travel.copy_to(m, template, travel.receiver_of(m, template, link), link)
    cal.messages(m)[place].outcome = task.last
    cal.push(m, st.END, place, st.ZERO, st.ZERO)


@njit()
def _free_fates(m, place):  # type: ignore[no-untyped-def]
    """Forget what was drawn for a message that does not go out."""
    node = cal.radios(m)[place].fates
    while node != st.NONE:
        after = cal.nodes(m)[node].next
        cal.free_node(m, node)
        node = after


@njit()
def go_on(m, what, message, link):  # type: ignore[no-untyped-def]
    """Do a task that has waited."""
    if what == st.NEXT:
        send_next(m, message)
    elif what == st.ASK:
        ask(m, message, link)
    else:
        begin(m, message, link)
