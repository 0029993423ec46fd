"""The planner of a central learner that trains one model from its owners' answers.

An owner answers a query with the model that its local steps make of the one in the query, or with the change. What the
learner makes of answers is the algorithm: the average of those of a round (FedAvg), a blend of each with its own model
(FedAsync), or a step along the mean change of so many (FedBuff).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import BEGIN, COMMIT, DELIVER, DROP, LEARNER, SEND
from p2psim.learning.sgd import program as ops
from p2psim.learning.sgd.training import ROW, SENT, accelerated, arrive, is_free, post, train
from p2psim.learning.step_sizes import (
    ExponentialDiscount,
    HingeDiscount,
    InverseDiscount,
    NoDiscount,
    PolynomialDiscount,
)

#: What the learner does with answers.
AVERAGE, BLEND, BUFFER = 0, 1, 2

#: Codes of how an answer counts less as it ages.
INVERSE, EXPONENTIAL = InverseDiscount.code, ExponentialDiscount.code
POLYNOMIAL, HINGE = PolynomialDiscount.code, HingeDiscount.code

#: Places in the vector of slots: the learner's model, and its velocity.
MODEL, VELOCITY = 0, 1

#: Places in the vector of counts after `ROW` and `SENT`: commits, answers in the buffer, the slot of the answer that
#: came last, and the number of commits before the model that it was trained from.
COMMITS, BUFFERED, ANSWER, VERSION = 2, 3, 4, 5


class LearnerRule(NamedTuple):
    """What the learner does.

    Attributes
    ----------
    what : int
        `AVERAGE`, `BLEND` or `BUFFER`.
    step : float
        Its step along the mean change of answers; in a blend, α.
    momentum : float
        Of its own steps (Hsu, Qi, Brown 2019); 0 for none.
    size : int
        Answers in a buffer; 1 without.
    discount : int
        How an answer counts less with age.
    rate, late : float
        Numbers of that.
    """

    what: int
    step: float
    momentum: float = 0.0
    size: int = 1
    discount: int = NoDiscount.code
    rate: float = 0.0
    late: float = 0.0


class Owners(NamedTuple):
    """What is known of the owners.

    Attributes
    ----------
    weights : ndarray, shape (N,)
        What each one's answer counts beside others.
    steps : ndarray of int64, shape (N,)
        Gradient steps of its answers.
    heard : ndarray of int64, shape (N, 2)
        Numbers of the events from which each may answer: of the two newest queries that it has heard and not dropped.
    models : ndarray of int64, shape (N, 2)
        Slots of their models; −1 for none.
    answers : ndarray of int64, shape (N,)
        Slots of the answers in this round; −1 for none.
    buffer : ndarray of int64, shape (size,)
        Slots of the changes in the buffer.
    shares : ndarray, shape (size,)
        Their weights.
    """

    weights: np.ndarray
    steps: np.ndarray
    heard: np.ndarray
    models: np.ndarray
    answers: np.ndarray
    buffer: np.ndarray
    shares: np.ndarray

    @classmethod
    def first(cls, weights: np.ndarray, steps: np.ndarray, size: int) -> Owners:
        """Before anything has happened."""
        n = weights.size
        nothing = np.full((n, 2), -1, np.int64)
        return cls(
            weights,
            steps.astype(np.int64),
            nothing,
            nothing.copy(),
            np.full(n, -1, np.int64),
            np.zeros(size, np.int64),
            np.zeros(size),
        )


@njit()
def discounted(discount, rate, late, age):  # type: ignore[no-untyped-def]
    """Weight of an answer to a model that ``age`` newer ones have followed."""
    if discount == INVERSE:
        return 1.0 / (1.0 + rate * age)
    if discount == EXPONENTIAL:
        return math.exp(-rate * age)
    if discount == POLYNOMIAL:
        return (1.0 + age) ** -rate
    if discount == HINGE:
        return 1.0 if age <= late else 1.0 / (1.0 + rate * (age - late))
    return 1.0


@njit()
def _step(program, rule, slots, first):  # type: ignore[no-untyped-def]
    """Let the learner step along the sum of the terms from place ``first`` on, which is a change of its model."""
    change = ops.combine(program, first)
    if rule.momentum > 0.0:
        slots[VELOCITY] = change = accelerated(program, slots[VELOCITY], change, rule.momentum)
    first = program.counts[ops.INPUTS]
    ops.term(program, slots[MODEL], 1.0)
    ops.term(program, change, rule.step)
    _become(program, slots, ops.combine(program, first))
    if rule.momentum == 0.0:
        ops.let_go(program, change)


@njit(forceinline=True)
def _become(program, slots, slot):  # type: ignore[no-untyped-def]
    """Let a model be the learner's."""
    ops.let_go(program, slots[MODEL])
    slots[MODEL] = slot


@njit()
def _average(program, rule, slots, owners):  # type: ignore[no-untyped-def]
    """Use the answers of a round, by the owners' weights; without answers the model stays."""
    whole = 0.0
    for i in range(owners.answers.size):
        if owners.answers[i] >= 0:
            whole += owners.weights[i]
    if whole > 0.0:
        is_mean = rule.step == 1.0 and rule.momentum == 0.0
        first = program.counts[ops.INPUTS]
        if not is_mean:
            ops.term(program, slots[MODEL], -1.0)
        for i in range(owners.answers.size):
            if owners.answers[i] >= 0:
                ops.term(program, owners.answers[i], owners.weights[i] / whole)
        if is_mean:
            _become(program, slots, ops.combine(program, first))
        else:
            _step(program, rule, slots, first)
    for i in range(owners.answers.size):
        ops.let_go(program, owners.answers[i])
        owners.answers[i] = -1


