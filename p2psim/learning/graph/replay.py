"""The compiled replay of coordinate descent and model propagation: its kernel, and the class that feeds it.

Every agent has its own model; what its neighbours know of it are versions that were sent. As long as each of an agent's
versions has reached all of its neighbours before anything else happened, they all know the same one: it lies in the
agent's row of a pool, and nobody counts who holds it. An agent of which this is no longer true is *apart*: its versions
are rows of the pool, shared by all who hold one or to whom it is on its way, counted, and let go when nobody does any
more. State:

- ``theta`` (n, p): the agents' own models; ``gradients`` (n, p): their mean gradients there, where ``known`` (n,) says
  so. With Q_L tracked, an agent's loss is needed at its new model, and its next release's gradient found in the same
  pass; otherwise it is found when it is needed;
- ``versions`` (n, 2): the newest version of each agent, and the one that all neighbours know, or `APART`;
- ``open`` (4,): a broadcast that has not reached all neighbours yet: who sent it (or `NOBODY`), the number of its send,
  its version, and how many neighbours have it;
- ``anchor`` (n, p): each agent's last model that touched its data;
- ``sums`` (3,): the two parts of Q_L, and the largest that it has been since they were summed afresh; ``local`` (n,):
  each agent's mean loss without regulariser.

Of agents that are apart, in `Apart`, which is made when the first is:

- ``mail`` (:mod:`p2psim.learning.in_flight`) holds the pool of versions, with ``references`` (slots,), and messages on
  their way, whose tag is the number of receivers at which they have not ended yet;
- ``held`` (directed edges, 2): slot and number of the version that each neighbour of each agent received last of it;
  in the sender's row, where a broadcast finds them together; ``reverse``: where each link is in the other's row;
- ``cursor`` (n,): where in each agent's row the next delivery of its last send is looked for.

What is missing when it is needed, all of this, a row or a place, stops the kernel, and the driver makes it.
"""

from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, DELIVER, DROP, JOIN, NEIGHBOURS, NOBODY, SEND
from p2psim.core.philox import prefetch
from p2psim.learning.graph import models as replays
from p2psim.learning.graph.problem import GraphTask
from p2psim.learning.in_flight import DONE, PLACES_FULL, ROWS_FULL, InFlight, copy_row
from p2psim.learning.owner_kernel import UNKNOWN, WITHIN, evaluate, note_violation, release_gradient, snapped
from p2psim.network.tally import edge_of

# Columns of ``held``, of the places of messages, and of ``versions``; places of ``open``.
SLOT, VERSION = 0, 1
SEQ, ROW, LEFT = 0, 1, 2
NEWEST, TOLD = 0, 1
SENDER, SENT, SENT_VERSION, REACHED = 0, 1, 2, 3

#: In place of the version that all neighbours of an agent know: they may know different ones.
APART = -2

#: Status of the kernel: the first agent is about to be apart.
NONE_APART = -3

#: Numbers in a line of the cache, and the most of an agent's that are asked for ahead: what a first-level cache holds.
LINE, FETCHED = 8, 4096

#: Models of fewer numbers stay in the cache, and are not prefetched.
NEAR = 1 << 16


class Apart(NamedTuple):
    """What the neighbours of agents that are apart know; see the module's documentation."""

    mail: InFlight
    references: np.ndarray
    held: np.ndarray
    reverse: np.ndarray
    cursor: np.ndarray


@njit(inline="always")
def _next_commit(events, at):  # type: ignore[no-untyped-def]
    while at < events.size and events[at].kind != COMMIT:
        at += 1
    return at


@njit(inline="always")
def _fetch_row(array, i, p):  # type: ignore[no-untyped-def]
    """Prefetch row i of an array of p columns."""
    for place in range(i * p, (i + 1) * p, LINE):
        prefetch(array, place)
    prefetch(array, (i + 1) * p - 1)


