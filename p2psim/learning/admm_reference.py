"""Gossip ADMM in plain NumPy, with all its variables: to be read beside the paper, and to test against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from p2psim.learning.admm_replay import AdmmRule
from p2psim.learning.batches import Sampling
from p2psim.learning.graph_problem import GraphProblem
from p2psim.learning.releases_reference import first_rows, mean_gradient, on_grid
from p2psim.network.events import COMMIT, DELIVER, SEND

#: θ_i, θ_ij and their multipliers λ, as one end of a link sends them.
Message = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def replay_admm_plainly(
    problem: GraphProblem,
    rule: AdmmRule,
    start: np.ndarray,
    events: Iterable[np.void],
    noise: np.ndarray,
    anchor: np.ndarray | None = None,
    sampling: Sampling | None = None,
) -> Iterator[np.ndarray]:
    """All own models after every commit.

    Parameters
    ----------
    problem : GraphProblem
    rule : AdmmRule
    start : ndarray, shape (n, p)
    events : iterable of EVENT records
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    anchor : ndarray, shape (n, p), optional
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.

    Yields
    ------
    ndarray, shape (n, p)
        The first is the start.
    """
    events = list(events)
    rho = rule.rho
    theta = np.array(start, dtype=float)
    anchors = np.array(start if anchor is None else anchor, dtype=float)
    near = [
        problem.indices[problem.indptr[i] : problem.indptr[i + 1]].tolist() for i in range(problem.agents)
    ]
    W = {
        (i, j): float(problem.weights[problem.indptr[i] + k])
        for i in range(problem.agents)
        for k, j in enumerate(near[i])
    }
    # By the end (i, j) of i: secondary variables and multipliers of the own model (0) and of the copy of j's (1).
    z = {(i, j): [theta[i].copy(), theta[j].copy()] for i, j in W}
    multiplier = {end: [np.zeros(problem.dimension), np.zeros(problem.dimension)] for end in W}
    set_by = dict.fromkeys(W, -1)
    first = first_rows(events, SEND, problem.agents)

    def steps(i: int, release: int) -> None:
        """Minimise agent i's part of the augmented Lagrangian, its copies eliminated."""
        stiff, target = 0.0, np.zeros(problem.dimension)
        for j in near[i]:
            w = W[i, j] / 2
            h = w * rho / (w + rho)
            own, copy = (z[i, j][k] - multiplier[i, j][k] / rho for k in (0, 1))
            stiff, target = stiff + rho + h, target + rho * own + h * copy
        pull = problem.mu * problem.degrees[i] * problem.confidence[i]
        if release < 0:
            c = pull if rule.anchored else 0.0
            theta[i] = (target + c * anchors[i]) / (stiff + c)
            return
        for _ in range(rule.inner):
            g = mean_gradient(problem, i, theta[i], rule.clip, release, sampling, rule.order)
            g = on_grid(g + noise[first[i] + release], rule.grid) + 2 * problem.ridge[i] * theta[i]
            g = pull * g + stiff * theta[i] - target
            theta[i] = theta[i] - g / (stiff + pull * problem.smoothness[i])
        anchors[i] = theta[i]

    def meet(i: int, j: int, exchange: int, mine: Message, other: Message) -> None:
        """Set the variables of i's end from what both ends sent."""
        if exchange < set_by[i, j]:
            return
        set_by[i, j] = exchange
        for k in (0, 1):  # my model meets the other's copy of it, and my copy the other's model
            (model, lam), (their, their_lam) = (mine[k], mine[2 + k]), (other[1 - k], other[3 - k])
            z[i, j][k] = ((lam + their_lam) / rho + model + their) / 2
            multiplier[i, j][k] = lam + rho * (model - z[i, j][k])

    sent: dict[int, tuple[int, Message, Message | None]] = {}  # exchange, message, message that it answers
    heard: dict[int, tuple[int, Message, Message | None]] = {}
    yield theta.copy()
    for event in events:
        i, j, seq, cause = (int(event[name]) for name in ("agent", "peer", "seq", "cause"))
        if event["kind"] == SEND:
            steps(i, int(event["release"]))
            w = W[i, j] / 2
            copy = (w * theta[i] + rho * z[i, j][1] - multiplier[i, j][1]) / (w + rho)
            message = (theta[i].copy(), copy, *(lam.copy() for lam in multiplier[i, j]))
            exchange, other, _ = heard.get(cause, (seq, None, None))
            sent[seq] = exchange, message, other
            if other is not None:
                meet(i, j, exchange, message, other)
        elif event["kind"] == DELIVER:
            heard[seq] = sent[cause]
        elif event["kind"] == COMMIT:
            exchange, answer, mine = heard[cause]
            assert mine is not None
            meet(i, j, exchange, mine, answer)
            yield theta.copy()
