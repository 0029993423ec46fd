"""Whole networks that are drawn: topology, exchange, channel, availability, limits and the end of the run.

What is drawn comes from `Choices`: either from Hypothesis, which finds the simplest network that shows a fault, or from
a number, so that the same networks can be named again. Options are ordered from the simplest on. Half of the networks
have all their times on a grid, so that many things are due at one instant.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from p2psim.core.randomness import Streams
from p2psim.network.availability import (
    AllOf,
    Always,
    AnyAvailability,
    Bernoulli,
    Diurnal,
    Join,
    LearnerOutage,
    Leave,
    Outage,
    Remove,
    Renewal,
    Scripted,
)
from p2psim.network.changes import Change, LinkChanges
from p2psim.network.channels.channel import Channel
from p2psim.network.compute import Compute
from p2psim.network.exchanges import Broadcast, Exchange, Gossip, Poll, Request, Round, Synchronous
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.members import Members
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events

T = TypeVar("T")

#: Values that an empirical law draws.
VALUES = Path(__file__).parent / "times.txt"
_UNITS = (1.0, 0.5, 0.25, 0.1, 0.2, 1 / 3)
_AVAILABILITIES = (Bernoulli, Scripted, Renewal, Diurnal, Outage, Leave, Join, Remove, LearnerOutage)


class Choices(Protocol):
    """What decides."""

    def one(self, *options: T) -> T:
        """One of some options."""

    def whole(self, low: int, high: int) -> int:
        """A whole number, both ends included."""

    def chance(self, share: float) -> bool:
        """Whether something is so, in about this share of all networks."""


class Numbered:
    """Choices that follow from a number."""

    def __init__(self, number: int):
        self._random = np.random.default_rng((77_003, number))

    def one(self, *options: T) -> T:
        return options[self.whole(0, len(options) - 1)]

    def whole(self, low: int, high: int) -> int:
        return int(self._random.integers(low, high + 1))

    def chance(self, share: float) -> bool:
        return bool(self._random.random() < share)


class Hypothetical:
    """Choices of Hypothesis."""

    def __init__(self, draw: st.DrawFn):
        self._draw = draw

    def one(self, *options: T) -> T:
        return self._draw(st.sampled_from(options))

    def whole(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def chance(self, share: float) -> bool:
        return self._draw(st.integers(0, 99)) >= 100 * (1 - share)


@dataclass(frozen=True)
class Scheduled:
    """Links that come and go at some moments, on the grid of the network's times or not."""

    moments: tuple[Change, ...]

    def changes(self, *_: object) -> tuple[Change, ...]:
        return self.moments

    def period(self, agents: int) -> None:
        return None


def changing(graph: Graph, times: np.ndarray, share: float, random: np.random.Generator) -> Graph:
    """Let each link of a graph come or go with some chance at each of some times, the first of which is 0."""
    rows = np.repeat(np.arange(graph.agents), np.diff(graph.indptr))
    ends = np.stack([rows, graph.indices], axis=1)[rows < graph.indices]
    is_there, moments = np.zeros(len(ends), bool), []
    for time in times.tolist():
        turns = random.random(is_there.size) < share
        moments.append(Change(time, ends[turns & ~is_there], ends[turns & is_there]))
        is_there ^= turns
    changes = LinkChanges(Scheduled(tuple(moments)), TopologyInputs(), np.zeros(2, np.uint64))
    return replace(graph, changes=changes)


@dataclass(frozen=True)
class Drawn:
    """A network, and how long it runs."""

    network: Network
    seed: int
    time: float
    commits: int | None
    limits: np.ndarray | None

    def play(self, engine: str, chunk: int = 1 << 15) -> tuple[np.ndarray, str]:
        """All events, and how the run ended."""
        stream = simulate_events(
            self.network, Streams(self.seed), time=self.time, commits=self.commits, limits=self.limits,
            engine=engine, chunk=chunk,
        )  # fmt: skip
        return stream.read(), stream.ended

    def __repr__(self) -> str:
        of = self.network
        edges = np.column_stack(
            [np.repeat(np.arange(of.links.agents), np.diff(of.links.indptr)), of.links.indices]
        )
        parts = f"{of.exchange!r}, {of.channel!r}, {of.availability!r}, goes_on={of.goes_on}, updates={of.updates}"
        parts += f", compute={of.compute!r}, work={of.work}" if of.compute is not None else ""
        parts += f", answerer_releases={of.answerer_releases}"
        links = f"star={of.links.star}, links={edges.tolist()}, rates={of.rates}, vectors={of.vectors}"
        if of.links.changes is not None:
            links += f", {of.links.changes!r}"
        ends = f"seed={self.seed}, time={self.time!r}, commits={self.commits}, limits={self.limits}"
        return f"{parts}, {links}, {ends}"