@njit(inline="always")
def _fetch_own(i, models, versions, graph, alpha, offsets, pool):  # type: ignore[no-untyped-def]
    """Prefetch what is known of an agent alone."""
    prefetch(graph.indptr, i)
    prefetch(graph.degrees, i)
    prefetch(graph.ridge, i)
    prefetch(graph.pull, i)
    prefetch(alpha, i)
    prefetch(offsets, i)
    prefetch(models.local, i)
    prefetch(models.known, i)
    prefetch(versions, 2 * i)
    for rows in (models.theta, models.gradients, pool):
        _fetch_row(rows, i, rows.shape[1])


@njit(inline="always")
def _fetch_records(i, records):  # type: ignore[no-untyped-def]
    """Prefetch an agent's records, as far as that is of use."""
    X, y, p = records.X, records.y, records.X.shape[1]
    first, last = records.offsets[i], records.offsets[i + 1]
    for place in range(first * p, min(last * p, first * p + FETCHED), LINE):
        prefetch(X, place)
    for place in range(first, min(last, first + FETCHED), LINE):
        prefetch(y, place)


@njit(inline="always")
def _fetch_links(i, indptr, indices, weights):  # type: ignore[no-untyped-def]
    """Prefetch the first of an agent's links."""
    first = indptr[i]
    for place in range(first, min(indptr[i + 1], first + LINE * LINE), LINE):
        prefetch(weights, place)
        prefetch(indices, place)


@njit(inline="always")
def _fetch_models(i, indptr, indices, versions, pool):  # type: ignore[no-untyped-def]
    """Prefetch the models that an agent knows of its neighbours, where these are not apart; its links are near."""
    p = pool.shape[1]
    for e in range(indptr[i], min(indptr[i + 1], indptr[i] + LINE * LINE)):
        j = np.int64(indices[e])
        prefetch(versions, 2 * j)
        _fetch_row(pool, j, p)


@njit(allocates=False)
def _let_go(slot, apart):  # type: ignore[no-untyped-def]
    """Count one less who holds a version."""
    mail, references = apart.mail, apart.references
    references[slot] -= 1
    if references[slot] == 0:
        mail.free[mail.free_rows[0]] = slot
        mail.free_rows[0] += 1


@njit(allocates=False)
def _send(seq, agent, receivers, version, theta, versions, indptr, apart):  # type: ignore[no-untyped-def]
    """Note a message that is on its way from now on, of an agent that is apart, or will be; returns a status."""
    mail, held = apart.mail, apart.held
    if apart.cursor.size == 0:
        return NONE_APART
    place = seq & (mail.places.shape[0] - 1)  # they are a power of two
    if mail.places[place, SEQ] >= 0:
        return PLACES_FULL
    slot = -1  # of a request for a model, which carries none
    if version >= 0:
        if mail.free_rows[0] == 0:
            return ROWS_FULL
        mail.free_rows[0] -= 1
        slot = mail.free[mail.free_rows[0]]
        apart.references[slot] = 1  # the message's own
        copy_row(theta[agent], mail.payloads[slot])
    if versions[agent, TOLD] != APART:
        for e in range(indptr[agent], indptr[agent + 1]):
            held[e, SLOT], held[e, VERSION] = agent, versions[agent, TOLD]
        versions[agent, TOLD] = APART
    apart.cursor[agent] = indptr[agent]
    mail.places[place, SEQ], mail.places[place, ROW], mail.places[place, LEFT] = seq, slot, receivers
    return DONE


@njit(allocates=False)
def _end(arrives, agent, peer, version, cause, indptr, indices, apart):  # type: ignore[no-untyped-def]
    """Have a message that `_send` noted end at a receiver; nothing happens if there is none."""
    mail, held, cursor = apart.mail, apart.held, apart.cursor
    place = cause & (mail.places.shape[0] - 1)
    if mail.places[place, SEQ] != cause:
        return
    slot = mail.places[place, ROW]
    if arrives and slot >= 0:
        # A broadcast reaches neighbours in their order: the next one is where it is looked for first.
        e = cursor[peer]
        if e >= indptr[peer + 1] or indices[e] != agent:
            e = edge_of(indices, indptr[peer], indptr[peer + 1], agent)
        cursor[peer] = e + 1
        if version > held[e, VERSION]:
            _let_go(held[e, SLOT], apart)
            held[e, SLOT], held[e, VERSION] = slot, version
            apart.references[slot] += 1
    mail.places[place, LEFT] -= 1
    if mail.places[place, LEFT] == 0:
        mail.places[place, SEQ] = -1
        if slot >= 0:
            _let_go(slot, apart)


