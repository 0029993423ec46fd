"""Compiled replays with a central learner, events in and models out: their base class, and the star with its kernel.

State that is kept between chunks of events:

- ``theta`` (N + 1, p): the owners' models and, last, the learner's;
- ``asked`` (N, p), ``asked_version`` (N,): the θ̄ of the newest query that each owner heard, and its version;
- ``mail``: answers on their way, each a noisy mean gradient and its θ̄, see `p2psim.learning.in_flight`;
- ``queries`` (capacity, N, p): for each query on its way, the θ̄ for each receiver; ``query_seq``, and
  ``query_left`` with the number of receivers at which it has not ended yet;
- ``arrived`` (2p): the answer that reached the learner last; ``arrived_version`` (1,): of the model that it answers;
- ``commits`` (1,): commits so far; ``counts`` (N,): those with an answer of each owner.

A payload is let go when its message ends, delivered or dropped. A place that is taken when it is needed stops
the kernel, and the driver makes room.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Self

import numpy as np

from p2psim.core.compiled import njit, unwritten
from p2psim.core.events import COMMIT, DELIVER, DROP, JOIN, LEARNER, SEND
from p2psim.learning.batches import Sampling
from p2psim.learning.in_flight import DONE, InFlight, copy_row, post, take
from p2psim.learning.owner_kernel import Records, project, snapped
from p2psim.learning.star.algorithms import StarMethod
from p2psim.learning.star.owners import FROM_MENDED_SUMS, OwnerRecords, answer
from p2psim.learning.star.problem import StarProblem
from p2psim.learning.step_sizes import ExponentialDiscount, InverseDiscount
from p2psim.learning.steps import Weighting
from p2psim.privacy.releases import Violations


class Keep(NamedTuple):
    """Where to keep the learner's model in a chunk of events, rows to keep them in, and how many are kept."""

    stops: np.ndarray
    models: np.ndarray
    kept: np.ndarray


@njit(inline="always")
def keep_model(at, models, row, keep):  # type: ignore[no-untyped-def]
    """Keep a row of ``models`` as often as it is to be kept before event ``at``."""
    while keep.kept[0] < keep.stops.size and keep.stops[keep.kept[0]] <= at:
        copy_row(models[row], keep.models[keep.kept[0]])
        keep.kept[0] += 1


_NOWHERE = np.empty(0, np.int64)


