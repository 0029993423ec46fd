"""The compiled replay of coordinate descent and model propagation: its kernel, and the class that feeds it.

Every agent has its own model; what its neighbours know of it are versions that were sent. A version is one row of a
pool, shared by all who hold it or to whom it is on its way, counted, and let go when nobody does any more. State:

- ``theta`` (n, p): the agents' own models; ``gradients`` (n, p): their mean gradients there, where ``known`` (n,) says
  so. With Q_L tracked, an agent's loss is needed at its new model, and its next release's gradient found in the same
  pass; otherwise it is found when it is needed;
- ``mail`` (:mod:`p2psim.learning.in_flight`) holds the pool of versions, with ``references`` (slots,), and messages on
  their way, whose tag is the number of receivers at which they have not ended yet;
- ``held`` (directed edges, 2): slot and number of the version that each neighbour of each agent received last of it;
  in the sender's row, where a broadcast finds them together;
- ``versions`` (n,): the newest version of each agent; ``anchor`` (n, p): its last model that touched its data;
- ``cursor`` (n,): where in each agent's row the next delivery of its last send is looked for;
- ``sums`` (3,): the two parts of Q_L, and the largest that it has been since they were summed afresh; ``local`` (n,):
  each agent's mean loss without regulariser.

A row or a place that is missing when it is needed stops the kernel, and the driver makes room.
"""

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, DELIVER, DROP, JOIN, NEIGHBOURS, SEND
from p2psim.core.philox import prefetch
from p2psim.learning.graph import models as replays
from p2psim.learning.graph.problem import GraphTask
from p2psim.learning.in_flight import DONE, PLACES_FULL, ROWS_FULL, InFlight
from p2psim.learning.owner_kernel import UNKNOWN, WITHIN, evaluate, note_violation, release_gradient, snapped
from p2psim.network.tally import edge_of

# Columns of ``held``, and of the places of messages.
SLOT, VERSION = 0, 1
SEQ, ROW, LEFT = 0, 1, 2

#: Numbers in a line of the cache, and the most of an agent's that are asked for ahead: what a first-level cache holds.
LINE, FETCHED = 8, 4096

#: Models of fewer numbers stay in the cache, and are not prefetched.
NEAR = 1 << 16


@njit(inline="always")
def _next_commit(events, at):  # type: ignore[no-untyped-def]
    while at < events.size and events[at].kind != COMMIT:
        at += 1
    return at


@njit(inline="always")
def _fetch(i, records):  # type: ignore[no-untyped-def]
    """Prefetch the records of the agent that commits next, as far as that is of use."""
    X, y, p = records.X, records.y, records.X.shape[1]
    first, last = records.offsets[i], records.offsets[i + 1]
    for place in range(first * p, min(last * p, first * p + FETCHED), LINE):
        prefetch(X, place)
    for place in range(first, min(last, first + FETCHED), LINE):
        prefetch(y, place)


@njit(inline="always")
def _fetch_links(i, indptr, reverse, held):  # type: ignore[no-untyped-def]
    """Prefetch the places of the models that an agent knows of its neighbours."""
    for e in range(indptr[i], min(indptr[i + 1], indptr[i] + LINE * LINE)):
        prefetch(held, 2 * reverse[e])


@njit(inline="always")
def _fetch_models(i, indptr, reverse, held, pool):  # type: ignore[no-untyped-def]
    """Prefetch the models that an agent knows of its neighbours, whose places are in the cache."""
    p = pool.shape[1]
    for e in range(indptr[i], min(indptr[i + 1], indptr[i] + LINE * LINE)):
        first = held[reverse[e], SLOT] * p
        for place in range(first, first + p, LINE):
            prefetch(pool, place)