@njit(allocates=False)
def _set_apart(broadcast, theta, versions, indptr, indices, apart):  # type: ignore[no-untyped-def]
    """Take a broadcast that did not reach all neighbours at once for a message like any other; returns a status."""
    sender, seq, version = broadcast[SENDER], broadcast[SENT], broadcast[SENT_VERSION]
    first = indptr[sender]
    status = _send(seq, sender, indptr[sender + 1] - first, version, theta, versions, indptr, apart)
    if status == DONE:
        broadcast[SENDER] = NOBODY
        for e in range(first, first + broadcast[REACHED]):
            _end(True, indices[e], sender, version, seq, indptr, indices, apart)
    return status


@njit(allocates=False)
def replay(  # type: ignore[no-untyped-def]
    events, start, models, versions, broadcast, apart, counters,
    graph, alpha, records, grid, batch, violations, without_release, noise, track, scratch,
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
    pool, held, reverse = apart.mail.payloads, apart.held, apart.reverse
    p = theta.shape[1]
    mix, old, nothing = scratch[0], scratch[1], scratch[0, :0]
    is_far = pool.size > NEAR
    # The next commits. What is an agent's own is fetched first, then its links, then their models and its records.
    at, first = start, _next_commit(events, start)
    second = _next_commit(events, first + 1)
    third = _next_commit(events, second + 1)
    while at < events.size:
        event = events[at]
        kind, agent = event.kind, event.agent
        sender = broadcast[SENDER]
        if sender != NOBODY:
            e = indptr[sender] + broadcast[REACHED]
            if kind == DELIVER and event.cause == broadcast[SENT] and indices[e] == agent:
                broadcast[REACHED] += 1
                if e + 1 == indptr[sender + 1]:
                    copy_row(theta[sender], pool[sender])
                    versions[sender, TOLD] = broadcast[SENT_VERSION]
                    broadcast[SENDER] = NOBODY
                at += 1
                continue
            status = _set_apart(broadcast, theta, versions, indptr, indices, apart)
            if status != DONE:
                return status, at
        if kind in (DELIVER, DROP):
            _end(kind == DELIVER, agent, event.peer, event.version, event.cause, indptr, indices, apart)
        elif kind == SEND:
            told, near = versions[agent, TOLD], indptr[agent + 1] - indptr[agent]
            if told != APART and event.peer == NEIGHBOURS and event.version > told:
                broadcast[SENDER], broadcast[SENT], broadcast[SENT_VERSION] = agent, event.seq, event.version
                broadcast[REACHED] = 0
            else:
                receivers = near if event.peer == NEIGHBOURS else 1
                status = _send(event.seq, agent, receivers, event.version, theta, versions, indptr, apart)
                if status != DONE:
                    return status, at
            counters[replays.SENT] += event.version >= 0
        elif kind == COMMIT:
            i = agent
            first, second, third = second, third, _next_commit(events, third + 1)
            if is_far and third < events.size:
                _fetch_own(events[third].agent, models, versions, graph, alpha, records.offsets, pool)
            if is_far and second < events.size:
                _fetch_links(events[second].agent, indptr, indices, weights)
            if is_far and first < events.size:
                _fetch_models(events[first].agent, indptr, indices, versions, pool)
            if batch is None and first < events.size:
                _fetch_records(events[first].agent, records)
            mix[:] = 0.0
            stale = False
            for e in range(indptr[i], indptr[i + 1]):
                slot, w = indices[e], weights[e]
                newest, told = versions[slot, NEWEST], versions[slot, TOLD]
                if told == APART:
                    slot, told = held[reverse[e], SLOT], held[reverse[e], VERSION]
                for a in range(p):
                    mix[a] += w * pool[slot, a]
                stale |= told != newest
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
            versions[i, NEWEST] = event.version
            counters[replays.COMMITS] += 1
            known[i] = UNKNOWN
            if track:
                # Who made no release will make none, and a batch is not drawn yet: no gradient is asked for again.
                after = gradients[i] if batch is None and event.release >= 0 else nothing
                new, known[i] = evaluate(records, i, theta[i], after)
                replays.track_objective(i, old, mix, stale, new, models, graph)
        at += 1
    return DONE, events.size


class GraphReplay(replays.LearningReplay):
    """One replica of coordinate descent or model propagation, fed with chunks of events; see `LearningReplay`."""

    def __init__(self, task: GraphTask, track: bool = True):
        super().__init__(task, track)
        n, p = self.theta.shape
        self._start = task.start
        self._versions = np.zeros((n, 2), np.int32)  # commits of one agent are below 2**31
        self._broadcast = np.array([NOBODY, 0, 0, 0])
        # What a neighbour knows at first is the start, one row an agent. Memory of the others is not touched before
        # they are needed.
        pool = np.empty((2 * n, p))
        pool[:n] = self.theta
        none = np.empty(0, np.int64)
        mail = InFlight.of(p)._replace(payloads=pool, free=none, free_rows=np.array([0]))
        self._apart = Apart(mail, none, np.empty((0, 2), np.int32), np.empty(0, np.int32), none)
        self._scratch = np.empty((2, p))

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """See `ModelReplay.feed`."""
        self.counters[replays.NOISE_ROW] = 0
        # Agents that come back with another model than their own are few: they are left to Python.
        back = np.flatnonzero((events["kind"] == JOIN) & (events["version"] >= 0))
        start = 0
        for place in back.tolist():
            self._replay(events[start : place + 1], noise)
            self._come_back(int(events["agent"][place]), int(events["peer"][place]))
            start = place + 1
        self._replay(events[start:], noise)

    def _come_back(self, i: int, peer: int) -> None:
        """Have agent i take the model of another, or the one that it started from."""
        old = self.theta[i].copy()
        self.theta[i] = self.theta[peer] if peer >= 0 else self._start[i]
        self._models.known[i] = UNKNOWN
        # What its neighbours hold is no longer its model, whatever the number of the version.
        self._versions[i, NEWEST] = -1
        if self._track:
            new, _ = evaluate(self._records, i, self.theta[i], np.empty(0))
            replays.track_objective(i, old, np.empty_like(old), True, new, self._models, self._graph)

    def _replay(self, events: np.ndarray, noise: np.ndarray) -> None:
        at = 0
        while at < events.size:
            status, at = replay(
                events, at, self._models, self._versions, self._broadcast, self._apart, self.counters, self._graph,
                self._problem.alpha, self._records, self._grid, self._batch, self.violations, self._without_release,
                noise, self._track, self._scratch,
            )  # fmt: skip
            if status == NONE_APART:
                self._apart = self._prepare_apart()
            elif status != DONE:
                mail = self._apart.mail.with_room(status)
                more = np.zeros(mail.free.size - self._apart.references.size, np.int64)
                references = np.concatenate([self._apart.references, more])
                self._apart = self._apart._replace(mail=mail, references=references)

    def _prepare_apart(self) -> Apart:
        """Room for what is known of agents that are apart, where none was so far."""
        problem, n = self._problem, self._problem.agents
        # Each agent's version is held by its neighbours.
        references = np.concatenate([np.diff(problem.indptr), np.zeros(n, np.int64)])
        free = np.arange(2 * n)[::-1].astype(np.int64)
        mail = self._apart.mail._replace(free=free, free_rows=np.array([n]))
        held = np.empty((problem.indices.size, 2), np.int32)  # rows are below 2**31, too
        return Apart(mail, references, held, problem.reverse, problem.indptr[:-1].copy())

    @property
    def mail(self) -> InFlight:
        """Versions of agents that are apart, and their messages on the way."""
        return self._apart.mail

    @property
    def versions_held(self) -> int:
        """Versions that someone holds or that are on their way."""
        held = self.mail.messages if self._apart.cursor.size else self._problem.agents
        return held + int(self._broadcast[SENDER] != NOBODY)