class LearnerReplay(ABC):
    """One replica with a central learner, fed with chunks of events.

    Parameters
    ----------
    problem : StarProblem
    method : StarMethod or RoundMethod
    rule : OwnerRule
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.
    start : ndarray, shape (p,), optional
        First model of the learner and of all owners; zero, as in the papers, when left out.

    Attributes
    ----------
    violations : Violations
        Releases at which a record of each owner, in the batch or not, exceeded the claimed bound.
    """

    #: What a commit is called where a model is not finite.
    step_name = "commit"

    #: Numbers in an answer, by p: it begins with the noisy gradient.
    vectors = 1

    def __init__(
        self,
        problem: StarProblem,
        method: Any,
        rule: Any,
        sampling: Sampling | None = None,
        start: np.ndarray | None = None,
    ):
        self._problem, self._grid = problem, rule.grid
        mends = rule.how == FROM_MENDED_SUMS and sampling is None
        reaches, nearest = problem.reaches(rule.clip, rule.order) if mends else (np.empty(0), np.empty(0))
        self._held = OwnerRecords(
            Records.of(problem, rule), rule.how,
            unwritten(problem.gram), unwritten(problem.moment), unwritten(problem.energy), unwritten(problem.optimum),
            reaches, nearest, rule.suspects, rule.suspect_offsets,
        )  # fmt: skip
        self._start = np.zeros(problem.dimension) if start is None else start
        self._prepare(method)
        self._begin(sampling)

    def again(self, sampling: Sampling | None) -> Self:
        """Another replica, at its beginning, with batches of its own; there are some where this one has some."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._begin(sampling)
        return other

    @abstractmethod
    def _prepare(self, method: Any) -> None:
        """Put together what the kernel takes of the method, which all replicas have in common."""

    def _begin(self, sampling: Sampling | None) -> None:
        """Set up what the kernel keeps between chunks."""
        problem = self._problem
        self._batch = None if sampling is None else sampling.for_kernel(problem.records)
        self._mail = InFlight.of(self.vectors * problem.dimension)
        self._commits, self._counts = np.zeros(1, np.int64), np.zeros(problem.owners, np.int64)
        self.violations = Violations.none(problem.owners)

    def feed(self, events: np.ndarray, noise: np.ndarray, stops: np.ndarray = _NOWHERE) -> np.ndarray:
        """Replay the next chunk.

        Parameters
        ----------
        events : ndarray of EVENT
        noise : ndarray, shape (releases in these events, p)
            Noise to add to the mean gradients, in the order of the events.
        stops : ndarray of int64, shape (s,), optional
            After how many of the events to keep the learner's model, in order.

        Returns
        -------
        ndarray, shape (s, p)
            The models kept.
        """
        keep = Keep(stops, np.empty((stops.size, self._problem.dimension)), np.zeros(1, np.int64))
        start, noise_row = 0, np.zeros(1, np.int64)
        while start < events.size:
            status, start = self._replay(events, start, noise, noise_row, keep)
            if status != DONE:
                self._make_room(status)
        return keep.models

    @property
    @abstractmethod
    def model(self) -> np.ndarray:
        """The learner's model now, shape (p,)."""

    def answers(self, seqs: np.ndarray) -> np.ndarray:
        """Noisy gradients of answers on their way, shape (k, p), by the seq of their sends, shape (k,).

        Raises
        ------
        KeyError
            If one of them is not on its way.
        """
        return self._mail.payloads_of(seqs)[:, : self._problem.dimension]

    @abstractmethod
    def _replay(
        self, events: np.ndarray, start: int, noise: np.ndarray, noise_row: np.ndarray, keep: Keep
    ) -> tuple[int, int]:
        """Status, and next event."""

    def _make_room(self, status: int) -> None:
        """Double what has no room left."""
        self._mail = self._mail.with_room(status)


#: Status of the kernel when the driver has to make room for queries.
QUERIES_FULL = 1

#: Codes of how old answers count less.
INVERSE, EXPONENTIAL = InverseDiscount.code, ExponentialDiscount.code


