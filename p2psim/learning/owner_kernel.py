"""Compiled computations on one agent's records: rounding to a grid, mean gradients and mean losses.

Values are rounded to a grid because noise on a grid hides only values that lie on it.

Gradients are those of an owner of a star, with the check of the claimed bound, and those of a release on a graph, of
all records or of a batch. `evaluate` finds a mean loss and its gradient in one pass over the records.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.learning.batch_kernel import draw_batch
from p2psim.learning.losses.compiled import parts, slope


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
        norms = problem.norms(rule.order)
        return cls(
            problem.loss.for_kernel(), problem.X, problem.y, norms, problem.offsets, rule.clip, rule.bound
        )


class OwnerRecords(NamedTuple):
    """What the answers of owners of a central learner are computed from, for kernels.

    Attributes
    ----------
    records : Records
    how : int
        `FROM_SUMS` or `FROM_RECORDS`.
    gram, moment : ndarray
        Sums over each owner's records; see `StarProblem`.
    suspects, suspect_offsets : ndarray of int64
        Rows of the records that can exceed the claimed bound, owner by owner, and where each owner's begin.
    """

    records: Records
    how: int
    gram: np.ndarray
    moment: np.ndarray
    suspects: np.ndarray
    suspect_offsets: np.ndarray


@njit(inline="always")
def _clipped(d, norm, clip):  # type: ignore[no-untyped-def]
    """A slope, such that the gradient of a record of this norm has at most a norm of ``clip``."""
    length = abs(d) * norm
    return d * (clip / length) if length > clip else d


@njit()
def mean_gradient(records, rows, first, last, divisor, theta, out):  # type: ignore[no-untyped-def]
    """Sum of the gradients of records, each clipped, over a divisor; the records are as in `longest_gradient`."""
    loss, X, y, norms, clip = records.loss, records.X, records.y, records.norms, records.clip
    out[:] = 0.0
    for k in range(first, last):
        r = k
        if rows is not None:
            r = rows[k]
        z = 0.0
        for a in range(theta.size):
            z += X[r, a] * theta[a]
        d = _clipped(slope(loss, z, y[r]), norms[r], clip)
        if d != 0.0:
            for a in range(theta.size):
                out[a] += d * X[r, a]
    for a in range(theta.size):
        out[a] /= divisor


@njit()
def batch_gradient(records, theta, batch, agent, release, out):  # type: ignore[no-untyped-def]
    """Sum of the gradients of a release's batch, each clipped, over the public divisor; see `draw_batch`."""
    divisors, rows = batch[3], batch[5]
    first = records.offsets[agent]
    count = draw_batch(batch, agent, release, records.offsets[agent + 1] - first)
    for k in range(count):
        rows[k] += first
    mean_gradient(records, rows, 0, count, divisors[agent], theta, out)


@njit()
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


@njit()
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


#: How a mean gradient is computed: from the sums over records, or record by record.
FROM_SUMS, FROM_RECORDS = 0, 1


@njit()
def mean_gradient_from_sums(gram, moment, theta, out):  # type: ignore[no-untyped-def]
    """2(Gθ − c): the squared loss's mean gradient, without clipping."""
    p = theta.size
    for a in range(p):
        s = -moment[a]
        for d in range(p):
            s += gram[a, d] * theta[d]
        out[a] = 2.0 * s


@njit(inline="always")
def answer(owner, release, commits, at, mean, owners, batch, violations):  # type: ignore[no-untyped-def]
    """Write the mean gradient of an owner's records at a model to ``mean``, shape (p,), and check the claimed bound.

    ``batch`` is None where all records take part in a release, else `p2psim.learning.batches.Sampling.for_kernel`.
    """
    records = owners.records
    # A batch of None is known when the kernel is compiled, and this question is not asked then.
    if batch is not None:
        batch_gradient(records, at, batch, owner, release, mean)
    elif owners.how == FROM_SUMS:
        mean_gradient_from_sums(owners.gram[owner], owners.moment[owner], at, mean)
    else:
        first, last = records.offsets[owner], records.offsets[owner + 1]
        mean_gradient(records, None, first, last, last - first, at, mean)
    # Every record is looked at, in the batch or not: the loss is that of what could have been drawn.
    start, end = owners.suspect_offsets[owner], owners.suspect_offsets[owner + 1]
    longest = longest_gradient(records, owners.suspects, start, end, at)
    if longest > records.bound:
        note_violation(owner, commits, longest / records.bound, violations)


@njit(inline="always")
def project(value, theta_max):  # type: ignore[no-untyped-def]
    """A coordinate in Θ."""
    return min(max(value, -theta_max), theta_max)


@njit()
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


@njit()
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
            longest = max(
                abs(d0) * norms[r], abs(d1) * norms[r + 1], abs(d2) * norms[r + 2], abs(d3) * norms[r + 3]
            )
            exceeded |= longest > bound
            d0, d1 = _clipped(d0, norms[r], clip), _clipped(d1, norms[r + 1], clip)
            d2, d3 = _clipped(d2, norms[r + 2], clip), _clipped(d3, norms[r + 3], clip)
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
            d = _clipped(d, norms[r], clip)
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


@njit()
def evaluate_all(records, models):  # type: ignore[no-untyped-def]
    """`evaluate` for all agents: their mean losses, gradients, and what is known of these."""
    for i in range(records.offsets.size - 1):
        models.local[i], models.known[i] = evaluate(records, i, models.theta[i], models.gradients[i])
