"""Links that come and go: which are there now, and the neighbour that an agent draws among them.

Of each agent the links that are there are a list, in rising order, at the place of all its links.
"""

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.philox import uniform
from p2psim.network.changes import Upcoming
from p2psim.network.compiled_engine import calendar as cal
from p2psim.network.compiled_engine.ideal import draw_link
from p2psim.network.compiled_engine.state import LINK_TURN, NEEDS_LINKS, PEERS, records


@njit()
def change_links(m, upto):  # type: ignore[no-untyped-def]
    """Let links change up to a time, that included; returns whether changes until then are not all known."""
    s = m.state
    while s.link_turn < s.link_turn_count:
        turn = cal.link_turns(m)[s.link_turn]
        if turn.time > upto:
            return False
        s.link_turn += 1
        _turn(m, turn.agent, turn.link, turn.comes)
    if upto > s.links_known:
        s.state = NEEDS_LINKS
        return True
    return False


@njit()
def _turn(m, agent, link, comes):  # type: ignore[no-untyped-def]
    """Put a link on its agent's list, or take it off."""
    there, first, count = cal.active(m), cal.indptr(m)[agent], cal.degrees(m)[agent]
    cal.is_active(m)[link] = comes
    place = first + count
    if comes:
        while place > first and there[place - 1] > link:
            there[place] = there[place - 1]
            place -= 1
        there[place] = link
        cal.degrees(m)[agent] = count + 1
    else:
        place -= 1
        moved = there[place]
        while moved != link:
            place -= 1
            there[place], moved = moved, there[place]
        cal.degrees(m)[agent] = count - 1


@njit(forceinline=True)
def is_alone(m, changing, agent):  # type: ignore[no-untyped-def]
    """Whether an agent has no neighbour now."""
    return changing is not None and cal.degrees(m)[agent] == 0


@njit(forceinline=True)
def way_back(m, changing, agent, sender, link):  # type: ignore[no-untyped-def]
    """Link of an agent to who sent over a link; where the graph does not change the link serves both ways."""
    if changing is None:
        return link
    low, high = cal.indptr(m)[agent], cal.indptr(m)[agent + 1] - 1
    while low < high:
        middle = (low + high) >> 1
        if np.int64(cal.indices(m)[middle]) < sender:
            low = middle + 1
        else:
            high = middle
    return low


@njit(forceinline=True)
def is_there(m, changing, link):  # type: ignore[no-untyped-def]
    """Whether a link is there now."""
    return changing is None or cal.is_active(m)[link] != 0


@njit()
def _draw_active(m, agent, place):  # type: ignore[no-untyped-def]
    """Link to the neighbour that an agent turns to, among those of this moment, at a place of its stream."""
    first = cal.indptr(m)[agent]
    last = first + cal.degrees(m)[agent]
    u = uniform(cal.key(m, PEERS), agent, place)
    if m.state.by_weight == 0:
        return cal.active(m)[first + np.int64(u * (last - first))]
    total = 0.0
    for at in range(first, last):
        total += cal.link_weights(m)[cal.active(m)[at]]
    mark, running = u * total, 0.0
    for at in range(first, last - 1):  # rounding can lift the mark to the whole sum: that is the last link's
        running += cal.link_weights(m)[cal.active(m)[at]]
        if running > mark:
            return cal.active(m)[at]
    return cal.active(m)[last - 1]


@njit(forceinline=True)
def draw_partner(m, changing, agent, place):  # type: ignore[no-untyped-def]
    """Link to the neighbour that an agent turns to, at a place of its stream."""
    if changing is not None:
        return _draw_active(m, agent, place)
    return draw_link(cal.key(m, PEERS), agent, place, cal.indptr(m), cal.running(m))


def block_of(upcoming: Upcoming) -> np.ndarray:
    """The next links that come and go, as `state.LINK_TURN`."""
    times, places, comes = upcoming.more()
    turns = records(times.size, LINK_TURN)
    turns["time"], turns["link"], turns["comes"] = times, places, comes
    turns["agent"] = np.searchsorted(upcoming.graph.indptr, places, side="right") - 1
    return turns