@njit(allocates=False)
def replay(  # type: ignore[no-untyped-def]
    events, start, theta, asked, asked_version, mail, queries_sent, arrived, arrived_version, commits, counts,
    held, batch, grid, violations, noise, noise_row, method, weights, keep, mean,
):  # fmt: skip
    """Replay events from ``start``; returns (status, next event). ``mean`` (p,) is room for a gradient.

    ``batch`` is None where all records take part in a release, else `p2psim.learning.batches.Sampling.for_kernel`.
    ``grid`` is None, or what an answer is rounded to a multiple of.
    """
    owners, p = asked.shape
    queries, query_seq, query_left = queries_sent
    at_learner, at_owner, estimated, aging, aging_rate = weights
    step, learner_weight, overwrite, shares, l2, theta_max = method
    for e in range(start, events.size):
        event = events[e]
        kind, agent, peer = event.kind, event.agent, event.peer
        keep_model(e, theta, owners, keep)
        if kind == SEND and agent == LEARNER:
            slot = -1
            for s in range(query_seq.size):
                if query_seq[s] < 0:
                    slot = s
                    break
            if slot < 0:
                return QUERIES_FULL, e
            query_seq[slot] = event.seq
            first, last = (peer, peer + 1) if peer >= 0 else (0, owners)
            query_left[slot] = last - first
            for i in range(first, last):
                for a in range(p):
                    queries[slot, i, a] = 0.5 * (theta[owners, a] + theta[i, a])
        elif kind == SEND:
            place = post(event.seq, 0, mail)
            if place < 0:
                return place, e
            at = asked[agent]
            answer(agent, event.release, commits[0], at, mean, held, batch, violations)
            row = noise_row[0]
            noise_row[0] += 1
            for a in range(p):
                mail.payloads[place, a] = snapped(at_owner[agent] * mean[a] + noise[row, a], grid)
                mail.payloads[place, p + a] = at[a]
        elif kind in (DELIVER, DROP):
            if event.cause < 0:
                continue
            if agent == LEARNER:
                place, _ = take(event.cause, mail)
                if kind == DELIVER and place >= 0:
                    copy_row(mail.payloads[place], arrived)
                    arrived_version[0] = event.version
            else:
                for s in range(query_seq.size):
                    if query_seq[s] == event.cause:
                        # A query that a newer one has overtaken says nothing.
                        if kind == DELIVER and event.version >= asked_version[agent]:
                            copy_row(queries[s, agent], asked[agent])
                            asked_version[agent] = event.version
                        query_left[s] -= 1
                        if query_left[s] == 0:
                            query_seq[s] = -1
                        break
        elif kind == COMMIT:
            weight = at_learner[peer]
            if estimated:
                weight *= (commits[0] + owners) / (owners * (counts[peer] + 1))
            if aging == INVERSE:
                weight /= 1 + aging_rate * (commits[0] - arrived_version[0])
            elif aging == EXPONENTIAL:
                weight *= math.exp(-aging_rate * (commits[0] - arrived_version[0]))
            counts[peer] += 1
            commits[0] += 1
            for a in range(p):
                at_a = arrived[p + a] if overwrite else 0.5 * (theta[owners, a] + theta[peer, a])
                g = 2.0 * l2 * at_a
                theta[peer, a] = project(
                    at_a - owners * step * (g / (2.0 * owners) + shares[peer] * weight * arrived[a]),
                    theta_max,
                )
                theta[owners, a] = project(at_a - learner_weight * step * g, theta_max)
        elif kind == JOIN and agent != LEARNER and event.version >= 0:
            # It comes back with the learner's model, or with the one that it started from.
            for a in range(p):
                theta[agent, a] = theta[owners, a] if peer == LEARNER else 0.0
    keep_model(events.size, theta, owners, keep)
    return DONE, events.size


@njit(allocates=False)
def replay_each(  # type: ignore[no-untyped-def]
    events, bounds, noise, noise_bounds, start, theta, asked, asked_version, mail, queries_sent, arrived,
    arrived_version, commits, counts, held, grid, counted, steps, sizes, noise_row, method, weights, stops,
    stop_bounds, models, kept, mean,
):  # fmt: skip
    """Replay one replica after the other, each from its beginning; returns how many are whole, for want of room.

    Events of replica r end at ``bounds[r + 1]``, its noise, in the order of its releases, at ``noise_bounds[r + 1]``,
    and where it keeps models, counted from its first event, at ``stop_bounds[r + 1]``. Row r of ``counted``, ``steps``
    and ``sizes`` are its `p2psim.privacy.releases.Violations`.
    """
    owners, p = asked.shape
    _, query_seq, query_left = queries_sent
    for r in range(bounds.size - 1):
        for i in range(owners + 1):
            for a in range(p):
                theta[i, a] = start[a]
        for i in range(owners):
            asked_version[i], counts[i] = 0, 0
            for a in range(p):
                asked[i, a] = 0.0
        for k in range(query_seq.size):
            query_seq[k], query_left[k] = -1, 0
        for k in range(arrived.size):
            arrived[k] = 0.0
        for k in range(mail.places.shape[0]):
            mail.places[k, 0] = -1
        mail.free_rows[0] = mail.free.size
        for k in range(mail.free.size):
            mail.free[k] = k
        arrived_version[0], commits[0], noise_row[0], kept[0] = 0, 0, 0, 0
        keep = Keep(
            stops[stop_bounds[r] : stop_bounds[r + 1]], models[stop_bounds[r] : stop_bounds[r + 1]], kept
        )
        status, _ = replay(
            events[bounds[r] : bounds[r + 1]], 0, theta, asked, asked_version, mail, queries_sent, arrived,
            arrived_version, commits, counts, held, None, grid, Violations(counted[r], steps[r], sizes[r]),
            noise[noise_bounds[r] : noise_bounds[r + 1]], noise_row, method, weights, keep, mean,
        )  # fmt: skip
        if status != DONE:
            return r
    return bounds.size - 1


