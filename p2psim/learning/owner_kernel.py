"""Compiled computations on one agent's records: draws of batches, rounding to a grid, mean gradients and losses.

Values are rounded to a grid because noise on a grid hides only values that lie on it.

Gradients are those of all records or of a batch; `p2psim.learning.star.owners` makes the answers of owners of a star
from them. `evaluate` finds a mean loss and its gradient in one pass over the records.

Each release has a series of random numbers of its own, addressed by agent and release: a batch does not depend on which
others were drawn, nor in what order. Batches of an epoch share the numbers of the epoch.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from p2psim.core.compiled import njit, unwritten
from p2psim.core.philox import philox_block, unit
from p2psim.learning.batches import POISSON, SHUFFLED
from p2psim.learning.losses.compiled import parts, slope


@njit()
def draw_poisson(key, agent, release, records, rate, rows):  # type: ignore[no-untyped-def]
    """Write the places of the records that take part to ``rows``, in order; returns how many.

    Goes from one such record to the next: the number of records between them is geometric, ⌊log(1 − u)/log(1 − q)⌋.
    So a batch costs one uniform a record in it, and one more, whatever the number of the others.
    """
    if rate == 1.0:
        for r in range(records):
            rows[r] = r
        return records
    scale = math.log1p(-rate)
    count, at, block = 0, -1, 0
    while True:
        words = philox_block(key, agent, block, release)
        block += 1
        for lane in range(4):
            skipped = math.log(1.0 - unit(words[lane])) / scale
            if skipped >= records - 1 - at:  # compared as it is: it may be too large for an integer
                return count
            at += 1 + int(skipped)
            rows[count] = at
            count += 1


@njit()
def draw_fixed(key, agent, release, records, size, rows, taken):  # type: ignore[no-untyped-def]
    """Write the places of ``size`` records, drawn without replacement, to ``rows``; returns how many.

    Floyd's algorithm (Bentley and Floyd, "Programming pearls: a sample of brilliance", CACM 1987): one uniform a drawn
    record, whatever the number of the others. ``taken`` is all False before and after.
    """
    words = philox_block(key, agent, 0, release)
    for k in range(size):
        if k > 0 and k & 3 == 0:
            words = philox_block(key, agent, k >> 2, release)
        last = records - size + k
        # At most last: u ≤ 1 − 2**-53, and the product rounds down.
        place = int(unit(words[k & 3]) * (last + 1))
        if taken[place]:
            place = last
        taken[place] = True
        rows[k] = place
    for k in range(size):
        taken[rows[k]] = False
    return size


@njit()
def draw_shuffled(key, agent, release, records, size, rows):  # type: ignore[no-untyped-def]
    """Write the places of the records of a release's part of its epoch's shuffle to ``rows``; returns how many.

    The first steps of a shuffle by Fisher and Yates, whose random numbers are addressed by agent and epoch: all batches
    of an epoch are parts of the same one. ``rows`` has room for all records.
    """
    if size == 0:
        return 0
    batches = records // size
    epoch, first = release // batches, (release % batches) * size
    for r in range(records):
        rows[r] = r
    words = philox_block(key, agent, 0, epoch)
    for k in range(first + size):
        if k > 0 and k & 3 == 0:
            words = philox_block(key, agent, k >> 2, epoch)
        place = k + int(unit(words[k & 3]) * (records - k))  # below records, as in draw_fixed
        rows[k], rows[place] = rows[place], rows[k]
    for k in range(size):
        rows[k] = rows[first + k]
    return size


@njit(allocates=False)
def draw_batch(batch, agent, release, records):  # type: ignore[no-untyped-def]
    """Write the places, from 0, of the records of an agent's release to the ``rows`` of ``batch``; returns how many.

    ``batch`` is `p2psim.learning.batches.Sampling.for_kernel`, and ``records`` is how many the agent holds.
    """
    code, rates, sizes, _, key, rows, taken = batch
    if code == POISSON:
        return draw_poisson(key, agent, release, records, rates[agent], rows)
    if code == SHUFFLED:
        return draw_shuffled(key, agent, release, records, sizes[agent], rows)
    return draw_fixed(key, agent, release, records, sizes[agent], rows, taken)


class Records(NamedTuple):
    """The records of all agents, as kernels take them, and what holds for their gradients.

    Attributes
    ----------
    loss : int or tuple
        `Loss.for_kernel`.
    X, y, norms, offsets : ndarray
        Records, agent by agent, with the norms of x, and where each agent's begin.
    clip, bound : float
        Norm to which each record's gradient is clipped, and the claimed bound on it; infinite for none.
    """

    loss: Any
    X: np.ndarray
    y: np.ndarray
    norms: np.ndarray
    offsets: np.ndarray
    clip: float
    bound: float

    @classmethod
    def of(cls, problem: Any, rule: Any) -> Records:
        """Those of a `StarProblem` or `GraphProblem`, by a rule that says how gradients are computed."""
        arrays = problem.X, problem.y, problem.norms(rule.order), problem.offsets
        X, y, norms, offsets = map(unwritten, arrays)
        return cls(problem.loss.for_kernel(), X, y, norms, offsets, rule.clip, rule.bound)


@njit(inline="always")
def clipped(d, norm, clip):  # type: ignore[no-untyped-def]
    """A slope, such that the gradient of a record of this norm has at most a norm of ``clip``."""
    length = abs(d) * norm
    return d * (clip / length) if length > clip else d


@njit(allocates=False)
def mean_gradient(records, rows, count, divisor, theta, out):  # type: ignore[no-untyped-def]
    """Sum of the gradients of the records ``rows[:count]``, each clipped, over a divisor."""
    loss, X, y, norms, clip = records.loss, records.X, records.y, records.norms, records.clip
    out[:] = 0.0
    for k in range(count):
        r = rows[k]
        z = 0.0
        for a in range(theta.size):
            z += X[r, a] * theta[a]
        d = clipped(slope(loss, z, y[r]), norms[r], clip)
        if d != 0.0:
            for a in range(theta.size):
                out[a] += d * X[r, a]
    for a in range(theta.size):
        out[a] /= divisor


@njit(allocates=False)
def batch_gradient(records, theta, batch, agent, release, out):  # type: ignore[no-untyped-def]
    """Sum of the gradients of a release's batch, each clipped, over the public divisor; see `draw_batch`."""
    divisors, rows = batch[3], batch[5]
    first = records.offsets[agent]
    count = draw_batch(batch, agent, release, records.offsets[agent + 1] - first)
    for k in range(count):
        rows[k] += first
    mean_gradient(records, rows, count, divisors[agent], theta, out)


