"""How long a message travels, whether it is lost, when it arrives where none disturbs it, and laws of random times.

Of a uniform number NumPy takes one draw, so that kernels draw it themselves. Other laws take as many as it happens:
for these NumPy fills a table, in which each agent has a block of draws. When one is used up the kernel returns, and all
blocks that are nearly so are filled again.

A message to all neighbours is one record until it is on its way to each of them. Nothing here lets a message end at
its receiver: what takes no time is written down as a task that follows at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.distributions import Distribution
from p2psim.core.philox import uniform
from p2psim.core.randomness import Rewound, Streams
from p2psim.network.compiled_engine import calendar as cal
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine.receptions import link_at, near, other_end


@njit(forceinline=True)
def lacks(m, which, agent):  # type: ignore[no-untyped-def]
    """Whether an agent's draws of a law are used up; the machine is then told so."""
    law = cal.laws(m)[which]
    if law.kind != st.TABLE:
        return False
    place = (
        cal.agents(m)[agent].travelled
        if which == st.TRAVEL
        else cal.places(m)[which * (m.state.n + 1) + agent]
    )
    if place < cal.cursors(m)[law.table + agent].count:
        return False
    s = m.state
    s.state = st.NEEDS_DRAWS
    s.needy = which
    return True


@njit(forceinline=True)
def draw(m, which, agent):  # type: ignore[no-untyped-def]
    """An agent's next draw of a law; `agent` as in arrays that have the learner last."""
    law = cal.laws(m)[which]
    if law.kind == st.CONSTANT:
        return law.low
    if which == st.TRAVEL:
        place = cal.agents(m)[agent].travelled
        cal.agents(m)[agent].travelled = place + 1
    else:
        place = cal.places(m)[which * (m.state.n + 1) + agent]
        cal.places(m)[which * (m.state.n + 1) + agent] = place + 1
    if law.kind == st.TABLE:
        return cal.table(m)[cal.cursors(m)[law.table + agent].first + place]
    # A learner's stream is that of agent -1.
    sender = agent if agent < m.state.n else -1
    return law.low + law.width * uniform(cal.key(m, law.key), sender, place, law.lane)


class _Stream(NamedTuple):
    """Draws of one law by NumPy, and where each agent's go on (`Rewound.place`)."""

    quantity: Distribution
    rewound: Rewound
    lane: int
    words: np.ndarray
    halves: np.ndarray


