"""Compiled answers of owners of a central learner: mean gradients, with the check of the claimed bound.

For squared loss a mean gradient comes from sums over an owner's records, as far as clipping leaves them alone.
"""

import math
from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit
from p2psim.learning.losses.compiled import add_product, slope
from p2psim.learning.owner_kernel import (
    Records,
    batch_gradient,
    clipped,
    evaluate,
    longest_gradient,
    note_violation,
)


class OwnerRecords(NamedTuple):
    """What the answers of owners of a central learner are computed from, for kernels.

    Attributes
    ----------
    records : Records
    how : int
        `FROM_SUMS`, `FROM_RECORDS` or `FROM_MENDED_SUMS`.
    gram, moment, energy : ndarray
        Sums over each owner's records; see `StarProblem`.
    centre, reaches, nearest : ndarray
        A model, and how far from it no record of each block is clipped, and none of each owner; see
        `StarProblem.reaches`. Empty unless sums are mended.
    suspects, suspect_offsets : ndarray of int64
        Rows of the records that can exceed the claimed bound, owner by owner, and where each owner's begin.
    """

    records: Records
    how: int
    gram: np.ndarray
    moment: np.ndarray
    energy: np.ndarray
    centre: np.ndarray
    reaches: np.ndarray
    nearest: np.ndarray
    suspects: np.ndarray
    suspect_offsets: np.ndarray


#: How a mean gradient is computed: from the sums over records, record by record, or from the sums with a correction
#: for each record that is clipped.
FROM_SUMS, FROM_RECORDS, FROM_MENDED_SUMS = 0, 1, 2

#: Records of a block: those that are looked at together, or not at all.
BLOCK = 8

#: How many times the clipping norm the terms of the sums may add up to: what rounding leaves of them is then no more
#: than in a sum over clipped records.
_LARGEST_SUMS = 32.0


@njit(inline="always")
def mean_gradient_from_sums(gram, moment, theta, out):  # type: ignore[no-untyped-def]
    """2(Gθ − c): the squared loss's mean gradient, without clipping."""
    for a in range(theta.size):
        out[a] = -moment[a]
    add_product(gram, theta, out)
    for a in range(theta.size):
        out[a] *= 2.0


@njit(allocates=False)
def mean_gradient_from_mended_sums(owners, i, theta, out):  # type: ignore[no-untyped-def]
    """The squared loss's mean gradient from sums, less what clipping takes from records; returns whether it is found.

    It is not where the terms of the sums are so much larger than the clipping norm that rounding would show. Records
    are looked at only in blocks where one can be clipped, as far as θ is from the centre.
    """
    records, p = owners.records, theta.size
    X, y, norms, clip = records.X, records.y, records.norms, records.clip
    # By Cauchy and Schwarz no term, nor what clipping takes from records, adds up to more than the product of these.
    roots, scores, square = 0.0, math.sqrt(owners.energy[i]), 0.0
    for a in range(p):
        root = math.sqrt(owners.gram[i, a, a])
        roots += root
        scores += root * abs(theta[a])
        gap = theta[a] - owners.centre[a]
        square += gap * gap
    if not 2.0 * roots * scores <= _LARGEST_SUMS * clip:
        return False
    mean_gradient_from_sums(owners.gram[i], owners.moment[i], theta, out)
    first, last, distance = records.offsets[i], records.offsets[i + 1], math.sqrt(square)
    if owners.nearest[i] > distance:
        return True
    for block in range(first // BLOCK, (last + BLOCK - 1) // BLOCK):
        if owners.reaches[block] > distance:
            continue
        for r in range(max(first, block * BLOCK), min(last, (block + 1) * BLOCK)):
            z = 0.0
            for a in range(p):
                z += X[r, a] * theta[a]
            d = slope(records.loss, z, y[r])
            excess = d - clipped(d, norms[r], clip)
            if excess != 0.0:
                excess /= last - first
                for a in range(p):
                    out[a] -= excess * X[r, a]
    return True


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
    elif owners.how != FROM_MENDED_SUMS or not mean_gradient_from_mended_sums(owners, owner, at, mean):
        evaluate(records, owner, at, mean)  # finds the loss as well, and is faster than row by row without it
    # Every record is looked at, in the batch or not: the loss is that of what could have been drawn.
    start, end = owners.suspect_offsets[owner], owners.suspect_offsets[owner + 1]
    if start < end:  # to hand on all arrays would take longer than the arithmetic
        longest = longest_gradient(records, owners.suspects, start, end, at)
        if longest > records.bound:
            note_violation(owner, commits, longest / records.bound, violations)
