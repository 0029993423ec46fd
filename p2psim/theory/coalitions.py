"""Who adds how much to what a coalition is worth: the Shapley value, exact and sampled.

Shapley, "A value for n-person games" (1953). Sampling: Castro, Gómez, Tejada, "Polynomial calculation of the Shapley
value based on sampling" (2009).

Coalitions are numbers whose bit i says whether owner i is in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np

#: Most owners whose Shapley values are computed exactly: 4,096 coalitions.
MOST_EXACT = 12


@dataclass(frozen=True)
class Shapley:
    """Shapley values.

    Attributes
    ----------
    values : ndarray, shape (N,)
        In the units of the worth; they add up to v(all) − v(∅).
    errors : ndarray, shape (N,)
        Standard errors; 0 where values are exact.
    """

    values: np.ndarray
    errors: np.ndarray


def members_of(coalition: int) -> np.ndarray:
    """Owners of a coalition, in order."""
    return np.array([i for i in range(coalition.bit_length()) if coalition >> i & 1], dtype=np.int64)


def exact_shapley(worth: np.ndarray) -> Shapley:
    """φ_i = Σ_S (v(S ∪ i) − v(S))/(N·C(N − 1, |S|)) over coalitions S without i.

    Parameters
    ----------
    worth : ndarray, shape (2^N,)
        v of each coalition, by its number.

    Raises
    ------
    ValueError
        If the length is no power of 2.
    """
    if worth.size < 2 or worth.size & (worth.size - 1):
        raise ValueError(f"worth must have 2^N entries, N ≥ 1, got {worth.size}")
    N = worth.size.bit_length() - 1
    numbers = np.arange(worth.size)
    sizes = np.array([one.bit_count() for one in range(worth.size)])
    weights = np.array([1 / (N * comb(N - 1, size)) for size in range(N)])
    values = np.empty(N)
    for i in range(N):
        without = numbers[numbers >> i & 1 == 0]
        values[i] = weights[sizes[without]] @ (worth[without | 1 << i] - worth[without])
    return Shapley(values, np.zeros(N))


def sampled_shapley(
    worth: Callable[[int], float], owners: int, permutations: int, random: np.random.Generator
) -> Shapley:
    """Mean of what owners add when all join one after the other, in random orders.

    Each order's contributions add up to v(all) − v(∅), and so do their means.

    Parameters
    ----------
    worth : callable
        v of a coalition; it is asked once for each.
    owners : int
        N.
    permutations : int
        At least 2.
    random : Generator

    Raises
    ------
    ValueError
        If there are fewer than two permutations.
    """
    if permutations < 2:
        raise ValueError(f"a standard error needs at least 2 permutations, got {permutations}")
    known = {0: worth(0)}
    added = np.empty((permutations, owners))
    for row in added:
        coalition = 0
        for i in random.permutation(owners).tolist():
            larger = coalition | 1 << i
            if larger not in known:
                known[larger] = worth(larger)
            row[i] = known[larger] - known[coalition]
            coalition = larger
    errors = added.std(axis=0, ddof=1) / np.sqrt(permutations)
    return Shapley(added.mean(axis=0), errors)