class Tables:
    """Laws of a run, and the draws of those that NumPy makes.

    Parameters
    ----------
    agents : ndarray of AGENT

    Attributes
    ----------
    laws, places, cursors, table
        As in `Machine`.
    """

    #: Draws of an agent's first block; each is twice as large as the one before, up to the largest.
    FIRST, LARGEST = 64, 4096

    def __init__(self, agents: np.ndarray):
        self._records, self._agents = agents, agents.size - 1
        self.laws = st.records(st.MANY_LAWS, st.LAW)
        self.places = np.zeros((st.MANY_LAWS, agents.size), np.int64)
        self.cursors = st.records(0, st.CURSOR)
        self.table = np.zeros(0)
        self._streams: dict[int, _Stream] = {}

    def add(
        self,
        which: int | np.int64,
        quantity: float | Distribution,
        streams: Streams,
        purpose: str,
        lane: int = 0,
    ) -> None:
        """Say what a law is, and what its draws are for."""
        law = self.laws[which]
        law["key"], law["lane"] = st.PURPOSES.index(purpose), lane
        if not isinstance(quantity, Distribution):
            law["kind"], law["low"] = st.CONSTANT, quantity
        elif quantity.uniform is not None:
            low, high = quantity.uniform
            law["kind"], law["low"], law["width"] = st.UNIFORM, low, high - low
        else:
            law["kind"], law["table"] = st.TABLE, self.cursors.size
            self.cursors = st.records(self.cursors.size + self._agents + 1, st.CURSOR)
            words, halves = np.zeros(self._agents + 1, np.int64), np.full(self._agents + 1, -1)
            self._streams[int(which)] = _Stream(quantity, Rewound(streams.key(purpose)), lane, words, halves)

    def take_from_links(self, *which: np.int64) -> None:
        """Have laws that are numbers of links."""
        self.laws["kind"][list(which)] = st.OF_LINK

    def fill(self, which: int) -> None:
        """Fill the blocks of a law that are nearly used up, once one of them is."""
        stream = self._streams[which]
        base = int(self.laws[which]["table"])
        cursors = self.cursors[base : base + self._agents + 1]
        used = self._records["travelled"] if which == st.TRAVEL else self.places[which]
        emptied = np.flatnonzero(2 * used > cursors["count"])
        if not cursors["count"].any():
            emptied = np.arange(self._agents + 1)
        elif not emptied.size:
            emptied = np.flatnonzero(used >= cursors["count"])
        self._refill(stream, cursors, used, emptied)

    def _refill(self, stream: _Stream, cursors: np.ndarray, used: np.ndarray, agents: np.ndarray) -> None:
        left = cursors["count"][agents] - used[agents]
        sizes = np.clip(2 * cursors["count"][agents], self.FIRST, self.LARGEST)
        # Blocks lie one after the other at the end of the table, which is packed when it holds too much that is used.
        begins = self.table.size + np.concatenate([[0], np.cumsum(sizes)])
        table = np.concatenate([self.table, np.empty(int(sizes.sum()))])
        for agent, begin, size, rest in zip(
            agents.tolist(), begins.tolist(), sizes.tolist(), left.tolist(), strict=False
        ):
            old = int(cursors["first"][agent] + used[agent])
            table[begin : begin + rest] = self.table[old : old + rest]
            table[begin + rest : begin + size] = self._more(stream, agent, size - rest)
        cursors["first"][agents], cursors["count"][agents] = begins[:-1], sizes
        used[agents] = 0
        self.table = table
        if self.table.size > 2 * self.cursors["count"].sum() + 1000:
            self._pack()

    def _pack(self) -> None:
        """Leave out of the table what is used."""
        sizes = self.cursors["count"]
        begins = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.cursors["first"] - begins[:-1], sizes) + np.arange(begins[-1])
        self.table = self.table[places]
        self.cursors["first"] = begins[:-1]

    def _more(self, stream: _Stream, agent: int, size: int) -> np.ndarray:
        """The next draws of an agent."""
        address = agent if agent < self._agents else -1
        words, halves = int(stream.words[agent]), int(stream.halves[agent])
        draws = stream.quantity.sample(stream.rewound.at(address, stream.lane, words, halves), size)
        stream.words[agent], stream.halves[agent] = stream.rewound.place()
        return draws


@njit(forceinline=True)
def lacks_delay(m, sender, lane):  # type: ignore[no-untyped-def]
    """Whether a sender's draws of latencies are used up."""
    if lane:
        return lacks(m, st.TRAVEL_AGAIN, cal.row(m, sender))
    return lacks(m, st.TRAVEL, cal.row(m, sender))


@njit(forceinline=True)
def delay_of(m, sender, link, lane):  # type: ignore[no-untyped-def]
    """How long the next message of a sender travels over a link."""
    if cal.laws(m)[st.TRAVEL].kind == st.OF_LINK:
        return cal.travel_times(m)[link]
    if lane:
        return draw(m, st.TRAVEL_AGAIN, cal.row(m, sender))
    return draw(m, st.TRAVEL, cal.row(m, sender))


@njit(forceinline=True)
def is_lost(m, sender, receiver, link, lane):  # type: ignore[no-untyped-def]
    """Whether the next delivery over a link is lost."""
    s = m.state
    if s.loses == st.NEVER:
        return False
    who = cal.row(m, sender)
    if lane:
        place = cal.drawn(m)[who]
        cal.drawn(m)[who] = place + 1
    else:
        place = cal.agents(m)[who].lost
        cal.agents(m)[who].lost = place + 1
    if s.loses == st.IN_BURSTS:
        chance = s.bad if _is_bad(m, sender, receiver, link, lane, place) else s.good
    else:
        chance = cal.chances(m)[link if s.loses == st.BY_LINK else 0]
    return uniform(cal.key(m, st.LOSS_KEY), sender, place, lane) < chance


@njit()
def _is_bad(m, sender, receiver, link, lane, place):  # type: ignore[no-untyped-def]
    """State of a link at this moment, drawn by the law of its chain since it was looked at last."""
    s = m.state
    share, relaxation, now = s.bad_share, s.relaxation, s.now
    least, most = min(sender, receiver), max(sender, receiver)
    if least != st.LEARNER and not cal.indptr(m)[least] <= link < cal.indptr(m)[least + 1]:
        # Both directions have one state: that of the link from the smaller of its ends.
        low, high = cal.indptr(m)[least], cal.indptr(m)[least + 1] - 1
        while low < high:
            middle = (low + high) >> 1
            if np.int64(cal.indices(m)[middle]) < most:
                low = middle + 1
            else:
                high = middle
        link = low
    chance = share
    if cal.link_states(m)[link].was >= 0:
        chance += (cal.link_states(m)[link].was - share) * math.exp(
            -relaxation * (now - cal.link_states(m)[link].since)
        )
    bad = uniform(cal.key(m, st.LINK_STATE), sender, place, lane) < chance
    cal.link_states(m)[link].since = now
    cal.link_states(m)[link].was = 1 if bad else 0
    return bad


