"""The compiled replay of the star: events in, models out.

State that is kept between chunks of events:

- ``theta`` (N + 1, p): the owners' models and, last, the learner's;
- ``asked`` (N, p), ``asked_version`` (N,): the θ̄ of the newest query that each owner heard, and its version;
- ``answers`` (capacity, 2p): for each answer on its way, its noisy mean gradient and its θ̄, at the place
  ``seq of its send mod capacity``; ``answer_seq`` (capacity,) tells whose place it is, −1 when free;
- ``queries`` (capacity, N, p): for each query on its way, the θ̄ for each receiver; ``query_seq``, and
  ``query_left`` with the number of receivers at which it has not ended yet;
- ``arrived`` (2p): the answer that reached the learner last; ``arrived_version`` (1,): of the model that it answers;
- ``commits`` (1,): commits so far; ``counts`` (N,): those with an answer of each owner.

A payload is let go when its message ends, delivered or dropped. A place that is taken when it is needed stops
the kernel, and the driver makes room.
"""

import math

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, DELIVER, DROP, JOIN, LEARNER, SEND
from p2psim.learning.in_flight import DONE, longest_gradient, note_violation
from p2psim.learning.owner_kernel import (
    FROM_SUMS,
    batch_gradient,
    mean_gradient_from_records,
    mean_gradient_from_sums,
    project,
    snapped,
)
from p2psim.learning.steps import CODES

#: What is full, when the driver has to make room.
ANSWERS_FULL, QUERIES_FULL = 1, 2

#: Codes of how old answers count less.
INVERSE, EXPONENTIAL = CODES["inverse"], CODES["exponential"]


@njit()
def replay(  # type: ignore[no-untyped-def]
    events, start, theta, asked, asked_version, answers, answer_seq, queries, query_seq, query_left,
    arrived, arrived_version, commits, counts,
    how, loss, gram, moment, X, y, norms, offsets, clip, grid, batch,
    suspects, suspect_offsets, bound, violations, violation_steps, violation_sizes,
    noise, noise_row, step, shares, learner_weight, l2, theta_max, overwrite,
    at_learner, at_owner, estimated, aging, aging_rate,
    stops, kept, kept_theta,
):  # fmt: skip
    """Replay events from ``start``; returns (status, next event, models kept).

    After ``stops[k]`` of the events the learner's model is kept in ``kept_theta[k]``; ``kept`` of them are there.

    ``batch`` is None where all records take part in a release, else `p2psim.learning.batches.Sampling.for_kernel`.
    ``grid`` is None, or what an answer is rounded to a multiple of.
    """
    owners, p = asked.shape
    mean = np.empty(p)
    for e in range(start, events.size):
        event = events[e]
        kind, agent, peer = event.kind, event.agent, event.peer
        while kept < stops.size and stops[kept] == e:
            kept_theta[kept] = theta[owners]
            kept += 1
        if kind == SEND and agent == LEARNER:
            slot = -1
            for s in range(query_seq.size):
                if query_seq[s] < 0:
                    slot = s
                    break
            if slot < 0:
                return QUERIES_FULL, e, kept
            query_seq[slot] = event.seq
            first, last = (peer, peer + 1) if peer >= 0 else (0, owners)
            query_left[slot] = last - first
            for i in range(first, last):
                for a in range(p):
                    queries[slot, i, a] = 0.5 * (theta[owners, a] + theta[i, a])
        elif kind == SEND:
            slot = event.seq % answer_seq.size
            if answer_seq[slot] >= 0:
                return ANSWERS_FULL, e, kept
            answer_seq[slot] = event.seq
            at = asked[agent]
            # What `owner_kernel.answer` does, written out: as a call it would take as long as all the rest.
            if batch is not None:
                batch_gradient(
                    loss, X, y, norms, offsets[agent], offsets[agent + 1], clip, at, batch, agent, event.release, mean
                )  # fmt: skip
            elif how == FROM_SUMS:
                mean_gradient_from_sums(gram[agent], moment[agent], at, mean)
            else:
                mean_gradient_from_records(
                    loss, X, y, norms, offsets[agent], offsets[agent + 1], clip, at, mean
                )
            longest = longest_gradient(
                loss, X, y, norms, suspects, suspect_offsets[agent], suspect_offsets[agent + 1], at
            )
            if longest > bound:
                note_violation(
                    agent, commits[0], longest / bound, violations, violation_steps, violation_sizes
                )
            row = noise_row[0]
            noise_row[0] += 1
            for a in range(p):
                answers[slot, a] = snapped(at_owner[agent] * mean[a] + noise[row, a], grid)
                answers[slot, p + a] = at[a]
        elif kind in (DELIVER, DROP):
            if event.cause < 0:
                continue
            if agent == LEARNER:
                slot = event.cause % answer_seq.size
                if answer_seq[slot] == event.cause:
                    answer_seq[slot] = -1
                    if kind == DELIVER:
                        arrived[:] = answers[slot]
                        arrived_version[0] = event.version
            else:
                for s in range(query_seq.size):
                    if query_seq[s] == event.cause:
                        # A query that a newer one has overtaken says nothing.
                        if kind == DELIVER and event.version >= asked_version[agent]:
                            asked[agent] = queries[s, agent]
                            asked_version[agent] = event.version
                        query_left[s] -= 1
                        if query_left[s] == 0:
                            query_seq[s] = -1
                        break
        elif kind == COMMIT:
            weight = at_learner[peer]
            if estimated:
                weight *= (commits[0] + owners) / (owners * (counts[peer] + 1))
            if aging == INVERSE:
                weight /= 1 + aging_rate * (commits[0] - arrived_version[0])
            elif aging == EXPONENTIAL:
                weight *= math.exp(-aging_rate * (commits[0] - arrived_version[0]))
            counts[peer] += 1
            commits[0] += 1
            for a in range(p):
                at_a = arrived[p + a] if overwrite else 0.5 * (theta[owners, a] + theta[peer, a])
                g = 2.0 * l2 * at_a
                theta[peer, a] = project(
                    at_a - owners * step * (g / (2.0 * owners) + shares[peer] * weight * arrived[a]),
                    theta_max,
                )
                theta[owners, a] = project(at_a - learner_weight * step * g, theta_max)
        elif kind == JOIN and agent != LEARNER and event.version >= 0:
            # It comes back with the learner's model, or with the one that it started from.
            for a in range(p):
                theta[agent, a] = theta[owners, a] if peer == LEARNER else 0.0
    while kept < stops.size:
        kept_theta[kept] = theta[owners]
        kept += 1
    return DONE, events.size, kept


@njit()
def quadratic_gap(theta, centre, hessian, slope_there):  # type: ignore[no-untyped-def]
    """sᵀd + dᵀHd with d = θ − centre, for each row of ``theta``: the same for a row alone and among others."""
    rows, p = theta.shape
    out = np.empty(rows)
    for k in range(rows):
        total = 0.0
        for a in range(p):
            s = slope_there[a]
            for d in range(p):
                s += hessian[a, d] * (theta[k, d] - centre[d])
            total += s * (theta[k, a] - centre[a])
        out[k] = total
    return out
