"""Audits of coordinate descent and of gossip ADMM: what the neighbours of an agent see of its models.

Many copies of a small network's run lie side by side, so that one replay of a kernel gives many samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from p2psim.audit.canaries import Reach
from p2psim.audit.system import Record, Seen, records_here, releases_of, tables
from p2psim.core.events import COMMIT, DELIVER, EVENT, LEARNER, NEIGHBOURS, SEND
from p2psim.learning.batches import batch_of, sampling
from p2psim.learning.graph.admm import AdmmReplay
from p2psim.learning.graph.algorithms import GossipAdmm
from p2psim.learning.graph.problem import GraphProblem
from p2psim.learning.graph.replay import GraphReplay
from p2psim.network.graph import from_edges
from p2psim.network.simulation import Network
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.algorithms.graph_setting import admm_rule, algorithm_of
from p2psim.simulation.algorithms.replay import goes_on


def replayed(
    replay: GraphReplay | AdmmReplay, events: np.ndarray, noise: np.ndarray
) -> Iterator[tuple[Any, int | None, np.ndarray, np.ndarray]]:
    """Replay a pair's events in all copies.

    Parameters
    ----------
    replay : GraphReplay or AdmmReplay
        Of the two agents of each copy, at its start.
    events : ndarray of EVENT
    noise : ndarray, shape (copies, releases, p)

    Yields
    ------
    event : void of EVENT
    release : int or None
        Which release it makes, if any.
    before, after : ndarray, shape (copies, p)
        Models of the event's agent, as they were before the block that the event ends or is part of, and after it.
    """
    copies, rows, p = noise.shape
    _, places = releases_of(events)
    made = 0
    for block, chunk in Copies(events, 2, copies).play():
        here = places[(places >= block.start) & (places < block.stop)]
        before = replay.theta.reshape(copies, 2, p).copy()
        replay.feed(chunk, noise[:, made : made + here.size].reshape(copies * here.size, p))
        after = replay.theta.reshape(copies, 2, p)
        for at in range(block.start, block.stop):
            i = int(events["agent"][at])
            release = made if at in here else None
            yield events[at], release, before[:, i], after[:, i]
            made += release is not None
    assert made == rows


class GraphArena:
    """Two agents of a graph's cell, linked with each other; see `p2psim.audit.system.AuditSystem`.

    Each keeps its confidence, step and ridge, which are public, as they are in the cell.

    Parameters
    ----------
    cell : GraphCell
    agents : sequence of int
        Two agents of the cell.
    """

    def __init__(self, cell: GraphCell, agents: Sequence[int]):
        self._cell, self.agents = cell, tuple(agents)
        held = cell.problem.records[list(agents)]
        self._batch = batch_of(algorithm_of(cell.scenario))
        self.records = records_here(held, self._batch)
        self.divisors = self._batch.divisors(self.records)
        self.enlargement = float(held[0] / self.records[0])
        self.rate = float(self._batch.rates(held)[0])
        self.grid = None if cell.rule.grid is None else cell.rule.grid * self.enlargement

    @property
    def dimension(self) -> int:
        """Length p of a release."""
        return self._cell.problem.dimension

    @property
    def reach(self) -> Reach:
        """What limits gradients."""
        cell, sensitivity = self._cell, self._cell.scenario.privacy.sensitivity
        x_bound = cell.bound if sensitivity is not None and sensitivity.kind == "bounds" else None
        return Reach(cell.problem.loss, cell.rule.clip, cell.bound, cell.rule.order, x_bound=x_bound)

    @property
    def network(self) -> Network:
        """The small network."""
        scenario = self._cell.scenario
        links = from_edges(2, np.array([0]), np.array([1]))
        vectors = getattr(scenario.learning.algorithm, "vectors", 1)
        return Network(links, scenario.network.exchange, goes_on=goes_on(scenario), vectors=vectors)

    def play(self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray) -> Seen:
        """Replay events for many copies, and solve each published update for its noisy gradient.

        θ_i ← (1 − α_i)θ_i + α_i(Σ_j (W_ij/D_ii)θ_j − μ·c_i(∇L_i(θ_i) + η)) gives the mean gradient of records plus η,
        as ∇L_i(θ) also holds 2λ_i·θ.
        """
        copies = len(noise)
        cell, agents = self._cell, list(self.agents)
        start = np.stack([record.start for record in held])
        problem, rule = self._problem(held, copies), replace(cell.rule, grid=self.grid)
        batches = sampling(self._batch, problem.records, key)
        replay = GraphReplay(problem, rule, np.tile(start, (copies, 1)), track=False, sampling=batches)
        pull = cell.problem.mu * cell.problem.confidence[agents]
        alpha = 1.0 / (1.0 + pull * cell.problem.smoothness[agents])
        ridge = cell.problem.ridge[agents]
        gradients, models = np.empty_like(noise), np.empty_like(noise)
        heard = np.tile(start[::-1], (copies, 1, 1))  # of the other, what each knows
        newest: list[int] = [0, 0]
        sent: dict[int, tuple[int, np.ndarray]] = {}
        for event, release, before, after in replayed(replay, events, noise):
            i = int(event["agent"])
            if event["kind"] == SEND:
                sent[int(event["seq"])] = int(event["version"]), after.copy()
            elif event["kind"] == DELIVER and int(event["cause"]) in sent:
                version, model = sent[int(event["cause"])]
                if version > newest[i]:
                    newest[i], heard[:, i] = version, model
            elif event["kind"] == COMMIT and release is not None:
                move = (after - (1 - alpha[i]) * before) / alpha[i]
                gradients[:, release] = (heard[:, i] - move) / pull[i] - 2 * ridge[i] * before
                models[:, release] = before
        return Seen(gradients, models)

    def _problem(self, held: Sequence[Record], copies: int) -> GraphProblem:
        X, y, offsets = tables(held, self.records, copies)
        n, problem, agents = 2 * copies, self._cell.problem, list(self.agents)
        return replace(
            problem,
            X=X,
            y=y,
            offsets=offsets,
            ridge=np.tile(problem.ridge[agents], copies),
            confidence=np.tile(problem.confidence[agents], copies),
            smoothness=np.tile(problem.smoothness[agents], copies),
            indptr=np.arange(n + 1, dtype=np.int64),
            indices=(np.arange(n, dtype=np.int32) ^ 1),
            weights=np.ones(n),
            test_X=np.zeros((0, X.shape[1])),
            test_y=np.zeros(0),
            test_offsets=np.zeros(n + 1, np.int64),
        )


def blocks(events: np.ndarray) -> Iterator[slice]:
    """Cut events after every commit and every send of an agent, and around what the learner does with all at once."""
    start = 0
    for at, event in enumerate(events):
        to_all = event["kind"] in (SEND, COMMIT) and event["agent"] == LEARNER and event["peer"] == NEIGHBOURS
        if to_all and at > start:
            yield slice(start, at)
            start = at
        if to_all or event["kind"] == COMMIT or (event["kind"] == SEND and event["agent"] != LEARNER):
            yield slice(start, at + 1)
            start = at + 1
    if start < len(events):
        yield slice(start, len(events))


class Copies:
    """Events of copies: agent a of copy s is s·agents + a. The learner, if there is one, is common to all.

    Within a block each copy's events follow each other, as they do in the original; blocks follow in their order.

    Parameters
    ----------
    events : ndarray of EVENT
        Of one run of a small network.
    agents : int
        Of the small network.
    copies : int
    """

    def __init__(self, events: np.ndarray, agents: int, copies: int):
        self._events, self._agents, self._copies = events, agents, copies
        acts = np.isin(events["kind"], (SEND, COMMIT))
        common = acts & (events["agent"] == LEARNER) & (events["peer"] == NEIGHBOURS)
        self._each = np.where(common, 1, copies)
        self._place = {int(seq): at for at, seq in enumerate(events["seq"])}
        # Where a block's events begin among those of all copies.
        self._first = np.concatenate([[0], np.cumsum(self._each)])

    def seqs(self, at: int, block: slice) -> np.ndarray:
        """Number of event ``at`` of a block in each copy, shape (copies,), or (1,) for what is common to all."""
        size = block.stop - block.start
        step = size if self._each[at] > 1 else 0
        return np.asarray(
            self._first[block.start] + (at - block.start) + step * np.arange(self._each[at], dtype=np.int64)
        )

    def play(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the blocks, and the events of all copies in each."""
        numbers: dict[int, np.ndarray] = {}
        for block in blocks(self._events):
            size = block.stop - block.start
            out = np.zeros(int(self._first[block.stop] - self._first[block.start]), EVENT)
            for at in range(block.start, block.stop):
                event = self._events[at]
                seqs = numbers[int(event["seq"])] = self.seqs(at, block)
                rows = seqs - self._first[block.start]
                out[rows] = event
                out["seq"][rows] = seqs
                cause = numbers.get(int(event["cause"]))
                if cause is not None:
                    # What is common to all has one of the causes: a query to a single owner is one to each copy's.
                    out["cause"][rows] = cause[: rows.size]
                shift = self._agents * np.arange(rows.size)
                for name in ("agent", "peer"):
                    if event[name] >= 0:
                        out[name][rows] = event[name] + shift
            assert size
            yield block, out


