"""References in plain NumPy for a central learner: F Algorithm 1, and W Algorithms 1 and 2.

They are short, so that they can be read beside the papers. The compiled kernels are tested against them.
"""

from collections.abc import Iterable

import numpy as np

from p2psim.core.events import COMMIT, DELIVER, DROP, JOIN, LEARNER, NEIGHBOURS, SEND
from p2psim.learning.batches import GradientRule, Sampling
from p2psim.learning.reference import first_rows, mean_gradient, on_grid
from p2psim.learning.star.algorithms import RoundMethod, StarMethod
from p2psim.learning.star.problem import StarProblem
from p2psim.learning.steps import Weighting

#: Gradients as they are.
UNCLIPPED = GradientRule()


def reference_replay(
    problem: StarProblem,
    method: StarMethod,
    events: Iterable[np.void],
    noise: np.ndarray,
    rule: GradientRule = UNCLIPPED,
    sampling: Sampling | None = None,
) -> np.ndarray:
    """The learner's model after every commit.

    Parameters
    ----------
    problem : StarProblem
    method : StarMethod
    events : iterable of EVENT records
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    rule : GradientRule, optional
        How gradients are clipped and rounded; not at all when left out.
    sampling : Sampling, optional
        How the records of each release are drawn; all take part when left out.

    Returns
    -------
    ndarray, shape (commits + 1, p)
        The first row is the start, zero.
    """
    events = list(events)
    N, p = problem.owners, problem.dimension
    first = first_rows(events, SEND, N)

    theta_L, theta, asked, newest = np.zeros(p), np.zeros((N, p)), np.zeros((N, p)), np.zeros(N)
    queries: dict[int, np.ndarray] = {}
    answers: dict[int, tuple[np.ndarray, np.ndarray, int]] = {}
    arrived = (np.zeros(p), np.zeros(p), 0)
    weighting, counts = method.weighting or Weighting.equal(N), np.zeros(N, np.int64)
    models = [theta_L]
    for event in events:
        seq, kind, agent, peer, cause = (
            int(event[name]) for name in ("seq", "kind", "agent", "peer", "cause")
        )
        if kind == SEND and agent == LEARNER:
            assert peer == NEIGHBOURS or peer >= 0
            queries[seq] = (theta_L + theta) / 2
        elif kind == SEND:
            release = int(event["release"])
            Q = mean_gradient(problem, agent, asked[agent], rule, release, sampling)
            Q = on_grid(weighting.at_owner[agent] * Q + noise[first[agent] + release], rule.grid)
            answers[seq] = Q, asked[agent].copy(), int(event["version"])
        elif kind == DELIVER and agent == LEARNER:
            arrived = answers.pop(cause)
        elif kind == DELIVER and event["version"] >= newest[agent]:
            asked[agent], newest[agent] = queries[cause][agent], event["version"]
        elif kind == DROP and agent == LEARNER:
            del answers[cause]
        elif kind == COMMIT:
            Q, queried, version = arrived
            Q = weighting.of_answer(peer, int(counts.sum()) - version, counts) * Q
            counts[peer] += 1
            at = queried if method.overwrite else (theta_L + theta[peer]) / 2
            dg = 2 * problem.l2 * at
            step, box = method.step, problem.theta_max
            theta[peer] = np.clip(at - N * step * (dg / (2 * N) + problem.shares[peer] * Q), -box, box)
            theta_L = np.clip(at - method.learner_weight * step * dg, -box, box)
            models.append(theta_L)
        elif kind == JOIN and agent != LEARNER and event["version"] >= 0:
            theta[agent] = theta_L if peer == LEARNER else 0.0
    return np.array(models)


def reference_replay_rounds(
    problem: StarProblem,
    method: RoundMethod,
    events: Iterable[np.void],
    noise: np.ndarray,
    rule: GradientRule = UNCLIPPED,
    sampling: Sampling | None = None,
) -> np.ndarray:
    """The learner's model after every round: the iterate, or the average where the method has one.

    Parameters
    ----------
    problem : StarProblem
    method : RoundMethod
    events : iterable of EVENT records
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    rule, sampling
        As in `p2psim.learning.star.reference.reference_replay`.

    Returns
    -------
    ndarray, shape (rounds + 1, p)
        The first row is the start, zero.
    """
    events = list(events)
    N, p = problem.owners, problem.dimension
    first = first_rows(events, SEND, N)

    theta, average = [np.zeros(p)], [np.zeros(p)]
    sent: dict[int, tuple[int, np.ndarray]] = {}
    answers: dict[int, np.ndarray] = {}
    used = np.zeros(N, np.int64)
    for event in events:
        kind, agent, k = event["kind"], int(event["agent"]), len(theta) - 1
        if kind == SEND and agent != LEARNER:
            version, release = int(event["version"]), int(event["release"])
            Q = mean_gradient(problem, agent, theta[version], rule, release, sampling)
            Q = on_grid(method.weighting.at_owner[agent] * Q + noise[first[agent] + release], rule.grid)
            sent[int(event["seq"])] = version, Q if method.lies is None else method.lies.told(agent, Q)
        elif kind == DELIVER and agent == LEARNER:
            version, Q = sent.pop(int(event["cause"]))
            if version == k:
                answers[int(event["peer"])] = Q
        elif kind == COMMIT:
            gradient, answered, mass = np.zeros(p), 0.0, 0.0
            answers = {
                owner: Q * min(1.0, method.clip / max(float(np.linalg.norm(Q)), 1e-300))
                for owner, Q in answers.items()
            }
            for owner, Q in sorted(answers.items()):
                weight = method.weighting.at_learner[owner]
                if method.weighting.estimated:
                    weight *= (k + 1) / (used[owner] + 1)
                gradient = gradient + weight * problem.shares[owner] * Q
                answered += problem.shares[owner]
                mass += weight * problem.shares[owner]
                used[owner] += 1
            if method.trim and answers:
                ordered, cut = np.sort(list(answers.values()), axis=0), int(method.trim * len(answers) + 1e-9)
                cut = min(cut, (len(answers) - 1) // 2)
                gradient = mass * ordered[cut : len(answers) - cut].mean(axis=0)
            if method.by_answered and answers:
                gradient = gradient / answered
            answers.clear()
            moved = theta[k] - method.steps[k] * (2 * problem.l2 * theta[k] + gradient)
            theta.append(np.clip(moved, -problem.theta_max, problem.theta_max) if method.projects else moved)
            average.append(method.keep[k] * average[k] + method.take[k] * theta[k + method.newest])
    return np.array(average if method.averages else theta)
