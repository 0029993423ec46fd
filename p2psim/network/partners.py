"""Which neighbour an agent turns to: drawn uniformly, or in proportion to the weight of the link."""

import numpy as np

from p2psim.compiled import njit
from p2psim.streams import uniform


@njit()
def running_weights(indptr, weights):  # type: ignore[no-untyped-def]
    """Sums of each agent's weights up to each link, shape (m,)."""
    out = np.empty(weights.size)
    for i in range(indptr.size - 1):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += weights[e]
            out[e] = total
    return out


@njit()
def draw_link(key, agent, place, indptr, running):  # type: ignore[no-untyped-def]
    """Place in ``indices`` of the neighbour that an agent turns to at a place of its stream.

    Parameters
    ----------
    key : ndarray of uint64, shape (2,)
        Of the purpose ``peers``.
    agent, place : int
    indptr : ndarray
    running : ndarray
        From `running_weights`; empty for a uniform choice.
    """
    first, last = indptr[agent], indptr[agent + 1]
    u = uniform(key, agent, place)
    if running.size == 0:
        return first + np.int64(u * (last - first))
    mark = u * running[last - 1]
    low, high = first, last - 1  # rounding can lift the mark to the whole sum: that is the last link's
    while low < high:
        middle = (low + high) >> 1
        if running[middle] <= mark:
            low = middle + 1
        else:
            high = middle
    return low


@njit()
def draw_links(key, agent, place, size, indptr, running):  # type: ignore[no-untyped-def]
    """`draw_link` at places place, …, place + size − 1: shape (size,)."""
    out = np.empty(size, np.int64)
    for i in range(size):
        out[i] = draw_link(key, agent, place + i, indptr, running)
    return out
