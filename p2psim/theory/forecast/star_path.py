"""What the star reaches after every number of answers, and what noise adds to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.theory.forecast.linear_star import LinearStar
from p2psim.theory.forecast.star_dual import Dual
from p2psim.theory.forecast.star_mean import mean_limit, mean_path

#: Parts of V_k, in the order in which they are made one vector.
_PARTS = ("both", "cross", "own", "others", "learner", "owner", "constant")


@dataclass(frozen=True)
class Path:
    """The noiseless star after k = 0 … T answers, and what noise would add.

    Attributes
    ----------
    expected : ndarray, shape (T + 1,)
        E[f(θ_L,k)] − f* without noise.
    mean : ndarray, shape (T + 1, p)
        E[θ_L,k] − θ*; noise does not move it.
    mean_excess : ndarray, shape (T + 1,)
        f(E[θ_L,k]) − f*.
    gain : ndarray, shape (T, N)
        What noise of variance 1 a coordinate, in every answer of owner i that is the s-th from the end, s = 0 … T − 1,
        adds to E[f(θ_L)].
    limit : ndarray, shape (p,)
        Limit of the mean; NaN where the star is not stable in the mean.
    limit_excess : float
        f there less f*.
    """

    expected: np.ndarray
    mean: np.ndarray
    mean_excess: np.ndarray
    gain: np.ndarray
    limit: np.ndarray
    limit_excess: float


def path(star: LinearStar, steps: int) -> Path:
    """Walk backwards and forwards once.

    Parameters
    ----------
    star : LinearStar
    steps : int
        T.

    Raises
    ------
    FloatingPointError
        If a moment is not finite: the star is unstable.
    """
    with np.errstate(over="raise", invalid="raise"):
        walk = _walk_alike if star.own.shape[1] * star.own.shape[2] == 1 else _walk
        expected, traces = walk(star, steps)
        means = mean_path(star, steps)
    gain = traces[:, star.classes] * star.chance[star.classes] * star.noise_steps**2
    limit = mean_limit(star)
    return Path(
        expected,
        means.reshape(steps + 1, -1) @ star.basis.T,
        np.einsum("kmq,mqr,kmr->k", means, star.weight, means),
        gain,
        limit.reshape(-1) @ star.basis.T,
        float(np.einsum("mq,mqr,mr->", limit, star.weight, limit)),
    )


def _walk(star: LinearStar, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """V_k at the start, k = 0 … T, and the traces of Q_ii, k = 0 … T − 1."""
    dual = Dual(star)
    expected, traces = np.empty(steps + 1), np.empty((steps, len(star.members)))
    for k in range(steps):
        expected[k], traces[k] = dual.value(), dual.traces()
        dual.step()
    expected[steps] = dual.value()
    return expected, traces


def _walk_alike(star: LinearStar, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """`_walk` for owners all alike with p modes: V_k is seven numbers a mode, and a step one matrix.

    So all V_k come by doubling: with v_0 … v_{j−1} known, the next j are these times the j-th power.
    """
    m, d = len(star.start), len(_PARTS)
    matrix = np.empty((m, d, d))
    for column in range(d):
        dual = _of_numbers(star, np.repeat(np.eye(d)[column][None], m, axis=0))
        dual.step()
        matrix[:, :, column] = _numbers(dual)
    rows, power = _numbers(Dual(star))[None], matrix
    while len(rows) <= steps:
        rows = np.concatenate([rows, np.einsum("mij,kmj->kmi", power, rows)])
        power = power @ power
    rows = rows[: steps + 1]
    both, cross, own, others, learner, owner, constant = np.moveaxis(rows, 2, 0)
    z, n = star.start[:, 0], star.members[0]
    square = both + 2 * n * cross + n * own + n * (n - 1) * others
    expected = (square * z**2 + 2 * (learner + n * owner) * z + constant).sum(axis=1)
    return expected, own[:-1].sum(axis=1)[:, None]


def _numbers(dual: Dual) -> np.ndarray:
    m = len(dual.constant)
    return np.concatenate([getattr(dual, name).reshape(m, 1) for name in _PARTS], axis=1)


def _of_numbers(star: LinearStar, numbers: np.ndarray) -> Dual:
    dual = Dual(star)
    for name, values in zip(_PARTS, numbers.T, strict=True):
        setattr(dual, name, values.reshape(getattr(dual, name).shape).copy())
    return dual
