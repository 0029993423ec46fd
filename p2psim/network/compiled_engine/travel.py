"""How long a message travels, whether it is lost, and when it arrives where messages do not disturb one another.

A message to all neighbours is one record until it is on its way to each of them. Nothing here lets a message end at
its receiver: what takes no time is written down as a task that follows at once.
"""

import math

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.philox import uniform
from p2psim.network.compiled_engine.arrays import (
    agents,
    blackouts,
    chances,
    drawn,
    indices,
    indptr,
    key,
    laws,
    link_states,
    messages,
    tasks,
    travel_times,
)
from p2psim.network.compiled_engine.calendar import appoint, free_message, push, row, take_message
from p2psim.network.compiled_engine.codes import (
    ARRIVAL,
    BY_LINK,
    CARRY,
    CHANNEL,
    CONSTANT,
    END,
    IN_BURSTS,
    LEARNER,
    LINK_STATE,
    LOSS,
    LOSS_KEY,
    NEIGHBOURS,
    NEVER,
    NONE,
    OF_LINK,
    OK,
    SPREAD,
    TRAVEL,
    TRAVEL_AGAIN,
    ZERO,
)
from p2psim.network.compiled_engine.laws import draw, lacks
from p2psim.network.compiled_engine.receptions import near, other_end
from p2psim.network.compiled_engine.state import SPARE


@njit(forceinline=True)
def lacks_delay(m, sender, lane):  # type: ignore[no-untyped-def]
    """Whether a sender's draws of latencies are used up."""
    if lane:
        return lacks(m, TRAVEL_AGAIN, row(m, sender))
    return lacks(m, TRAVEL, row(m, sender))


@njit(forceinline=True)
def delay_of(m, sender, link, lane):  # type: ignore[no-untyped-def]
    """How long the next message of a sender travels over a link."""
    if laws(m)[TRAVEL].kind == OF_LINK:
        return travel_times(m)[link]
    if lane:
        return draw(m, TRAVEL_AGAIN, row(m, sender))
    return draw(m, TRAVEL, row(m, sender))


@njit(forceinline=True)
def is_lost(m, sender, receiver, link, lane):  # type: ignore[no-untyped-def]
    """Whether the next delivery over a link is lost."""
    s = m.state
    if s.loses == NEVER:
        return False
    who = row(m, sender)
    if lane:
        place = drawn(m)[who]
        drawn(m)[who] = place + 1
    else:
        place = agents(m)[who].lost
        agents(m)[who].lost = place + 1
    if s.loses == IN_BURSTS:
        chance = s.bad if _is_bad(m, sender, receiver, link, lane, place) else s.good
    else:
        chance = chances(m)[link if s.loses == BY_LINK else 0]
    return uniform(key(m, LOSS_KEY), sender, place, lane) < chance


@njit()
def _is_bad(m, sender, receiver, link, lane, place):  # type: ignore[no-untyped-def]
    """State of a link at this moment, drawn by the law of its chain since it was looked at last."""
    s = m.state
    share, relaxation, now = s.bad_share, s.relaxation, s.now
    least, most = min(sender, receiver), max(sender, receiver)
    if least != LEARNER and not indptr(m)[least] <= link < indptr(m)[least + 1]:
        # Both directions have one state: that of the link from the smaller of its ends.
        low, high = indptr(m)[least], indptr(m)[least + 1] - 1
        while low < high:
            middle = (low + high) >> 1
            if np.int64(indices(m)[middle]) < most:
                low = middle + 1
            else:
                high = middle
        link = low
    chance = share
    if link_states(m)[link].was >= 0:
        chance += (link_states(m)[link].was - share) * math.exp(
            -relaxation * (now - link_states(m)[link].since)
        )
    bad = uniform(key(m, LINK_STATE), sender, place, lane) < chance
    link_states(m)[link].since = now
    link_states(m)[link].was = 1 if bad else 0
    return bad


@njit(forceinline=True)
def is_blacked_out(m, begin, end):  # type: ignore[no-untyped-def]
    """Whether a delivery is on its way in a span in which nothing gets through."""
    spans = blackouts(m)
    for k in range(m.state.spans):
        if begin < spans[2 * k + 1] and end >= spans[2 * k]:
            return True
    return False


@njit()
def carry(m, place):  # type: ignore[no-untyped-def]
    """Let a message go to its receiver, where no other disturbs it."""
    s, e = m.state, messages(m)[place]
    sender, receiver, link, lane = e.sender, e.receiver, e.link, e.lane
    if lacks_delay(m, sender, lane):
        push(m, CARRY, place, ZERO, ZERO)
        return
    delay = delay_of(m, sender, link, lane)
    lost = is_lost(m, sender, receiver, link, lane)
    air = s.question if e.version == NONE else s.loaded
    arrival = (s.now + air) + delay
    if is_blacked_out(m, s.now, arrival):
        lost = True
    e.outcome = LOSS if lost else OK
    if air + delay == 0.0:
        push(m, END, place, ZERO, ZERO)
    else:
        appoint(m, arrival, place, CHANNEL, ARRIVAL, e.number, ZERO)


@njit()
def copy_to(m, template, receiver, link):  # type: ignore[no-untyped-def]
    """A message to all, to one of its receivers alone."""
    place = take_message(m)
    e, t = messages(m)[place], messages(m)[template]
    e.number, e.version, e.query, e.link = t.number, t.version, t.query, link
    e.sender, e.receiver, e.release = t.sender, receiver, t.release
    e.tries, e.what, e.lane, e.outcome, e.has_arrived = t.tries, t.what, t.lane, OK, t.has_arrived
    return place


@njit(forceinline=True)
def links_of(m, place):  # type: ignore[no-untyped-def]
    """First and last of the links that a message goes over."""
    e = messages(m)[place]
    if e.receiver == NEIGHBOURS:
        return near(m, e.sender)
    return e.link, e.link + 1


@njit(forceinline=True)
def receiver_of(m, place, link):  # type: ignore[no-untyped-def]
    """Who gets a message over a link."""
    e = messages(m)[place]
    return other_end(m, e.sender, link) if e.receiver == NEIGHBOURS else e.receiver


@njit(forceinline=True)
def first_receiver(m, place):  # type: ignore[no-untyped-def]
    """The first of a message's receivers."""
    return receiver_of(m, place, links_of(m, place)[0])


@njit()
def start_spreading(m, place):  # type: ignore[no-untyped-def]
    """Write down that a message goes to all neighbours, where none disturbs another."""
    first, last = links_of(m, place)
    push(m, SPREAD, place, first, last)


@njit()
def spread(m):  # type: ignore[no-untyped-def]
    """Go on with that task, until one message ends at once."""
    s = m.state
    depth = s.depth
    task = tasks(m)[depth - 1]
    template = task.message
    sender, lane = messages(m)[template].sender, messages(m)[template].lane
    while s.depth == depth and s.spare >= SPARE:
        link = task.link
        if link == task.last:
            s.depth = depth - 1
            free_message(m, template)
        elif lacks_delay(m, sender, lane):
            return
        else:
            task.link = link + 1
            place = copy_to(m, template, other_end(m, sender, link), link)
            carry(m, place)


@njit(forceinline=True)
def has_fates(m):  # type: ignore[no-untyped-def]
    """Whether messages differ in how long they travel, or can be lost on their way."""
    return m.state.loses != NEVER or laws(m)[TRAVEL].kind != CONSTANT
