"""Who learns what about whom when agents add noise once and then gossip: all pairs, by distance, and in ε.

What one agent, or several together, see is found in :mod:`p2psim.privacy.network_views`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from p2psim.privacy.network_views import as_csr, view, view_of_many


@dataclass(frozen=True)
class Shares:
    """What everybody learns of everybody.

    Attributes
    ----------
    share : ndarray, shape (n, n)
        Row v, column u: μ²σ²/Δ² of u towards v (with the colluders).
    doubtful : ndarray of bool, shape (n,)
        `View.doubtful` of each v.
    """

    share: np.ndarray
    doubtful: np.ndarray


def shares(weights: Any, steps: int, colluders: Sequence[int] = ()) -> Shares:
    """Find what everybody learns of everybody, each agent alone or together with colluders.

    Takes about 1 ms for each agent while T hops reach few agents; then up to about 4 n·r² operations each, r the
    rank: see the page on privacy for times.

    Parameters
    ----------
    weights : ndarray or sparse array, shape (n, n), or a sequence of T of them
        W, or W_0 … W_(T−1).
    steps : int
        T.
    colluders : sequence of int
        Agents whose views are added to everybody's.
    """
    from threadpoolctl import threadpool_limits

    many = isinstance(weights, list | tuple)
    n = weights[0].shape[0] if many else weights.shape[0]
    found, doubtful = np.empty((n, n)), np.empty(n, dtype=bool)
    with threadpool_limits(limits=1, user_api="blas"):  # last digits must not depend on the number of threads
        for v in range(n):
            group = [v, *colluders]
            seen = view_of_many(weights[:steps], group) if many else view(weights, group, steps)
            found[v], doubtful[v] = seen.share, seen.doubtful
    return Shares(found, doubtful)


@dataclass(frozen=True)
class Distance:
    """Shares over all ordered pairs of different agents that are so many hops apart."""

    hops: int
    pairs: int
    mean: float
    least: float
    most: float


def hop_distances(weights: Any) -> np.ndarray:
    """Hops from each agent to each other along W_ij ≠ 0, shape (n, n); infinite where there is no way."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    return np.asarray(shortest_path(csr_array(as_csr(weights)), method="D", unweighted=True))


def by_distance(values: np.ndarray, hops: np.ndarray) -> list[Distance]:
    """Mean, least and largest value at each distance.

    Parameters
    ----------
    values : ndarray, shape (n, n)
        Of v about u; any quantity.
    hops : ndarray, shape (n, n)
        From `hop_distances`; agents that no way leads to are left out.
    """
    rows = []
    for distance in np.unique(hops[np.isfinite(hops) & (hops > 0)]):
        here = values[hops == distance]
        rows.append(
            Distance(int(distance), here.size, float(here.mean()), float(here.min()), float(here.max()))
        )
    return rows


def epsilons(share: np.ndarray, ratio: float, delta: float) -> np.ndarray:
    """Find ε at δ of each share, exactly: that of one Gaussian release with μ = (Δ/σ)·√share.

    Parameters
    ----------
    share : ndarray of any shape
    ratio : float
        Δ/σ, sensitivity in L2 by standard deviation.
    delta : float
        In (0, 1).
    """
    from p2psim.privacy.accounting.gaussian import gaussian_epsilon

    # Shares that rounding alone tells apart are priced once: all are rounded up, by less than 1e-11 of themselves.
    fraction, exponent = np.frexp(share)
    rounded = np.minimum(1.0, np.ldexp(np.ceil(fraction * 2.0**38) / 2.0**38, exponent))
    different, where = np.unique(rounded, return_inverse=True)
    return np.asarray(gaussian_epsilon(ratio * np.sqrt(different), delta)[where].reshape(share.shape))