#: Weight of the link between the two agents of an audited system.
_WEIGHT = 1.0


class Ends:
    """What the two ends of a link hold beside their models, in all copies: see `p2psim.learning.graph.algorithms`.

    It follows from what both ends send, and so anybody who sees the messages knows it.

    Parameters
    ----------
    start : ndarray, shape (2, p)
        First models.
    copies : int
    rho : float
    """

    def __init__(self, start: np.ndarray, copies: int, rho: float):
        known = np.stack([start, start[::-1]], axis=1)
        #: z − u of the own model and of the copy of the other's, shape (copies, 2 ends, 2, p).
        self._pulled = np.tile(known, (copies, 1, 1, 1))
        self._multipliers = np.zeros_like(self._pulled)
        self._rho, self._half = rho, _WEIGHT / 2
        self._h = self._half * rho / (self._half + rho)

    @property
    def stiffness(self) -> float:
        """ρ + h of the one link."""
        return self._rho + self._h

    def target(self, i: int) -> np.ndarray:
        """ρ(z_i − u_i) + h(z_ij − u_ij), shape (copies, p)."""
        return np.asarray(self._rho * self._pulled[:, i, 0] + self._h * self._pulled[:, i, 1])

    def message(self, i: int, model: np.ndarray) -> np.ndarray:
        """What end i sends after its model was set: s of the model and of its copy, shape (copies, 2, p)."""
        copy = (self._half * model + self._rho * self._pulled[:, i, 1]) / (self._half + self._rho)
        return np.stack([model, copy], axis=1) + self._multipliers[:, i]

    def meet(self, i: int, sent: np.ndarray, heard: np.ndarray) -> None:
        """Set end i from what it sent and heard: its model meets the other's copy, its copy the other's model."""
        self._pulled[:, i] = heard[:, ::-1]
        self._multipliers[:, i] = (sent - heard[:, ::-1]) / 2


