"""Expected ψ at every number of answers, in parts that add up to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.theory.forecast.star_path import Path


@dataclass(frozen=True)
class Split:
    """E[ψ] after k answers: bias + optimisation + order + Σ noise. All in units of f(θ*).

    Attributes
    ----------
    bias : float
        ψ where the mean of θ_L tends to: what no number of answers removes, of the printed form or of a long step;
        NaN where it tends to nothing.
    optimisation : ndarray, shape (T + 1,)
        ψ of the mean of θ_L, less the bias; below 0 where the mean comes closer to θ* on its way than in the end.
    order : ndarray, shape (T + 1,)
        What chance adds through which owner answers when.
    noise : ndarray, shape (T + 1, N)
        What privacy noise of each owner adds.
    """

    bias: float
    optimisation: np.ndarray
    order: np.ndarray
    noise: np.ndarray

    @property
    def noiseless(self) -> np.ndarray:
        """E[ψ] without privacy noise, shape (T + 1,)."""
        bias = 0.0 if np.isnan(self.bias) else self.bias
        found: np.ndarray = bias + self.optimisation + self.order
        return found

    @property
    def psi(self) -> np.ndarray:
        """E[ψ], shape (T + 1,)."""
        found: np.ndarray = self.noiseless + self.noise.sum(axis=1)
        return found


def split(path: Path, variances: np.ndarray, minimum: float) -> Split:
    """Put together what the path is without noise and what noise adds.

    Parameters
    ----------
    path : Path
    variances : ndarray, shape (T, N)
        Variance of a coordinate of the noise of an answer, if the k-th answer is owner i's.
    minimum : float
        f(θ*) > 0.

    Raises
    ------
    ValueError
        If f(θ*) is not positive: ψ is not defined.
    FloatingPointError
        If a part is not finite.
    """
    if not minimum > 0:
        raise ValueError(f"ψ needs f(θ*) > 0, got {minimum}")
    bias = path.limit_excess / minimum
    known = 0.0 if np.isnan(bias) else bias
    with np.errstate(over="raise", invalid="raise"):
        noise = accumulate(path.gain, variances) / minimum
        # A variance; below 0 by rounding alone.
        order = np.maximum(path.expected - path.mean_excess, 0.0) / minimum
        return Split(bias, path.mean_excess / minimum - known, order, noise)


def accumulate(gain: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """What all noise so far adds after k = 0 … T answers: Σ_t gain(k − t)·variance(t), shape (T + 1, N).

    Parameters
    ----------
    gain : ndarray, shape (T, N)
        By the number of answers since.
    variances : ndarray, shape (T, N)
        By the number of answers before.
    """
    T, N = gain.shape
    found = np.zeros((T + 1, N))
    if (variances == variances[:1]).all():
        np.cumsum(gain * variances[:1], axis=0, out=found[1:])
        return found
    for i in range(N):
        found[1:, i] = np.convolve(gain[:, i], variances[:, i])[:T]
    return found
