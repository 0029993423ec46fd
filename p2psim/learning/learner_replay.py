"""What replays of a central learner have in common: chunks of events in, models out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from p2psim.errors import SimulationError
from p2psim.learning.in_flight import DONE
from p2psim.learning.star_problem import StarProblem
from p2psim.network.events import COMMIT

#: Rows for models to be recorded in: of θ, of the step, and of the time.
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Recorded:
    """Models of the learner, in order.

    Attributes
    ----------
    step : ndarray of int64, shape (rows,)
        Commits so far.
    time : ndarray, shape (rows,)
        Simulated time, in mean clock periods.
    theta : ndarray, shape (rows, p)
    """

    step: np.ndarray
    time: np.ndarray
    theta: np.ndarray


class LearnerReplay(ABC):
    """One replica with a central learner, fed with chunks of events.

    Parameters
    ----------
    problem : StarProblem
    start : ndarray, shape (p,)
        First model of the learner.
    every_step : int
        Record whenever so many more commits have been made; 0 for not by step.
    every_time : float
        Record whenever so much more time has passed; infinite for not by time.

    Attributes
    ----------
    violations : ndarray of int64, shape (N,)
        Releases at which a record of each owner, in the batch or not, exceeded the claimed bound.
    violation_steps : ndarray of int64, shape (N,)
        Commits before the first of them; −1 for none.
    violation_sizes : ndarray, shape (N,)
        Largest gradient seen at them over the bound; 0 for none.
    """

    #: What a commit is called where a model is not finite.
    step_name = "commit"

    def __init__(self, problem: StarProblem, start: np.ndarray, every_step: int, every_time: float):
        owners = problem.owners
        self._problem = problem
        self._every_step, self._every_time, self._next_time = every_step, every_time, every_time
        self._commits, self._counts = np.zeros(1, np.int64), np.zeros(owners, np.int64)
        self._last_time = 0.0
        self._kept: list[Rows] = [(np.array(start)[None], np.zeros(1, np.int64), np.zeros(1))]
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
        rows = self._rows(events)
        theta, step, time = (
            np.empty((rows, self._problem.dimension)),
            np.empty(rows, np.int64),
            np.empty(rows),
        )
        start = kept = 0
        noise_row = np.zeros(1, np.int64)
        while start < events.size:
            room = theta[kept:], step[kept:], time[kept:]
            status, start, more, self._next_time = self._replay(events, start, noise, noise_row, room)
            kept += more
            if status != DONE:
                self._make_room(status)
        self._last_time = float(events[-1]["time"])
        self._kept.append((theta[:kept], step[:kept], time[:kept]))

    def result(self) -> Recorded:
        """Models recorded so far; the first and the last are always among them.

        Raises
        ------
        SimulationError
            If a model is not finite.
        """
        theta, step, time = (np.concatenate(parts) for parts in zip(*self._kept, strict=True))
        if step[-1] != self._commits[0] or np.isfinite(self._every_time):
            step, time = np.append(step, self._commits), np.append(time, self._last_time)
            theta = np.vstack([theta, self._last()])
        if not np.isfinite(theta).all():
            first = step[~np.isfinite(theta).all(axis=1)][0]
            raise SimulationError(f"the model is not finite from {self.step_name} {first} on")
        return Recorded(step, time, theta)

    @abstractmethod
    def answers(self, seqs: np.ndarray) -> np.ndarray:
        """Noisy gradients of answers on their way, shape (k, p), by the seq of their sends, shape (k,).

        Raises
        ------
        KeyError
            If one of them is not on its way.
        """

    @abstractmethod
    def _replay(
        self, events: np.ndarray, start: int, noise: np.ndarray, noise_row: np.ndarray, room: Rows
    ) -> tuple[int, int, int, float]:
        """Status, next event, models recorded, and when to record by time next."""

    @abstractmethod
    def _make_room(self, status: int) -> None:
        """Double what the kernel found to be full."""

    @abstractmethod
    def _last(self) -> np.ndarray:
        """The model to be recorded now, shape (p,)."""

    def _rows(self, events: np.ndarray) -> int:
        """Room for the models that a chunk can make be recorded."""
        if self._every_step:
            return int(np.count_nonzero(events["kind"] == COMMIT)) // self._every_step + 1
        if np.isfinite(self._every_time):
            return max(0, int((events[-1]["time"] - self._next_time) / self._every_time) + 2)
        return 0
