"""Coordinate descent under audit: what neighbours see of an agent's models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from p2psim.learning.admm_replay import AdmmReplay
from p2psim.learning.batches import batch_of, sampling
from p2psim.learning.graph_problem import GraphProblem
from p2psim.learning.graph_replay import GraphReplay
from p2psim.network.events import COMMIT, DELIVER, SEND
from p2psim.network.links import from_edges
from p2psim.network.simulation import Network
from p2psim.study.auditing.arena import Record, Seen, records_here, releases_of, tables
from p2psim.study.auditing.canaries import Reach
from p2psim.study.auditing.copies import Copies
from p2psim.study.families.graph import GraphCell
from p2psim.study.families.graph_setting import algorithm_of
from p2psim.study.families.stage import goes_on


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
    """Two agents of a graph's cell, linked with each other; see `p2psim.study.auditing.arena.Arena`.

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