@njit()
def _use(program, rule, slots, owners, counts):  # type: ignore[no-untyped-def]
    """Use the answer that has come."""
    answer, age = counts[ANSWER], counts[COMMITS] // rule.size - counts[VERSION] // rule.size
    share = discounted(rule.discount, rule.rate, rule.late, age)
    counts[ANSWER] = -1
    if rule.what == BLEND:
        first = program.counts[ops.INPUTS]
        ops.term(program, slots[MODEL], 1.0 - rule.step * share)
        ops.term(program, answer, rule.step * share)
        _become(program, slots, ops.combine(program, first))
        ops.let_go(program, answer)
        return
    owners.buffer[counts[BUFFERED]], owners.shares[counts[BUFFERED]] = answer, share
    counts[BUFFERED] += 1
    if counts[BUFFERED] == rule.size:
        first = program.counts[ops.INPUTS]
        for k in range(rule.size):
            ops.term(program, owners.buffer[k], owners.shares[k] / rule.size)
        _step(program, rule, slots, first)
        for k in range(rule.size):
            ops.let_go(program, owners.buffer[k])
        counts[BUFFERED] = 0


@njit()
def _answer(program, training, rule, owners, counts, event):  # type: ignore[no-untyped-def]
    """Slot of an owner's answer, held for its message; −1 where it was not asked."""
    i = event.agent
    which = 0 if owners.heard[i, 0] == event.cause else 1
    if owners.heard[i, which] != event.cause:
        return -1
    at = owners.models[i, which]
    steps = owners.steps[i]
    slot = train(program, training, steps, at, i, event.release, counts[ROW], event.version // rule.size)
    if training.private:
        counts[ROW] += steps
    if rule.what == BUFFER:
        first = program.counts[ops.INPUTS]
        ops.term(program, slot, 1.0)
        ops.term(program, at, -1.0)
        change = ops.combine(program, first)
        ops.let_go(program, slot)
        slot = change
    return slot


@njit()
def _forget(program, owners, i, cause):  # type: ignore[no-untyped-def]
    """Take note that an owner will not answer a query: so one that was overtaken keeps no other from being answered."""
    for which in range(2):
        if owners.heard[i, which] == cause:
            ops.let_go(program, owners.models[i, which])
            owners.heard[i, which] = owners.models[i, which] = -1


@njit()
def plan(  # type: ignore[no-untyped-def]
    events, start, stop, receivers, program, room, training, rule, slots, owners, counts, mail
):
    """Write instructions for events ``start`` to ``stop``; returns a status and the next event.

    ``receivers`` (events,) is how many a send goes to; ``room`` is what one event takes at most: slots, instructions,
    and inputs.
    """
    for e in range(start, stop):
        event = events[e]
        kind, i = event.kind, event.agent
        if kind == SEND:
            if not is_free(mail, event.seq) or not ops.has_room(program, room[0], room[1], room[2]):
                return ops.NEEDS_ROOM, e
            counts[SENT] += 1
            if i == LEARNER:
                post(mail, event.seq, ops.hold(program, slots[MODEL]), receivers[e], event.time)
            else:
                slot = _answer(program, training, rule, owners, counts, event)
                if slot >= 0:
                    post(mail, event.seq, slot, 1, event.time)
        elif kind == BEGIN:
            for which in range(2):
                if owners.heard[i, which] == event.cause:
                    owners.heard[i, which] = event.seq
        elif kind in (DELIVER, DROP):
            slot, _, is_last = arrive(mail, event.cause)
            if slot < 0:
                if i != LEARNER:
                    _forget(program, owners, i, event.cause)
                continue
            if kind == DELIVER and i != LEARNER:
                if owners.heard[i, 0] >= 0:
                    ops.let_go(program, owners.models[i, 1])
                    owners.heard[i, 1], owners.models[i, 1] = owners.heard[i, 0], owners.models[i, 0]
                owners.heard[i, 0], owners.models[i, 0] = event.seq, ops.hold(program, slot)
            elif kind == DELIVER and rule.what != AVERAGE:
                counts[ANSWER], counts[VERSION] = ops.hold(program, slot), event.version
            elif kind == DELIVER and event.version == counts[COMMITS]:
                ops.let_go(program, owners.answers[event.peer])
                owners.answers[event.peer] = ops.hold(program, slot)
            if is_last:
                ops.let_go(program, slot)
        elif kind == COMMIT:
            if not ops.has_room(program, room[0], room[1], room[2]):
                return ops.NEEDS_ROOM, e
            if rule.what == AVERAGE:
                _average(program, rule, slots, owners)
            elif counts[ANSWER] >= 0:
                _use(program, rule, slots, owners, counts)
            counts[COMMITS] += 1
    return ops.PLANNED, stop


def first_counts() -> np.ndarray:
    """Counts before anything has happened."""
    counts = np.zeros(6, np.int64)
    counts[ANSWER] = -1
    return counts
