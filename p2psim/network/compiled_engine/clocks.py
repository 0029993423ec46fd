"""Compiled draws that both engines share: whose clock ticks next, and which neighbour an agent turns to.

Both engines use them, so that they agree bit for bit. The clocks of all agents are one heap: the gap before an agent's
k-th tick is draw k of its stream, divided by its rate, and ties in time go to the lower agent. A
neighbour is drawn uniformly, or in proportion to the weight of the link.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from p2psim.core.compiled import njit
from p2psim.core.philox import exponential, uniform

#: Ticks that are drawn ahead at once: few enough for a short run, many enough for a call of compiled code.
AHEAD = 256


@njit()
def sift_down(times, agents, place, size):  # type: ignore[no-untyped-def]
    """Restore the heap below a place; the earliest time, then the lowest agent, is on top.

    Entries move up into the hole that the sinking one leaves. Which of two children comes first nobody can predict, so
    that it is added, and not branched on; equal times are rare.
    """
    time, agent = times[place], agents[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size:
            left, right = times[child], times[child + 1]
            if left == right:
                child += agents[child + 1] < agents[child]
            else:
                child += right < left
        first = times[child]
        if first > time or (first == time and agents[child] > agent):
            break
        times[place], agents[place] = first, agents[child]
        place = child
    times[place], agents[place] = time, agent


@njit()
def first_ticks(key, rates, times, agents):  # type: ignore[no-untyped-def]
    """Each agent's first tick, as a heap."""
    n = times.size
    for i in range(n):
        times[i] = exponential(key, i, 0) / rates[i]
        agents[i] = i
    for place in range(n // 2, -1, -1):
        sift_down(times, agents, place, n)


@njit()
def _take(key, rates, times, agents, places, out_times, out_agents):  # type: ignore[no-untyped-def]
    """Take the next ticks off the heap, and set each clock again."""
    for k in range(out_times.size):
        now, i = times[0], agents[0]
        out_times[k] = now
        out_agents[k] = i
        places[i] += 1
        times[0] = now + exponential(key, i, places[i]) / rates[i]
        sift_down(times, agents, 0, times.size)


def ticks(key: np.ndarray, rates: np.ndarray) -> Iterator[tuple[float, int]]:
    """Ticks of all agents in order, without end: (time, agent).

    Parameters
    ----------
    key : ndarray of uint64, shape (2,)
        Of the purpose ``clocks``.
    rates : ndarray, shape (n,)
        Ticks of each agent per unit of time.
    """
    n = rates.size
    times, agents = np.empty(n), np.empty(n, np.int32)
    first_ticks(key, rates, times, agents)
    places = np.zeros(n, np.int64)
    while True:
        next_times, next_agents = np.empty(AHEAD), np.empty(AHEAD, np.int32)
        _take(key, rates, times, agents, places, next_times, next_agents)
        yield from zip(next_times.tolist(), next_agents.tolist(), strict=True)


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
