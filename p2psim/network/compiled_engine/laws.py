"""Random quantities: draws of the laws that kernels draw themselves, and tables of those that NumPy draws.

Of a uniform number NumPy takes one draw, so that kernels draw it themselves. Other laws take as many as it happens:
for these NumPy fills a table, in which each agent has a block of draws. When one is used up the kernel returns, and all
blocks that are nearly so are filled again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.distributions import Distribution
from p2psim.core.philox import uniform
from p2psim.core.randomness import Rewound, Streams
from p2psim.network.compiled_engine.arrays import agents, cursors, key, laws, places, table
from p2psim.network.compiled_engine.codes import (
    CONSTANT,
    NEEDS_DRAWS,
    OF_LINK,
    PURPOSES,
    TABLE,
    TRAVEL,
    UNIFORM,
)
from p2psim.network.compiled_engine.state import CURSOR, LAW, records


@njit(forceinline=True)
def lacks(m, which, agent):  # type: ignore[no-untyped-def]
    """Whether an agent's draws of a law are used up; the machine is then told so."""
    law = laws(m)[which]
    if law.kind != TABLE:
        return False
    place = agents(m)[agent].travelled if which == TRAVEL else places(m)[which * (m.state.n + 1) + agent]
    if place < cursors(m)[law.table + agent].count:
        return False
    s = m.state
    s.state = NEEDS_DRAWS
    s.needy = which
    return True


@njit(forceinline=True)
def draw(m, which, agent):  # type: ignore[no-untyped-def]
    """An agent's next draw of a law; `agent` as in arrays that have the learner last."""
    law = laws(m)[which]
    if law.kind == CONSTANT:
        return law.low
    if which == TRAVEL:
        place = agents(m)[agent].travelled
        agents(m)[agent].travelled = place + 1
    else:
        place = places(m)[which * (m.state.n + 1) + agent]
        places(m)[which * (m.state.n + 1) + agent] = place + 1
    if law.kind == TABLE:
        return table(m)[cursors(m)[law.table + agent].first + place]
    # A learner's stream is that of agent -1.
    sender = agent if agent < m.state.n else -1
    return law.low + law.width * uniform(key(m, law.key), sender, place, law.lane)


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
    FIRST, LARGEST = 16, 4096

    def __init__(self, agents: np.ndarray):
        self._records, self._agents = agents, agents.size - 1
        self.laws = records(6, LAW)
        self.places = np.zeros((6, agents.size), np.int64)
        self.cursors = records(0, CURSOR)
        self.table = np.zeros(0)
        self._streams: dict[int, _Stream] = {}

    def add(
        self, which: int, quantity: float | Distribution, streams: Streams, purpose: str, lane: int = 0
    ) -> None:
        """Say what a law is, and what its draws are for."""
        law = self.laws[which]
        law["key"], law["lane"] = PURPOSES.index(purpose), lane
        if not isinstance(quantity, Distribution):
            law["kind"], law["low"] = CONSTANT, quantity
        elif quantity.uniform is not None:
            low, high = quantity.uniform
            law["kind"], law["low"], law["width"] = UNIFORM, low, high - low
        else:
            law["kind"], law["table"] = TABLE, self.cursors.size
            self.cursors = records(self.cursors.size + self._agents + 1, CURSOR)
            words, halves = np.zeros(self._agents + 1, np.int64), np.full(self._agents + 1, -1)
            self._streams[which] = _Stream(quantity, Rewound(streams.key(purpose)), lane, words, halves)

    def take_from_links(self, *which: int) -> None:
        """Have laws that are numbers of links."""
        self.laws["kind"][list(which)] = OF_LINK

    def fill(self, which: int) -> None:
        """Fill the blocks of a law that are nearly used up, once one of them is."""
        stream = self._streams[which]
        base = int(self.laws[which]["table"])
        cursors = self.cursors[base : base + self._agents + 1]
        used = self._records["travelled"] if which == TRAVEL else self.places[which]
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
