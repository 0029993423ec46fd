"""Transmissions as they are received: which of them overlap at a place, and which are heard.

A transmission costs a bounded amount of work at each place: it is compared with the three senders whose transmissions
end last, and each that is being received is marked at most twice (`p2psim.network.channels.interference`).
"""

from p2psim.core.compiled import njit
from p2psim.core.events import LEARNER, NONE
from p2psim.core.philox import uniform
from p2psim.network.compiled_engine.calendar import free_node, row, take_node
from p2psim.network.compiled_engine.state import CAPTURE, SLOTS

#: Where there is no other sender; that of agents is 0 or more, and −1 is the learner.
EMPTY = -9


@njit(forceinline=True)
def near(m, sender):  # type: ignore[no-untyped-def]
    """First and last of the links over which a sender is heard."""
    if sender == LEARNER:
        return 0, m.agents.size - 1
    return m.indptr[sender], m.indptr[sender + 1]


@njit(forceinline=True)
def other_end(m, sender, link):  # type: ignore[no-untyped-def]
    """Who is at the other end of a sender's link."""
    return link if sender == LEARNER else m.indices[link]


@njit()
def put_on_air(m, radio, place):  # type: ignore[no-untyped-def]
    """Let a transmission begin wherever it is heard, now."""
    s = m.state[0]
    r, sender = radio.messages[place], m.messages[place].sender
    if s.access == SLOTS:
        start = float(r.slot)
        end = start + r.length / s.longest
    else:
        start = s.now
        end = start + r.length
    r.began, r.start, r.end = s.now, start, end
    if s.shared:
        r.receptions = _begin(m, radio, 0, sender, start, end)
    else:
        r.receptions, last = NONE, NONE
        first, stop = near(m, sender)
        for link in range(first, stop):
            c = _begin(m, radio, row(m, other_end(m, sender, link)), sender, start, end)
            if last == NONE:
                r.receptions = c
            else:
                radio.receptions[last].next = c
            last = c
    if s.half_duplex:
        _note_span(m, radio, row(m, sender), start, end)


@njit()
def _begin(m, radio, where, sender, start, end):  # type: ignore[no-untyped-def]
    """Let a transmission begin at one place; returns its reception."""
    s = m.state[0]
    c = s.free_reception
    one, p = radio.receptions[c], radio.places[where]
    s.free_reception = one.next
    s.spare_receptions -= 1
    one.end, one.place, one.sender, one.is_open, one.next = end, where, sender, 0, NONE
    one.before[0] = one.before[1] = one.others[0] = one.others[1] = EMPTY
    if p.until <= start:
        p.until, p.alone = end, c
        return c
    if p.alone != NONE:
        while p.open != NONE:
            close(radio, p.open)
        first = radio.receptions[p.alone]
        p.latest, p.ends[0], p.senders[0] = 1, first.end, first.sender
        _open(radio, p.alone)
        p.alone = NONE
    _overlap(radio, c, start)
    p.until = p.ends[0]
    return c


@njit()
def _overlap(radio, c, start):  # type: ignore[no-untyped-def]
    """Let a transmission begin while there are others."""
    one = radio.receptions[c]
    p = radio.places[one.place]
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
    _mark(radio, p.open, sender, start)
    one.others[0], one.others[1] = one.before[0], one.before[1]
    if before < 2:
        _open(radio, c)


@njit()
def _mark(radio, first, sender, start):  # type: ignore[no-untyped-def]
    """Let all that is being received know of another sender."""
    c = first
    while c != NONE:
        one = radio.receptions[c]
        after = one.open_after
        if one.end <= start:
            close(radio, c)
        else:
            if one.sender != sender and one.others[0] != sender and one.others[1] != sender:
                one.others[0 if one.others[0] == EMPTY else 1] = sender
            if one.others[1] != EMPTY:
                close(radio, c)
        c = after


@njit()
def _open(radio, c):  # type: ignore[no-untyped-def]
    """Note that a reception may still meet another sender that counts."""
    one = radio.receptions[c]
    p = radio.places[one.place]
    one.is_open, one.open_before, one.open_after = 1, NONE, p.open
    if p.open != NONE:
        radio.receptions[p.open].open_before = c
    p.open = c


@njit()
def close(radio, c):  # type: ignore[no-untyped-def]
    """Note that it may not."""
    one = radio.receptions[c]
    one.is_open = 0
    if one.open_before == NONE:
        radio.places[one.place].open = one.open_after
    else:
        radio.receptions[one.open_before].open_after = one.open_after
    if one.open_after != NONE:
        radio.receptions[one.open_after].open_before = one.open_before


@njit()
def take_off_air(m, radio, place):  # type: ignore[no-untyped-def]
    """Forget the receptions of a transmission that has ended."""
    s = m.state[0]
    c = radio.messages[place].receptions
    while c != NONE:
        one = radio.receptions[c]
        after = one.next
        if one.is_open:
            close(radio, c)
        if radio.places[one.place].alone == c:
            radio.places[one.place].alone = NONE
        one.next = s.free_reception
        s.free_reception = c
        s.spare_receptions += 1
        c = after


@njit()
def is_busy(m, radio, sender):  # type: ignore[no-untyped-def]
    """Whether a sender hears another one."""
    s = m.state[0]
    p = radio.places[0 if s.shared else row(m, sender)]
    if p.until <= s.now:
        return False
    if p.alone != NONE:
        return radio.receptions[p.alone].sender != sender
    for k in range(p.latest):
        if p.ends[k] <= s.now:
            return False
        if p.senders[k] != sender:
            return True
    return False


@njit()
def _note_span(m, radio, who, start, end):  # type: ignore[no-untyped-def]
    """Note when an agent itself sends; spans that nothing on the air overlaps are forgotten."""
    s = m.state[0]
    recent = start - (1.0 if s.access == SLOTS else s.longest)
    node, kept = radio.spans[who], take_node(m, start, end, 0, 0)
    radio.spans[who] = kept
    while node != NONE:
        after = m.nodes[node].next
        if m.nodes[node].y > recent:
            m.nodes[kept].next = node
            kept = node
        else:
            free_node(m, node)
        node = after
    m.nodes[kept].next = NONE


@njit(forceinline=True)
def _is_other(receiver, senders):  # type: ignore[no-untyped-def]
    """Whether there is a sender beside the receiver."""
    return senders[0] != EMPTY and (senders[0] != receiver or senders[1] != EMPTY)


@njit()
def hears(m, radio, place, receiver):  # type: ignore[no-untyped-def]
    """Whether a receiver has heard a transmission, which ends now; to be asked once, in the order of receivers."""
    s = m.state[0]
    r, sender = radio.messages[place], m.messages[place].sender
    if s.half_duplex:
        node = radio.spans[row(m, receiver)]
        while node != NONE:
            if m.nodes[node].x < r.end and m.nodes[node].y > r.start:
                return False
            node = m.nodes[node].next
    if not s.shared:
        # Receptions are in the order of the sender's links, and so are receivers.
        where = row(m, receiver)
        while radio.receptions[r.next].place != where:
            r.next = radio.receptions[r.next].next
    one = radio.receptions[r.next]
    if not _is_other(receiver, one.others):
        return True
    if s.capture == 0 or _is_other(receiver, one.before):
        return False
    who = row(m, sender)
    drawn = radio.captured[who]
    radio.captured[who] = drawn + 1
    return uniform(m.keys[CAPTURE], sender, drawn) < s.capture
