"""The planner of decentralised SGD: agents on a graph mix their models with those of neighbours, and step down.

With W the mixing matrix (`p2psim.network.mixing`) and g the mean gradient of an agent's batch, one update is

- gossip, then gradient: y = Σ_j W_ij x_j, x_i ← y − η·g(y);
- gradient, then gossip: h_j = x_j − η·g(x_j), x_i ← Σ_j W_ij h_j;
- together (Lian, Zhang, Zhang, Hsieh, Zhang, Liu 2017): x_i ← Σ_j W_ij x_j − η·g(x_i).

A neighbour whose model did not arrive leaves its weight to the agent itself. In rounds the models are those of the
round; otherwise those that were heard last. Two agents that meet take the mean of their models (Lian, Zhang, Zhang, Liu
2018, AD-PSGD).

Where computing takes time, the gradient is that of the model as it was when the work began; gossip that comes first is
done then.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import BEGIN, COMMIT, DELIVER, DROP, SEND, WAKE
from p2psim.learning.sgd import program as ops
from p2psim.learning.sgd.training import ROW, SENT, accelerated, arrive, is_free, post, row_of, step_size
from p2psim.network.tally import edge_of

#: Which comes first.
GOSSIP_FIRST, GRADIENT_FIRST, TOGETHER = 0, 1, 2

#: In place of the time of a message in pairs: whether it answers a model that its sender has just heard.
UNASKED, ANSWER = 0.0, 1.0


class Mixing(NamedTuple):
    """How models are mixed.

    Attributes
    ----------
    order : int
        `GOSSIP_FIRST`, `GRADIENT_FIRST` or `TOGETHER`.
    in_pairs : bool
        Whether an update mixes the model that was heard just now, with weight ½, and not those of all neighbours.
    in_rounds : bool
        Whether models of earlier rounds do not count.
    indptr, indices : ndarray
        The graph: neighbours of agent i are ``indices[indptr[i]:indptr[i + 1]]``, sorted.
    weights : ndarray, shape (links,)
        W_ij.
    """

    order: int
    in_pairs: bool
    in_rounds: bool
    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray


class Agents(NamedTuple):
    """What agents hold: slots, −1 for none.

    Attributes
    ----------
    models, velocities : ndarray of int64, shape (n,)
    read : ndarray of int64, shape (n,)
        The model with which work has begun.
    heard, answered, working : ndarray of int64, shape (n, 2)
        In pairs: the number of the event that brought a model, and its slot; of what came last without being asked for,
        of the last answer, and of that with which work has begun.
    neighbours : ndarray of int64, shape (links,)
        Models heard over each link.
    sent : ndarray, shape (links,)
        When these were sent.
    woke : ndarray, shape (n,)
        When each woke last.
    """

    models: np.ndarray
    velocities: np.ndarray
    read: np.ndarray
    heard: np.ndarray
    answered: np.ndarray
    working: np.ndarray
    neighbours: np.ndarray
    sent: np.ndarray
    woke: np.ndarray

    @classmethod
    def first(cls, models: np.ndarray, links: int) -> Agents:
        """With models in these slots, before anything has happened."""
        n = models.size
        nothing, pairs = np.full(n, -1, np.int64), np.full((n, 2), -1, np.int64)
        return cls(
            models, nothing, nothing.copy(), pairs, pairs.copy(), pairs.copy(), np.full(links, -1, np.int64),
            np.full(links, -np.inf), np.zeros(n),
        )  # fmt: skip


@njit()
def _mixed(program, mixing, agents, i, own, received):  # type: ignore[no-untyped-def]
    """Slot, held, of an agent's model ``own`` mixed with what it has heard."""
    first, left = program.counts[ops.INPUTS], 1.0
    if mixing.in_pairs:
        if received >= 0:
            left = 0.5
            ops.term(program, received, 0.5)
    else:
        for e in range(mixing.indptr[i], mixing.indptr[i + 1]):
            slot = agents.neighbours[e]
            if slot >= 0 and (not mixing.in_rounds or agents.sent[e] >= agents.woke[i]):
                ops.term(program, slot, mixing.weights[e])
                left -= mixing.weights[e]
    if program.counts[ops.INPUTS] == first:
        return ops.hold(program, own)
    ops.term(program, own, left)
    return ops.combine(program, first)


@njit()
def _stepped(program, training, agents, i, start, at, release, row):  # type: ignore[no-untyped-def]
    """Slot, held, of ``start`` less a step along the gradient at ``at``; momentum is the agent's."""
    g = ops.gradient(program, at, i, release, row_of(training, row, 0))
    if training.momentum > 0.0:
        g = accelerated(program, agents.velocities[i], g, training.momentum)
        agents.velocities[i] = ops.hold(program, g)
    first = program.counts[ops.INPUTS]
    ops.term(program, start, 1.0)
    ops.term(program, g, -step_size(training.code, training.first, training.second, training.third, release))
    out = ops.combine(program, first)
    ops.let_go(program, g)
    return out


@njit(forceinline=True)
def _become(program, agents, i, slot):  # type: ignore[no-untyped-def]
    """Let a model be the agent's."""
    ops.let_go(program, agents.models[i])
    agents.models[i] = slot


@njit(forceinline=True)
def _received(agents, i, cause):  # type: ignore[no-untyped-def]
    """Slot of the model that an event has brought to an agent; −1 for none."""
    if agents.heard[i, 0] == cause:
        return agents.heard[i, 1]
    if agents.answered[i, 0] == cause:
        return agents.answered[i, 1]
    return -1


