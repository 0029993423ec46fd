"""Replays events on the compiled kernel of synchronous rounds, chunk by chunk, and keeps the models to be recorded."""

from __future__ import annotations

import numpy as np

from p2psim.learning.batches import Sampling
from p2psim.learning.in_flight import InFlight
from p2psim.learning.learner_replay import LearnerReplay, Rows
from p2psim.learning.rounds_kernel import replay
from p2psim.learning.star_problem import StarProblem
from p2psim.learning.star_replay import GradientRule
from p2psim.learning.synchronous import RoundMethod


class RoundsReplay(LearnerReplay):
    """One replica of synchronous rounds, fed with chunks of events.

    Parameters
    ----------
    problem : StarProblem
    method : RoundMethod
    rule : GradientRule
    every_step, every_time
        As in `LearnerReplay`.
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.
    start : ndarray, shape (p,), optional
        First model; zero, as in W, when left out.
    """

    step_name = "round"

    def __init__(
        self,
        problem: StarProblem,
        method: RoundMethod,
        rule: GradientRule,
        every_step: int = 0,
        every_time: float = np.inf,
        sampling: Sampling | None = None,
        start: np.ndarray | None = None,
    ):
        owners, p = problem.owners, problem.dimension
        self._models, self._mean = np.zeros((method.steps.size + 1, p)), np.zeros(p)
        if start is not None:
            self._models[0] = self._mean[:] = start
        super().__init__(problem, self._mean, every_step, every_time)
        self._method, self._rule = method, rule
        self._batch = None if sampling is None else sampling.for_kernel(problem.records)
        self._arrived, self._has = np.zeros((owners, p)), np.zeros(owners, np.bool_)
        self._flight = InFlight(p)

    def _replay(
        self, events: np.ndarray, start: int, noise: np.ndarray, noise_row: np.ndarray, room: Rows
    ) -> tuple[int, int, int, float]:
        problem, method, rule, flight = self._problem, self._method, self._rule, self._flight
        return replay(
            events, start, self._models, self._mean, self._arrived, self._has,
            flight.places, flight.payloads, flight.free, flight.free_rows, self._commits, self._counts,
            rule.how, problem.loss.for_kernel(), problem.gram, problem.moment,
            problem.X, problem.y, problem.norms(rule.order), problem.offsets, rule.clip, rule.grid, self._batch,
            rule.suspects, rule.suspect_offsets, rule.bound,
            self.violations, self.violation_steps, self.violation_sizes,
            noise, noise_row, method.steps, problem.shares, problem.l2,
            problem.theta_max if method.projects else np.inf,
            method.averages, method.keep, method.take, int(method.newest),
            method.weighting.at_learner, method.weighting.at_owner, method.weighting.estimated, method.by_answered,
            self._every_step, self._every_time, self._next_time, *room,
        )  # fmt: skip

    def _make_room(self, status: int) -> None:
        self._flight.make_room(status)

    def _last(self) -> np.ndarray:
        return self._mean if self._method.averages else self._models[self._commits[0]]

    def answers(self, seqs: np.ndarray) -> np.ndarray:
        """See `LearnerReplay.answers`."""
        return self._flight.of(seqs)
