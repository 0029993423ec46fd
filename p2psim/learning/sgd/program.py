"""Instructions over parameter vectors: what planners make of events, and executors carry out.

A model is a vector in a numbered *slot*. There are two instructions: the mean gradient of an agent's batch at the model
in a slot, and a weighted sum of slots. Both write a slot that nothing holds. A slot is counted by those who hold it (an
agent whose model it is, messages on their way, whoever has heard it), and free again when nobody does: a model is kept
once a version, however many hold it.

Planners know the order of events and no numbers of models; so one executor serves all algorithms, and one planner all
models.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit

#: What an instruction does.
GRADIENT, COMBINE = 0, 1

#: One instruction. ``out`` is the slot that it writes. `GRADIENT`: ``at`` is the slot of the model, ``agent`` and
#: ``query`` address the batch, ``noise`` is the row of the noise, −1 for none. `COMBINE`: inputs are ``first`` to
#: ``last`` of the program's.
INSTRUCTION = np.dtype(
    [(name, np.int64) for name in ("what", "out", "at", "agent", "query", "noise", "first", "last")]
)

#: Statuses of planners: all events are planned, or there is no room for the next one.
PLANNED, NEEDS_ROOM = 0, 1

#: Places in the vector of counts.
INSTRUCTIONS, INPUTS, FREE = 0, 1, 2


class Program(NamedTuple):
    """A program that is being written.

    Attributes
    ----------
    instructions : ndarray of INSTRUCTION
    inputs : ndarray of int64
        Slots of weighted sums.
    weights : ndarray
        Their weights.
    holders : ndarray of int64, shape (slots,)
        How many hold each slot.
    free : ndarray of int64, shape (slots,)
        Stack of the slots that nobody holds.
    counts : ndarray of int64, shape (3,)
        Instructions, inputs, and free slots.
    """

    instructions: np.ndarray
    inputs: np.ndarray
    weights: np.ndarray
    holders: np.ndarray
    free: np.ndarray
    counts: np.ndarray

    @classmethod
    def empty(cls, slots: int, instructions: int = 4096) -> Program:
        """Without instructions, all slots free; slots are taken from 0 on."""
        return cls(
            np.zeros(instructions, INSTRUCTION),
            np.zeros(4 * instructions, np.int64),
            np.zeros(4 * instructions),
            np.zeros(slots, np.int64),
            np.arange(slots)[::-1].copy(),
            np.array([0, 0, slots]),
        )

    @property
    def slots(self) -> int:
        """Slots in all."""
        return int(self.holders.size)

    def cleared(self) -> None:
        """Forget instructions that were carried out."""
        self.counts[INSTRUCTIONS] = self.counts[INPUTS] = 0

    def with_room(self, slots: int, instructions: int, inputs: int) -> Program:
        """The same without instructions, with room for so much more."""
        self.cleared()
        program = self
        if self.instructions.size < instructions:
            program = program._replace(instructions=np.zeros(2 * instructions, INSTRUCTION))
        if self.inputs.size < inputs:
            program = program._replace(inputs=np.zeros(2 * inputs, np.int64), weights=np.zeros(2 * inputs))
        if self.counts[FREE] < slots:
            old, more = self.slots, max(slots, self.slots // 4)
            free = np.zeros(old + more, np.int64)
            count = int(self.counts[FREE])
            free[:more] = np.arange(old, old + more)[::-1]
            free[more : more + count] = self.free[:count]
            program.counts[FREE] = count + more
            program = program._replace(
                holders=np.concatenate([self.holders, np.zeros(more, np.int64)]), free=free
            )
        return program


@njit(forceinline=True)
def has_room(program, slots, instructions, inputs):  # type: ignore[no-untyped-def]
    """Whether so many slots, instructions and inputs more can be written."""
    counts = program.counts
    return (
        counts[FREE] >= slots
        and counts[INSTRUCTIONS] + instructions <= program.instructions.size
        and counts[INPUTS] + inputs <= program.inputs.size
    )


@njit(forceinline=True)
def hold(program, slot):  # type: ignore[no-untyped-def]
    """Note that somebody more holds a slot; returns it."""
    program.holders[slot] += 1
    return slot


@njit(forceinline=True)
def let_go(program, slot):  # type: ignore[no-untyped-def]
    """Note that somebody holds a slot no more; −1 is no slot."""
    if slot >= 0:
        program.holders[slot] -= 1
        if program.holders[slot] == 0:
            program.free[program.counts[FREE]] = slot
            program.counts[FREE] += 1


@njit(forceinline=True)
def take(program):  # type: ignore[no-untyped-def]
    """A slot that nobody held; the caller holds it."""
    program.counts[FREE] -= 1
    slot = program.free[program.counts[FREE]]
    program.holders[slot] = 1
    return slot


@njit()
def gradient(program, at, agent, query, noise):  # type: ignore[no-untyped-def]
    """Write an instruction for the mean gradient of an agent's batch at a model; returns the slot, held."""
    out = take(program)
    line = program.instructions[program.counts[INSTRUCTIONS]]
    line.what, line.out, line.at, line.agent, line.query, line.noise = GRADIENT, out, at, agent, query, noise
    program.counts[INSTRUCTIONS] += 1
    return out


@njit(forceinline=True)
def term(program, slot, weight):  # type: ignore[no-untyped-def]
    """Write a term of the weighted sum that `combine` will make of all terms since the last one."""
    place = program.counts[INPUTS]
    program.inputs[place], program.weights[place] = slot, weight
    program.counts[INPUTS] = place + 1


@njit()
def combine(program, first):  # type: ignore[no-untyped-def]
    """Write an instruction for the sum of the terms from place ``first`` on; returns the slot, held."""
    out = take(program)
    line = program.instructions[program.counts[INSTRUCTIONS]]
    line.what, line.out, line.first, line.last = COMBINE, out, first, program.counts[INPUTS]
    program.counts[INSTRUCTIONS] += 1
    return out
