"""The compiled replay of personalised models on a graph: events in, models out.

Every agent has its own model; what its neighbours know of it are versions that were sent. A version is one row of a
pool, shared by all who hold it or to whom it is on its way, counted, and let go when nobody does any more. State:

- ``theta`` (n, p): the agents' own models; ``gradients`` (n, p): their mean gradients there, where ``known`` (n,) says
  so. With Q_L tracked, an agent's loss is needed at its new model, and its next release's gradient found in the same
  pass; otherwise it is found when it is needed;
- ``pool`` (slots, p), ``references`` (slots,), ``free`` (slots,) and ``counters[FREE]``: the versions, and a stack of
  the rows that hold none;
- ``held`` (directed edges, 2): slot and number of the version that each neighbour of each agent received last of it;
  in the sender's row, where a broadcast finds them together;
- ``versions`` (n,): the newest version of each agent; ``anchor`` (n, p): its last model that touched its data;
- ``message_seq``, ``message_slot``, ``message_left`` (places,): messages on their way, at ``seq of the send mod
  places``, a power of two, with the number of receivers at which they have not ended yet;
- ``cursor`` (n,): where in each agent's row the next delivery of its last send is looked for;
- ``sums`` (3,): the two parts of Q_L, and the largest that it has been since they were summed afresh; ``local`` (n,):
  each agent's mean loss without regulariser.

A row or a place that is missing when it is needed stops the kernel, and the driver makes room.
"""

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.events import COMMIT, DELIVER, DROP, NEIGHBOURS, SEND
from p2psim.core.philox import prefetch
from p2psim.learning.in_flight import DONE, note_violation
from p2psim.learning.owner_kernel import UNKNOWN, WITHIN, evaluate, release_gradient, snapped

#: What is full, when the driver has to make room.
POOL_FULL, MESSAGES_FULL = 1, 2

# Places in the vector of counters.
FREE, COMMITS, SENT, NOISE_ROW, COUNTERS = 0, 1, 2, 3, 4

# Columns of ``held``.
SLOT, VERSION = 0, 1

#: Numbers in a line of the cache, and the most of an agent's that are asked for ahead: what a first-level cache holds.
LINE, FETCHED = 8, 4096


#: What an update without a release does: averages, or averages towards the agent's anchor.
AVERAGE, ANCHORED = 0, 1


@njit(inline="always")
def edge_of(indices, first, last, peer):  # type: ignore[no-untyped-def]
    """Place of a neighbour in an agent's sorted row."""
    while first < last:
        middle = (first + last) >> 1
        if indices[middle] < peer:
            first = middle + 1
        else:
            last = middle
    return first


@njit()
def objective_parts(indptr, indices, weights, theta, local, ridge, pull):  # type: ignore[no-untyped-def]
    """½ Σ_{i<j} W_ij‖θ_i − θ_j‖² and Σ_i μD_ii·c_i·(mean loss + λ_i‖θ_i‖²), afresh; ``pull`` is μD_ii·c_i."""
    smooth = fit = 0.0
    for i in range(indptr.size - 1):
        own = 0.0
        for a in range(theta.shape[1]):
            own += theta[i, a] * theta[i, a]
        fit += pull[i] * (local[i] + ridge[i] * own)
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if j > i:
                s = 0.0
                for a in range(theta.shape[1]):
                    s += (theta[i, a] - theta[j, a]) ** 2
                smooth += 0.5 * weights[e] * s
    return smooth, fit


@njit(inline="always")
def _next_commit(events, at):  # type: ignore[no-untyped-def]
    while at < events.size and events[at].kind != COMMIT:
        at += 1
    return at


@njit(inline="always")
def _fetch(i, X, y, offsets):  # type: ignore[no-untyped-def]
    """Have the records of the agent that commits next brought near, as far as that is of use."""
    p = X.shape[1]
    first, last = offsets[i], offsets[i + 1]
    for place in range(first * p, min(last * p, first * p + FETCHED), LINE):
        prefetch(X, place)
    for place in range(first, min(last, first + FETCHED), LINE):
        prefetch(y, place)