class StarReplay(LearnerReplay):
    """One replica of the asynchronous star, fed with chunks of events; see `LearnerReplay`."""

    vectors = 2

    def _prepare(self, method: StarMethod) -> None:
        problem = self._problem
        weighting = method.weighting or Weighting.equal(problem.owners)
        self._weights = (
            weighting.at_learner, weighting.at_owner, weighting.estimated,
            weighting.staleness.code, weighting.staleness.numbers[0],
        )  # fmt: skip
        self._method = (
            method.step, method.learner_weight, method.overwrite, problem.shares, problem.l2, problem.theta_max
        )  # fmt: skip

    def _begin(self, sampling: Sampling | None) -> None:
        super()._begin(sampling)
        owners, p = self._problem.owners, self._problem.dimension
        self._theta = np.empty((owners + 1, p))
        self._theta[:] = self._start
        self._asked, self._asked_version = np.zeros((owners, p)), np.zeros(owners, np.int64)
        self._queries = _queries(2, owners, p)
        self._arrived, self._arrived_version = np.zeros(2 * p), np.zeros(1, np.int64)
        self._mean = np.empty(p)

    def _replay(
        self, events: np.ndarray, start: int, noise: np.ndarray, noise_row: np.ndarray, keep: Keep
    ) -> tuple[int, int]:
        return replay(
            events, start, self._theta, self._asked, self._asked_version, self._mail, self._queries,
            self._arrived, self._arrived_version, self._commits, self._counts,
            self._held, self._batch, self._grid, self.violations, noise, noise_row,
            self._method, self._weights, keep, self._mean,
        )  # fmt: skip

    def replay_each(
        self,
        events: np.ndarray,
        bounds: np.ndarray,
        noise: np.ndarray,
        noise_bounds: np.ndarray,
        stops: np.ndarray,
        stop_bounds: np.ndarray,
    ) -> tuple[np.ndarray, list[Violations]]:
        """Replay several replicas, each from its beginning, without batches; what is fed to this one is undone.

        Parameters
        ----------
        events, noise, stops : ndarray
            As of `feed`, of one replica after the other.
        bounds, noise_bounds, stop_bounds : ndarray of int64, shape (replicas + 1,)
            Rows of each that are of replica r: from bounds[r] to bounds[r + 1].

        Returns
        -------
        models : ndarray, shape (s, p)
        violations : list of Violations
            Of each replica.
        """
        replicas, owners = bounds.size - 1, self._problem.owners
        models = np.empty((stops.size, self._problem.dimension))
        counts, sizes = np.zeros((replicas, owners), np.int64), np.zeros((replicas, owners))
        steps = np.full((replicas, owners), -1)
        whole = replay_each(
            events, bounds, noise, noise_bounds, self._start, self._theta, self._asked, self._asked_version,
            self._mail, self._queries, self._arrived, self._arrived_version, self._commits, self._counts,
            self._held, self._grid, counts, steps, sizes, np.zeros(1, np.int64), self._method, self._weights,
            stops, stop_bounds, models, np.zeros(1, np.int64), self._mean,
        )  # fmt: skip
        if whole < replicas:
            raise RuntimeError(
                "more messages are on their way at a time than replicas have room for together"
            )
        return models, [Violations(*each) for each in zip(counts, steps, sizes, strict=True)]

    def _make_room(self, status: int) -> None:
        if status != QUERIES_FULL:
            super()._make_room(status)
            return
        before, self._queries = self._queries, _queries(2 * self._queries[1].size, *self._asked.shape)
        for new, old in zip(self._queries, before, strict=True):
            new[: len(old)] = old

    @property
    def model(self) -> np.ndarray:
        """See `LearnerReplay.model`."""
        return self._theta[-1]


def _queries(size: int, owners: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros((size, owners, p)), np.full(size, -1), np.zeros(size, np.int64)