@njit(forceinline=True)
def is_blacked_out(m, begin, end):  # type: ignore[no-untyped-def]
    """Whether a delivery is on its way in a span in which nothing gets through."""
    spans = cal.blackouts(m)
    for k in range(m.state.spans):  # noqa: SIM110
        if begin < spans[2 * k + 1] and end >= spans[2 * k]:
            return True
    return False


@njit()
def carry(m, place):  # type: ignore[no-untyped-def]
    """Let a message go to its receiver, where no other disturbs it."""
    s, e = m.state, cal.messages(m)[place]
    sender, receiver, link, lane = e.sender, e.receiver, e.link, e.lane
    if lacks_delay(m, sender, lane):
        cal.push(m, st.CARRY, place, st.ZERO, st.ZERO)
        return
    delay = delay_of(m, sender, link, lane)
    lost = is_lost(m, sender, receiver, link, lane)
    air = s.question if e.version == st.NONE else s.loaded
    arrival = (s.now + air) + delay
    if is_blacked_out(m, s.now, arrival):
        lost = True
    e.outcome = st.LOSS if lost else st.OK
    if air + delay == 0.0:
        cal.push(m, st.END, place, st.ZERO, st.ZERO)
    else:
        cal.appoint(m, arrival, place, st.CHANNEL, st.ARRIVAL, e.number, st.ZERO)


@njit()
def copy_to(m, template, receiver, link):  # type: ignore[no-untyped-def]
    """A message to all, to one of its receivers alone."""
    place = cal.take_message(m)
    e, t = cal.messages(m)[place], cal.messages(m)[template]
    e.number, e.version, e.query, e.link = t.number, t.version, t.query, link
    e.sender, e.receiver, e.release = t.sender, receiver, t.release
    e.tries, e.what, e.lane, e.outcome, e.has_arrived = t.tries, t.what, t.lane, st.OK, t.has_arrived
    return place


@njit(forceinline=True)
def links_of(m, place):  # type: ignore[no-untyped-def]
    """First and last of the places of the links that a message goes over (`link_over`)."""
    e = cal.messages(m)[place]
    if e.receiver == st.NEIGHBOURS:
        return near(m, e.sender)
    return e.link, e.link + 1


@njit(forceinline=True)
def link_over(m, place, at):  # type: ignore[no-untyped-def]
    """The link that a message goes over, by a place that `links_of` gives."""
    return link_at(m, at) if cal.messages(m)[place].receiver == st.NEIGHBOURS else at


@njit(forceinline=True)
def receiver_of(m, place, link):  # type: ignore[no-untyped-def]
    """Who gets a message over a link."""
    e = cal.messages(m)[place]
    return other_end(m, e.sender, link) if e.receiver == st.NEIGHBOURS else e.receiver


@njit()
def start_spreading(m, place):  # type: ignore[no-untyped-def]
    """Write down that a message goes to all neighbours, where none disturbs another."""
    first, last = links_of(m, place)
    cal.push(m, st.SPREAD, place, first, last)


@njit()
def spread(m):  # type: ignore[no-untyped-def]
    """Go on with that task, until one message ends at once."""
    s = m.state
    depth = s.depth
    task = cal.tasks(m)[depth - 1]
    template = task.message
    sender, lane = cal.messages(m)[template].sender, cal.messages(m)[template].lane
    while s.depth == depth and s.spare >= st.SPARE:
        if task.link == task.last:
            s.depth = depth - 1
            cal.free_message(m, template)
        elif lacks_delay(m, sender, lane):
            return
        else:
            link = link_at(m, task.link)
            task.link += 1
            place = copy_to(m, template, other_end(m, sender, link), link)
            carry(m, place)


@njit(forceinline=True)
def has_fates(m):  # type: ignore[no-untyped-def]
    """Whether messages differ in how long they travel, can be lost on their way, or in who hears them.

    Where the graph changes, the fates of a message say who is to hear it, whatever becomes of the links.
    """
    return m.changing is not None or m.state.loses != st.NEVER or cal.laws(m)[st.TRAVEL].kind != st.CONSTANT
