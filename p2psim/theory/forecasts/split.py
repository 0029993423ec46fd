"""Expected ψ after every number of answers, split into parts that add up to it, and the noise variances that it needs.

The variance of the noise in the k-th answer is an expectation over the owners that gave the answers before.
"""

from dataclasses import dataclass

import numpy as np

from p2psim.theory.forecasts.star_path import Path


def geometric_variances(first: np.ndarray, ratio: float, frequencies: np.ndarray, steps: int) -> np.ndarray:
    """Expected variance of owner i's noise in the k-th answer under budgets ε(1 − r)rʲ, shape (T, N).

    The j-th answer has variance first·r⁻²ʲ, and j ~ Bin(k − 1, γ_i) answers came before: E r⁻²ʲ =
    (1 − γ_i + γ_i·r⁻²)^(k−1).

    Parameters
    ----------
    first : ndarray, shape (N,)
        Variance of each owner's first answer.
    ratio : float
        r in (0, 1).
    frequencies : ndarray, shape (N,)
        γ_i.
    steps : int
        T.

    Raises
    ------
    FloatingPointError
        If one is too large for a number.
    """
    growth = 1 - frequencies + frequencies / ratio**2
    with np.errstate(over="raise"):
        return np.asarray(first * growth ** np.arange(steps)[:, None])


def average_variances(by_answer: np.ndarray, frequencies: np.ndarray, steps: int) -> np.ndarray:
    """Expected variance of owner i's noise in the k-th answer, shape (T, N).

    Parameters
    ----------
    by_answer : ndarray, shape (N, J)
        Variance of each owner's j-th answer, j = 0 … J − 1; later ones count as the last: what comes after a cap is
        neglected.
    frequencies : ndarray, shape (N,)
        γ_i.
    steps : int
        T.
    """
    if (by_answer == by_answer[:, :1]).all():
        return np.broadcast_to(by_answer[:, 0], (steps, len(by_answer)))
    gamma = frequencies[:, None]
    chance = np.zeros_like(by_answer)
    chance[:, 0] = 1.0
    expected = np.empty((steps, len(by_answer)))
    for k in range(steps):
        expected[k] = np.einsum("ij,ij->i", chance, by_answer)
        moved = chance * gamma
        chance -= moved
        chance[:, 1:] += moved[:, :-1]
        chance[:, -1] += moved[:, -1]
    return expected


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
        return np.asarray(bias + self.optimisation + self.order)

    @property
    def psi(self) -> np.ndarray:
        """E[ψ], shape (T + 1,)."""
        return np.asarray(self.noiseless + self.noise.sum(axis=1))


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
    added = np.zeros((T + 1, N))
    if (variances == variances[:1]).all():
        np.cumsum(gain * variances[:1], axis=0, out=added[1:])
        return added
    for i in range(N):
        added[1:, i] = np.convolve(gain[:, i], variances[:, i])[:T]
    return added
