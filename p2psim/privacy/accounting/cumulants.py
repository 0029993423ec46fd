"""Cumulants log E[e^(λL)] of privacy losses L under P: λ times the Rényi divergence of order λ + 1.

All are written so that nothing cancels where losses are tiny and nothing overflows where they are large.
"""

from __future__ import annotations

import numpy as np

#: Below this the series is used.
_SMALL = 0.3
#: Terms of the series: .3^14/14! is below 1e-18 of the first one.
_TERMS = 14
#: Largest exponent that is not near overflow.
_LARGE = 600.0


def exp_beyond_line(x: np.ndarray) -> np.ndarray:
    """e^x − 1 − x, to relative precision; not negative.

    Parameters
    ----------
    x : ndarray
        At most 700.
    """
    x = np.asarray(x, dtype=float)
    near = np.where(np.abs(x) < _SMALL, x, 0.0)
    series = np.zeros_like(near)
    for n in range(_TERMS, 1, -1):
        # x²/2·(1 + x/3·(1 + x/4·(…))).
        series = near / n * (1.0 + series) if n > 2 else near * near / 2 * (1.0 + series)
    return np.where(np.abs(x) < _SMALL, series, np.expm1(x) - x)


def laplace_cumulant(losses: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Of the Laplace pair: log((λ+1)/(2λ+1)·e^(λε₀) + λ/(2λ+1)·e^(−(λ+1)ε₀)) (Mironov 2017, Table II).

    Parameters
    ----------
    losses : ndarray
        ε₀, not negative.
    powers : ndarray
        λ, positive; broadcasts.
    """
    losses, powers = np.asarray(losses, dtype=float), np.asarray(powers, dtype=float)
    up = (powers + 1) / (2 * powers + 1)
    rise, fall = powers * losses, -(powers + 1) * losses
    large = rise > _LARGE
    # The weighted exponents cancel: (λ+1)·λε₀ − λ·(λ+1)ε₀ = 0.
    beyond = up * exp_beyond_line(np.minimum(rise, _LARGE)) + (1 - up) * exp_beyond_line(fall)
    return np.where(large, rise + np.log(up), np.log1p(beyond))


def response_cumulant(losses: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Of randomised response: log(p·e^(λε₀) + (1 − p)·e^(−λε₀)), p = 1/(1 + e^−ε₀).

    Parameters
    ----------
    losses : ndarray
        ε₀, not negative.
    powers : ndarray
        λ, positive; broadcasts.
    """
    losses, powers = np.asarray(losses, dtype=float), np.asarray(powers, dtype=float)
    fall = np.exp(-np.minimum(losses, _LARGE))
    up, down = 1 / (1 + fall), fall / (1 + fall)
    rise = powers * losses
    large = rise > _LARGE
    small = np.minimum(rise, _LARGE)
    beyond = up * exp_beyond_line(small) + down * exp_beyond_line(-small) + np.tanh(losses / 2) * small
    return np.where(large, rise + np.log(up), np.log1p(beyond))
