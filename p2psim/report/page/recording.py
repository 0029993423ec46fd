"""One recorded replica: its events and links, and what is worked out from them for the page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from p2psim.core import events as ev
from p2psim.core.errors import FolderError, InputError, P2PSimError, check_place
from p2psim.privacy.accounting.noises import is_pure
from p2psim.privacy.plan import Claims
from p2psim.privacy.releases import ReleaseCounter
from p2psim.privacy.shares import UNLIMITED, Releases
from p2psim.report.source import of_run, where_defined
from p2psim.runs.ledger_check import simulations_of
from p2psim.runs.result import Result
from p2psim.runs.verification import prepared_data, stream_of
from p2psim.simulation.algorithms import PreparedCell, adapter_of
from p2psim.simulation.outcome import check_event_format

#: Events that a page holds at most.
MOST_EVENTS = 200_000
#: Stretches of time in which events of the whole run are counted.
BINS = 360


@dataclass(frozen=True)
class Recording:
    """A replica with its events.

    Attributes
    ----------
    cell, replica : int
    events : ndarray of EVENT
    links, agents, ledger, metrics : DataFrame
        Its rows of these tables; of agents and ledger one per agent, in order.
    prepared : PreparedCell or None
        The cell as it was simulated; None where it cannot be prepared again.
    lacking : str
        Why it cannot.
    """

    cell: int
    replica: int
    events: np.ndarray
    links: pd.DataFrame
    agents: pd.DataFrame
    ledger: pd.DataFrame
    metrics: pd.DataFrame
    prepared: PreparedCell | None
    lacking: str = ""

    @property
    def n(self) -> int:
        """Number of agents."""
        return len(self.agents)

    @property
    def star(self) -> bool:
        """Whether there is a learner."""
        return bool((self.links["a"] == ev.LEARNER).any())

    @cached_property
    def end(self) -> float:
        """When the replica ended."""
        horizon = self.prepared.setup.time if self.prepared is not None else None
        return float(max(self.events["time"][-1], horizon or 0.0))

    @cached_property
    def root(self) -> np.ndarray:
        """Kind of the cause of each event; −1 of those without."""
        cause = self.events["cause"]
        return np.where(cause >= 0, self.events["kind"][np.maximum(cause, 0)].astype(np.int64), -1)

    @cached_property
    def ends(self) -> np.ndarray:
        """Whether each event ends a message at a receiver."""
        return np.isin(self.events["kind"], (ev.DELIVER, ev.DROP)) & (self.root == ev.SEND)

    @cached_property
    def receivers(self) -> np.ndarray:
        """To how many each event sends; 0 where it does not."""
        events = self.events
        sends = events["kind"] == ev.SEND
        counts = sends.astype(np.int64)
        to_all = np.flatnonzero(sends & (events["peer"] == ev.NEIGHBOURS))
        counts[to_all] = self.n
        senders = events["agent"][to_all]
        who = self.links[["a", "b"]].to_numpy().T.ravel()
        if "begin" not in self.links or self.links["begin"].isna().all():
            degrees = np.bincount(who[who >= 0], minlength=self.n)
            counts[to_all] = np.where(senders >= 0, degrees[senders], self.n)
            return counts
        order = np.argsort(who, kind="stable")
        begun, gone = (np.tile(self.links[name].to_numpy(), 2)[order] for name in ("begin", "end"))
        edges = np.searchsorted(who[order], np.arange(self.n + 1))
        for agent in np.unique(senders).tolist():
            mine, of_agent = to_all[senders == agent], slice(edges[agent], edges[agent + 1])
            times = events["time"][mine]
            counts[mine] = np.searchsorted(np.sort(begun[of_agent]), times, "right")
            counts[mine] -= np.searchsorted(np.sort(gone[of_agent]), times, "right")
        return counts

    @cached_property
    def releases(self) -> np.ndarray:
        """Places of the events that make releases."""
        found = ReleaseCounter.empty(self.n).read(self.events)
        return found.places

    @cached_property
    def limits(self) -> np.ndarray:
        """The most releases of each agent; −1 for any number, or where that is unknown."""
        limits = self.prepared.setup.limits if self.prepared is not None else None
        none = np.full(self.n, -1, np.int64)
        return none if limits is None else np.where(limits >= UNLIMITED, -1, limits)

    @cached_property
    def absences(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Agent, begin and end of each time that somebody was offline; the learner is −1."""
        turns = self.events[np.isin(self.events["kind"], (ev.JOIN, ev.LEAVE))]
        turns = turns[np.argsort(turns["agent"], kind="stable")]
        spans: list[tuple[int, float, float]] = []
        for mine in np.split(turns, np.flatnonzero(np.diff(turns["agent"])) + 1) if turns.size else []:
            moments = [*([0.0] if mine["kind"][0] == ev.JOIN else []), *mine["time"].tolist()]
            moments += [self.end] * (len(moments) % 2)
            spans += [(mine["agent"][0], *pair) for pair in zip(moments[::2], moments[1::2], strict=True)]
        table = np.array(spans, float).reshape(-1, 3)
        return table[:, 0].astype(np.int64), table[:, 1], table[:, 2]

    @cached_property
    def rounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Begin and end of each round, if there are rounds; one that closes without an update ends with the next."""
        events = self.events
        closing = events["time"][(events["kind"] == ev.COMMIT) & (events["peer"] == ev.NEIGHBOURS)]
        if not closing.size:
            return np.empty(0), np.empty(0)
        asks = (events["agent"] == ev.LEARNER) & (events["kind"] == ev.SEND) & (events["cause"] < 0)
        begins = np.unique(events["time"][asks if self.star else events["kind"] == ev.WAKE])
        following = np.append(begins[1:], self.end)
        # The last update before the next round closes this one.
        last = closing[np.maximum(np.searchsorted(closing, following, "right") - 1, 0)]
        if closing.size and not self.star:
            last = np.where(last > following, following, last)
        return begins, np.where((last >= begins) & (last <= following), last, following)

    @cached_property
    def queue(self) -> np.ndarray:
        """By how much each event changes the number of owners that wait for the learner."""
        events = self.events
        waits = (events["kind"] == ev.WAKE) & (events["outcome"] == ev.QUEUED)
        waited = (events["cause"] >= 0) & waits[np.maximum(events["cause"], 0)]
        return waits.astype(np.int64) - (waited & np.isin(events["kind"], (ev.SEND, ev.DROP)))

    @cached_property
    def late(self) -> np.ndarray:
        """Whether each event is a delivery that came after its round had closed."""
        events, (begins, ends) = self.events, self.rounds
        is_delivery = (events["kind"] == ev.DELIVER) & (self.root == ev.SEND)
        if not begins.size:
            return np.zeros(events.size, bool)
        if self.star:
            made = np.cumsum((events["kind"] == ev.COMMIT) & (events["agent"] == ev.LEARNER))
            return is_delivery & (events["agent"] == ev.LEARNER) & (events["version"] < made)
        sent = events["time"][np.maximum(events["cause"], 0)]
        which = np.maximum(np.searchsorted(begins, sent, "right") - 1, 0)
        return is_delivery & (events["time"] > ends[which])

    @cached_property
    def spending(self) -> tuple[np.ndarray, np.ndarray, str] | None:
        """Releases (J, N) and what the first so many cost (J, N), claimed, by an accountant; None where unknown."""
        if self.prepared is None:
            return None
        setup, plan = self.prepared.setup, self.prepared.setup.plan
        found = ReleaseCounter.empty(self.n, setup.queries).read(self.events)
        totals, made = plan.totals([found]), np.bincount(found.agents, minlength=self.n)
        pure = not plan.mechanism.is_private or is_pure(plan.mechanism.noise)
        accountant = "basic" if pure else plan.limit.enforce
        pieces = (2 if plan.even else 65) if pure else 9
        counts, costs = [], []
        for share in np.linspace(0.0, 1.0, pieces):
            count = np.rint(made * share / setup.queries).astype(np.int64)
            first = found.numbers < (count * setup.queries)[found.agents]
            part = Releases(found.agents[first], found.numbers[first], found.steps[first])
            charges = plan.charges(Claims.of(plan, part, totals), plan.limit.start)
            counts.append(count)
            costs.append(plan.epsilon(accountant, charges))
        return np.array(counts), np.array(costs), accountant


def open_recording(result: Result, cell: int, replica: int) -> Recording:
    """Read a replica of a run folder.

    Raises
    ------
    InputError
        If there is no such cell or replica.
    FolderError
        If its events are of another format.
    """
    check_place("cell", cell, len(result.described.cells))
    check_event_format(result.path, result.described.made_by)
    assert result.events is not None
    assert result.links is not None
    run = cell, replica
    rows = of_run(result.events, *run)
    if rows.empty:
        known = sorted(result.events.loc[result.events["cell"] == cell, "replica"].unique())
        if not known:
            cells = ", ".join(map(str, sorted(result.events["cell"].unique()))) or "none"
            raise InputError(f"--cell: cell {cell} has no recorded events yet; cells that have some: {cells}")
        raise InputError(f"--replica: cell {cell} has the replicas {known[0]} to {known[-1]}; got {replica}")
    prepared, lacking = None, ""
    try:
        scenario = next(s for c, r, s in simulations_of(result) if (c, r) == (cell, replica))
        data = prepared_data(result, scenario, (cell, replica))
        prepared = adapter_of(scenario).cell(scenario, data, replica)
    except FolderError:
        raise
    except (P2PSimError, KeyError) as error:  # a part is missing, or arrays were given in Python
        lacking = f"this cell cannot be prepared again: {error}"
    links, metrics = of_run(result.links, *run), where_defined(of_run(result.metrics, *run))
    agents = of_run(result.agents, *run).sort_values("index")
    ledger = of_run(result.ledger, *run).sort_values("agent")
    return Recording(cell, replica, stream_of(rows), links, agents, ledger, metrics, prepared, lacking)


def account(held: Recording) -> dict[str, np.ndarray]:
    """What each agent did and met, shape (N,) each."""
    events, n = held.events, held.n
    kind, agent, peer, outcome = (events[name] for name in ("kind", "agent", "peer", "outcome"))

    def count(chosen: np.ndarray, of: np.ndarray = agent) -> np.ndarray:
        chosen = chosen & (of >= 0)
        return np.bincount(of[chosen], minlength=n)[:n]

    dropped, arrived = held.ends & (kind == ev.DROP), held.ends & (kind == ev.DELIVER)
    on_time = arrived & (agent == ev.LEARNER) & ~held.late
    if held.star:
        rounds = held.rounds[0].size > 0
        updates = count(on_time if rounds else (kind == ev.COMMIT), peer)
    else:
        updates = count(kind == ev.COMMIT)
    who, begin, end = held.absences
    away = np.bincount(who[who >= 0], (end - begin)[who >= 0], n)[:n] if who.size else np.zeros(n)
    spent_at, places = np.full(n, np.nan), held.releases
    last = events["release"][places] == held.limits[agent[places]] - 1
    spent_at[agent[places][last]] = events["time"][places][last]
    return {
        "updates": updates,
        "sent": count(kind == ev.SEND),
        "arrived": count(arrived, peer),
        "lost": count(dropped & ~np.isin(outcome, (ev.COLLISION, ev.OFFLINE)), peer),
        "collided": count(dropped & (outcome == ev.COLLISION), peer),
        "unheard": count(dropped & (outcome == ev.OFFLINE), peer),
        "missed": count(dropped & (outcome == ev.OFFLINE)),
        # An answer that a newer query overtook was too late as well.
        "late": count(held.late, peer if held.star else agent)
        + count((kind == ev.DROP) & (outcome == ev.SUPERSEDED)),
        "away": away / held.end if held.end else away,
        "releases": np.bincount(agent[places], minlength=n)[:n],
        "spent_at": spent_at,
    }


#: Nodes up to which all distances count; above, springs.
_FEW = 120
#: Nodes above which agents stand in a grid, without their links.
MOST_NODES = 2_000
_SEED = 20_260


def layout(agents: int, a: np.ndarray, b: np.ndarray, star: bool) -> np.ndarray:
    """Places of agents in the unit square.

    Parameters
    ----------
    agents : int
    a, b : ndarray of int, shape (m,)
        Ends of links.
    star : bool
        Whether all are linked with a learner, who stands in the middle.

    Returns
    -------
    ndarray of float32, shape (agents, 2)
    """
    if agents > MOST_NODES:
        side = math.ceil(math.sqrt(agents))
        grid = np.stack(np.divmod(np.arange(agents), side)[::-1], axis=1)
        return ((grid + 0.5) / side).astype(np.float32)
    around = np.arange(agents) * (2 * math.pi / agents) - math.pi / 2
    circle = np.stack([np.cos(around), np.sin(around)], axis=1)
    return _in_square(circle if star else _of_graph(agents, a, b, circle))


def _of_graph(agents: int, a: np.ndarray, b: np.ndarray, circle: np.ndarray) -> np.ndarray:
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(agents))
    graph.add_edges_from(zip(a.tolist(), b.tolist(), strict=True))
    dense = graph.number_of_edges() > 0.4 * agents * (agents - 1) / 2
    if agents < 4 or dense or not graph.number_of_edges():
        return circle
    first = dict(enumerate(circle))
    if agents <= _FEW and nx.is_connected(graph):
        places = nx.kamada_kawai_layout(graph, pos=first, weight=None)
    else:
        few = agents <= 500
        places = nx.spring_layout(graph, pos=first if few else None, weight=None, seed=_SEED, iterations=60)
    return np.array([places[node] for node in range(agents)])


def _in_square(places: np.ndarray) -> np.ndarray:
    """Places between 0 and 1, rounded, so that their last digits do not matter."""
    low, span = places.min(axis=0), np.ptp(places, axis=0).max()
    if not span:
        return np.full(places.shape, 0.5, np.float32)
    centred = (places - low - np.ptp(places, axis=0) / 2) / span + 0.5
    return np.round(centred, 3).astype(np.float32)