@njit(allocates=False)
def longest_gradient(records, rows, first, last, theta):  # type: ignore[no-untyped-def]
    """Largest norm of a gradient among records; 0 without records.

    They are ``rows[first:last]``, or, where ``rows`` is None, ``first`` to ``last`` themselves.
    """
    loss, X, y, norms = records.loss, records.X, records.y, records.norms
    longest = 0.0
    for k in range(first, last):
        r = k
        if rows is not None:
            r = rows[k]
        z = 0.0
        for a in range(theta.size):
            z += X[r, a] * theta[a]
        longest = max(longest, abs(slope(loss, z, y[r])) * norms[r])
    return longest


@njit(allocates=False)
def note_violation(agent, step, size, violations):  # type: ignore[no-untyped-def]
    """Count a release where a gradient was ``size`` times the bound; keep the first step and the largest size."""
    if violations.counts[agent] == 0:
        violations.steps[agent] = step
    violations.counts[agent] += 1
    violations.sizes[agent] = max(violations.sizes[agent], size)


@njit(inline="always")
def snapped(value, grid):  # type: ignore[no-untyped-def]
    """The value's nearest multiple of ``grid``, halves upwards; the value itself where ``grid`` is None.

    Halves go one way, so that rounding commutes with adding a multiple of the grid: a value rounded before noise on the
    grid is added is the sum rounded. Which of the two it is, is settled when this is compiled.
    """
    if grid is None:
        return value
    return grid * math.floor(value / grid + 0.5)


@njit(inline="always")
def project(value, theta_max):  # type: ignore[no-untyped-def]
    """A coordinate in Θ."""
    return min(max(value, -theta_max), theta_max)


