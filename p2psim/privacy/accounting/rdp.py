"""Rényi DP (Mironov 2017): divergences of one order add up, and the best real order is taken."""

from __future__ import annotations

import numpy as np

from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Lists
from p2psim.privacy.accounting.noises import Noise, rdp_of
from p2psim.privacy.accounting.searches import least

#: Powers λ = α − 1 that are searched, as logarithms.
_LOWEST, _HIGHEST = np.log(1e-6), np.log(1e15)
#: Golden sections: 48·.618^36 leaves 2e-6 of log λ, and so 1e-11 of ε.
_STEPS = 36


def converted(divergence: np.ndarray, powers: np.ndarray, delta: float) -> np.ndarray:
    """ε at δ of a Rényi divergence τ of order α = λ + 1 (Canonne, Kamath, Steinke 2020, Proposition 12).

    ε = τ + log(1 − 1/α) − (log δ + log α)/(α − 1).

    Parameters
    ----------
    divergence : ndarray
    powers : ndarray
        λ, positive.
    delta : float
        In (0, 1).
    """
    return divergence - np.log1p(1 / powers) - (np.log(delta) + np.log1p(powers)) / powers


def rdp_optimum(lists: Lists, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Least ε at δ over real orders, and its λ = α − 1, shape (lists,) each.

    λ·ε(λ) is the cumulant of the losses plus −log δ + λ·log λ − (1 + λ)·log(1 + λ), both convex in λ; a convex function
    over λ falls and then rises, so golden sections find the optimum.
    """

    def bound(logarithms: np.ndarray) -> np.ndarray:
        powers = np.exp(logarithms)
        return converted(_divergence(lists, powers), powers, delta)

    point, value = least(bound, np.full(lists.size, _LOWEST), np.full(lists.size, _HIGHEST), _STEPS)
    return np.maximum(value, 0.0), np.exp(point)


def _divergence(lists: Lists, powers: np.ndarray) -> np.ndarray:
    """Sum of divergences of order λ + 1 of each list, shape (lists,)."""
    result = np.zeros(lists.loss.size)
    orders = (powers + 1)[lists.owner]
    for number, mask in lists.masks():
        with np.errstate(over="ignore"):
            result[mask] = rdp_of(lists.noises[number], lists.loss[mask], orders[mask])
    return lists.total(result)


def _supports(noise: Noise) -> bool:
    return rdp_of(noise, np.ones(1), np.full(1, 2.0)) is not None


def _epsilon(lists: Lists, delta: float) -> np.ndarray:
    return rdp_optimum(lists, delta)[0]


def _delta(lists: Lists, epsilon: float) -> np.ndarray:
    """δ = e^(λ(τ − ε))·λ^λ/(1 + λ)^(1 + λ), the same conversion at given ε, least over λ; its logarithm is convex."""

    def logarithm(logarithms: np.ndarray) -> np.ndarray:
        powers = np.exp(logarithms)
        return powers * (_divergence(lists, powers) - epsilon - np.log1p(1 / powers)) - np.log1p(powers)

    _, value = least(logarithm, np.full(lists.size, _LOWEST), np.full(lists.size, _HIGHEST), _STEPS)
    return np.exp(np.minimum(value, 0.0))


RDP = Accountant("rdp", True, _supports, _epsilon, _delta)
