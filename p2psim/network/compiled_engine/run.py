"""A run of the compiled engine for any network: the arrays of its state, which grow when they are full."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from p2psim.core.distributions import Distribution
from p2psim.core.events import NONE
from p2psim.network.changes import Upcoming
from p2psim.network.channels.channel import BACKOFF_AIRTIMES
from p2psim.network.compiled_engine import state as st
from p2psim.network.compiled_engine import travel as laws
from p2psim.network.compiled_engine.ideal import first_ticks, running_weights
from p2psim.network.compiled_engine.links import block_of
from p2psim.network.compiled_engine.machine import advance
from p2psim.network.compiled_engine.rounds import appoint_poll, appoint_round
from p2psim.network.compiled_engine.turns import Turns
from p2psim.network.verify_messages import NEVER

if TYPE_CHECKING:
    from p2psim.network.section import RunSetup

_MOST = np.iinfo(np.int64).max
_NOTHING = np.zeros(0)

#: Messages, tasks, nodes and receptions that there is room for at first.
_FIRST = 256

#: Whether kernels have all parts, also those that a network does not need: all networks of a family of exchanges then
#: share a kernel. For tests, and processes that they start, which could not wait for a kernel for each network.
ALL_PARTS = os.environ.get("P2PSIM_TEST_ALL_PARTS") == "1"


class MachineRun:
    """One run."""

    _turns: Turns | None = None
    _upcoming: Upcoming | None = None

    def __init__(self, setup: RunSetup):
        self._network, _, self._streams, _, commits, time, self._chunk = setup
        network = self._network
        self._members = network.known_members
        self._state = s = st.records(1, st.STATE)[0]
        s["last"] = commits if commits is not None else _MOST
        s["end"], s["timed"] = (time, 1) if time is not None else (np.inf, 0)
        s["n"] = s["able"] = network.links.agents
        s["goes_on"], s["hears"] = network.goes_on, network.updates == "hear"
        s["free"] = s["free_node"] = s["free_reception"] = s["first_asked"] = s["last_asked"] = NONE
        s["query"], s["one_sided"] = NONE, not network.answerer_releases
        self._arrays: dict[str, np.ndarray] = {}
        self._put_agents(setup.rates, setup.limits)
        self._tables = laws.Tables(self._arrays["agents"])
        parts = self._exchange() | self._channel() | self._availability()
        parts |= self._changes() | self._compute()
        self._m = st.Machine(state=self._state, **parts)
        for name in ("laws", "places", "cursors", "table"):
            self._put(name, getattr(self._tables, name))
        for name in ("messages", "nodes", "tasks", "receptions"):
            self._grow(name)
        self._begin()
        if self._turns is not None:
            self._put_turns(self._turns.first())

    @property
    def ended(self) -> str:
        """How the run ended; empty while it goes on."""
        state = int(self._state["state"])
        return st.ENDS[state] if state < len(st.ENDS) else ""

    def run(self) -> Iterator[np.ndarray]:
        """Yield chunks of events."""
        return st.in_chunks(self._chunk, st.ROOM, lambda: self._state["state"] == st.RUNNING, self._write)

    def _write(self, out: np.ndarray, kept: int) -> int:
        """Write events to an array after those that are there; returns how many there are then."""
        s = self._state
        s["at"], s["most_events"] = kept, out.size
        self._put("out", out)
        self._fill()
        return int(s["at"])

    def _fill(self) -> None:
        """Have events written until there is no room for more, or the run is over."""
        s = self._state
        while True:
            advance(self._m)
            if s["state"] == st.NEEDS_ROOM:
                self._make_room()
            elif s["state"] == st.NEEDS_DRAWS:
                self._tables.fill(int(s["needy"]))
                self._put("cursors", self._tables.cursors)
                self._put("table", self._tables.table)
            elif s["state"] == st.NEEDS_TURNS:
                assert self._turns is not None
                self._put_turns(self._turns.more())
            elif s["state"] == st.NEEDS_LINKS:
                self._put_changes()
            else:
                return
            s["state"] = st.RUNNING

    def _put_turns(self, turns: np.ndarray) -> None:
        assert self._turns is not None
        s = self._state
        s["turn"], s["turn_count"], s["known"] = 0, turns.size, self._turns.known
        self._put("turns", turns)

    def _put_changes(self) -> None:
        assert self._upcoming is not None
        s, turns = self._state, block_of(self._upcoming)
        s["link_turn"], s["link_turn_count"], s["links_known"] = 0, turns.size, self._upcoming.known
        self._put("link_turns", turns)

    # Arrays

    def _put(self, name: str, array: np.ndarray) -> None:
        """Keep an array, and tell kernels where it is."""
        assert array.flags.c_contiguous
        self._arrays[name] = array
        self._state[f"at_{name}"] = array.ctypes.data

    def _take(self, fields: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Keep what a part of the network has in the state."""
        for name, value in fields.items():
            self._state[name] = value
        for name, array in arrays.items():
            self._put(name, array)

    def _make_room(self) -> None:
        """Double what is nearly full."""
        s = self._state
        is_full = {
            "messages": s["spare"] < st.SPARE,
            "nodes": s["spare_nodes"] < st.SPARE,
            "tasks": s["depth"] + st.SPARE > s["most_tasks"],
        }
        for name in [name for name in is_full if is_full[name]] or ["receptions"]:
            self._grow(name)

    def _grow(self, name: str) -> None:
        """Double an array of records, and put the new ones on the list of those that are free."""
        s = self._state
        if name == "tasks":
            self._put(name, self._doubled(name, st.TASK))
            s["most_tasks"] = self._arrays[name].size
        elif name == "nodes":
            self._put(name, self._listed(name, st.NODE, "free_node", "spare_nodes"))
        elif name == "receptions":
            self._put(name, self._listed(name, st.RECEPTION, "free_reception", "spare_receptions"))
        else:
            self._put(name, self._listed(name, st.MESSAGE, "free", "spare"))
            self._put("radios", self._doubled("radios", st.RADIO) if self._m.radio is not None else _NOTHING)
            self._put("due", self._doubled("due", np.dtype(np.float64)))
            self._put("due_messages", self._doubled("due_messages", np.dtype(np.int64)))

    def _doubled(self, name: str, dtype: np.dtype) -> np.ndarray:
        """A larger array that begins with what is there."""
        before = self._arrays.get(name)
        size = before.size if before is not None else 0
        larger = st.records(max(2 * size, _FIRST), dtype)
        if before is not None:
            larger[:size] = before
        return larger

    def _listed(self, name: str, dtype: np.dtype, free: str, spare: str) -> np.ndarray:
        """A larger array whose new records are on the list of those that are free."""
        s, larger = self._state, self._doubled(name, dtype)
        size = self._arrays[name].size if name in self._arrays else 0
        larger["next"][size:] = np.arange(size + 1, larger.size + 1)
        larger["next"][-1] = s[free]
        s[free], s[spare] = size, s[spare] + larger.size - size
        return larger

    def _put_agents(self, rates: np.ndarray, limits: np.ndarray | None) -> None:
        """Agents, their links, keys of their streams, and their clocks."""
        s, links, exchange = self._state, self._network.links, self._network.exchange
        n = links.agents
        agents = st.records(n + 1, st.AGENT)
        agents["limit"] = _MOST
        if limits is not None:
            agents["limit"][:n] = limits
        agents["rate"][:n] = rates
        self._put("agents", agents)
        self._put("present", np.ones(n + 1, np.uint8))
        self._put("is_able", np.ones(n, np.uint8))
        self._put("indptr", np.ascontiguousarray(links.indptr, np.int64))
        self._put("indices", np.ascontiguousarray(links.indices, np.int32))
        self._put("keys", np.concatenate([self._streams.key(purpose) for purpose in st.PURPOSES]))
        s["links"] = links.indices.size
        self._put("running", _NOTHING)
        times, order = np.full(n, np.inf), np.empty(n, np.int32)
        if exchange.has_clocks:
            first_ticks(self._streams.key("clocks"), rates, times, order)
        self._put("clock_times", times)
        self._put("clock_agents", order)

    def _exchange(self) -> dict[str, st.Part]:
        """What the exchange needs."""
        s, exchange, links = self._state, self._network.exchange, self._network.links
        form = exchange.compiled(links)
        s["pattern"] = st.PATTERNS[form.pattern]
        self._take(form.settings, form.arrays)
        if s["by_weight"]:
            self._put("running", running_weights(links.indptr, links.weights))
        if exchange.delay_key:
            law = st.SERVICE_TIME if exchange.delay_key == "service" else st.RESPONSE_TIME
            self._tables.add(law, exchange.answer_delay, self._streams, exchange.delay_key)
        if exchange.needs_learner:
            owners = st.records(links.agents, st.OWNER)
            owners["owed"] = owners["wanted"] = NONE
            self._put("owners", owners)
        return {name: st.part(name == form.part) for name in ("gossip", "request", "queries", "synchronous")}

    def _channel(self) -> dict[str, st.Part]:
        """What the channel needs."""
        s, network, channel, links = self._state, self._network, self._network.channel, self._network.links
        again, allowed, airtime = channel.retransmit, channel.resending, network.airtime
        s["question"], s["loaded"] = airtime.question, airtime.loaded
        travel_times = channel.travel_times(links)
        if travel_times is not None:
            self._put("travel_times", travel_times)
            self._tables.take_from_links(st.TRAVEL, st.TRAVEL_AGAIN)
        else:
            latency = cast(float | Distribution, channel.latency)
            self._tables.add(st.TRAVEL, latency, self._streams, "latency")
            self._tables.add(st.TRAVEL_AGAIN, latency, self._streams, "latency", 1)
        if allowed != NEVER:
            self._tables.add(st.WAIT_AGAIN, again.backoff, self._streams, "retransmit")
        s["again"], s["fresh"], s["acknowledge"] = allowed.retries, allowed.fresh, again.acknowledge
        is_acknowledged = allowed.retries > 0 or ALL_PARTS
        if is_acknowledged:
            self._put("acknowledged", np.zeros(links.agents + 1, np.int64))
            self._put("drawn", np.zeros(links.agents + 1, np.int64))
        spans = [effect.span for effect in channel.effects or ()]
        s["spans"] = len(spans)
        self._put("blackouts", np.array(spans, float).ravel())
        self._take(*channel.losses.compiled(links))
        is_shared = channel.collision != "none" and airtime.loaded > 0
        if is_shared:
            self._put_medium(airtime.loaded)
        return {
            "acknowledged": st.part(is_acknowledged),
            "radio": st.part(is_shared or ALL_PARTS),
        }

    def _put_medium(self, longest: float) -> None:
        """A shared medium, where transmissions can collide."""
        s, channel, links = self._state, self._network.channel, self._network.links
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
            self._tables.add(st.SENSE_TIME, backoff, self._streams, "backoff")
        air = st.records(1 if s["shared"] else n + 1, st.PLACE)
        air["until"], air["alone"], air["open"] = -np.inf, NONE, NONE
        self._put("air", air)
        senders = st.records(n + 1, st.SENDER)
        senders["first_waiting"] = senders["last_waiting"] = senders["spans"] = NONE
        self._put("senders", senders)

    def _availability(self) -> dict[str, st.Part]:
        """Who comes and goes, and why wakes are missed."""
        s, availability, links = self._state, self._network.availability, self._network.links
        if missed := availability.missed(self._members, links, self._streams):
            self._put("miss_chances", np.concatenate([reason.chances for reason in missed]).astype(float))
            self._put("missed_keys", np.concatenate([reason.key for reason in missed]))
            s["reasons"] = len(missed)
        if availability.has_spans:
            s["rejoin"] = ("stale", "reset", "fetch").index(availability.rejoin)
            s["keeps"] = availability.messages == "held"
            self._turns = Turns(links, self._members, availability, self._streams, float(s["end"]))
            starts, agents = self._turns.groups()
            self._put("group_starts", starts)
            self._put("group_agents", agents)
        else:
            s["known"] = np.inf
        if availability.has_spans or ALL_PARTS:
            absences = st.records(links.agents + 1, st.ABSENCE)
            absences["first_held"] = absences["last_held"] = NONE
            self._put("absences", absences)
        return {"presence": st.part(availability.has_spans or ALL_PARTS)}

    def _changes(self) -> dict[str, st.Part]:
        """Links that come and go; at first none is there."""
        s, links = self._state, self._network.links
        is_there = links.changes is not None or (ALL_PARTS and not links.star)
        if is_there:
            self._put("active", np.arange(links.indices.size))
            self._put("degrees", np.zeros(links.agents, np.int64))
            self._put("is_active", np.zeros(links.indices.size, np.uint8))
            self._put("link_weights", np.ascontiguousarray(links.weights, np.float64))
        if links.changes is not None:
            self._upcoming = Upcoming(links, float(s["end"]))
            self._put_changes()
        elif is_there:
            self._arrays["degrees"][:] = np.diff(links.indptr)
            self._arrays["is_active"][:] = 1
            s["links_known"] = np.inf
        return {"changing": st.part(is_there)}

    def _compute(self) -> dict[str, st.Part]:
        """Time to compute."""
        s, network, compute = self._state, self._network, self._network.compute
        if compute is not None:
            s["computes"], s["cancels"] = 1, compute.absence == "cancel"
            self._tables.add(st.COMPUTE_TIME, compute.quantity, self._streams, "compute")
        if compute is not None or ALL_PARTS:
            workers = st.records(network.links.agents, st.WORKER)
            workers["begin"] = workers["waiting"] = NONE
            if compute is not None:
                workers["factor"] = compute.factors(self._members, network.work)
            self._put("workers", workers)
        return {"compute": st.part(compute is not None or ALL_PARTS)}

    def _begin(self) -> None:
        """Appoint what a learner does first."""
        if self._state["pattern"] == st.POLLS:
            appoint_poll(self._m, 1)
        elif self._state["pattern"] in (st.ROUNDS, st.SYNCHRONOUS):
            appoint_round(self._m, False)
