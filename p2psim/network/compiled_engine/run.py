"""A run of the compiled engine for any network: the arrays of its state, which grow when they are full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.distributions import Distribution
from p2psim.core.events import EVENT, NONE
from p2psim.core.randomness import Streams
from p2psim.network.availability.simple import AllOf, Bernoulli, of_part
from p2psim.network.channels.channel import BACKOFF_AIRTIMES
from p2psim.network.channels.draws import EdgeValue, airtime_of
from p2psim.network.channels.effects import Blackout
from p2psim.network.channels.loss import GilbertElliott, chances
from p2psim.network.channels.retransmission import ResendFresh, ResendSame
from p2psim.network.compiled_engine import laws
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine.clocks import first_ticks, running_weights
from p2psim.network.compiled_engine.learner import FREE
from p2psim.network.compiled_engine.machine import advance
from p2psim.network.compiled_engine.rounds import appoint_poll, appoint_round
from p2psim.network.compiled_engine.turns import Turns
from p2psim.network.exchanges import Gossip, Poll, Request, Round
from p2psim.network.members import Members

if TYPE_CHECKING:
    from p2psim.network.section import Network

_MOST = np.iinfo(np.int64).max

#: Messages, tasks, nodes and receptions that there is room for at first.
_FIRST = 256


class MachineRun:
    """One run; the parameters are those of :class:`p2psim.network.compiled_engine.engine.ArrayRun`."""

    def __init__(
        self,
        network: Network,
        rates: np.ndarray,
        streams: Streams,
        limits: np.ndarray | None,
        commits: int | None,
        time: float | None,
        chunk: int,
    ):
        self._network, self._streams, self._chunk = network, streams, chunk
        self._members = network.members or Members.unnamed(network.links.agents)
        self._tables = laws.Tables(network.links.agents)
        self._state = st.records(1, st.STATE)
        s = self._state[0]
        s["last"] = commits if commits is not None else _MOST
        s["end"], s["timed"] = (time, 1) if time is not None else (np.inf, 0)
        s["able"], s["star"] = network.links.agents, network.links.star
        s["goes_on"], s["hears"] = network.goes_on, network.updates == "hear"
        s["free"] = s["free_node"] = s["free_reception"] = s["first_asked"] = s["last_asked"] = NONE
        s["served"], s["query"] = FREE, NONE
        self._turns: Turns | None = None
        self._m = self._machine(rates, limits)
        for name in ("messages", "nodes", "tasks"):
            self._grow(name)
        if self._m.radio is not None:
            self._grow("receptions")
        self._begin()
        if self._turns is not None:
            self._put_turns(self._turns.first())

    @property
    def ended(self) -> str:
        """How the run ended; empty while it goes on."""
        state = int(self._state[0]["state"])
        return st.ENDS[state] if state < len(st.ENDS) else ""

    def run(self) -> Iterator[np.ndarray]:
        """Yield chunks of events."""
        s, kept = self._state[0], np.empty(0, EVENT)
        while s["state"] == st.RUNNING:
            out = st.records(
                self._chunk + st.ROOM, EVENT
            )  # the padding too: streams are compared byte by byte
            out[: kept.size] = kept
            s["at"] = kept.size
            self._m = self._m._replace(out=out)
            self._fill()
            out = np.asarray(out[: s["at"]])
            whole = out.size - out.size % self._chunk
            for start in range(0, whole, self._chunk):
                yield out[start : start + self._chunk]
            kept = out[whole:]
        if kept.size:
            yield kept

    def _fill(self) -> None:
        """Have events written until there is no room for more, or the run is over."""
        s = self._state[0]
        while True:
            advance(self._m)
            if s["state"] == st.NEEDS_ROOM:
                self._make_room()
            elif s["state"] == st.NEEDS_DRAWS:
                self._tables.fill(int(s["needy"]))
                self._m = self._m._replace(cursors=self._tables.cursors, table=self._tables.table)
            elif s["state"] == st.NEEDS_TURNS:
                assert self._turns is not None
                self._put_turns(self._turns.more())
            else:
                return
            s["state"] = st.RUNNING

    def _put_turns(self, turns: np.ndarray) -> None:
        s, presence, source = self._state[0], self._m.presence, self._turns
        assert presence is not None
        assert source is not None
        s["turn"], s["turns"], s["known"] = 0, turns.size, source.known
        self._m = self._m._replace(presence=presence._replace(turns=turns))

    # Room

    def _make_room(self) -> None:
        """Double what is nearly full."""
        s, m = self._state[0], self._m
        full = [
            name
            for name, is_full in (
                ("messages", s["spare"] < st.SPARE),
                ("nodes", s["spare_nodes"] < st.SPARE),
                ("tasks", s["depth"] + st.SPARE > m.tasks.size),
            )
            if is_full
        ]
        for name in full or ["receptions"]:
            self._grow(name)

    def _grow(self, name: str) -> None:
        """Double an array of records, and put the new ones on the list of those that are free."""
        m, s = self._m, self._state[0]
        if name == "tasks":
            self._m = m._replace(tasks=_doubled(m.tasks))
        elif name == "nodes":
            self._m = m._replace(nodes=_listed(m.nodes, s, "free_node", "spare_nodes"))
        elif name == "receptions":
            assert m.radio is not None
            receptions = _listed(m.radio.receptions, s, "free_reception", "spare_receptions")
            self._m = m._replace(radio=m.radio._replace(receptions=receptions))
        else:
            messages = _listed(m.messages, s, "free", "spare")
            radio = m.radio
            if radio is not None:
                radio = radio._replace(messages=_doubled(radio.messages))
            due, due_messages = _doubled(m.due), _doubled(m.due_messages)
            self._m = m._replace(messages=messages, due=due, due_messages=due_messages, radio=radio)

    # The arrays

    def _machine(self, rates: np.ndarray, limits: np.ndarray | None) -> st.Machine:
        """All arrays, as they are before time runs."""
        network, links = self._network, self._network.links
        n = links.agents
        s, keys = self._state[0], np.stack([self._streams.key(purpose) for purpose in st.PURPOSES])
        agents = st.records(n + 1, st.AGENT)
        agents["limit"] = _MOST
        if limits is not None:
            agents["limit"][:n] = limits
        agents["rate"][:n], agents["is_able"][:n] = rates, 1
        exchange = network.exchange
        by_weight = isinstance(exchange, Gossip) and exchange.partner == "weight"
        running = running_weights(links.indptr, links.weights) if by_weight else np.empty(0)
        parts = self._exchange(keys) | self._channel(keys)
        clocks = None
        if exchange.has_clocks:
            clocks = st.Clocks(np.empty(n), np.empty(n, np.int32))
            first_ticks(keys[st.CLOCKS], rates, clocks.times, clocks.agents)
        return st.Machine(
            out=st.records(0, EVENT),
            state=self._state,
            agents=agents,
            present=np.ones(n + 1, np.uint8),
            due=np.empty(0),
            due_messages=np.empty(0, np.int64),
            messages=st.records(0, st.MESSAGE),
            tasks=st.records(0, st.TASK),
            nodes=st.records(0, st.NODE),
            indptr=links.indptr,
            indices=links.indices,
            running=running,
            keys=keys,
            laws=self._tables.laws,
            places=self._tables.places,
            cursors=self._tables.cursors,
            table=self._tables.table,
            clocks=clocks,
            missed=self._missed(),
            presence=self._presence(float(s["end"])),
            **parts,
        )

    def _exchange(self, keys: np.ndarray) -> dict[str, Any]:
        """What the exchange needs."""
        s, exchange, n = self._state[0], self._network.exchange, self._network.links.agents
        owners = None
        if exchange.needs_learner:
            owners = st.Owners(np.zeros(n, np.int64), np.full(n, NONE), np.full(n, NONE))
        gossip: tuple[()] | None = None
        if isinstance(exchange, Request):
            s["pattern"] = st.REQUEST
            s["queues"], s["stops"] = exchange.busy == "queue", exchange.served_clock == "stops"
            self._tables.add(laws.SERVICE_TIME, exchange.service, keys, st.SERVICE_KEY)
            return {"gossip": None, "request": owners, "queries": None}
        if isinstance(exchange, Poll | Round):
            s["pattern"] = st.POLLS if isinstance(exchange, Poll) else st.ROUNDS
            s["interval"] = exchange.interval
            s["deadline"] = (exchange.deadline or 0.0) if isinstance(exchange, Round) else 0.0
            self._tables.add(laws.RESPONSE_TIME, exchange.response, keys, st.RESPONSE_KEY)
            return {"gossip": None, "request": None, "queries": owners}
        code = exchange.array_code
        assert code is not None
        s["pattern"], gossip = code, ()
        return {"gossip": gossip, "request": None, "queries": None}

    def _channel(self, keys: np.ndarray) -> dict[str, Any]:
        """What the channel needs."""
        s, network, channel, links = self._state[0], self._network, self._network.channel, self._network.links
        n, again = links.agents, channel.retransmit
        airtime = airtime_of(channel.airtime, channel.bandwidth, network.vectors)
        s["question"], s["loaded"] = airtime.question, airtime.loaded
        travels = None
        if isinstance(channel.latency, EdgeValue):
            travels = channel.latency.column(links, "network.channel.latency", np.inf)
            self._tables.laws["kind"][: laws.WAIT_AGAIN] = laws.OF_LINK
        elif channel.latency != 0:
            travels = np.zeros(1)
            self._tables.add(laws.TRAVEL, channel.latency, keys, st.LATENCY)
            if isinstance(again, ResendSame):
                self._tables.add(laws.TRAVEL_AGAIN, channel.latency, keys, st.LATENCY, 1)
        acknowledged = None
        if isinstance(again, ResendSame | ResendFresh):
            self._tables.add(laws.WAIT_AGAIN, again.backoff, keys, st.RETRANSMIT)
            s["again" if isinstance(again, ResendSame) else "fresh"] = again.limit
            if isinstance(again, ResendSame):
                s["acknowledge"], acknowledged = again.acknowledge, np.zeros(n + 1, np.int64)
        losses, bursts = self._losses()
        blackouts = None
        if channel.effects:
            spans = [(one.begin, one.end) for one in channel.effects if isinstance(one, Blackout)]
            blackouts = np.array(spans)
        return {
            "travels": travels,
            "losses": losses,
            "bursts": bursts,
            "blackouts": blackouts,
            "acknowledged": acknowledged,
            "radio": self._radio(keys, airtime.loaded),
        }

    def _losses(self) -> tuple[st.Losses | None, st.Bursts | None]:
        """Where messages can be lost, and where that comes in bursts."""
        loss, links = self._network.channel.loss, self._network.links
        if loss == 0:
            return None, None
        drawn = np.zeros((2, links.agents + 1), np.int64)
        if isinstance(loss, GilbertElliott):
            law = np.array([loss.good, loss.bad, loss.bad_share, loss.relaxation])
            m = links.indices.size
            return st.Losses(np.zeros(1), drawn), st.Bursts(np.zeros(m), np.full(m, -1, np.int8), law)
        each = chances(loss, links) if isinstance(loss, EdgeValue) else np.array([loss])
        return st.Losses(each, drawn), None

    def _radio(self, keys: np.ndarray, longest: float) -> st.Radio | None:
        """A shared medium, where transmissions can collide."""
        s, channel, links = self._state[0], self._network.channel, self._network.links
        if channel.collision == "none" or longest == 0:
            return None
        n = links.agents
        s["shared"] = links.star if channel.shared is None else channel.shared
        s["half_duplex"], s["capture"] = channel.half_duplex, channel.capture
        s["one_by_one"], s["skips"] = channel.while_sending != "overlap", channel.while_sending == "skip"
        s["slot"] = s["longest"] = longest
        s["attempts"] = channel.attempts
        if channel.collision == "slotted":
            s["access"] = st.SLOTS
        elif channel.collision == "carrier-sense":
            s["access"] = st.QUIET
            backoff = channel.backoff or Distribution(exponential=BACKOFF_AIRTIMES * longest)
            self._tables.add(laws.SENSE_TIME, backoff, keys, st.BACKOFF)
        places = st.records(1 if s["shared"] else n + 1, st.PLACE)
        places["until"], places["alone"], places["open"] = -np.inf, NONE, NONE
        return st.Radio(
            messages=st.records(0, st.RADIO),
            receptions=st.records(0, st.RECEPTION),
            places=places,
            is_sending=np.zeros(n + 1, np.uint8),
            first_waiting=np.full(n + 1, NONE),
            last_waiting=np.full(n + 1, NONE),
            spans=np.full(n + 1, NONE),
            captured=np.zeros(n + 1, np.int64),
        )

    def _missed(self) -> st.Missed | None:
        """Why wakes are missed."""
        availability, links = self._network.availability, self._network.links
        parts = [(availability, self._streams)]
        if isinstance(availability, AllOf):
            parts = [(part, of_part(self._streams, k)) for k, part in enumerate(availability.parts)]
        missing = [(part, streams) for part, streams in parts if isinstance(part, Bernoulli)]
        if not missing:
            return None
        keys = np.stack([streams.key("availability") for _, streams in missing])
        return st.Missed(keys, np.stack([part.chances(self._members, links) for part, _ in missing]))

    def _presence(self, end: float) -> st.Presence | None:
        """Who comes and goes."""
        s, availability, n = self._state[0], self._network.availability, self._network.links.agents
        if not availability.has_spans:
            return None
        s["rejoin"] = ("stale", "reset", "fetch").index(availability.rejoin)
        s["keeps"] = availability.messages == "held"
        self._turns = Turns(self._network.links, self._members, availability, self._streams, end)
        starts, agents = self._turns.groups()
        return st.Presence(
            turns=st.records(0, st.TURN),
            group_starts=starts,
            group_agents=agents,
            reasons=np.zeros(n + 1, np.int64),
            is_gone=np.zeros(n + 1, np.uint8),
            first_held=np.full(n + 1, NONE),
            last_held=np.full(n + 1, NONE),
            halves=np.zeros(n, np.int64),
        )

    def _begin(self) -> None:
        """Appoint what a learner does first."""
        if self._state[0]["pattern"] == st.POLLS:
            appoint_poll(self._m, 1)
        elif self._state[0]["pattern"] == st.ROUNDS:
            appoint_round(self._m, False)


def _doubled(array: np.ndarray) -> np.ndarray:
    """A larger array that begins with what is there."""
    size = max(2 * array.size, _FIRST)
    larger = st.records(size, array.dtype) if array.dtype.names else np.zeros(size, array.dtype)
    larger[: array.size] = array
    return larger


def _listed(array: np.ndarray, s: np.void, free: str, spare: str) -> np.ndarray:
    """A larger array whose new records are on the list of those that are free."""
    larger = _doubled(array)
    larger["next"][array.size :] = np.arange(array.size + 1, larger.size + 1)
    larger["next"][-1] = s[free]
    s[free] = array.size
    s[spare] += larger.size - array.size
    return larger