class _Drawing:
    """Draws the parts of a network, one after the other."""

    def __init__(self, choices: Choices):
        self.one, self.whole, self.chance = choices.one, choices.whole, choices.chance
        self.on_grid = choices.chance(0.5)
        self.unit = choices.one(*_UNITS)
        self.star = choices.chance(0.45)
        self.exchange, self.updates = self._exchange()
        self.graph, self.agents = self._graph()

    def time(self, low: float, high: float, most: int = 4) -> float:
        """A positive time: a multiple of the unit, or between two others."""
        if self.on_grid:
            return self.whole(1, most) * self.unit
        return round(low + (high - low) * (self.whole(0, 1000) / 1000) ** 2, 4)

    def law(self, low: float, high: float) -> dict[str, Any]:
        """A law of times, with a mean of about so much."""
        mean = self.time(low, high) if not self.on_grid else self.unit / 2
        return self.one(
            {"uniform": (0.0, 2 * mean)},
            {"exponential": mean},
            {"uniform": (mean / 2, mean)},
            {"lognormal": {"mean": mean, "sigma": 1.0}},
            {"lognormal": {"median": mean, "sigma": 0.5}},
            {"weibull": {"mean": mean, "shape": 0.5}},
            {"gamma": {"mean": mean, "shape": 2.0}},
            {"empirical": {"path": str(VALUES)}},
        )

    def quantity(self, low: float, high: float) -> float | dict[str, Any]:
        """Nothing, a constant, or a law."""
        kind = self.one("none", "constant", "law", "law" if not self.on_grid else "constant")
        if kind == "law":
            return self.law(low, high)
        return self.time(low, high) if kind == "constant" else 0.0

    def _exchange(self) -> tuple[Exchange, Literal["wake", "hear"]]:
        if not self.star:
            if self.chance(0.2):
                return Broadcast(), "wake"
            mode = self.one("push", "pull", "push-pull", "edge")
            return Gossip(mode=mode, partner=self.one("uniform", "weight")), self.one("wake", "hear")
        kind = self.one("request", "poll", "round")
        if kind == "request":
            options = {"service": self.quantity(0.02, 1.0), "busy": self.one("refuse", "queue")}
            return Request.model_validate(options | {"served_clock": self.one("runs", "stops")}), "wake"
        interval, response = self.time(0.1, 2.0), self.quantity(0.05, 1.5)
        if kind == "round":
            deadline = self.one(None, interval, self.time(0.05, 2.0))
            options = {"interval": interval, "response": response, "deadline": deadline}
            return Round.model_validate(options), "wake"
        # Answers that all take longer than the interval are refused.
        if isinstance(response, float) or "uniform" in response or "empirical" in response:
            response = min(response, interval) if isinstance(response, float) else {"exponential": interval}
        return Poll.model_validate({"interval": interval, "response": response}), "wake"

    def _graph(self) -> tuple["nx.Graph[int]", int]:
        """A connected graph; its links have weights, losses and delays of their own."""
        agents = self.whole(1, 12) if self.star else self.whole(2, 30)
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(agents))
        if self.star:
            graph.add_edges_from((-1, agent) for agent in range(agents))
        else:
            is_path = self.chance(0.3)
            graph.add_edges_from(
                (agent, agent - 1 if is_path else self.whole(0, agent - 1)) for agent in range(1, agents)
            )
            for _ in range(self.whole(0, agents)):
                ends = self.whole(0, agents - 1), self.whole(0, agents - 1)
                graph.add_edges_from([ends] if ends[0] != ends[1] else [])
        for link in sorted(graph.edges):
            weight, fading = self.one(1.0, 0.02, 50.0), self.one(0.0, 0.1, 0.6)
            graph.edges[link].update(weight=weight, fading=fading, delay=self.one(0.0, self.time(0.01, 1.0)))
        if self.chance(0.4):
            for agent in range(agents):
                graph.nodes[agent]["rate"] = self.one(1.0, 0.2, 3.0)
        return graph, agents

    def channel(self) -> Channel:
        """What happens to messages."""
        keys: dict[str, Any] = {}
        kind = self.one("none", "constant", "law", "edge")
        if kind != "none":
            constant = self.time(0.01, 1.0)
            keys["latency"] = {"constant": constant, "law": self.law(0.02, 0.6), "edge": {"edge": "delay"}}[
                kind
            ]
        keys["loss"] = self.one(
            0.0, 0.1, 0.6, 1.0, {"edge": "fading"},
            {"kind": "gilbert-elliott", "to_bad": 1.0, "to_good": 2.0},
            {"kind": "gilbert-elliott", "mean": 0.3, "burst": 0.5, "good": 0.05, "bad": 0.8},
        )  # fmt: skip
        if self.chance(0.6):
            keys["airtime"] = self.one(0.0, self.time(0.002, 0.3, 2))
            keys["bandwidth"] = self.one(None, 1 / self.time(0.002, 0.3, 2))
            keys["collision"] = self.one("none", "aloha", "slotted", "carrier-sense")
            keys["shared"] = self.one(None, True, False)
            keys["half_duplex"] = self.chance(0.4)
            keys["capture"] = self.one(0.0, 0.5, 1.0)
            keys["while_sending"] = self.one("wait", "overlap", "skip")
            keys["attempts"] = self.one(16, 1, 2, 3)
            keys["backoff"] = self.one(None, {"uniform": (0.0, self.unit)}, {"exponential": 0.1})
        again = self.one("none", "same", "fresh" if self.star else "same")
        if again != "none":
            keys["retransmit"] = {
                "kind": again,
                "limit": self.one(1, 3, 6),
                "backoff": self.quantity(0.01, 0.5),
            }
        if again == "same":
            keys["retransmit"]["acknowledge"] = self.one(0.0, 0.1, 0.5)
        if self.chance(0.1):
            begin = self.time(0.1, 3.0)
            keys["effects"] = [{"kind": "blackout", "begin": begin, "end": begin + self.time(0.1, 2.0)}]
        return Channel.model_validate(keys)

    def _spans(self) -> dict[str, Any]:
        laws = ("exponential", "constant", "lognormal", "weibull", {"kind": "weibull", "shape": 2.0})
        keys = {"up": self.time(0.3, 6.0), "down": self.time(0.2, 3.0)}
        return keys | {"up_law": self.one(*laws), "down_law": self.one(*laws)}

    def _script(self) -> list[dict[str, Any]]:
        """Spans of some agents, on the grid or not, one perhaps without an end."""
        rows = []
        for agent in range(self.agents):
            place = 0
            for number in range(self.one(0, 1, 2, 3)):
                begin = place + self.whole(0 if number == 0 else 1, 4)
                place = begin + self.whole(1, 4)
                shift = 0.0 if self.on_grid or begin == 0 else self.whole(0, 49) / 1000
                rows.append(
                    {"agent": agent, "begin": begin * self.unit + shift, "end": place * self.unit + 2 * shift}
                )
            if rows and rows[-1]["agent"] == agent and self.chance(0.15):
                rows[-1]["end"] = float("inf")
        return rows or [{"agent": 0, "begin": 0.0, "end": self.unit}]

    def _absence(self) -> dict[str, Any]:
        """Keys of one kind of availability."""
        kinds = ["bernoulli", "scripted", "renewal", "diurnal", "outage", "leave", "join", "remove"]
        kind = self.one(*kinds, *(["learner"] if self.star else []))
        each = range(self.agents)
        depends = {"on": self.one("degree", "records", "label"), "strength": self.one(1.0, -2.0)}
        is_tilted = self.agents > 1 and self.chance(0.25)
        keys: dict[str, Any] = {"kind": kind}
        if kind == "bernoulli":
            share = self.one(
                {"drop": 0.1}, {"participation": 0.5}, {"drop": {str(i): i % 3 * 0.4 for i in each}}
            )
            keys |= share | ({"depends": depends} if is_tilted else {})
        elif kind in ("renewal", "outage", "learner"):
            keys |= self._spans()
            if kind == "renewal" and is_tilted:
                keys |= {"depends": depends}
            elif kind == "outage":
                keys["regions"] = self.one(None, min(self.agents, 2), min(self.agents, 4))
        elif kind == "diurnal":
            phase = self.one(0.0, 0.5, None, {str(i): i % 4 / 4 for i in each})
            keys |= {
                "period": self.time(0.5, 5.0, 8),
                "participation": self.one(0.5, 0.25, 0.9),
                "phase": phase,
            }
        elif kind == "scripted":
            keys |= {"intervals": self._script(), "spans_are": self.one("absent", "present")}
        elif kind == "remove":
            by, order = (
                self.one("degree", "betweenness", "records", "random"),
                self.one("largest", "smallest"),
            )
            keys |= {
                "by": by,
                "order": order,
                "share": self.one(0.3, 0.6),
                "at": self.one(0.0, self.time(0.2, 4.0)),
            }
        else:
            keys |= {"after": self.quantity(0.2, 4.0), "share": self.one(0.5, 1.0)}
        return keys

    def availability(self) -> AnyAvailability:
        """Who is online."""
        how = self.one("always", "one", "one", "several")
        if how == "always":
            return Always()
        keys = self._absence()
        if how == "several":
            parts = [keys, *(self._absence() for _ in range(self.whole(1, 2)))]
            keys = {"kind": "all-of", "parts": parts}
        keys["messages"] = self.one("lost", "held")
        keys["rejoin"] = self.one("stale", "reset", "fetch")
        if how == "several":
            return AllOf.model_validate(keys)
        (kind,) = (kind for kind in _AVAILABILITIES if kind.model_fields["kind"].default == keys["kind"])
        return kind.model_validate(keys)

    def per_period(self) -> float:
        """Events of a period, about, where nothing is sent again."""
        if isinstance(self.exchange, Poll | Round):
            return (1 + 4.0 * self.agents) / self.exchange.interval
        wakes = sum(self.graph.nodes[agent].get("rate", 1.0) for agent in range(self.agents))
        links = self.graph.number_of_edges() / self.agents
        return wakes * (3 + 2 * links if isinstance(self.exchange, Broadcast) else 6)

    def whole_network(self, may_change: bool) -> Drawn:
        """All of it; perhaps links come and go."""
        channel, availability = self.channel(), self.availability()
        goes_on = not self.star and self.chance(0.3)
        limits = None
        if self.chance(0.4):
            limits = np.array([self.whole(0 if goes_on else 1, 12) for _ in range(self.agents)])
        most = min(self.one(30, 100, 300, 1000) / self.per_period(), 60.0)
        end = max(round(most / self.unit), 1) * self.unit if self.chance(0.5) else round(most, 3)
        network = Network.of_graph(self.graph, self.exchange, channel, availability)
        groups = tuple("abc"[agent * agent % 3] for agent in range(self.agents))
        numbers = {
            "records": np.arange(self.agents) % 7 + 1,
            "label": np.arange(self.agents) * 0.37 % 1.0,
        }
        members = Members(tuple(map(str, range(self.agents))), groups, numbers)
        network = replace(
            network, goes_on=goes_on, updates=self.updates, members=members, vectors=self.one(1, 2, 3)
        )
        commits = self.whole(1, 100) if self.chance(0.2) else None
        seed = self.whole(0, 2**31)
        if may_change and not self.star and self.chance(0.4):
            network = replace(network, links=self._with_changes(network.links, end))
        return Drawn(network, seed, end, commits, limits)

    def _with_changes(self, links: Graph, end: float) -> Graph:
        """Let links come and go."""
        random = np.random.default_rng(self.whole(0, 2**31))
        count, share = self.one(1, 2, 5, 20, 100), self.one(0.05, 0.3, 0.7)
        if self.on_grid:
            times = np.arange(count) * self.unit
        else:
            times = np.unique(np.concatenate([[0.0], random.uniform(0, 1.2 * end, count - 1)]))
        return changing(links, times, share, random)

    def compute(self) -> Compute:
        """How long agents take to compute."""
        keys: dict[str, Any] = {"absence": self.one("interrupt", "cancel")}
        if self.chance(0.3):
            keys["seconds_per_record"] = self.one(0.0, self.time(0.01, 0.5) / 4)
        else:
            keys["time"] = self.quantity(0.05, 1.5)
        each = {str(agent): float(self.one(1.0, 2.0, 0.5)) for agent in range(self.agents)}
        keys["slowdown"] = self.one(1.0, 3.0, each)
        return Compute.model_validate(keys)

    def with_compute(self, drawn: Drawn) -> Drawn:
        """A network whose agents take time to compute, in place of other waits of theirs."""
        network, compute = drawn.network, self.compute()
        exchange, availability = network.exchange, network.availability
        if exchange.delay_key:
            exchange = exchange.model_copy(update={exchange.delay_key: 0.0})
        if compute.absence == "interrupt" and availability.rejoin != "stale":
            availability = availability.model_copy(update={"rejoin": "stale"})
        work = np.array([self.whole(0, 4) for _ in range(self.agents)], float)
        network = replace(network, exchange=exchange, availability=availability, compute=compute, work=work)
        if isinstance(exchange, Poll) and (
            (compute.least(network.known_members, work) > exchange.interval).all()
        ):
            # Nobody could ever answer in time, which is refused.
            network = replace(
                network, compute=compute.model_copy(update={"time": 0.0, "seconds_per_record": None})
            )
        return replace(drawn, network=network)

    def newer(self, drawn: Drawn) -> Drawn:
        """The same network with keys that came later: drawn last, they leave what is drawn before as it was."""
        network, exchange = drawn.network, drawn.network.exchange
        if isinstance(exchange, Request):
            exchange = exchange.model_copy(update={"concurrency": self.one(1, 2, 3, "all")})
        elif isinstance(exchange, Round):
            some = self.one(None, self.whole(1, self.agents))
            exchange = exchange.model_copy(update={"participants": some})
        elif not self.star and self.chance(0.4):
            return self._in_rounds(drawn)
        elif not self.star and nx.is_bipartite(self.graph) and self.chance(0.2):
            exchange = Gossip(mode="push-pull", partner=self.one("uniform", "weight"))
        is_one_sided = isinstance(exchange, Gossip) and exchange.mode == "push-pull" and self.chance(0.5)
        if is_one_sided and nx.is_bipartite(self.graph) and self.chance(0.6):
            exchange = exchange.model_copy(update={"blocking": True})
        network = replace(network, exchange=exchange, answerer_releases=not is_one_sided)
        return replace(drawn, network=network)

    def _in_rounds(self, drawn: Drawn) -> Drawn:
        """The same agents in rounds, as many as have not too many events."""
        interval = self.time(0.1, 2.0)
        deadline = self.one(None, interval, self.time(0.05, 2.0))
        exchange = Synchronous(interval=interval, deadline=deadline)
        network = replace(drawn.network, exchange=exchange, updates=self.one("wake", "hear"))
        rounds = self.one(30, 100, 300, 1000) / (3 * self.agents + drawn.network.links.indices.size)
        return replace(drawn, network=network, time=max(round(rounds), 1) * interval)

    def with_short_times(self, drawn: Drawn) -> Drawn:
        """The same network with some of its times so short that they do not move the clock."""

        def short(time: Any) -> Any:
            return self.one(1e-300, 1e-20) if time and self.chance(0.7) else time

        network = drawn.network
        channel, exchange, compute = network.channel, network.exchange, network.compute
        keys: dict[str, Any] = {"latency": short(channel.latency)}
        if channel.collision != "slotted":  # such short slots are refused
            keys |= {"airtime": short(channel.airtime), "bandwidth": None}
        again = channel.retransmit
        if again.kind != "none":
            keys["retransmit"] = again.model_copy(update={"backoff": short(again.backoff)})
        updates = {name: short(getattr(exchange, name, None)) for name in ("deadline", exchange.delay_key)}
        exchange = exchange.model_copy(update={name: time for name, time in updates.items() if time})
        if compute is not None:
            compute = compute.model_copy(update={"time": short(compute.time)})
        channel = channel.model_copy(update=keys)
        return replace(drawn, network=replace(network, channel=channel, exchange=exchange, compute=compute))


