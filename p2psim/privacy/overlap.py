"""Records that several owners hold: what their promises come to for such a record, and how budgets make up for it.

A record that owners i and j both hold takes part in the releases of both, and loses ε_i + ε_j at δ_i + δ_j (basic
composition). W (Wu, Farokhi, Smith, Kaafar 2020) divides each budget by κ, the most owners that hold the same record:
that keeps the largest promise only, since the loss is then the mean of the holders' ε. min_j ε_j/κ keeps all of them.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from p2psim.options import Count, Options


class Overlap(Options):
    """How many owners may hold the same record, and what they do about it."""

    holders: Count = Field(1, description="κ, the most owners that hold the same record")
    form: Literal["printed", "corrected"] = Field(
        "corrected",
        description="each owner spends ε_i/κ, which breaks promises below the mean, or min_j ε_j/κ",
    )


def budgets_of(overlap: Overlap, epsilon: np.ndarray) -> np.ndarray:
    """What each owner spends of its promise ε_i, shape (N,)."""
    if overlap.holders == 1:
        return epsilon
    if overlap.form == "printed":
        return epsilon / overlap.holders
    return np.full(epsilon.size, epsilon.min() / overlap.holders)


def of_shared_record(losses: np.ndarray, holders: int) -> np.ndarray:
    """Most that a record of each owner loses if up to κ − 1 others hold it as well, shape (N,).

    Its owner's ε, and the largest κ − 1 of the others', by basic composition across owners.

    Parameters
    ----------
    losses : ndarray, shape (N,)
        ε of each owner's releases, each at the same δ; the sum holds at as many times that.
    holders : int
        κ.
    """
    others = min(holders, losses.size) - 1
    if others < 1:
        return losses
    order = np.argsort(-losses, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(losses[order])])
    rank = np.empty(losses.size, np.int64)
    rank[order] = np.arange(losses.size)
    # Who is among the largest itself is counted once, and the next one takes its place.
    among = rank < others
    return np.where(among, sums[others + 1], sums[others] + losses)
