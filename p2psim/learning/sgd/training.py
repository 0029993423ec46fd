"""What planners share: gradient steps of an agent as instructions, and messages on their way."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.learning.sgd.program import INPUTS, combine, gradient, let_go, term
from p2psim.learning.step_sizes import CONSTANT, INVERSE, StepSize


class Training(NamedTuple):
    """How an agent trains, for planners.

    Attributes
    ----------
    code : int
        How step sizes fall.
    first, second, third : float
        See `StepSize.numbers`.
    steps : int
        Gradient steps of one release, each a query of its own.
    momentum : float
        β of v ← β·v + g, x ← x − η·v; 0 for none.
    proximal : float
        Weight of ½‖x − x₀‖² (FedProx, Li and others 2020), x₀ the model that was received.
    private : bool
        Whether each query has a row of noise.
    """

    code: int
    first: float
    second: float
    third: float
    steps: int
    momentum: float
    proximal: float
    private: bool

    @classmethod
    def of(
        cls,
        step: float | StepSize,
        private: bool,
        steps: int = 1,
        momentum: float = 0.0,
        proximal: float = 0.0,
    ) -> Training:
        """From what a scenario says."""
        code, numbers = (
            (step.code, step.numbers) if isinstance(step, StepSize) else (CONSTANT, (float(step), 0.0, 0.0))
        )
        return cls(code, *numbers, steps, momentum, proximal, private)


@njit()
def step_size(code, first, second, third, t):  # type: ignore[no-untyped-def]
    """η_t."""
    if code == CONSTANT:
        return first
    if code == INVERSE:
        return first / (1.0 + second * t)
    if t >= second:
        return third
    return third + 0.5 * (first - third) * (1.0 + math.cos(math.pi * t / second))


@njit(forceinline=True)
def row_of(training, query_row, step):  # type: ignore[no-untyped-def]
    """Row of the noise of a step, whose release's noise begins at a row; −1 for none."""
    return query_row + step if training.private else -1


@njit()
def accelerated(program, velocity, change, momentum):  # type: ignore[no-untyped-def]
    """Slot, held, of a change plus momentum times the velocity before, if there is one; both are let go."""
    first = program.counts[INPUTS]
    term(program, change, 1.0)
    if velocity >= 0:
        term(program, velocity, momentum)
    fresh = combine(program, first)
    let_go(program, velocity)
    let_go(program, change)
    return fresh


@njit()
def train(program, training, steps, at, agent, release, row, t):  # type: ignore[no-untyped-def]
    """Write the local steps of a release from a model on; returns the slot of the result, held. See `room_to_train`.

    Parameters
    ----------
    steps : int
        Steps of each of the agent's releases.
    at : int
        Slot of the model that the agent begins with; the caller holds it.
    release : int
        Number of the release; its step s is query release·steps + s.
    row : int
        Row of the noise of its first step.
    t : int
        For the step size, which is one for all of its steps.
    """
    eta = step_size(training.code, training.first, training.second, training.third, t)
    here, velocity = at, -1
    for s in range(steps):
        g = gradient(program, here, agent, release * steps + s, row_of(training, row, s))
        if training.momentum > 0.0:
            velocity = g = accelerated(program, velocity, g, training.momentum)
        first = program.counts[INPUTS]
        term(program, here, 1.0 - (eta * training.proximal if s > 0 else 0.0))
        term(program, g, -eta)
        if training.proximal > 0.0 and s > 0:
            term(program, at, eta * training.proximal)
        there = combine(program, first)
        if velocity < 0:
            let_go(program, g)
        if here != at:
            let_go(program, here)
        here = there
    let_go(program, velocity)
    return here


def room_to_train(steps: int) -> tuple[int, int, int]:
    """Slots, instructions and inputs that one release of so many steps takes at most."""
    return 6, 3 * steps, 5 * steps


#: First places in the vectors of counts of planners: rows of noise used, and models sent.
ROW, SENT = 0, 1

#: Columns of `Mail.places`: number of the send (−1 for none), slot, and receivers that are waited for.
_SEND, _SLOT, _LEFT = 0, 1, 2


class Mail(NamedTuple):
    """Messages by the numbers of their sends.

    Attributes
    ----------
    places : ndarray of int64, shape (places, 3)
        A power of two of them; message s lies at s mod places.
    times : ndarray, shape (places,)
        When each was sent.
    """

    places: np.ndarray
    times: np.ndarray

    @classmethod
    def empty(cls, places: int = 1024) -> Mail:
        """Nothing on its way."""
        return cls(np.full((places, 3), -1, np.int64), np.zeros(places))

    def doubled(self) -> Mail:
        """The same with twice as many places."""
        larger = Mail.empty(2 * len(self.places))
        known = np.flatnonzero(self.places[:, _SEND] >= 0)
        new = self.places[known, _SEND] % len(larger.places)
        larger.places[new], larger.times[new] = self.places[known], self.times[known]
        return larger


@njit(forceinline=True)
def is_free(mail, send):  # type: ignore[no-untyped-def]
    """Whether there is a place for a message."""
    return mail.places[send & (mail.places.shape[0] - 1), _SEND] < 0


@njit(forceinline=True)
def post(mail, send, slot, receivers, time):  # type: ignore[no-untyped-def]
    """Note a message, whose slot the caller has held for it."""
    place = send & (mail.places.shape[0] - 1)
    mail.places[place, _SEND], mail.places[place, _SLOT], mail.places[place, _LEFT] = send, slot, receivers
    mail.times[place] = time


@njit(forceinline=True)
def arrive(mail, send):  # type: ignore[no-untyped-def]
    """Slot of a message that ends at a receiver (−1: none), when it was sent, and whether that was the last one."""
    place = send & (mail.places.shape[0] - 1)
    if send < 0 or mail.places[place, _SEND] != send:
        return -1, 0.0, False
    mail.places[place, _LEFT] -= 1
    is_last = mail.places[place, _LEFT] == 0
    if is_last:
        mail.places[place, _SEND] = -1
    return mail.places[place, _SLOT], mail.times[place], is_last
