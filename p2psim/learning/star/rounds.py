"""The compiled replay of synchronous rounds: events in, models out.

`RoundsReplay` feeds the kernel with events, chunk by chunk, and keeps the models to be recorded.

State that is kept between chunks of events:

- ``models`` (T + 1, p): θ[1] … of the learner, by version, as far as they have been made; last, their average;
- ``arrived`` (N, p): the answers of the open round that have reached the learner; ``has`` (N,) whose they are;
- ``mail``: answers on their way, see `p2psim.learning.in_flight`;
- ``commits`` (1,): rounds so far; ``counts`` (N,): those in which each owner's answer was used.
"""

import math

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, DELIVER, DROP, LEARNER, SEND
from p2psim.learning.batches import Sampling
from p2psim.learning.in_flight import DONE, copy_row, post, take
from p2psim.learning.owner_kernel import project, snapped
from p2psim.learning.star.algorithms import Lies, RoundMethod
from p2psim.learning.star.owners import answer
from p2psim.learning.star.replay import Keep, LearnerReplay, keep_model


@njit()
def clip_answer(answer, norm):  # type: ignore[no-untyped-def]
    """Shorten an answer to at most this L2 norm, in place."""
    if norm == np.inf:
        return
    square = 0.0
    for a in range(answer.size):
        square += answer[a] * answer[a]
    if square > norm * norm:
        answer *= norm / math.sqrt(square)


@njit()
def trimmed_mean(arrived, has, a, trim, column):  # type: ignore[no-untyped-def]
    """Mean of a coordinate of the answers without a share of them at each end; half of them leaves the median."""
    heard = 0
    for i in range(has.size):
        if has[i]:
            column[heard] = arrived[i, a]
            heard += 1
    column[:heard].sort()
    cut = min(int(trim * heard + 1e-9), (heard - 1) // 2)  # 0.29 of 100 is 28.999…
    total = 0.0
    for i in range(cut, heard - cut):
        total += column[i]
    return total / (heard - 2 * cut)


@njit()
def replay(  # type: ignore[no-untyped-def]
    events, start, models, arrived, has, mail, commits, counts,
    held, batch, grid, violations, noise, noise_row, method, weights, keep,
):  # fmt: skip
    """Replay events from ``start``; returns (status, next event)."""
    owners, p = arrived.shape
    total, mean, last = np.empty(p), np.empty(p), len(models) - 1
    at_learner, at_owner, estimated, by_answered = weights
    steps, shares, l2, theta_max, averages, weights_kept, weights_taken, newest, clip, trim, lies = method
    liars, factors, offsets = lies
    column = np.empty(owners)
    for e in range(start, events.size):
        event = events[e]
        kind, agent = event.kind, event.agent
        keep_model(e, models, last if averages else commits[0], keep)
        if kind == SEND and agent != LEARNER:
            row = post(event.seq, event.version, mail)
            if row < 0:
                return row, e
            answer(agent, event.release, commits[0], models[event.version], mean, held, batch, violations)
            drawn = noise_row[0]
            noise_row[0] += 1
            for a in range(p):
                mail.payloads[row, a] = snapped(at_owner[agent] * mean[a] + noise[drawn, a], grid)
                if liars[agent]:
                    mail.payloads[row, a] = factors[agent] * mail.payloads[row, a] + offsets[agent, a]
        elif kind in (DELIVER, DROP) and agent == LEARNER and event.cause >= 0:
            row, version = take(event.cause, mail)
            # An answer to an older round comes too late.
            if row >= 0 and kind == DELIVER and version == commits[0]:
                copy_row(mail.payloads[row], arrived[event.peer])
                has[event.peer] = True
        elif kind == COMMIT:
            k = commits[0]
            total[:] = 0.0
            answered, mass, heard = 0.0, 0.0, 0
            for i in range(owners):
                if has[i]:
                    weight = at_learner[i]
                    if estimated:
                        weight *= (k + 1) / (counts[i] + 1)
                    answered += shares[i]
                    counts[i] += 1
                    mass += weight * shares[i]
                    heard += 1
                    clip_answer(arrived[i], clip)
                    for a in range(p):
                        total[a] += weight * shares[i] * arrived[i, a]
            if trim > 0.0 and heard > 0:
                for a in range(p):
                    total[a] = mass * trimmed_mean(arrived, has, a, trim, column)
            scale = 1.0 / answered if by_answered and answered > 0.0 else 1.0
            for a in range(p):
                at = models[k, a]
                models[k + 1, a] = project(at - steps[k] * (2.0 * l2 * at + scale * total[a]), theta_max)
                models[last, a] = weights_kept[k] * models[last, a] + weights_taken[k] * models[k + newest, a]
            has[:] = False
            commits[0] = k + 1
    keep_model(events.size, models, last if averages else commits[0], keep)
    return DONE, events.size


class RoundsReplay(LearnerReplay):
    """One replica of synchronous rounds, fed with chunks of events; see `LearnerReplay`."""

    step_name = "round"

    def _prepare(self, method: RoundMethod) -> None:
        problem = self._problem
        self._rounds, self._averages = method.steps.size, method.averages
        theta_max = problem.theta_max if method.projects else np.inf
        lies = method.lies or Lies.none(problem.owners, problem.dimension)
        self._method = (
            method.steps, problem.shares, problem.l2, theta_max,
            method.averages, method.keep, method.take, int(method.newest), method.clip, method.trim,
            (lies.liars, lies.factors, lies.offsets),
        )  # fmt: skip
        weighting = method.weighting
        self._weights = (
            weighting.at_learner, weighting.at_owner, weighting.estimated, method.by_answered
        )  # fmt: skip

    def _begin(self, sampling: Sampling | None) -> None:
        super()._begin(sampling)
        owners, p = self._problem.owners, self._problem.dimension
        self._models = np.zeros((self._rounds + 2, p))
        self._models[[0, -1]] = self._start
        self._arrived, self._has = np.zeros((owners, p)), np.zeros(owners, np.bool_)

    def _replay(
        self, events: np.ndarray, start: int, noise: np.ndarray, noise_row: np.ndarray, keep: Keep
    ) -> tuple[int, int]:
        return replay(
            events, start, self._models, self._arrived, self._has, self._mail, self._commits, self._counts,
            self._held, self._batch, self._grid, self.violations, noise, noise_row,
            self._method, self._weights, keep,
        )  # fmt: skip

    @property
    def model(self) -> np.ndarray:
        """See `LearnerReplay.model`."""
        return self._models[-1 if self._averages else self._commits[0]]
