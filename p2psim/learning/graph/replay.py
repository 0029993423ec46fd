"""The class that feeds events to the compiled kernel of coordinate descent and model propagation.

The decorator `once_a_problem` keeps models that are computed from a problem, so that the cells and replicas of a study
that share the problem compute them once per process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec

import numpy as np

from p2psim.core.events import JOIN
from p2psim.learning.batches import Sampling
from p2psim.learning.graph import kernel
from p2psim.learning.graph.problem import GraphProblem, LearnedModels
from p2psim.learning.owner_kernel import UNKNOWN, evaluate


@dataclass(frozen=True)
class GraphRule:
    """How an agent updates its model.

    Attributes
    ----------
    clip : float
        Norm to which each record's gradient is clipped; infinite for none.
    order : int
        Order of that norm, 1 or 2.
    bound : float
        Claimed bound on a record's gradient in that norm, checked at every release; infinite for no claim.
    anchored : bool
        Whether an update that makes no release pulls towards the agent's anchor, not only averages.
    grid : float or None
        What noisy gradients are rounded to multiples of, halves upwards.
    """

    clip: float = np.inf
    order: int = 1
    bound: float = np.inf
    anchored: bool = False
    grid: float | None = None


class GraphReplay(LearnedModels):
    """One replica of coordinate descent or model propagation, fed with chunks of events.

    Parameters
    ----------
    problem : GraphProblem
    rule : GraphRule
    start : ndarray, shape (n, p)
        The agents' first models, which their neighbours know.
    anchor : ndarray, shape (n, p), optional
        What updates without a release pull towards, until the agent's first release; the start when left out.
    track : bool
        Keep Q_L up to date.
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.
    """

    def __init__(
        self,
        problem: GraphProblem,
        rule: GraphRule,
        start: np.ndarray,
        anchor: np.ndarray | None = None,
        track: bool = True,
        sampling: Sampling | None = None,
    ):
        super().__init__(problem, rule, start, anchor, track, sampling)
        self._rule, n = rule, len(start)
        self._start = self.theta.copy()
        self._versions = np.zeros(n, np.int64)
        # What a neighbour knows at first is the start, one row an agent, held by its neighbours.
        self._pool = np.vstack([self.theta, np.empty_like(self.theta)])
        self._references = np.concatenate([np.bincount(problem.indices, minlength=n), np.zeros(n, np.int64)])
        self._free = np.arange(2 * n)[::-1].astype(np.int64)
        self._held = np.zeros((problem.indices.size, 2), np.int64)
        self._held[:, kernel.SLOT] = np.repeat(np.arange(n), np.diff(problem.indptr))
        self._messages = _messages(64)
        self._cursor = problem.indptr[:-1].copy()
        self.counters = np.zeros(kernel.COUNTERS, np.int64)
        self.counters[kernel.FREE] = n

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """Replay events.

        Parameters
        ----------
        events : ndarray of EVENT
        noise : ndarray, shape (releases in these events, p)
            Noise of each release, in the order of the events.
        """
        self.counters[kernel.NOISE_ROW] = 0
        # Agents that come back with another model than their own are few, and no matter of the kernel.
        back = np.flatnonzero((events["kind"] == JOIN) & (events["version"] >= 0))
        start = 0
        for place in back.tolist():
            self._replay(events[start:place], noise)
            self._come_back(int(events["agent"][place]), int(events["peer"][place]))
            start = place + 1
        self._replay(events[start:], noise)

    def _come_back(self, i: int, peer: int) -> None:
        """Have agent i take the model of another, or the one that it started from."""
        problem, rule, old = self._problem, self._rule, self.theta[i].copy()
        self.theta[i] = self.theta[peer] if peer >= 0 else self._start[i]
        self._known[i] = UNKNOWN
        # What its neighbours hold is no longer its model, whatever the number of the version.
        self._versions[i] = -1
        if self._track:
            new, _ = evaluate(
                problem.loss.for_kernel(), problem.X, problem.y, problem.norms(rule.order),
                problem.offsets[i], problem.offsets[i + 1], rule.clip, rule.bound, self.theta[i], np.empty(0),
            )  # fmt: skip
            kernel.track_objective(
                i, old, np.empty_like(old), True, self.theta, new, self.local, self._sums,
                problem.indptr, problem.indices, problem.weights, problem.degrees, problem.ridge, problem.pull,
            )  # fmt: skip

    def _replay(self, events: np.ndarray, noise: np.ndarray) -> None:
        problem, rule = self._problem, self._rule
        at = 0
        while at < events.size:
            status, at = kernel.replay(
                events, at, self.theta, self._gradients, self._known, self._anchor, self._versions,
                self._pool, self._references, self._free, self._held,
                *self._messages, self._cursor, self.counters, self._sums, self.local,
                problem.indptr, problem.indices, problem.reverse, problem.weights, problem.degrees,
                problem.loss.for_kernel(), problem.X, problem.y, problem.norms(rule.order), problem.offsets,
                rule.clip, rule.grid, self._batch, rule.bound,
                self.violations, self.violation_steps, self.violation_sizes,
                problem.alpha, problem.pull, problem.ridge,
                kernel.ANCHORED if rule.anchored else kernel.AVERAGE, noise, self._track,
            )  # fmt: skip
            if status == kernel.POOL_FULL:
                self._more_versions()
            elif status == kernel.MESSAGES_FULL:
                self._more_messages()

    @property
    def vectors_sent(self) -> int:
        """Models sent so far; one for a broadcast, however many hear it."""
        return int(self.counters[kernel.SENT])

    @property
    def versions_held(self) -> int:
        """Versions that someone holds or that are on their way."""
        return int(self._references.size - self.counters[kernel.FREE])

    def _more_versions(self) -> None:
        old = self._references.size
        more = max(64, old // 4)
        self._pool = np.vstack([self._pool, np.empty((more, self._pool.shape[1]))])
        self._references = np.concatenate([self._references, np.zeros(more, np.int64)])
        free = np.zeros(old + more, np.int64)
        free[:more] = np.arange(old, old + more)[::-1]
        self._free = free
        self.counters[kernel.FREE] = more

    def _more_messages(self) -> None:
        seq, slot, left = self._messages
        size = 2 * seq.size
        bigger = _messages(size)
        live = seq >= 0
        place = seq[live] % size
        for new, old in zip(bigger, (seq, slot, left), strict=True):
            new[place] = old[live]
        self._messages = bigger


def _messages(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.full(size, -1), np.zeros(size, np.int64), np.zeros(size, np.int64)


_Rest = ParamSpec("_Rest")

#: Problems whose models are kept. Cells of one replica follow each other.
_KEPT = 16


def once_a_problem(
    function: Callable[Concatenate[GraphProblem, _Rest], np.ndarray],
) -> Callable[Concatenate[GraphProblem, _Rest], np.ndarray]:
    """Decorator: keep the models that a function of a problem, and of things that can be hashed, gives.

    Problems are told apart by their contents. The models cannot be written to.
    """
    kept: OrderedDict[object, np.ndarray] = OrderedDict()

    @wraps(function)
    def shared(problem: GraphProblem, /, *rest: _Rest.args, **named: _Rest.kwargs) -> np.ndarray:
        key = problem.digest, rest, tuple(sorted(named.items()))
        if key not in kept:
            kept[key] = function(problem, *rest, **named)
            kept[key].flags.writeable = False
        kept.move_to_end(key)
        while len(kept) > _KEPT:
            kept.popitem(last=False)
        return kept[key]

    return shared
