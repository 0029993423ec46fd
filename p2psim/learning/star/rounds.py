"""The compiled replay of synchronous rounds: events in, models out.

`RoundsReplay` feeds the kernel with events, chunk by chunk, and keeps the models to be recorded.

State that is kept between chunks of events:

- ``models`` (T, p): θ[1] … of the learner, by version, as far as they have been made; ``average`` (p,): theirs;
- ``arrived`` (N, p): the answers of the open round that have reached the learner; ``has`` (N,) whose they are;
- ``places``, ``payloads``, ``free``, ``free_rows``: answers on their way, see `p2psim.learning.in_flight`;
- ``commits`` (1,): rounds so far; ``counts`` (N,): those in which each owner's answer was used.
"""

from __future__ import annotations

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, DELIVER, DROP, LEARNER, SEND
from p2psim.learning.batches import Sampling
from p2psim.learning.in_flight import DONE, InFlight, post, take
from p2psim.learning.owner_kernel import answer, project, snapped
from p2psim.learning.star.algorithms import RoundMethod
from p2psim.learning.star.problem import Keep, LearnerReplay, StarProblem
from p2psim.learning.star.replay import GradientRule


@njit()
def replay(  # type: ignore[no-untyped-def]
    events, start, models, average, arrived, has, places, payloads, free, free_rows, commits, counts,
    how, loss, gram, moment, X, y, norms, offsets, clip, grid, batch,
    suspects, suspect_offsets, bound, violations, violation_steps, violation_sizes,
    noise, noise_row, steps, shares, l2, theta_max, averages, keep, takes, newest,
    at_learner, at_owner, estimated, by_answered,
    stops, kept, kept_theta,
):  # fmt: skip
    """Replay events from ``start``; returns (status, next event, models kept).

    After ``stops[k]`` of the events the learner's model is kept in ``kept_theta[k]``; ``kept`` of them are there.
    """
    owners, p = arrived.shape
    total, mean = np.empty(p), np.empty(p)
    for e in range(start, events.size):
        event = events[e]
        kind, agent = event.kind, event.agent
        while kept < stops.size and stops[kept] == e:
            kept_theta[kept] = average if averages else models[commits[0]]
            kept += 1
        if kind == SEND and agent != LEARNER:
            row = post(event.seq, event.version, places, free, free_rows)
            if row < 0:
                return row, e, kept
            answer(
                agent, event.release, commits[0], models[event.version], mean,
                how, loss, gram, moment, X, y, norms, offsets, clip, batch,
                suspects, suspect_offsets, bound, violations, violation_steps, violation_sizes,
            )  # fmt: skip
            drawn = noise_row[0]
            noise_row[0] += 1
            for a in range(p):
                payloads[row, a] = snapped(at_owner[agent] * mean[a] + noise[drawn, a], grid)
        elif kind in (DELIVER, DROP) and agent == LEARNER and event.cause >= 0:
            row, version = take(event.cause, places, free, free_rows)
            # An answer to an older round comes too late.
            if row >= 0 and kind == DELIVER and version == commits[0]:
                arrived[event.peer] = payloads[row]
                has[event.peer] = True
        elif kind == COMMIT:
            k = commits[0]
            total[:] = 0.0
            answered = 0.0
            for i in range(owners):
                if has[i]:
                    weight = at_learner[i]
                    if estimated:
                        weight *= (k + 1) / (counts[i] + 1)
                    answered += shares[i]
                    counts[i] += 1
                    for a in range(p):
                        total[a] += weight * shares[i] * arrived[i, a]
            scale = 1.0 / answered if by_answered and answered > 0.0 else 1.0
            for a in range(p):
                at = models[k, a]
                models[k + 1, a] = project(at - steps[k] * (2.0 * l2 * at + scale * total[a]), theta_max)
                average[a] = keep[k] * average[a] + takes[k] * models[k + newest, a]
            has[:] = False
            commits[0] = k + 1
    while kept < stops.size:
        kept_theta[kept] = average if averages else models[commits[0]]
        kept += 1
    return DONE, events.size, kept


class RoundsReplay(LearnerReplay):
    """One replica of synchronous rounds, fed with chunks of events.

    Parameters
    ----------
    problem : StarProblem
    method : RoundMethod
    rule : GradientRule
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
        sampling: Sampling | None = None,
        start: np.ndarray | None = None,
    ):
        owners, p = problem.owners, problem.dimension
        self._models, self._mean = np.zeros((method.steps.size + 1, p)), np.zeros(p)
        if start is not None:
            self._models[0] = self._mean[:] = start
        super().__init__(problem)
        self._method, self._rule = method, rule
        self._batch = None if sampling is None else sampling.for_kernel(problem.records)
        self._arrived, self._has = np.zeros((owners, p)), np.zeros(owners, np.bool_)
        self._flight = InFlight(p)

    def _replay(
        self, events: np.ndarray, start: int, noise: np.ndarray, noise_row: np.ndarray, keep: Keep
    ) -> tuple[int, int, int]:
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
            *keep,
        )  # fmt: skip

    def _make_room(self, status: int) -> None:
        self._flight.make_room(status)

    @property
    def model(self) -> np.ndarray:
        """See `LearnerReplay.model`."""
        return self._mean if self._method.averages else self._models[self._commits[0]]

    def answers(self, seqs: np.ndarray) -> np.ndarray:
        """See `LearnerReplay.answers`."""
        return self._flight.of(seqs)