class AdmmArena(GraphArena):
    """Two agents of a cell of gossip ADMM, linked with each other; see `p2psim.audit.system.AuditSystem`.

    The link has the weight 1. Each keeps its confidence, step and ridge as in the cell.
    """

    def play(self, held: Sequence[Record], events: np.ndarray, noise: np.ndarray, key: np.ndarray) -> Seen:
        """Replay events for many copies, and solve each step of a model for its noisy gradient.

        θ_i ← θ_i − (μc_i(∇L_i(θ_i) + η) + (ρ + h)θ_i − target)/(ρ + h + μc_i·L_i^loc) gives the mean gradient of
        records plus η, as ∇L_i(θ) also holds 2λ_i·θ.
        """
        copies = len(noise)
        start = np.stack([record.start for record in held])
        problem = self._problem(held, copies)
        algorithm = algorithm_of(self._cell.scenario)
        assert isinstance(algorithm, GossipAdmm)
        rule = admm_rule(algorithm, replace(self._cell.rule, grid=self.grid), problem)
        batches = sampling(self._batch, problem.records, key)
        replay = AdmmReplay(problem, rule, np.tile(start, (copies, 1)), track=False, sampling=batches)
        claimed, agents = self._cell.problem, list(self.agents)
        pull = claimed.mu * _WEIGHT * claimed.confidence[agents]
        ends = Ends(start, copies, rule.rho)
        step = 1.0 / (ends.stiffness + pull * claimed.smoothness[agents])
        gradients, models = np.empty_like(noise), np.empty_like(noise)
        kinds = {int(event["seq"]): int(event["kind"]) for event in events}
        said: dict[int, np.ndarray] = {}  # what each sent last
        for event, release, before, after in replayed(replay, events, noise):
            i = int(event["agent"])
            if event["kind"] == SEND:
                if release is not None:
                    move = (before - after) / step[i]
                    slope = move - ends.stiffness * before + ends.target(i)
                    gradients[:, release] = slope / pull[i] - 2 * claimed.ridge[agents[i]] * before
                    models[:, release] = before
                said[i] = ends.message(i, after)
                if kinds.get(int(event["cause"])) == DELIVER:  # an answer
                    ends.meet(i, said[i], said[1 - i])
            elif event["kind"] == COMMIT:
                ends.meet(i, said[i], said[1 - i])
        return Seen(gradients, models)
