"""The compiled replay of personalised models on a graph: events in, models out.

Every agent has its own model; what its neighbours know of it are versions that were sent. A version is one row of a
pool, shared by all who hold it or to whom it is on its way, counted, and let go when nobody does any more. State:

- ``theta`` (n, p): the agents' own models; ``slopes`` (records,): ∂ℓ/∂z of each record there, kept up to date;
- ``pool`` (slots, p), ``references`` (slots,), ``free`` (slots,) and ``counters[FREE]``: the versions, and a stack of
  the rows that hold none;
- ``edge_slot``, ``edge_version`` (directed edges,): for each neighbour of each agent, the version received last;
- ``versions`` (n,): the newest version of each agent; ``anchor`` (n, p): its last model that touched its data;
- ``message_seq``, ``message_slot``, ``message_left`` (places,): messages on their way, at ``seq of the send mod
  places``, a power of two, with the number of receivers at which they have not ended yet;
- ``cursor`` (n,): where in each agent's row the next delivery of its last send is looked for;
- ``sums`` (2,): the two parts of Q_L, and ``local`` (n,) each agent's mean loss without regulariser.

A row or a place that is missing when it is needed stops the kernel, and the driver makes room.
"""

import math

import numpy as np

from p2psim.compiled import njit
from p2psim.learning.losses.compiled import LOGISTIC, slope, value
from p2psim.network.events import COMMIT, DELIVER, DROP, NEIGHBOURS, SEND

DONE, POOL_FULL, MESSAGES_FULL = 0, 1, 2

# Places in the vector of counters.
FREE, COMMITS, SENT, NOISE_ROW, COUNTERS = 0, 1, 2, 3, 4

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
def mean_gradient(X, slopes, norms, first, last, clip, bound, out):  # type: ignore[no-untyped-def]
    """Mean of the gradients of an agent's records, each clipped to a norm of ``clip``; from the records' slopes.

    Returns whether some record's gradient had a norm above ``bound``.
    """
    out[:] = 0.0
    exceeded = False
    watched = clip < np.inf or bound < np.inf
    for r in range(first, last):
        d = slopes[r]
        if watched:
            norm = abs(d) * norms[r]
            exceeded |= norm > bound
            if norm > clip:
                d *= clip / norm
        if d != 0.0:
            for a in range(out.size):
                out[a] += d * X[r, a]
    if last > first:
        for a in range(out.size):
            out[a] /= last - first
    return exceeded


@njit(inline="always")
def _logistic(z, y):  # type: ignore[no-untyped-def]
    """Slope of the logistic loss, its part max(0, −yz), and the e of its part log(1 + e)."""
    decay = math.exp(-abs(z))
    if y * z > 0.0:
        return -y * decay / (1.0 + decay), 0.0, decay
    return -y / (1.0 + decay), -y * z, decay


@njit()
def refresh(loss, X, y, first, last, theta, slopes):  # type: ignore[no-untyped-def]
    """Slopes of an agent's records at its new model; returns their mean loss, 0 without records.

    Eight rows are scored together, each summed in its own order: the same bits as one by one. The logistic loss takes
    the logarithm of products of 1 + e, at most 32 factors of at most 2, instead of one logarithm a record: its error
    is below 2**-53 a record.
    """
    p = theta.size
    z = np.empty(8)
    total, product, factors = 0.0, 1.0, 0
    r = first
    while r < last:
        rows = min(8, last - r)
        if rows == 8:
            z0 = z1 = z2 = z3 = z4 = z5 = z6 = z7 = 0.0
            for a in range(p):
                t = theta[a]
                z0 += X[r, a] * t
                z1 += X[r + 1, a] * t
                z2 += X[r + 2, a] * t
                z3 += X[r + 3, a] * t
                z4 += X[r + 4, a] * t
                z5 += X[r + 5, a] * t
                z6 += X[r + 6, a] * t
                z7 += X[r + 7, a] * t
            z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = z0, z1, z2, z3, z4, z5, z6, z7
        else:
            for k in range(rows):
                s = 0.0
                for a in range(p):
                    s += X[r + k, a] * theta[a]
                z[k] = s
        for k in range(rows):
            if loss == LOGISTIC:
                d, linear, decay = _logistic(z[k], y[r + k])
                slopes[r + k] = d
                total += linear
                product *= 1.0 + decay
                factors += 1
                if factors == 32:
                    total += math.log(product)
                    product, factors = 1.0, 0
            else:
                slopes[r + k] = slope(loss, z[k], y[r + k])
                total += value(loss, z[k], y[r + k])
        r += rows
    total += math.log(product)
    return total / (last - first) if last > first else 0.0


@njit()
def refresh_all(loss, X, y, offsets, theta, slopes, local):  # type: ignore[no-untyped-def]
    """`refresh` for all agents; fills the slopes of all records and every agent's mean loss."""
    for i in range(offsets.size - 1):
        local[i] = refresh(loss, X, y, offsets[i], offsets[i + 1], theta[i], slopes)


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


@njit()
def replay(  # type: ignore[no-untyped-def]
    events, start, theta, slopes, anchor, versions, pool, references, free, edge_slot, edge_version,
    message_seq, message_slot, message_left, cursor, counters, sums, local,
    indptr, indices, reverse, weights, degrees, loss, X, y, norms, offsets, clip, bound, violations,
    alpha, pull, ridge, without_release, noise, track,
):  # fmt: skip
    """Replay events from ``start``; returns (status, next event).

    On waking (B, section 3.1, in the form of theory.md):
    θ_i ← (1 − α_i)θ_i + α_i(Σ_j (W_ij/D_ii)θ_j − μc_i(∇L_i(θ_i) + η)).
    """
    p = theta.shape[1]
    mix, gradient, old = np.empty(p), np.empty(p), np.empty(p)
    mask = message_seq.size - 1  # places are a power of two
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
                there = cursor[peer]
                if there < indptr[peer + 1] and indices[there] == agent:
                    e = reverse[there]
                    cursor[peer] = there + 1
                else:
                    e = edge_of(indices, indptr[agent], indptr[agent + 1], peer)
                if event.version > edge_version[e]:
                    before = edge_slot[e]
                    references[before] -= 1
                    if references[before] == 0:
                        free[counters[FREE]] = before
                        counters[FREE] += 1
                    edge_slot[e], edge_version[e] = slot, event.version
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
            first, last = offsets[i], offsets[i + 1]
            mix[:] = 0.0
            stale = False
            for e in range(indptr[i], indptr[i + 1]):
                slot, w = edge_slot[e], weights[e]
                for a in range(p):
                    mix[a] += w * pool[slot, a]
                stale |= edge_version[e] != versions[indices[e]]
            for a in range(p):
                mix[a] /= degrees[i]
                old[a] = theta[i, a]
            c, step = pull[i] / degrees[i], alpha[i]
            if event.release >= 0:
                if mean_gradient(X, slopes, norms, first, last, clip, bound, gradient):
                    violations[i] += 1
                row = counters[NOISE_ROW]
                counters[NOISE_ROW] += 1
                shrink = 2.0 * ridge[i]
                for a in range(p):
                    t = old[a]
                    g = gradient[a] + shrink * t + noise[row, a]
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
            new = refresh(loss, X, y, first, last, theta[i], slopes)
            if track:
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