@njit()
def replay(  # type: ignore[no-untyped-def]
    events, start, theta, gradients, known, anchor, versions, pool, references, free, held,
    message_seq, message_slot, message_left, cursor, counters, sums, local,
    indptr, indices, reverse, weights, degrees, loss, X, y, norms, offsets, clip, grid, batch,
    bound, violations, violation_steps, violation_sizes,
    alpha, pull, ridge, without_release, noise, track,
):  # fmt: skip
    """Replay events from ``start``; returns (status, next event).

    ``batch`` is None where all records take part in a release, else `p2psim.learning.batches.Sampling.for_kernel`.
    ``grid`` is None, or what a noisy gradient is rounded to a multiple of.
    On waking (B, section 3.1, in the form of theory.md):
    θ_i ← (1 − α_i)θ_i + α_i(Σ_j (W_ij/D_ii)θ_j − μc_i(∇L_i(θ_i) + η)).
    """
    p = theta.shape[1]
    mix, old, nothing = np.empty(p), np.empty(p), np.empty(0)
    mask = message_seq.size - 1  # places are a power of two
    ahead = start
    for at in range(start, events.size):
        event = events[at]
        kind, agent = event.kind, event.agent
        if kind in (DELIVER, DROP):
            place = event.cause & mask
            if message_seq[place] != event.cause:
                continue
            slot = message_slot[place]
            if kind == DELIVER and slot >= 0:
                # A broadcast reaches neighbours in their order: the next one is where it is looked for first.
                peer = event.peer
                e = cursor[peer]
                if e >= indptr[peer + 1] or indices[e] != agent:
                    e = edge_of(indices, indptr[peer], indptr[peer + 1], agent)
                cursor[peer] = e + 1
                if event.version > held[e, VERSION]:
                    before = held[e, SLOT]
                    references[before] -= 1
                    if references[before] == 0:
                        free[counters[FREE]] = before
                        counters[FREE] += 1
                    held[e, SLOT], held[e, VERSION] = slot, event.version
                    references[slot] += 1
            message_left[place] -= 1
            if message_left[place] == 0:
                message_seq[place] = -1
                if slot >= 0:
                    references[slot] -= 1
                    if references[slot] == 0:
                        free[counters[FREE]] = slot
                        counters[FREE] += 1
        elif kind == SEND:
            place = event.seq & mask
            if message_seq[place] >= 0:
                return MESSAGES_FULL, at
            if event.version < 0:  # a request for a model, which carries none
                slot = -1
            else:
                if counters[FREE] == 0:
                    return POOL_FULL, at
                counters[FREE] -= 1
                slot = free[counters[FREE]]
                references[slot] = 1  # the message's own
                for a in range(p):
                    pool[slot, a] = theta[agent, a]
                counters[SENT] += 1
            cursor[agent] = indptr[agent]
            message_seq[place], message_slot[place] = event.seq, slot
            message_left[place] = indptr[agent + 1] - indptr[agent] if event.peer == NEIGHBOURS else 1
        elif kind == COMMIT:
            i = agent
            ahead = _next_commit(events, max(ahead, at + 1))
            if batch is None and ahead < events.size:
                _fetch(events[ahead].agent, X, y, offsets)
            mix[:] = 0.0
            stale = False
            for e in range(indptr[i], indptr[i + 1]):
                known_at, w = reverse[e], weights[e]
                slot = held[known_at, SLOT]
                for a in range(p):
                    mix[a] += w * pool[slot, a]
                stale |= held[known_at, VERSION] != versions[indices[e]]
            for a in range(p):
                mix[a] /= degrees[i]
                old[a] = theta[i, a]
            c, step = pull[i] / degrees[i], alpha[i]
            if event.release >= 0:
                gradient = gradients[i]
                # A gradient that is known to be within the bound needs no second look, and no call.
                if batch is not None or known[i] != WITHIN:
                    longest = release_gradient(
                        loss, X, y, norms, offsets, clip, batch, bound, theta, i, event.release, known, gradients
                    )  # fmt: skip
                    if longest > 0.0:
                        note_violation(
                            i,
                            counters[COMMITS],
                            longest / bound,
                            violations,
                            violation_steps,
                            violation_sizes,
                        )
                row = counters[NOISE_ROW]
                counters[NOISE_ROW] += 1
                shrink = 2.0 * ridge[i]
                for a in range(p):
                    t = old[a]
                    if grid is None:
                        g = gradient[a] + shrink * t + noise[row, a]
                    else:  # the regulariser is not what noise hides
                        g = snapped(gradient[a] + noise[row, a], grid) + shrink * t
                    t = (1.0 - step) * t + step * (mix[a] - c * g)
                    theta[i, a] = t
                    anchor[i, a] = t
            elif without_release == AVERAGE:
                for a in range(p):
                    theta[i, a] = (1.0 - step) * old[a] + step * mix[a]
            else:
                for a in range(p):
                    theta[i, a] = (mix[a] + c * anchor[i, a]) / (1.0 + c)
            versions[i] = event.version
            counters[COMMITS] += 1
            known[i] = UNKNOWN
            if track:
                # Who made no release will make none, and a batch is not drawn yet: no gradient is asked for again.
                after = gradients[i] if batch is None and event.release >= 0 else nothing
                new, known[i] = evaluate(
                    loss, X, y, norms, offsets[i], offsets[i + 1], clip, bound, theta[i], after
                )
                track_objective(
                    i, old, mix, stale, theta, new, local, sums, indptr, indices, weights, degrees, ridge, pull
                )  # fmt: skip
    return DONE, events.size


@njit()
def track_objective(  # type: ignore[no-untyped-def]
    i, old, mix, stale, theta, new, local, sums, indptr, indices, weights, degrees, ridge, pull
):
    """Update Q_L for a change of one model: from its neighbours' true models, which it may not know yet."""
    p = old.size
    if stale:
        mix[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            for a in range(p):
                mix[a] += weights[e] / degrees[i] * theta[indices[e], a]
    smooth = own = was = 0.0
    for a in range(p):
        t = theta[i, a]
        own += t * t
        was += old[a] * old[a]
        smooth += (t - old[a]) * (0.5 * (t + old[a]) - mix[a])
    sums[0] += degrees[i] * smooth
    sums[1] += pull[i] * (new - local[i] + ridge[i] * (own - was))
    local[i] = new
    sums[2] = max(sums[2], abs(sums[0] + sums[1]))
