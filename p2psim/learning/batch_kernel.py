"""Compiled draws of batches: which of an agent's records take part in a release.

Each release has a series of random numbers of its own, addressed by agent and release: a batch does not depend on which
others were drawn, nor in what order. Batches of an epoch share the numbers of the epoch.
"""

import math

from p2psim.core.compiled import njit
from p2psim.core.philox import philox_block, unit
from p2psim.learning.batches import POISSON, SHUFFLED


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


@njit()
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