@njit(allocates=False)
def replay(  # type: ignore[no-untyped-def]
    events, start, models, versions, mail, references, held, cursor, counters,
    graph, reverse, alpha, records, grid, batch, violations, without_release, noise, track, scratch,
):  # fmt: skip
    """Replay events from ``start``; returns (status, next event).

    ``scratch`` (2, p) is room for intermediate results.

    ``batch`` is None where all records take part in a release, else `p2psim.learning.batches.Sampling.for_kernel`.
    ``grid`` is None, or what a noisy gradient is rounded to a multiple of.
    On waking (B, section 3.1, in the form of theory.md):
    θ_i ← (1 − α_i)θ_i + α_i(Σ_j (W_ij/D_ii)θ_j − μc_i(∇L_i(θ_i) + η)).
    """
    theta, gradients, known, anchor = models.theta, models.gradients, models.known, models.anchor
    indptr, indices, weights, degrees, ridge, pull = graph
    places, pool, free, free_rows = mail
    p = theta.shape[1]
    mix, old, nothing = scratch[0], scratch[1], scratch[0, :0]
    mask = places.shape[0] - 1  # they are a power of two
    is_far = pool.size > NEAR
    ahead = start
    for at in range(start, events.size):
        event = events[at]
        kind, agent = event.kind, event.agent
        if kind in (DELIVER, DROP):
            place = event.cause & mask
            if places[place, SEQ] != event.cause:
                continue
            slot = places[place, ROW]
            if kind == DELIVER and slot >= 0:
                # A broadcast reaches neighbours in their order: the next one is where it is looked for first.
                peer = event.peer
                e = cursor[peer]
                if e >= indptr[peer + 1] or indices[e] != agent:
                    e = edge_of(indices, indptr[peer], indptr[peer + 1], agent)
                cursor[peer] = e + 1
                if event.version > held[e, VERSION]:
                    before = held[e, SLOT]
                    references[before] -= 1
                    if references[before] == 0:
                        free[free_rows[0]] = before
                        free_rows[0] += 1
                    held[e, SLOT], held[e, VERSION] = slot, event.version
                    references[slot] += 1
            places[place, LEFT] -= 1
            if places[place, LEFT] == 0:
                places[place, SEQ] = -1
                if slot >= 0:
                    references[slot] -= 1
                    if references[slot] == 0:
                        free[free_rows[0]] = slot
                        free_rows[0] += 1
        elif kind == SEND:
            place = event.seq & mask
            if places[place, SEQ] >= 0:
                return PLACES_FULL, at
            if event.version < 0:  # a request for a model, which carries none
                slot = -1
            else:
                if free_rows[0] == 0:
                    return ROWS_FULL, at
                free_rows[0] -= 1
                slot = free[free_rows[0]]
                references[slot] = 1  # the message's own
                for a in range(p):
                    pool[slot, a] = theta[agent, a]
                counters[replays.SENT] += 1
            cursor[agent] = indptr[agent]
            places[place, SEQ], places[place, ROW] = event.seq, slot
            places[place, LEFT] = indptr[agent + 1] - indptr[agent] if event.peer == NEIGHBOURS else 1
        elif kind == COMMIT:
            i = agent
            ahead = _next_commit(events, max(ahead, at + 1))
            if batch is None and ahead < events.size:
                _fetch(events[ahead].agent, records)
            if is_far and ahead < events.size:
                _fetch_models(events[ahead].agent, indptr, reverse, held, pool)
                further = _next_commit(events, ahead + 1)
                if further < events.size:
                    _fetch_links(events[further].agent, indptr, reverse, held)
            mix[:] = 0.0
            stale = False
            for e in range(indptr[i], indptr[i + 1]):
                known_at, w = reverse[e], weights[e]
                slot = held[known_at, SLOT]
                for a in range(p):
                    mix[a] += w * pool[slot, a]
                stale |= held[known_at, VERSION] != versions[indices[e]]
            for a in range(p):
                mix[a] /= degrees[i]
                old[a] = theta[i, a]
            c, step = pull[i] / degrees[i], alpha[i]
            if event.release >= 0:
                gradient = gradients[i]
                # A gradient that is known to be within the bound needs no second look, and no call.
                if batch is not None or known[i] != WITHIN:
                    longest = release_gradient(records, batch, i, event.release, models)
                    if longest > 0.0:
                        note_violation(i, counters[replays.COMMITS], longest / records.bound, violations)
                row = counters[replays.NOISE_ROW]
                counters[replays.NOISE_ROW] += 1
                shrink = 2.0 * ridge[i]
                for a in range(p):
                    t = old[a]
                    if grid is None:
                        g = gradient[a] + shrink * t + noise[row, a]
                    else:  # the regulariser is not what noise hides
                        g = snapped(gradient[a] + noise[row, a], grid) + shrink * t
                    t = (1.0 - step) * t + step * (mix[a] - c * g)
                    theta[i, a] = t
                    anchor[i, a] = t
            elif without_release == replays.AVERAGE:
                for a in range(p):
                    theta[i, a] = (1.0 - step) * old[a] + step * mix[a]
            else:
                for a in range(p):
                    theta[i, a] = (mix[a] + c * anchor[i, a]) / (1.0 + c)
            versions[i] = event.version
            counters[replays.COMMITS] += 1
            known[i] = UNKNOWN
            if track:
                # Who made no release will make none, and a batch is not drawn yet: no gradient is asked for again.
                after = gradients[i] if batch is None and event.release >= 0 else nothing
                new, known[i] = evaluate(records, i, theta[i], after)
                replays.track_objective(i, old, mix, stale, new, models, graph)
    return DONE, events.size


