"""The planner of gossip learning (Ormándi, Hegedűs, Jelasity 2013): models walk over the graph, and learn on their way.

An agent that hears a model m makes its own from it and from the one that it heard before, m':

- ``walk``: update(m), a random walk;
- ``merge-update``: update(merge(m, m'));
- ``update-merge``: merge(update(m), update(m')).

A model has an age: how often it was updated. Its step sizes follow from that. A merge is the mean, or weighted by age
(Giaretta and Girdzijauskas 2019), and has the age of the older one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import BEGIN, COMMIT, DELIVER, DROP, SEND
from p2psim.learning.in_flight import copy_row
from p2psim.learning.sgd import program as ops
from p2psim.learning.sgd.training import ROW, SENT, arrive, is_free, post, train

#: How a model is made of the one that was heard and the one before.
WALK, MERGE_UPDATE, UPDATE_MERGE = 0, 1, 2


class Merging(NamedTuple):
    """How models are merged.

    Attributes
    ----------
    mode : int
        `WALK`, `MERGE_UPDATE` or `UPDATE_MERGE`.
    by_age : bool
        Whether a merge is weighted by age.
    """

    mode: int
    by_age: bool


class Walkers(NamedTuple):
    """What agents hold: slots (−1 for none) and ages of models.

    Attributes
    ----------
    models, ages : ndarray of int64, shape (n,)
    last, last_ages : ndarray of int64, shape (n,)
        The model that was heard before.
    heard, working : ndarray of int64, shape (n, 3)
        Number of the event that brought a model, its slot and its age: of the one that came last, and of the one with
        which work has begun.
    """

    models: np.ndarray
    ages: np.ndarray
    last: np.ndarray
    last_ages: np.ndarray
    heard: np.ndarray
    working: np.ndarray

    @classmethod
    def first(cls, models: np.ndarray) -> Walkers:
        """With models in these slots, each held twice, before anything has happened."""
        n = models.size
        zeros, nothing = np.zeros(n, np.int64), np.full((n, 3), -1, np.int64)
        return cls(models, zeros, models.copy(), zeros.copy(), nothing, nothing.copy())


@njit()
def _merged(program, by_age, a, age_of_a, b, age_of_b):  # type: ignore[no-untyped-def]
    """Slot, held, of two models merged."""
    share = 0.5
    if by_age and age_of_a + age_of_b > 0:
        share = age_of_a / (age_of_a + age_of_b)
    first = program.counts[ops.INPUTS]
    ops.term(program, a, share)
    ops.term(program, b, 1.0 - share)
    return ops.combine(program, first)


@njit()
def _update(program, training, merging, walkers, event, heard, row):  # type: ignore[no-untyped-def]
    """Make an agent's model of the one that it has heard."""
    i, release = event.agent, event.release
    slot, age = heard[i, 1], heard[i, 2]
    last, last_age = walkers.last[i], walkers.last_ages[i]
    oldest = max(age, last_age)
    if merging.mode == WALK:
        new, new_age = ops.hold(program, slot), age
    elif merging.mode == MERGE_UPDATE or release < 0:
        new, new_age = _merged(program, merging.by_age, slot, age, last, last_age), oldest
    else:
        steps = training.steps
        here = train(program, training, steps, slot, i, 2 * release, row, age)
        there = train(
            program, training, steps, last, i, 2 * release + 1, row + steps * training.private, last_age
        )
        new, new_age = (
            _merged(program, merging.by_age, here, age + steps, there, last_age + steps),
            oldest + steps,
        )
        ops.let_go(program, here)
        ops.let_go(program, there)
    if release >= 0 and merging.mode != UPDATE_MERGE:
        updated = train(program, training, training.steps, new, i, release, row, new_age)
        ops.let_go(program, new)
        new, new_age = updated, new_age + training.steps
    ops.let_go(program, walkers.models[i])
    walkers.models[i], walkers.ages[i] = new, new_age
    ops.let_go(program, last)
    walkers.last[i], walkers.last_ages[i] = slot, age
    heard[i, 0] = heard[i, 1] = -1


@njit()
def plan(  # type: ignore[no-untyped-def]
    events, start, stop, receivers, program, room, training, merging, walkers, counts, mail
):
    """Write instructions for events ``start`` to ``stop``; returns a status and the next event.

    ``receivers`` (events,) is how many a send goes to; ``room`` is what one event takes at most: slots, instructions,
    and inputs.
    """
    queries = training.steps * (2 if merging.mode == UPDATE_MERGE else 1)
    for k in range(start, stop):
        event = events[k]
        kind, i = event.kind, event.agent
        if kind == SEND and event.version >= 0:
            if not is_free(mail, event.seq):
                return ops.NEEDS_ROOM, k
            counts[SENT] += 1
            if receivers[k] > 0:
                post(mail, event.seq, ops.hold(program, walkers.models[i]), receivers[k], walkers.ages[i])
        elif kind in (DELIVER, DROP):
            slot, age, is_last = arrive(mail, event.cause)
            if slot >= 0:
                if kind == DELIVER:
                    ops.let_go(program, walkers.heard[i, 1])
                    walkers.heard[i, 0], walkers.heard[i, 1] = event.seq, ops.hold(program, slot)
                    walkers.heard[i, 2] = np.int64(age)
                if is_last:
                    ops.let_go(program, slot)
        elif kind == BEGIN:
            if walkers.heard[i, 0] == event.cause:
                ops.let_go(program, walkers.working[i, 1])
                copy_row(walkers.heard[i], walkers.working[i])
                walkers.working[i, 0] = event.seq
                walkers.heard[i, 0] = walkers.heard[i, 1] = -1
        elif kind == COMMIT:
            if not ops.has_room(program, room[0], room[1], room[2]):
                return ops.NEEDS_ROOM, k
            if walkers.working[i, 0] == event.cause:
                _update(program, training, merging, walkers, event, walkers.working, counts[ROW])
            elif walkers.heard[i, 0] == event.cause:
                _update(program, training, merging, walkers, event, walkers.heard, counts[ROW])
            if event.release >= 0 and training.private:
                counts[ROW] += queries
    return ops.PLANNED, stop