@njit()
def _update(program, training, mixing, agents, event, row):  # type: ignore[no-untyped-def]
    """Write an agent's update."""
    i, release = event.agent, event.release
    own, received = agents.models[i], _received(agents, i, event.cause)
    is_work = agents.working[i, 0] == event.cause
    if is_work:
        received = agents.working[i, 1]
    # Who only averages when it is asked goes on with what it computes.
    is_own = release >= 0 or is_work or not mixing.in_pairs
    read = agents.read[i] if is_own else -1
    at = read if read >= 0 else own
    if release < 0 and mixing.order == GOSSIP_FIRST and read >= 0:
        # It has been mixed when the work began.
        _become(program, agents, i, ops.hold(program, own))
    elif release < 0:
        _become(program, agents, i, _mixed(program, mixing, agents, i, own, received))
    elif mixing.order == GRADIENT_FIRST:
        half = _stepped(program, training, agents, i, own, at, release, row)
        _become(program, agents, i, _mixed(program, mixing, agents, i, half, received))
        ops.let_go(program, half)
    elif mixing.order == GOSSIP_FIRST and read >= 0:
        _become(program, agents, i, _stepped(program, training, agents, i, own, read, release, row))
    else:
        mixed = _mixed(program, mixing, agents, i, own, received)
        if mixing.order == GOSSIP_FIRST:
            at = mixed
        _become(program, agents, i, _stepped(program, training, agents, i, mixed, at, release, row))
        ops.let_go(program, mixed)
    if is_own:
        ops.let_go(program, agents.read[i])
        agents.read[i] = -1
    if is_work:
        ops.let_go(program, agents.working[i, 1])
        agents.working[i, 0] = agents.working[i, 1] = -1
    if mixing.in_rounds:
        for e in range(mixing.indptr[i], mixing.indptr[i + 1]):
            ops.let_go(program, agents.neighbours[e])
            agents.neighbours[e] = -1


@njit()
def _begin(program, mixing, agents, event):  # type: ignore[no-untyped-def]
    """An agent begins to compute: it reads its model."""
    i = event.agent
    received = _received(agents, i, event.cause)
    if received >= 0:
        ops.let_go(program, agents.working[i, 1])
        agents.working[i, 0], agents.working[i, 1] = event.seq, ops.hold(program, received)
    if mixing.order == GOSSIP_FIRST:
        _become(
            program, agents, i, _mixed(program, mixing, agents, i, agents.models[i], agents.working[i, 1])
        )
    ops.let_go(program, agents.read[i])
    agents.read[i] = ops.hold(program, agents.models[i])


@njit()
def _hear(program, mixing, agents, event, slot, time):  # type: ignore[no-untyped-def]
    """An agent hears a model."""
    i = event.agent
    if mixing.in_pairs:
        which = agents.answered if time == ANSWER else agents.heard
        ops.let_go(program, which[i, 1])
        which[i, 0], which[i, 1] = event.seq, ops.hold(program, slot)
        return
    e = edge_of(mixing.indices, mixing.indptr[i], mixing.indptr[i + 1], event.peer)
    if time >= agents.sent[e] or agents.neighbours[e] < 0:
        ops.let_go(program, agents.neighbours[e])
        agents.neighbours[e], agents.sent[e] = ops.hold(program, slot), time


@njit()
def plan(  # type: ignore[no-untyped-def]
    events, start, stop, receivers, program, room, training, mixing, agents, counts, mail
):
    """Write instructions for events ``start`` to ``stop``; returns a status and the next event.

    ``receivers`` (events,) is how many a send goes to; ``room`` is what one event takes at most: slots, instructions,
    and inputs.
    """
    for k in range(start, stop):
        event = events[k]
        kind, i = event.kind, event.agent
        if not ops.has_room(program, room[0], room[1], room[2]):
            return ops.NEEDS_ROOM, k
        if kind == WAKE:
            agents.woke[i] = event.time
        elif kind == BEGIN:
            _begin(program, mixing, agents, event)
        elif kind == SEND and event.version >= 0:
            if not is_free(mail, event.seq):
                return ops.NEEDS_ROOM, k
            if event.release >= 0 and mixing.order == GRADIENT_FIRST and mixing.in_rounds:
                at = agents.read[i] if agents.read[i] >= 0 else agents.models[i]
                own, row = agents.models[i], counts[ROW]
                _become(
                    program, agents, i, _stepped(program, training, agents, i, own, at, event.release, row)
                )
                ops.let_go(program, agents.read[i])
                agents.read[i] = -1
                counts[ROW] += training.private
            counts[SENT] += 1
            if receivers[k] > 0:
                time = event.time
                if mixing.in_pairs:
                    time = ANSWER if agents.heard[i, 0] == event.cause else UNASKED
                post(mail, event.seq, ops.hold(program, agents.models[i]), receivers[k], time)
        elif kind in (DELIVER, DROP):
            slot, time, is_last = arrive(mail, event.cause)
            if slot >= 0:
                if kind == DELIVER:
                    _hear(program, mixing, agents, event, slot, time)
                if is_last:
                    ops.let_go(program, slot)
        elif kind == COMMIT:
            _update(program, training, mixing, agents, event, counts[ROW])
            counts[ROW] += event.release >= 0 and training.private
    return ops.PLANNED, stop
