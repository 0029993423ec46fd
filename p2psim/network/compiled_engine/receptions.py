"""Transmissions as they are received: which of them overlap at a place, and which are heard.

A transmission costs a bounded amount of work at each place: it is compared with the three senders whose transmissions
end last, and each that is being received is marked at most twice (`p2psim.network.simpy_engine.channel`).
"""

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.philox import uniform
from p2psim.network.compiled_engine import calendar as cal
from p2psim.network.compiled_engine.state import CAPTURE, EMPTY, LEARNER, NONE, SLOTS, ZERO


@njit(forceinline=True)
def near(m, sender):  # type: ignore[no-untyped-def]
    """First and last of the places (`link_at`) of the links over which a sender is heard."""
    if sender == LEARNER:
        return 0, m.state.n
    if m.changing is not None:
        return cal.indptr(m)[sender], cal.indptr(m)[sender] + cal.degrees(m)[sender]
    return cal.indptr(m)[sender], cal.indptr(m)[sender + 1]


@njit(forceinline=True)
def link_at(m, place):  # type: ignore[no-untyped-def]
    """The link at a place that `near` gives; places are links where the graph does not change."""
    return cal.active(m)[place] if m.changing is not None else place


@njit(forceinline=True)
def other_end(m, sender, link):  # type: ignore[no-untyped-def]
    """Who is at the other end of a sender's link."""
    return link if sender == LEARNER else np.int64(cal.indices(m)[link])


@njit()
def put_on_air(m, place):  # type: ignore[no-untyped-def]
    """Let a transmission begin wherever it is heard, now."""
    s = m.state
    r, sender = cal.radios(m)[place], cal.messages(m)[place].sender
    if s.access == SLOTS:
        start = float(r.slot)
        end = start + r.length / s.longest
    else:
        start = s.now
        end = start + r.length
    r.began, r.start, r.end = s.now, start, end
    if s.shared:
        r.receptions = _begin(m, ZERO, sender, start, end)
    else:
        r.receptions, last = NONE, NONE
        at, stop = near(m, sender)
        node = r.fates if m.changing is not None else NONE
        while at < stop or node != NONE:
            # Where the graph changes, also receivers whose link has gone since the send.
            link = link_at(m, at) if at < stop else cal.nodes(m)[node].j
            if node != NONE and cal.nodes(m)[node].j <= link:
                link = cal.nodes(m)[node].j
                node = cal.nodes(m)[node].next
            if at < stop and link_at(m, at) == link:
                at += 1
            c = _begin(m, cal.row(m, other_end(m, sender, link)), sender, start, end)
            if last == NONE:
                r.receptions = c
            else:
                cal.receptions(m)[last].next = c
            last = c
    if s.half_duplex:
        _note_span(m, cal.row(m, sender), start, end)


@njit()
def _begin(m, where, sender, start, end):  # type: ignore[no-untyped-def]
    """Let a transmission begin at one place; returns its reception."""
    s = m.state
    c = s.free_reception
    one, p = cal.receptions(m)[c], cal.air(m)[where]
    s.free_reception = one.next
    s.spare_receptions -= 1
    one.end, one.place, one.sender, one.is_open, one.next = end, where, sender, 0, NONE
    one.before[0] = one.before[1] = one.others[0] = one.others[1] = EMPTY
    if p.until <= start:
        p.until, p.alone = end, c
        return c
    if p.alone != NONE:
        while p.open != NONE:
            close(m, p.open)
        first = cal.receptions(m)[p.alone]
        p.latest, p.ends[0], p.senders[0] = 1, first.end, first.sender
        _open(m, p.alone)
        p.alone = NONE
    _overlap(m, c, start)
    p.until = p.ends[0]
    return c


@njit()
def _overlap(m, c, start):  # type: ignore[no-untyped-def]
    """Let a transmission begin while there are others."""
    one = cal.receptions(m)[c]
    p = cal.air(m)[one.place]
    sender, end, kept, before = one.sender, one.end, 0, 0
    for k in range(p.latest):
        other_end_, other = p.ends[k], p.senders[k]
        if other_end_ <= start:
            break
        if other != sender:
            p.ends[kept], p.senders[kept] = other_end_, other
            kept += 1
            if before < 2:
                one.before[before] = other
                before += 1
        elif other_end_ > end:
            end = other_end_
    at = 0
    while at < kept and p.ends[at] > end:
        at += 1
    p.latest = min(kept + 1, 3)
    for k in range(p.latest - 1, at, -1):
        p.ends[k], p.senders[k] = p.ends[k - 1], p.senders[k - 1]
    if at < 3:
        p.ends[at], p.senders[at] = end, sender
    _mark(m, p.open, sender, start)
    one.others[0], one.others[1] = one.before[0], one.before[1]
    if before < 2:
        _open(m, c)


