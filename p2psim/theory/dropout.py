"""What unequal frequencies of answers do to the star, and what reweighting does about it (F, Remark 4).

Owner i answers each query with probability γ_i, independently, and its gradient is multiplied by r_i. Squared loss,
ℓ = (θᵀx − y)², g = l2·‖θ‖²; A_i = XᵀX/n_i, b_i = Xᵀy/n_i. No clipping, no active projection, no noise (or of mean
zero).
"""

from __future__ import annotations

import numpy as np


def weighted_optimum(
    gram: np.ndarray, moment: np.ndarray, records: np.ndarray, l2: float, weights: np.ndarray
) -> np.ndarray:
    """Minimiser of l2·‖θ‖² + Σ_i w_i·(n_i/n)·ℓ̄_i, shape (p,).

    With w_i = N·γ_i it is what the unweighted star tends to as its step vanishes: weights that are not renormalised.
    With w_i = N·γ_i·r_i = 1 it is θ*.

    Parameters
    ----------
    gram : ndarray, shape (N, p, p)
        A_i.
    moment : ndarray, shape (N, p)
        b_i.
    records : ndarray, shape (N,)
        n_i.
    l2 : float
    weights : ndarray, shape (N,)
        w_i.
    """
    w = weights * records / records.sum()
    p = moment.shape[1]
    return np.linalg.solve(l2 * np.eye(p) + np.tensordot(w, gram, 1), w @ moment)


def stationary_mean(
    gram: np.ndarray,
    moment: np.ndarray,
    records: np.ndarray,
    l2: float,
    step: float,
    frequencies: np.ndarray,
    reweights: np.ndarray,
) -> np.ndarray:
    """Stationary mean of θ_L at a finite step α, exact, shape (p,).

    With K_i = l2·I + 2N(n_i/n)r_i·A_i and k_i = 2N(n_i/n)r_i·b_i an answer makes θ_i ← θ̄ − α(K_iθ̄ − k_i) and
    θ_L ← (1 − α·l2)θ̄, θ̄ = (θ_L + θ_i)/2. The mean of θ̄ when owner i answers is therefore

        θ̄_i = (I + αK_i)⁻¹(m_L + αk_i),    m_L = (1 − α·l2) Σ_i γ_i·θ̄_i,

    p linear equations for m_L. It differs from `weighted_optimum` by the order of α.

    Parameters
    ----------
    gram, moment, records, l2
        As in `weighted_optimum`.
    step : float
        α = ρ/(T²σ), of the corrected form.
    frequencies, reweights : ndarray, shape (N,)
        γ_i, adding up to one, and r_i.
    """
    N, p = moment.shape
    factors = 2 * N * (records / records.sum()) * reweights
    system, right = np.eye(p), np.zeros(p)
    for i in range(N):
        inverse = np.linalg.inv(np.eye(p) + step * (l2 * np.eye(p) + factors[i] * gram[i]))
        share = (1 - step * l2) * frequencies[i]
        system -= share * inverse
        right += share * step * factors[i] * inverse @ moment[i]
    return np.linalg.solve(system, right)


def noise_moment(moments: np.ndarray, frequencies: np.ndarray, reweights: np.ndarray) -> float:
    """Second moment of the noise that a commit adds on average, Σ γ_i·r_i²·v_i.

    With r_i = 1/(Nγ_i) it is Σ v_i/(N²γ_i), so the bounds do not stay the same, as F says: for γ = (.8, .19, .01) and
    equal v it is 11.8 times that of equal frequencies.

    Parameters
    ----------
    moments : ndarray, shape (N,)
        v_i = E‖N(n_i/n)w_i‖².
    frequencies, reweights : ndarray, shape (N,)
    """
    return float(np.sum(frequencies * reweights**2 * moments))


def answer_frequencies(rates: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """γ_i of owners with clocks of given rates that are there for given shares of their ticks, shape (N,).

    Exact where an owner's presence at its tick is independent of who is served, as with an instant service; an
    approximation where a service takes time in which an owner can leave.

    Parameters
    ----------
    rates, shares : ndarray, shape (N,)
    """
    weights = rates * shares
    return weights / weights.sum()