class GraphReplay(replays.LearningReplay):
    """One replica of coordinate descent or model propagation, fed with chunks of events; see `LearningReplay`."""

    def __init__(self, task: GraphTask, track: bool = True):
        super().__init__(task, track)
        problem, n = task.problem, task.problem.agents
        self._start = task.start
        self._versions = np.zeros(n, np.int64)
        # What a neighbour knows at first is the start, one row an agent, held by its neighbours.
        pool = np.vstack([self.theta, np.empty_like(self.theta)])
        self.mail = InFlight.of(problem.dimension)._replace(
            payloads=pool, free=np.arange(2 * n)[::-1].astype(np.int64), free_rows=np.array([n])
        )
        self._references = np.concatenate([np.bincount(problem.indices, minlength=n), np.zeros(n, np.int64)])
        # Rows, and commits of one agent: both below 2**31.
        self._held = np.zeros((problem.indices.size, 2), np.int32)
        self._held[:, SLOT] = np.repeat(np.arange(n, dtype=np.int32), np.diff(problem.indptr))
        self._cursor = problem.indptr[:-1].copy()
        self._scratch = np.empty((2, problem.dimension))

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """See `ModelReplay.feed`."""
        self.counters[replays.NOISE_ROW] = 0
        # Agents that come back with another model than their own are few: they are left to Python.
        back = np.flatnonzero((events["kind"] == JOIN) & (events["version"] >= 0))
        start = 0
        for place in back.tolist():
            self._replay(events[start:place], noise)
            self._come_back(int(events["agent"][place]), int(events["peer"][place]))
            start = place + 1
        self._replay(events[start:], noise)

    def _come_back(self, i: int, peer: int) -> None:
        """Have agent i take the model of another, or the one that it started from."""
        old = self.theta[i].copy()
        self.theta[i] = self.theta[peer] if peer >= 0 else self._start[i]
        self._models.known[i] = UNKNOWN
        # What its neighbours hold is no longer its model, whatever the number of the version.
        self._versions[i] = -1
        if self._track:
            new, _ = evaluate(self._records, i, self.theta[i], np.empty(0))
            replays.track_objective(i, old, np.empty_like(old), True, new, self._models, self._graph)

    def _replay(self, events: np.ndarray, noise: np.ndarray) -> None:
        problem, at = self._problem, 0
        while at < events.size:
            status, at = replay(
                events, at, self._models, self._versions, self.mail, self._references, self._held, self._cursor,
                self.counters, self._graph, problem.reverse, problem.alpha, self._records, self._grid, self._batch,
                self.violations, self._without_release, noise, self._track, self._scratch,
            )  # fmt: skip
            if status != DONE:
                self.mail = self.mail.with_room(status)
                more = self.mail.free.size - self._references.size
                self._references = np.concatenate([self._references, np.zeros(more, np.int64)])

    @property
    def versions_held(self) -> int:
        """Versions that someone holds or that are on their way."""
        return self.mail.messages
