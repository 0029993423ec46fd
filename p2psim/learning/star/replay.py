"""Replays events on the compiled kernel of the star, chunk by chunk, and keeps the models to be recorded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.learning.batches import Sampling
from p2psim.learning.owner_kernel import FROM_RECORDS, FROM_SUMS
from p2psim.learning.star.algorithms import StarMethod
from p2psim.learning.star.kernel import ANSWERS_FULL, QUERIES_FULL, replay
from p2psim.learning.star.problem import Keep, LearnerReplay, StarProblem
from p2psim.learning.steps import CODES, Weighting


@dataclass(frozen=True)
class GradientRule:
    """How an owner computes its mean gradient, and what is checked meanwhile.

    Attributes
    ----------
    clip : float
        Norm to which each record's gradient is clipped; infinite for none.
    order : int
        Order of that norm, 1 or 2.
    grid : float or None
        What noisy gradients are rounded to multiples of.
    how : int
        ``FROM_SUMS`` where that is exact, else ``FROM_RECORDS``.
    bound : float
        Claimed bound on the same norm of a record's gradient; infinite for no claim.
    suspects : ndarray of int64
        Rows of the records that can exceed the bound, owner by owner.
    suspect_offsets : ndarray of int64, shape (N + 1,)
    """

    clip: float
    order: int
    grid: float | None
    how: int
    bound: float
    suspects: np.ndarray
    suspect_offsets: np.ndarray


def gradient_rule(
    problem: StarProblem,
    clip: float = np.inf,
    bound: float = np.inf,
    order: int = 1,
    grid: float | None = None,
) -> GradientRule:
    """Choose the cheapest exact way to compute gradients.

    Sums serve the squared loss when no record can reach the clipping norm on Θ: the cost of a gradient then does
    not grow with the records. For the check of a claimed bound, only those records are looked at that can exceed
    it somewhere on Θ.

    Parameters
    ----------
    problem : StarProblem
    clip, bound, order, grid
        See `GradientRule`.
    """
    nothing = np.zeros(0, np.int64), np.zeros(problem.owners + 1, np.int64)
    if np.isinf(clip) and np.isinf(bound):
        largest = 0.0
        suspects, suspect_offsets = nothing
    else:
        gradients = problem.largest_gradients(order)
        largest = float(gradients.max())
        # A relative margin for rounding, on the safe side of neither: a bound met exactly is no violation.
        suspects = np.flatnonzero(gradients > bound * (1 + 1e-12))
        suspect_offsets = np.searchsorted(suspects, problem.offsets)
    sums = problem.loss.is_squared_error and (np.isinf(clip) or largest <= clip)
    return GradientRule(
        clip, order, grid, FROM_SUMS if sums else FROM_RECORDS, bound * (1 + 1e-12), suspects, suspect_offsets
    )


class StarReplay(LearnerReplay):
    """One replica of the asynchronous star, fed with chunks of events.

    Parameters
    ----------
    problem : StarProblem
    method : StarMethod
    rule : GradientRule
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.
    start : ndarray, shape (p,), optional
        First model of the learner and of all owners; zero, as in F, when left out.
    """

    def __init__(
        self,
        problem: StarProblem,
        method: StarMethod,
        rule: GradientRule,
        sampling: Sampling | None = None,
        start: np.ndarray | None = None,
    ):
        owners, p = problem.owners, problem.dimension
        self._theta = np.zeros((owners + 1, p))
        if start is not None:
            self._theta[:] = start
        super().__init__(problem)
        self._method, self._rule = method, rule
        self._batch = None if sampling is None else sampling.for_kernel(problem.records)
        self._asked, self._asked_version = np.zeros((owners, p)), np.zeros(owners, np.int64)
        self._answers, self._answer_seq = np.zeros((8, 2 * p)), np.full(8, -1)
        self._queries, self._query_seq, self._query_left = _queries(2, owners, p)
        self._arrived, self._arrived_version = np.zeros(2 * p), np.zeros(1, np.int64)
        self._weighting = method.weighting or Weighting.equal(owners)

    def _replay(
        self, events: np.ndarray, start: int, noise: np.ndarray, noise_row: np.ndarray, keep: Keep
    ) -> tuple[int, int, int]:
        problem, method, rule, weighting = self._problem, self._method, self._rule, self._weighting
        return replay(
            events, start, self._theta, self._asked, self._asked_version, self._answers, self._answer_seq,
            self._queries, self._query_seq, self._query_left,
            self._arrived, self._arrived_version, self._commits, self._counts,
            rule.how, problem.loss.for_kernel(), problem.gram, problem.moment,
            problem.X, problem.y, problem.norms(rule.order), problem.offsets, rule.clip, rule.grid, self._batch,
            rule.suspects, rule.suspect_offsets, rule.bound,
            self.violations, self.violation_steps, self.violation_sizes,
            noise, noise_row, method.step, problem.shares, method.learner_weight,
            problem.l2, problem.theta_max, method.overwrite,
            weighting.at_learner, weighting.at_owner, weighting.estimated,
            CODES[weighting.staleness.kind], weighting.rate,
            *keep,
        )  # fmt: skip

    def _make_room(self, status: int) -> None:
        if status == ANSWERS_FULL:
            self._more_answers()
        elif status == QUERIES_FULL:
            self._more_queries()

    @property
    def model(self) -> np.ndarray:
        """See `LearnerReplay.model`."""
        return self._theta[-1]

    def answers(self, seqs: np.ndarray) -> np.ndarray:
        """See `LearnerReplay.answers`."""
        places = seqs % self._answer_seq.size
        gone = self._answer_seq[places] != seqs
        if gone.any():
            raise KeyError(f"no answer sent as event {seqs[gone][0]} is on its way")
        return self._answers[places, : self._problem.dimension].copy()

    @property
    def payloads(self) -> int:
        """Vectors that messages on their way hold at this moment."""
        return int((self._answer_seq >= 0).sum() + self._query_left[self._query_seq >= 0].sum())

    @property
    def payload_places(self) -> int:
        """Vectors for which there is room; grows only with what is on its way at once."""
        return self._answer_seq.size + self._query_seq.size * self._problem.owners

    def _more_answers(self) -> None:
        old_seq, old = self._answer_seq, self._answers
        size = 2 * old_seq.size
        self._answer_seq, self._answers = np.full(size, -1), np.zeros((size, old.shape[1]))
        live = old_seq >= 0
        self._answer_seq[old_seq[live] % size] = old_seq[live]
        self._answers[old_seq[live] % size] = old[live]

    def _more_queries(self) -> None:
        old_queries, old_seq, old_left = self._queries, self._query_seq, self._query_left
        self._queries, self._query_seq, self._query_left = _queries(2 * old_seq.size, *old_queries.shape[1:])
        self._queries[: old_seq.size] = old_queries
        self._query_seq[: old_seq.size] = old_seq
        self._query_left[: old_seq.size] = old_left


def _queries(size: int, owners: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((size, owners, p)), np.full(size, -1), np.zeros(size, np.int64)
