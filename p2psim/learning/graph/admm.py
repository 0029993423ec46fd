"""The compiled replay of gossip ADMM: its kernel, and the class that feeds the kernel with events.

See :mod:`p2psim.learning.graph.algorithms` for the method.

An agent makes its local steps when it sends: its model changes there. Link variables change at the neighbour when it
sends back, and at the agent that woke when it commits. State, with directed edges as the ends of links:

- ``theta`` (n, p): own models; ``gradients`` (n, p), ``known`` (n,), ``local`` (n,) and ``sums`` (3,) as in the kernel
  of the graph;
- ``pulled`` (ends, 2, p): z − u for the own model and for the copy, which is what the other end sent last;
- ``multipliers`` (ends, 2, p): u for the own model and for the copy;
- ``newest`` (ends,): the exchange that set an end last, by the seq of its first send: an older one never overwrites it;
- messages on their way (:mod:`p2psim.learning.in_flight`), tagged with their exchange: s of the own model and of the
  copy, and in an answer those of the message that it answers, which the receiver sent and so knows;
- ``heard`` (4p,) and ``heard_of`` (2,): the message that was delivered last, the seq of this delivery, its exchange.
"""

from dataclasses import dataclass

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.errors import SimulationError
from p2psim.core.events import COMMIT, DELIVER, DROP, SEND
from p2psim.learning.graph import models as replays
from p2psim.learning.graph.problem import GraphRule, GraphTask
from p2psim.learning.in_flight import DONE, InFlight, post, take
from p2psim.learning.owner_kernel import UNKNOWN, evaluate, note_violation, release_gradient, snapped
from p2psim.network.tally import edge_of


@njit()
def replay(  # type: ignore[no-untyped-def]
    events, start, models, pulled, multipliers, newest, heard, heard_of, mail, counters,
    graph, smoothness, records, grid, batch, violations, rho, inner, without_release, noise, track,
):  # fmt: skip
    """Replay events from ``start``; returns (status, next event).

    ``batch`` is None where all records take part in a release, else `p2psim.learning.batches.Sampling.for_kernel`: all
    inner steps of a release have the same batch. ``grid`` is None, or what noisy gradients are rounded to multiples of.
    """
    theta, gradients, known, anchor = models.theta, models.gradients, models.known, models.anchor
    indptr, indices, weights, _, ridge, pull = graph
    payloads = mail.payloads
    p = theta.shape[1]
    old, mix, target, nothing = np.empty(p), np.empty(p), np.empty(p), np.empty(0)
    for at in range(start, events.size):
        event = events[at]
        kind, i = event.kind, event.agent
        if kind == SEND:
            answers = event.cause == heard_of[0]
            exchange = heard_of[1] if answers else event.seq
            row = post(event.seq, exchange, mail)
            if row < 0:
                return row, at
            end = edge_of(indices, indptr[i], indptr[i + 1], event.peer)
            touches = event.release >= 0
            for a in range(p):
                old[a] = theta[i, a]
            stiffness = _aim(i, indptr, weights, rho, pulled, target)
            if touches:
                gradient = gradients[i]
                step = 1.0 / (stiffness + pull[i] * smoothness[i])
                noise_row, longest = counters[replays.NOISE_ROW], 0.0
                for _ in range(inner):
                    here = release_gradient(records, batch, i, event.release, models)
                    longest = max(longest, here)
                    known[i] = UNKNOWN
                    for a in range(p):
                        t = theta[i, a]
                        if grid is None:
                            g = gradient[a] + 2.0 * ridge[i] * t + noise[noise_row, a]
                        else:  # the regulariser is not what noise hides
                            g = snapped(gradient[a] + noise[noise_row, a], grid) + 2.0 * ridge[i] * t
                        theta[i, a] = t - step * (pull[i] * g + stiffness * t - target[a])
                if longest > 0.0:
                    note_violation(i, counters[replays.COMMITS], longest / records.bound, violations)
                counters[replays.NOISE_ROW] += 1
                for a in range(p):
                    anchor[i, a] = theta[i, a]
            else:
                c = 0.0 if without_release == replays.AVERAGE else pull[i]
                for a in range(p):
                    theta[i, a] = (target[a] + c * anchor[i, a]) / (stiffness + c)
                known[i] = UNKNOWN
            if track:
                # Who made no release will make none, and a batch is not drawn yet: no gradient is asked for again.
                after = gradients[i] if batch is None and touches else nothing
                new, known[i] = evaluate(records, i, theta[i], after)
                replays.track_objective(i, old, mix, True, new, models, graph)
            half = 0.5 * weights[end]
            for a in range(p):
                copy = (half * theta[i, a] + rho * pulled[end, 1, a]) / (half + rho)
                payloads[row, a] = theta[i, a] + multipliers[end, 0, a]
                payloads[row, p + a] = copy + multipliers[end, 1, a]
            if answers:
                for a in range(2 * p):
                    payloads[row, 2 * p + a] = heard[a]
                _set_end(end, exchange, payloads[row], heard, pulled, multipliers, newest)
            counters[replays.SENT] += 2
        elif kind in (DELIVER, DROP):
            row, exchange = take(event.cause, mail)
            if kind == DELIVER:
                for a in range(4 * p):
                    heard[a] = payloads[row, a]
                heard_of[0], heard_of[1] = event.seq, exchange
        elif kind == COMMIT:
            end = edge_of(indices, indptr[i], indptr[i + 1], event.peer)
            _set_end(end, heard_of[1], heard[2 * p :], heard, pulled, multipliers, newest)
            counters[replays.COMMITS] += 1
    return DONE, events.size