@njit(allocates=False)
def release_gradient(records, batch, i, release, models):  # type: ignore[no-untyped-def]
    """Find an agent's gradient at its model, unless it is known, and write it to ``models.gradients``.

    ``batch`` is None where all records take part, else `p2psim.learning.batches.Sampling.for_kernel`. Which of the two
    is settled when this is compiled.

    Returns the norm of the longest gradient of a record, if that exceeds the bound, else 0. Every record counts, in the
    batch or not: what a release may cost is that of what could have been drawn.
    """
    known = models.known
    if batch is not None:
        batch_gradient(records, models.theta[i], batch, i, release, models.gradients[i])
        if records.bound == np.inf:
            return 0.0
    else:
        if known[i] == UNKNOWN:
            _, known[i] = evaluate(records, i, models.theta[i], models.gradients[i])
        if known[i] != EXCEEDED:
            return 0.0
    first, last = records.offsets[i], records.offsets[i + 1]
    longest = longest_gradient(records, None, first, last, models.theta[i])
    return longest if longest > records.bound else 0.0


#: What is known of an agent's mean gradient at its present model: nothing; it, and that no record's gradient
#: exceeded the claimed bound; it, and that some did.
UNKNOWN, WITHIN, EXCEEDED = 0, 1, 2


@njit(allocates=False)
def evaluate(records, i, theta, out):  # type: ignore[no-untyped-def]
    """Mean loss of an agent's records at a model; 0 without records. And what is then known of the gradient.

    Writes the mean of the records' gradients, each clipped, to ``out``; `EXCEEDED` is returned if one had a norm above
    the bound. If ``out`` is empty, no gradient is computed, and `UNKNOWN` returned.

    Four rows are scored together, each summed in its own order, and added to the gradient in theirs: the same bits as
    one by one. The logistic loss takes the logarithm of products of 1 + e, at most 32 factors of at most 2, instead of
    one logarithm a record: its error is below 2**-53 a record.
    """
    p = theta.size
    loss, X, y, norms, offsets, clip, bound = records
    first, last = offsets[i], offsets[i + 1]
    total, product, factors = 0.0, 1.0, 0
    exceeded = False
    watched = clip < np.inf or bound < np.inf
    out[:] = 0.0
    r = first
    while r + 4 <= last:
        z0 = z1 = z2 = z3 = 0.0
        for a in range(p):
            t = theta[a]
            z0 += X[r, a] * t
            z1 += X[r + 1, a] * t
            z2 += X[r + 2, a] * t
            z3 += X[r + 3, a] * t
        d0, more, factor = parts(loss, z0, y[r])
        total += more
        product *= factor
        d1, more, factor = parts(loss, z1, y[r + 1])
        total += more
        product *= factor
        d2, more, factor = parts(loss, z2, y[r + 2])
        total += more
        product *= factor
        d3, more, factor = parts(loss, z3, y[r + 3])
        total += more
        product *= factor
        factors += 4
        if factors == 32:
            total += math.log(product)
            product, factors = 1.0, 0
        if watched:
            exceeded |= abs(d0) * norms[r] > bound
            exceeded |= abs(d1) * norms[r + 1] > bound
            exceeded |= abs(d2) * norms[r + 2] > bound
            exceeded |= abs(d3) * norms[r + 3] > bound
            d0, d1 = clipped(d0, norms[r], clip), clipped(d1, norms[r + 1], clip)
            d2, d3 = clipped(d2, norms[r + 2], clip), clipped(d3, norms[r + 3], clip)
        for a in range(out.size):
            g = out[a]
            g += d0 * X[r, a]
            g += d1 * X[r + 1, a]
            g += d2 * X[r + 2, a]
            g += d3 * X[r + 3, a]
            out[a] = g
        r += 4
    while r < last:
        z = 0.0
        for a in range(p):
            z += X[r, a] * theta[a]
        d, more, factor = parts(loss, z, y[r])
        total += more
        product *= factor
        if watched:
            exceeded |= abs(d) * norms[r] > bound
            d = clipped(d, norms[r], clip)
        for a in range(out.size):
            out[a] += d * X[r, a]
        r += 1
    total += math.log(product)
    if last > first:
        total /= last - first
        for a in range(out.size):
            out[a] /= last - first
    if out.size == 0:
        return total, UNKNOWN
    return total, EXCEEDED if exceeded else WITHIN


@njit(allocates=False)
def evaluate_all(records, models):  # type: ignore[no-untyped-def]
    """`evaluate` for all agents: their mean losses, gradients, and what is known of these."""
    for i in range(records.offsets.size - 1):
        models.local[i], models.known[i] = evaluate(records, i, models.theta[i], models.gradients[i])