@njit()
def _mark(m, first, sender, start):  # type: ignore[no-untyped-def]
    """Let all that is being received know of another sender."""
    c = first
    while c != NONE:
        one = cal.receptions(m)[c]
        after = one.open_after
        if one.end <= start:
            close(m, c)
        else:
            if one.sender != sender and one.others[0] != sender and one.others[1] != sender:
                one.others[0 if one.others[0] == EMPTY else 1] = sender
            if one.others[1] != EMPTY:
                close(m, c)
        c = after


@njit()
def _open(m, c):  # type: ignore[no-untyped-def]
    """Note that a reception may still meet another sender that counts."""
    one = cal.receptions(m)[c]
    p = cal.air(m)[one.place]
    one.is_open, one.open_before, one.open_after = 1, NONE, p.open
    if p.open != NONE:
        cal.receptions(m)[p.open].open_before = c
    p.open = c


@njit()
def close(m, c):  # type: ignore[no-untyped-def]
    """Note that it may not."""
    one = cal.receptions(m)[c]
    one.is_open = 0
    if one.open_before == NONE:
        cal.air(m)[one.place].open = one.open_after
    else:
        cal.receptions(m)[one.open_before].open_after = one.open_after
    if one.open_after != NONE:
        cal.receptions(m)[one.open_after].open_before = one.open_before


@njit()
def take_off_air(m, place):  # type: ignore[no-untyped-def]
    """Forget the receptions of a transmission that has ended."""
    s = m.state
    c = cal.radios(m)[place].receptions
    while c != NONE:
        one = cal.receptions(m)[c]
        after = one.next
        if one.is_open:
            close(m, c)
        if cal.air(m)[one.place].alone == c:
            cal.air(m)[one.place].alone = NONE
        one.next = s.free_reception
        s.free_reception = c
        s.spare_receptions += 1
        c = after


@njit()
def is_busy(m, sender):  # type: ignore[no-untyped-def]
    """Whether a sender hears another one."""
    s = m.state
    p = cal.air(m)[0 if s.shared else cal.row(m, sender)]
    if p.until <= s.now:
        return False
    if p.alone != NONE:
        return cal.receptions(m)[p.alone].sender != sender
    for k in range(p.latest):
        if p.ends[k] <= s.now:
            return False
        if p.senders[k] != sender:
            return True
    return False


@njit()
def _note_span(m, who, start, end):  # type: ignore[no-untyped-def]
    """Note when an agent itself sends; spans that nothing on the air overlaps are forgotten."""
    s = m.state
    recent = start - (1.0 if s.access == SLOTS else s.longest)
    node, kept = cal.senders(m)[who].spans, cal.take_node(m, start, end, 0, 0)
    cal.senders(m)[who].spans = kept
    while node != NONE:
        after = cal.nodes(m)[node].next
        if cal.nodes(m)[node].y > recent:
            cal.nodes(m)[kept].next = node
            kept = node
        else:
            cal.free_node(m, node)
        node = after
    cal.nodes(m)[kept].next = NONE


@njit(forceinline=True)
def _is_other(receiver, senders):  # type: ignore[no-untyped-def]
    """Whether there is a sender beside the receiver."""
    return senders[0] != EMPTY and (senders[0] != receiver or senders[1] != EMPTY)


@njit()
def hears(m, place, receiver):  # type: ignore[no-untyped-def]
    """Whether a receiver has heard a transmission, which ends now; to be asked once, in the order of receivers."""
    s = m.state
    r, sender = cal.radios(m)[place], cal.messages(m)[place].sender
    if s.half_duplex:
        node = cal.senders(m)[cal.row(m, receiver)].spans
        while node != NONE:
            if cal.nodes(m)[node].x < r.end and cal.nodes(m)[node].y > r.start:
                return False
            node = cal.nodes(m)[node].next
    if not s.shared:
        # Receptions are in the order of the sender's links, and so are receivers.
        where = cal.row(m, receiver)
        while cal.receptions(m)[r.next].place != where:
            r.next = cal.receptions(m)[r.next].next
    one = cal.receptions(m)[r.next]
    if not _is_other(receiver, one.others):
        return True
    if s.capture == 0 or _is_other(receiver, one.before):
        return False
    who = cal.row(m, sender)
    drawn = cal.senders(m)[who].captured
    cal.senders(m)[who].captured = drawn + 1
    return uniform(cal.key(m, CAPTURE), sender, drawn) < s.capture
