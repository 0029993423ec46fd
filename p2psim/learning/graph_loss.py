"""The mean loss of one agent's records and its gradient, in one pass over them."""

import math

import numpy as np

from p2psim.compiled import njit
from p2psim.learning.losses.compiled import parts

#: What is known of an agent's mean gradient at its present model: nothing; it, and that no record's gradient
#: exceeded the claimed bound; it, and that some did.
UNKNOWN, WITHIN, EXCEEDED = 0, 1, 2


@njit(inline="always")
def _clipped(d, norm, clip):  # type: ignore[no-untyped-def]
    """A slope, such that the gradient of a record of this norm has at most a norm of ``clip``."""
    length = abs(d) * norm
    return d * (clip / length) if length > clip else d


@njit()
def evaluate(loss, X, y, norms, first, last, clip, bound, theta, out):  # type: ignore[no-untyped-def]
    """Mean loss of records ``first`` to ``last`` at a model; 0 without records. And what is then known of the gradient.

    Writes the mean of the records' gradients, each clipped to a norm of ``clip``, to ``out``; `EXCEEDED` is returned if
    one had a norm above ``bound``. If ``out`` is empty, no gradient is computed, and `UNKNOWN` returned.

    Four rows are scored together, each summed in its own order, and added to the gradient in theirs: the same bits as
    one by one. The logistic loss takes the logarithm of products of 1 + e, at most 32 factors of at most 2, instead of
    one logarithm a record: its error is below 2**-53 a record.
    """
    p = theta.size
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
def evaluate_all(loss, X, y, norms, offsets, clip, bound, theta, local, gradients, known):  # type: ignore[no-untyped-def]
    """`evaluate` for all agents: their mean losses, gradients, and what is known of these."""
    for i in range(offsets.size - 1):
        local[i], known[i] = evaluate(
            loss, X, y, norms, offsets[i], offsets[i + 1], clip, bound, theta[i], gradients[i]
        )
