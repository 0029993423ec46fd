"""Replays events on the compiled kernel of synchronous rounds, chunk by chunk, and keeps the models to be recorded."""

from __future__ import annotations

import numpy as np

from p2psim.errors import SimulationError
from p2psim.learning.batches import Sampling
from p2psim.learning.in_flight import InFlight
from p2psim.learning.rounds_kernel import DONE, replay
from p2psim.learning.star_problem import StarProblem
from p2psim.learning.star_replay import GradientRule, Recorded
from p2psim.learning.synchronous import RoundMethod
from p2psim.network.events import COMMIT


class RoundsReplay:
    """One replica of synchronous rounds, fed with chunks of events.

    Parameters
    ----------
    problem : StarProblem
    method : RoundMethod
    rule : GradientRule
    every_step : int
        Record whenever so many more rounds have been made; 0 for not by step.
    every_time : float
        Record whenever so much more time has passed; infinite for not by time.
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.
    start : ndarray, shape (p,), optional
        First model; zero, as in W, when left out.

    Attributes
    ----------
    violations, violation_steps, violation_sizes : ndarray, shape (N,)
        As of `p2psim.learning.star_replay.StarReplay`.
    """

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
        self._problem, self._method, self._rule = problem, method, rule
        self._batch = None if sampling is None else sampling.for_kernel(problem.records)
        self._every_step, self._every_time, self._next_time = every_step, every_time, every_time
        self._models, self._mean = np.zeros((method.steps.size + 1, p)), np.zeros(p)
        if start is not None:
            self._models[0] = self._mean[:] = start
        self._arrived, self._has = np.zeros((owners, p)), np.zeros(owners, np.bool_)
        self._flight = InFlight(p)
        self._commits, self._counts = np.zeros(1, np.int64), np.zeros(owners, np.int64)
        self._last_time = 0.0
        self._kept = [(np.zeros(1, np.int64), np.zeros(1), self._models[:1].copy())]
        self.violations, self.violation_steps = np.zeros(owners, np.int64), np.full(owners, -1)
        self.violation_sizes = np.zeros(owners)

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """Replay the next chunk.

        Parameters
        ----------
        events : ndarray of EVENT
        noise : ndarray, shape (releases in these events, p)
            Noise to add to the mean gradients, in the order of the events.
        """
        if not events.size:
            return
        problem, method, rule, flight = self._problem, self._method, self._rule, self._flight
        rows = self._rows(events)
        kept_theta = np.empty((rows, problem.dimension))
        kept_step, kept_time = np.empty(rows, np.int64), np.empty(rows)
        start = kept = 0
        noise_row = np.zeros(1, np.int64)
        while start < events.size:
            status, start, more, self._next_time = replay(
                events, start, self._models, self._mean, self._arrived, self._has,
                flight.places, flight.payloads, flight.free, flight.free_rows, self._commits, self._counts,
                rule.how, problem.loss.code, problem.gram, problem.moment,
                problem.X, problem.y, problem.norms(rule.order), problem.offsets, rule.clip, rule.grid, self._batch,
                rule.suspects, rule.suspect_offsets, rule.bound,
                self.violations, self.violation_steps, self.violation_sizes,
                noise, noise_row, method.steps, problem.shares, problem.l2,
                problem.theta_max if method.projects else np.inf,
                method.averages, method.keep, method.take, int(method.newest),
                method.weighting.at_learner, method.weighting.at_owner, method.weighting.estimated, method.by_answered,
                self._every_step, self._every_time, self._next_time,
                kept_theta[kept:], kept_step[kept:], kept_time[kept:],
            )  # fmt: skip
            kept += more
            if status != DONE:
                flight.make_room(status)
        self._last_time = float(events[-1]["time"])
        self._kept.append((kept_step[:kept], kept_time[:kept], kept_theta[:kept]))

    def result(self) -> Recorded:
        """Models recorded so far; the first and the last are always among them.

        Raises
        ------
        SimulationError
            If a model is not finite.
        """
        step, time, theta = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        rounds = int(self._commits[0])
        if step[-1] != rounds or np.isfinite(self._every_time):
            last = self._mean if self._method.averages else self._models[rounds]
            step, time = np.append(step, rounds), np.append(time, self._last_time)
            theta = np.vstack([theta, last])
        if not np.isfinite(theta).all():
            raise SimulationError(
                f"the model is not finite from round {step[~np.isfinite(theta).all(axis=1)][0]} on"
            )
        return Recorded(step, time, theta)

    def answers(self, seqs: np.ndarray) -> np.ndarray:
        """Noisy gradients of answers on their way, shape (k, p), by the seq of their sends, shape (k,).

        Raises
        ------
        KeyError
            If one of them is not on its way.
        """
        return self._flight.of(seqs)

    def _rows(self, events: np.ndarray) -> int:
        """Room for the models that a chunk can make be recorded."""
        if self._every_step:
            return int(np.count_nonzero(events["kind"] == COMMIT)) // self._every_step + 1
        if np.isfinite(self._every_time):
            return max(0, int((events[-1]["time"] - self._next_time) / self._every_time) + 2)
        return 0
