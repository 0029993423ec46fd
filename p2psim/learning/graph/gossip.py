"""Replays events with an algorithm of one's own: its methods in Python, or a compiled form of them in a kernel.

Gradients come from compiled code either way. The kernel takes an algorithm as `GossipAlgorithm.for_kernel` gives it:
two functions that are called by their address, with their parameters. It is compiled once for all algorithms. State:

- ``models`` (:class:`p2psim.learning.graph.models.Models`): the agents' models, and their gradients;
- ``hearing`` (:class:`p2psim.learning.graph.averaging.Hearing`): models heard, and those begun to compute with;
- messages on their way (:mod:`p2psim.learning.in_flight`).
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from p2psim.core.compiled import called_by_address, njit
from p2psim.core.errors import SimulationError
from p2psim.core.events import BEGIN, COMMIT, DELIVER, DROP, SEND
from p2psim.learning.graph.averaging import UNHEARD, Hearing, begin, keep_heard, used
from p2psim.learning.graph.models import COMMITS, NOISE_ROW, SENT, LearningReplay
from p2psim.learning.graph.problem import GraphTask
from p2psim.learning.in_flight import DONE, InFlight, copy_row, post
from p2psim.learning.owner_kernel import UNKNOWN, note_violation, release_gradient, snapped

#: Mix, step and parameters.
ForKernel = tuple[Any, Any, np.ndarray]

_MIX = "void(float64[::1], float64[::1], float64[::1], float64[::1])"
_STEP = "void(float64[::1], float64[::1], int64, float64[::1], float64[::1])"


def compiled_form(
    mix: Callable[..., None], step: Callable[..., None], parameters: Sequence[float] = ()
) -> ForKernel:
    """What `GossipAlgorithm.for_kernel` returns of an algorithm that brings a compiled form.

    Parameters
    ----------
    mix, step : callable
        What the methods of these names do, as plain functions of a module: ``mix(own, received, parameters, out)`` and
        ``step(at, gradient, updates, parameters, out)``. They write the model that the methods return to ``out``, shape
        (p,), whose contents say nothing before, and to nothing else. Numba compiles them without Python objects, with
        the signatures ``void(float64[::1], float64[::1], float64[::1], float64[::1])`` and ``void(float64[::1],
        float64[::1], int64, float64[::1], float64[::1])``; they must not raise.
    parameters : sequence of float
        Numbers that they depend on, such as the length of a step. What they take from global variables is fixed when
        they are compiled.
    """
    mix_called, step_called = called_by_address((mix, _MIX), (step, _STEP))
    return mix_called, step_called, np.array(parameters, dtype=np.float64)


@njit()
def replay(  # type: ignore[no-untyped-def]
    events, start, models, hearing, mail, counters, form, ridge, records, grid, batch, violations, noise
):
    """Replay events from ``start``; returns (status, next event). ``form`` is a `ForKernel`."""
    mix, step, parameters = form
    theta, gradients = models.theta, models.gradients
    p = theta.shape[1]
    new, gradient = np.empty(p), np.empty(p)
    for at in range(start, events.size):
        event = events[at]
        kind, i = event.kind, event.agent
        if kind == SEND and event.version >= 0:
            row = post(event.seq, 0, mail)
            if row < 0:
                return row, at
            copy_row(theta[i], mail.payloads[row])
            counters[SENT] += 1
        elif kind in (DELIVER, DROP):
            keep_heard(event, mail, hearing)
        elif kind == BEGIN:
            if not begin(event, hearing):
                return UNHEARD, at
        elif kind == COMMIT:
            other = used(event, hearing)
            if other.size == 0:
                return UNHEARD, at
            mix(theta[i], other, parameters, new)
            copy_row(new, theta[i])
            if event.release >= 0:
                models.known[i] = UNKNOWN
                longest = release_gradient(records, batch, i, event.release, models)
                if longest > 0.0:
                    note_violation(i, counters[COMMITS], longest / records.bound, violations)
                for a in range(p):
                    released = snapped(gradients[i, a] + noise[counters[NOISE_ROW], a], grid)
                    gradient[a] = released + 2.0 * ridge[i] * theta[i, a]
                counters[NOISE_ROW] += 1
                step(theta[i], gradient, event.release, parameters, new)
                copy_row(new, theta[i])
            counters[COMMITS] += 1
    return DONE, events.size


class CompiledGossipReplay(LearningReplay):
    """One replica of a `GossipAlgorithm` with a compiled form, fed with chunks of events of the exchange ``gossip``.

    Parameters
    ----------
    kind : str
        The algorithm's, named in errors.
    form : ForKernel
    task : GraphTask
    """

    def __init__(self, kind: str, form: ForKernel, task: GraphTask):
        super().__init__(task, track=False)
        self._kind, self._form = kind, form
        self._hearing = Hearing.none(*self.theta.shape)
        self.mail = InFlight.of(self.theta.shape[1])

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """See `ModelReplay.feed`.

        Raises
        ------
        SimulationError
            If an update follows no delivery.
        """
        self.counters[NOISE_ROW], at = 0, 0
        while at < events.size:
            status, at = replay(
                events, at, self._models, self._hearing, self.mail, self.counters, self._form, self._problem.ridge,
                self._records, self._grid, self._batch, self.violations, noise,
            )  # fmt: skip
            if status == UNHEARD:
                raise unheard(self._kind)
            if status != DONE:
                self.mail = self.mail.with_room(status)


def unheard(kind: str) -> SimulationError:
    """What is raised where an update follows no delivery."""
    return SimulationError(f"{kind} updates where a model is heard: give gossip")


class GossipReplay(LearningReplay):
    """One replica of a `GossipAlgorithm` by its methods in Python, fed with chunks of events of exchange ``gossip``.

    Parameters
    ----------
    algorithm : GossipAlgorithm
    task : GraphTask
    """

    def __init__(self, algorithm: Any, task: GraphTask):
        super().__init__(task, track=False)
        self._algorithm = algorithm
        self._sent: dict[int, np.ndarray] = {}
        # Of each agent, the event in which it heard a model last, and that model.
        self._heard: dict[int, tuple[int, np.ndarray]] = {}
        # The same of who computes: the event with which it began, and the model that it had heard.
        self._begun: dict[int, tuple[int, np.ndarray]] = {}

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """See `ModelReplay.feed`.

        Raises
        ------
        SimulationError
            If a method gives what is no model, or an update follows no delivery.
        """
        row = 0
        columns = (events[name].tolist() for name in ("seq", "kind", "agent", "version", "cause", "release"))
        for seq, kind, agent, version, cause, release in zip(*columns, strict=True):
            if kind == SEND and version >= 0:
                self._sent[seq] = self.theta[agent].copy()
                self.counters[SENT] += 1
            elif kind in (DELIVER, DROP) and cause in self._sent:
                model = self._sent.pop(cause)
                if kind == DELIVER:
                    self._heard[agent] = seq, model
            elif kind == BEGIN:
                heard, received = self._heard.pop(agent, (-1, self.theta[agent]))
                self._begun[agent] = seq if heard == cause else -1, received
            elif kind == COMMIT:
                is_computed = self._begun.get(agent, (-1,))[0] == cause
                known = self._begun if is_computed else self._heard
                heard, received = known.pop(agent, (-1, self.theta[agent]))
                if heard != cause:
                    raise unheard(self._algorithm.kind)
                self._update(agent, received, release, noise[row : row + 1])
                row += release >= 0
                self.counters[COMMITS] += 1

    def _update(self, i: int, received: np.ndarray, release: int, noise: np.ndarray) -> None:
        algorithm = self._algorithm
        self.theta[i] = self._model("mix", algorithm.mix(self.theta[i].copy(), received))
        if release < 0:
            return
        self._models.known[i] = UNKNOWN
        longest = release_gradient(self._records, self._batch, i, release, self._models)
        if longest > 0:
            note_violation(i, self.counters[COMMITS], longest / self._records.bound, self.violations)
        at = self.theta[i].copy()
        released = np.array([snapped(value, self._grid) for value in self._models.gradients[i] + noise[0]])
        gradient = released + 2 * self._problem.ridge[i] * at
        self.theta[i] = self._model("step", algorithm.step(at, gradient, release))

    def _model(self, method: str, model: np.ndarray) -> np.ndarray:
        if np.shape(model) != self.theta.shape[1:]:
            wanted, kind = self.theta.shape[1:], self._algorithm.kind
            raise SimulationError(
                f"{method} of {kind} must give a model of shape {wanted}, got {np.shape(model)}"
            )
        return model
