"""Batches for compiled kernels: which records take part in a release, and their gradient.

Each release has a series of random numbers of its own, addressed by agent and release: a batch does not depend on which
others were drawn, nor in what order.
"""

import math

from p2psim.compiled import njit
from p2psim.learning.batches import POISSON
from p2psim.learning.losses.compiled import slope
from p2psim.streams import philox_block, unit


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
        place = int(
            unit(words[k & 3]) * (last + 1)
        )  # at most last: u ≤ 1 − 2**-53, and the product rounds down
        if taken[place]:
            place = last
        taken[place] = True
        rows[k] = place
    for k in range(size):
        taken[rows[k]] = False
    return size


@njit()
def batch_gradient(loss, X, y, norms, first, last, clip, theta, batch, agent, release, out):  # type: ignore[no-untyped-def]
    """Sum of the gradients of a release's batch, each clipped to a norm of ``clip``, over the public divisor.

    ``batch`` is `p2psim.learning.batches.Sampling.for_kernel`.
    """
    code, rates, sizes, divisors, key, rows, taken = batch
    if code == POISSON:
        count = draw_poisson(key, agent, release, last - first, rates[agent], rows)
    else:
        count = draw_fixed(key, agent, release, last - first, sizes[agent], rows, taken)
    out[:] = 0.0
    for k in range(count):
        r = first + rows[k]
        z = 0.0
        for a in range(theta.size):
            z += X[r, a] * theta[a]
        d = slope(loss, z, y[r])
        norm = abs(d) * norms[r]
        if norm > clip:
            d *= clip / norm
        for a in range(theta.size):
            out[a] += d * X[r, a]
    for a in range(theta.size):
        out[a] /= divisors[agent]