@njit(inline="always")
def _aim(i, indptr, weights, rho, pulled, target):  # type: ignore[no-untyped-def]
    """Σ_e (ρ + h_e), returned, and Σ_e (ρ(z_i − u_i) + h_e(z_ij − u_ij)), written to ``target``."""
    stiffness = 0.0
    target[:] = 0.0
    for e in range(indptr[i], indptr[i + 1]):
        half = 0.5 * weights[e]
        h = half * rho / (half + rho)
        stiffness += rho + h
        for a in range(target.size):
            target[a] += rho * pulled[e, 0, a] + h * pulled[e, 1, a]
    return stiffness


@njit(inline="always")
def _set_end(end, exchange, sent, heard, pulled, multipliers, newest):  # type: ignore[no-untyped-def]
    """Set z and u of one end from what it sent and heard: its model meets the other's copy, its copy the model."""
    if exchange <= newest[end]:
        return
    newest[end] = exchange
    p = pulled.shape[2]
    for a in range(p):
        pulled[end, 0, a] = heard[p + a]
        pulled[end, 1, a] = heard[a]
        multipliers[end, 0, a] = 0.5 * (sent[a] - heard[p + a])
        multipliers[end, 1, a] = 0.5 * (sent[p + a] - heard[a])


@dataclass(frozen=True, kw_only=True)
class AdmmRule(GraphRule):
    """How an agent makes its local steps.

    Attributes
    ----------
    rho : float
        Penalty, positive.
    inner : int
        Gradient steps of each local problem; each takes the gradient of the agent's records anew.
    anchored : bool
        What local steps without a release minimise in place of the agent's loss: nothing, or, if anchored, half the
        squared distance from its last model that touched its data.
    """

    rho: float
    inner: int = 10


class AdmmReplay(replays.LearningReplay):
    """One replica of gossip ADMM, fed with chunks of events of the exchange ``{kind: gossip, mode: edge}``.

    Parameters
    ----------
    task : GraphTask
        With an `AdmmRule`.
    track : bool
        Keep Q_L up to date.

    Attributes
    ----------
    theta : ndarray, shape (n, p)
        The agents' own models. One changes when its agent sends, before the commit that the exchange may end in.
    """

    def __init__(self, task: GraphTask, track: bool = True):
        super().__init__(task, track)
        assert isinstance(task.rule, AdmmRule)
        self._rule, problem, (n, p) = task.rule, task.problem, self.theta.shape
        owner = np.repeat(np.arange(n), np.diff(problem.indptr))
        self._pulled = np.stack([self.theta[owner], self.theta[problem.indices]], axis=1)
        self._multipliers = np.zeros((owner.size, 2, p))
        self._newest = np.full(owner.size, -1, np.int64)
        self._heard, self._heard_of = np.zeros(4 * p), np.full(2, -1, np.int64)
        self.mail = InFlight.of(4 * p)

    def feed(self, events: np.ndarray, noise: np.ndarray) -> None:
        """See `ModelReplay.feed`.

        Raises
        ------
        SimulationError
            If there is noise and more than one inner step: one draw does not hide several gradients.
        """
        rule, at = self._rule, 0
        if rule.inner > 1 and noise.any():
            raise SimulationError(
                f"a release of gossip ADMM is private with inner: 1 only, for each of its {rule.inner} inner steps "
                "takes the gradient anew"
            )
        self.counters[replays.NOISE_ROW] = 0
        while at < events.size:
            status, at = replay(
                events, at, self._models, self._pulled, self._multipliers, self._newest, self._heard, self._heard_of,
                self.mail, self.counters, self._graph, self._problem.smoothness, self._records, self._grid,
                self._batch, self.violations, rule.rho, rule.inner, self._without_release, noise, self._track,
            )  # fmt: skip
            if status != DONE:
                self.mail = self.mail.with_room(status)