def numbered_network(number: int, newer: bool = False) -> Drawn:
    """The network of a number; with ``newer``, as `networks` draws them."""
    drawing = _Drawing(Numbered(number))
    drawn = drawing.whole_network(may_change=newer)
    return drawing.newer(drawn) if newer else drawn


def numbered_network_with_compute(number: int, newer: bool = False) -> Drawn:
    """The same network with time to compute, which is drawn last."""
    drawing = _Drawing(Numbered(number))
    drawn = drawing.whole_network(may_change=True)
    return drawing.with_compute(drawing.newer(drawn) if newer else drawn)


@st.composite
def networks(draw: st.DrawFn) -> Drawn:
    """A strategy of Hypothesis."""
    drawing = _Drawing(Hypothetical(draw))
    return drawing.newer(drawing.whole_network(may_change=True))


@st.composite
def networks_with_compute(draw: st.DrawFn) -> Drawn:
    """Those whose agents take time to compute."""
    drawing = _Drawing(Hypothetical(draw))
    return drawing.with_compute(drawing.newer(drawing.whole_network(may_change=True)))


@st.composite
def networks_with_short_times(draw: st.DrawFn) -> Drawn:
    """Those in which something takes a time that does not move the clock."""
    drawing = _Drawing(Hypothetical(draw))
    drawn = drawing.newer(drawing.whole_network(may_change=True))
    return drawing.with_short_times(drawing.with_compute(drawn) if drawing.chance(0.3) else drawn)
