"""A shared medium: when a sender may begin, and what becomes of a message whose sender is busy.

See `p2psim.network.channels.channel.Channel` for the rules.
"""

import math

from p2psim.core.compiled import njit
from p2psim.core.times import ROUNDING
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine.calendar import (
    appoint,
    free_message,
    free_node,
    laws,
    messages,
    nodes,
    present,
    push,
    radios,
    row,
    senders,
    take_node,
    tasks,
)
from p2psim.network.compiled_engine.receptions import hears, is_busy, near, put_on_air, take_off_air
from p2psim.network.compiled_engine.travel import (
    copy_to,
    delay_of,
    draw,
    has_fates,
    is_blacked_out,
    is_lost,
    lacks,
    lacks_delay,
    link_over,
    links_of,
    receiver_of,
)

#: As in `channels.radio`: a moment that rounding puts after the beginning of a slot is in time for it.
_IN_TIME = 1 - ROUNDING


@njit()
def offer(m, place):  # type: ignore[no-untyped-def]
    """Hand a message that takes airtime over to the medium."""
    s, e = m.state, messages(m)[place]
    r = radios(m)[place]
    r.length = s.question if e.version == st.NONE else s.loaded
    r.tries, r.fates, r.receptions, r.next = 0, st.NONE, st.NONE, st.NONE
    if has_fates(m):
        first, last = links_of(m, place)
        push(m, st.FATES, place, first, last)
    else:
        _wait_for_sender(m, place)


@njit()
def draw_fates(m):  # type: ignore[no-untyped-def]
    """Draw how long a message travels to each receiver, and whether it is lost; then let it wait for its turn."""
    s = m.state
    task = tasks(m)[s.depth - 1]
    place, last = task.message, task.last
    sender, lane = messages(m)[place].sender, messages(m)[place].lane
    r = radios(m)[place]
    while task.link < last:
        if s.spare_nodes < st.SPARE:
            s.state = st.NEEDS_ROOM
            return
        if lacks_delay(m, sender, lane):
            return
        link = link_over(m, place, task.link)
        task.link += 1
        delay = delay_of(m, sender, link, lane)
        lost = is_lost(m, sender, receiver_of(m, place, link), link, lane)
        node = take_node(m, delay, 0.0, 1 if lost else 0, link)
        # `next` is the last of the list so far.
        if r.fates == st.NONE:
            r.fates = node
        else:
            nodes(m)[r.next].next = node
        r.next = node
    r.next = st.NONE
    s.depth -= 1
    _wait_for_sender(m, place)


@njit(forceinline=True)
def _first_link(m, place):  # type: ignore[no-untyped-def]
    """The first of the links that a message goes over."""
    return nodes(m)[radios(m)[place].fates].j if m.changing is not None else links_of(m, place)[0]


@njit(forceinline=True)
def first_receiver(m, place):  # type: ignore[no-untyped-def]
    """The first of a message's receivers."""
    return receiver_of(m, place, _first_link(m, place))


@njit()
def _wait_for_sender(m, place):  # type: ignore[no-untyped-def]
    """Ask for the medium unless the sender is busy with another message."""
    s = m.state
    who = row(m, messages(m)[place].sender)
    if s.one_by_one:
        if senders(m)[who].is_sending:
            if s.skips:
                push(m, st.FAIL_ALL, place, _first_link(m, place), st.BUSY)
            else:
                last = senders(m)[who].last_waiting
                if last == st.NONE:
                    senders(m)[who].first_waiting = place
                else:
                    radios(m)[last].next = place
                senders(m)[who].last_waiting = place
            return
        senders(m)[who].is_sending = 1
    ask(m, place, st.AT_THE_SEND)


@njit()
def ask(m, place, has_waited):  # type: ignore[no-untyped-def]
    """Begin when the rules of access allow; `has_waited`: the sender may have left meanwhile."""
    s = m.state
    r, e = radios(m)[place], messages(m)[place]
    if s.access == st.SLOTS:
        number = math.ceil(s.now / s.slot * _IN_TIME)
        r.slot = number
        when = number * s.slot
        if when > s.now:
            appoint(m, when, place, st.REGULAR, st.SLOT, e.number, first_receiver(m, place))
            return
    elif s.access == st.QUIET:
        while is_busy(m, e.sender):
            if r.tries + 1 == s.attempts:
                refuse(m, place, st.GAVE_UP)
                return
            if lacks(m, st.SENSE_TIME, row(m, e.sender)):
                push(m, st.ASK, place, has_waited, st.ZERO)
                return
            r.tries += 1
            again = s.now + draw(m, st.SENSE_TIME, row(m, e.sender))
            if again > s.now:
                appoint(m, again, place, st.WAIT, st.SENSING, e.number, first_receiver(m, place))
                return
    begin(m, place, has_waited)


