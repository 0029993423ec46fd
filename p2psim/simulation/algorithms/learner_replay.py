"""One replica with a central learner, fed with events."""

from collections.abc import Iterator, Sequence

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.learning.metrics import METRICS, Series
from p2psim.learning.star.models import LearnerReplay
from p2psim.learning.star.problem import Recorded, StarProblem
from p2psim.scenario.notices import Compared
from p2psim.scenario.record import RecordSection
from p2psim.simulation.algorithms.replay import Replay, ReplayResult
from p2psim.simulation.recorder import Marks


class RecordedLearnerReplay(Replay):
    """One replica with a central learner, and its models where they are recorded.

    Parameters
    ----------
    replay : LearnerReplay
    problem : StarProblem
    record : RecordSection
    """

    def __init__(self, replay: LearnerReplay, problem: StarProblem, record: RecordSection):
        super().__init__(replay)
        self._problem, self._record = problem, record
        self._kept: list[Recorded] = []

    def feed(self, events: np.ndarray, noise: np.ndarray, places: np.ndarray, marks: Marks) -> None:
        """See `Replay.feed`."""
        theta = self._replay.feed(events, noise, marks.places)
        self._kept.append(Recorded(marks.steps, marks.times, theta))

    def finish(self, marks: Marks) -> ReplayResult:
        """See `Replay.finish`."""
        last = np.repeat(self._replay.model[None], marks.steps.size, axis=0)
        kept = [*self._kept, Recorded(marks.steps, marks.times, last)]
        recorded = Recorded(*(np.concatenate(columns) for columns in zip(*kept, strict=True)))
        lost = ~np.isfinite(recorded.theta).all(axis=1)
        if lost.any():
            first = recorded.step[lost][0]
            raise SimulationError(f"the model is not finite from {self._replay.step_name} {first} on")
        metrics = [METRICS[name] for name in self._record.metrics if name in METRICS]
        series = tuple(entry for metric in metrics for entry in metric.measure(self._problem, recorded))
        for entry in series:
            if not np.isfinite(entry.value).all():
                at = entry.step[~np.isfinite(entry.value)][0]
                raise SimulationError(f"{entry.metric} is not finite from step {at} on")
        return ReplayResult(series, recorded.theta)


def compared_with(
    problem: StarProblem, theta: np.ndarray, series: tuple[Series, ...], models: np.ndarray | None
) -> Iterator[Compared]:
    """What was recorded of a replica beside its models as recomputed, shape (steps + 1, p); ψ relative to 1 + ψ.

    Other metrics than those of fitness are measured again, at the steps of their own records.
    """
    compared = [entry for entry in series if entry.metric == "relative_fitness" and entry.model == "main"]
    for entry in compared:
        psi = problem.checked(problem.fitness(theta[entry.step]) / problem.minimum - 1, theta[entry.step])
        problem.checked(entry.value, theta[entry.step])
        yield Compared(entry.value, psi, 1 + np.abs(psi))
    fitness = ("relative_fitness", "isolated_fitness")
    for name in {entry.metric: None for entry in series if entry.metric not in fitness}:
        yield from _measured_again(problem, theta, [entry for entry in series if entry.metric == name])
    if models is not None and compared:
        yield Compared.of(models, theta[compared[0].step])


def _measured_again(problem: StarProblem, theta: np.ndarray, series: Sequence[Series]) -> Iterator[Compared]:
    """Series of one metric beside those of the recomputed models."""
    step = np.concatenate([entry.step for entry in series])
    # Two records can follow the same commit.
    moments = dict.fromkeys(
        zip(step.tolist(), np.concatenate([entry.time for entry in series]).tolist(), strict=True)
    )
    steps, times = np.array(list(moments), dtype=float).T
    recorded = Recorded(steps.astype(np.int64), times, theta[steps.astype(np.int64)])
    again = {
        (entry.model, entry.agent): entry.value
        for entry in METRICS[series[0].metric].measure(problem, recorded)
    }
    for entry in series:
        yield Compared.of(entry.value, again.get((entry.model, entry.agent), np.empty(0)))
