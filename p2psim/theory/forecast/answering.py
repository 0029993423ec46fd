"""What answers of a round are multiplied by, when owners answer or not: first and second moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

#: What makes up for missing answers: nothing, the known chance to answer, or the share of the records that answered.
Reweight = Literal["none", "known", "answered"]

#: Width of a trapezoid, in ln t. The error of the rule is of the order of exp(−π²/width): 4e-22.
_WIDTH = 0.2
#: exp(−45) = 3e-20 is no more.
_NOTHING = 45.0


@dataclass(frozen=True)
class Answering:
    """Of the multipliers Y_l/v_l of W's sum Σ_l (n_l/n)·Q̄_l: Y_l is one if owner l answers, else 0.

    Attributes
    ----------
    mean : ndarray, shape (N,)
    covariance : ndarray, shape (N, N)
    square : ndarray, shape (N,)
        Second moment, by which the variance of an answer's noise is multiplied.
    """

    mean: np.ndarray
    covariance: np.ndarray
    square: np.ndarray


def answering(present: np.ndarray, shares: np.ndarray, reweight: Reweight) -> Answering:
    """Moments where owners answer independently of each other.

    Parameters
    ----------
    present : ndarray, shape (N,)
        Chance q_l in (0, 1] that owner l answers in a round.
    shares : ndarray, shape (N,)
        n_l/n > 0.
    reweight : {"none", "known", "answered"}
        v_l is 1, q_l, or S = Σ Y_l·n_l/n of the round (no answers at all are a sum of 0).

    Raises
    ------
    ValueError
        If a probability is not in (0, 1].
    """
    q = np.asarray(present, dtype=float)
    if not ((q > 0) & (q <= 1)).all():
        raise ValueError(f"probabilities to answer must be above 0 and at most 1, got {q}")
    if reweight == "none" or (q == 1).all():
        return Answering(q, np.diag(q * (1 - q)), q)
    if reweight == "known":
        return Answering(np.ones_like(q), np.diag((1 - q) / q), 1 / q)
    return _by_answered(q, np.asarray(shares, dtype=float))


def _by_answered(q: np.ndarray, shares: np.ndarray) -> Answering:
    """E[Y_l/S] = ∫ E[Y_l·exp(−tS)] dt and E[Y_l·Y_m/S²] = ∫ t·E[Y_l·Y_m·exp(−tS)] dt over t > 0.

    Expectations are products over owners. With x = ln t the trapezoidal rule converges exponentially, since the
    integrands are entire in t and bounded where Re t > 0.
    """
    x = np.arange(-_NOTHING, np.log(_NOTHING / shares.min()), _WIDTH)
    t = np.exp(x)
    gone = np.exp(-np.outer(t, shares))
    # 1 − q + q·exp(−t·share), and what of it is owner l's answering.
    each = 1 - q + q * gone
    own = np.divide(q * gone, each, out=np.ones_like(each), where=each > 0)
    together = np.exp(np.where(each > 0, np.log(np.maximum(each, np.finfo(float).tiny)), -np.inf).sum(axis=1))
    mean = _WIDTH * (t * together) @ own
    weight = _WIDTH * t**2 * together
    square = weight @ own
    pairs = (own * weight[:, None]).T @ own
    np.fill_diagonal(pairs, square)
    return Answering(mean, pairs - np.outer(mean, mean), square)