@njit()
def begin(m, place, has_waited):  # type: ignore[no-untyped-def]
    """Put a transmission on the air."""
    s = m.state
    r, e = radios(m)[place], messages(m)[place]
    if has_waited and not present(m)[row(m, e.sender)]:
        refuse(m, place, st.OFFLINE)
        return
    first, last = near(m, e.sender)
    wanted = 1 if s.shared else last - first
    if m.changing is not None:
        wanted += _count_fates(m, place)
    if s.spare_receptions < wanted or s.spare_nodes < st.SPARE:
        push(m, st.BEGIN, place, has_waited, st.ZERO)
        s.state = st.NEEDS_ROOM
        return
    put_on_air(m, place)
    end = (r.slot + r.length / s.slot) * s.slot if s.access == st.SLOTS else s.now + r.length
    appoint(m, end, place, st.CHANNEL, st.AIRTIME, e.number, first_receiver(m, place))


@njit()
def _count_fates(m, place):  # type: ignore[no-untyped-def]
    """To how many a message is to go."""
    count, node = 0, radios(m)[place].fates
    while node != st.NONE:
        count += 1
        node = nodes(m)[node].next
    return count


@njit()
def refuse(m, place, outcome):  # type: ignore[no-untyped-def]
    """Give a transmission up that would have been next."""
    push(m, st.NEXT, messages(m)[place].sender, st.ZERO, st.ZERO)
    push(m, st.FAIL_ALL, place, _first_link(m, place), outcome)


@njit()
def send_next(m, sender):  # type: ignore[no-untyped-def]
    """Send what the sender has waiting, or let it be free."""
    who = row(m, sender)
    place = senders(m)[who].first_waiting
    if place == st.NONE:
        senders(m)[who].is_sending = 0
        return
    r = radios(m)[place]
    senders(m)[who].first_waiting = r.next
    if r.next == st.NONE:
        senders(m)[who].last_waiting = st.NONE
    r.next = st.NONE
    ask(m, place, st.AFTER_WAITING)


@njit()
def end_airtime(m, place):  # type: ignore[no-untyped-def]
    """A transmission ends: each receiver has heard it or not, and then its sender goes on."""
    r = radios(m)[place]
    r.next = r.receptions
    first, last = links_of(m, place)
    push(m, st.NEXT, messages(m)[place].sender, st.ZERO, st.ZERO)
    push(m, st.HEARD_BY, place, first, last)


@njit()
def end_at_next(m):  # type: ignore[no-untyped-def]
    """Let a transmission end at its next receiver."""
    s = m.state
    task = tasks(m)[s.depth - 1]
    template, link = task.message, task.link
    r = radios(m)[template]
    if (r.fates == st.NONE) if m.changing is not None else (link == task.last):
        s.depth -= 1
        take_off_air(m, template)
        free_message(m, template)
        return
    task.link = link + 1
    if m.changing is not None:
        link = nodes(m)[r.fates].j
    receiver = receiver_of(m, template, link)
    delay, lost = laws(m)[st.TRAVEL].low, False
    node = r.fates
    if node != st.NONE:
        delay, lost = nodes(m)[node].x, nodes(m)[node].i != 0
        r.fates = nodes(m)[node].next
        free_node(m, node)
    is_heard = hears(m, template, receiver)
    place = copy_to(m, template, receiver, link)
    e = messages(m)[place]
    arrival = s.now + delay
    if is_blacked_out(m, r.began, arrival):
        lost = True
    if not is_heard:
        e.outcome = st.COLLISION
        push(m, st.END, place, st.ZERO, st.ZERO)
        return
    e.outcome = st.LOSS if lost else st.OK
    if delay == 0.0:
        push(m, st.END, place, st.ZERO, st.ZERO)
    else:
        appoint(m, arrival, place, st.CHANNEL, st.ARRIVAL, e.number, st.ZERO)


@njit()
def fail_at_next(m):  # type: ignore[no-untyped-def]
    """Let a message that does not go out fail at its next receiver."""
    s = m.state
    task = tasks(m)[s.depth - 1]
    template, link = task.message, task.link
    r = radios(m)[template]
    if (r.fates == st.NONE) if m.changing is not None else (link == links_of(m, template)[1]):
        s.depth -= 1
        _free_fates(m, template)
        free_message(m, template)
        return
    task.link = link + 1
    if m.changing is not None:
        node = r.fates
        link = nodes(m)[node].j
        r.fates = nodes(m)[node].next
        free_node(m, node)
    place = copy_to(m, template, receiver_of(m, template, link), link)
    messages(m)[place].outcome = task.last
    push(m, st.END, place, st.ZERO, st.ZERO)


@njit()
def _free_fates(m, place):  # type: ignore[no-untyped-def]
    """Forget what was drawn for a message that does not go out."""
    node = radios(m)[place].fates
    while node != st.NONE:
        after = nodes(m)[node].next
        free_node(m, node)
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
