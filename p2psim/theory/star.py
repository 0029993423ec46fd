"""Step sizes, stability and limits of the asynchronous star (F Algorithm 1), and Shapley values of its owners.

F is Farokhi, Wu, Smith, Kaafar, "The Cost of Privacy in Asynchronous Differentially-Private Machine
Learning". With N owners, n_i records each, n in all, T answers and g(θ) = l2·‖θ‖², σ = 2·l2, an answer
moves its owner's model by the step size

    lr_i = N·ρ·n_i / (n·T²·σ)

times a noisy gradient of the owner's mean loss. What matters for stability is h_i = lr_i·λ_max(H_i), H_i the Hessian of
owner i's mean loss; for losses that are not quadratic, an upper bound on the Hessian. All this is for owners whose
answers are neither clipped nor projected, since either makes the recursion nonlinear (and can only keep it from
growing).

The Shapley value says how much each owner adds to what a coalition is worth (Shapley, "A value for n-person games",
1953). It is exact, or sampled (Castro, Gómez, Tejada, "Polynomial calculation of the Shapley value based on sampling",
2009). Coalitions are numbers whose bit i says whether owner i is in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]
Form = Literal["printed", "corrected"]
Verdict = Literal["stable", "unstable", "undecided"]

#: Owners whose h differ relatively by at most so much are judged like equal ones.
NEARLY_EQUAL = 0.05


def base_step(rho: float, horizon: int, l2: float) -> float:
    """ρ/(T²σ), the step that all owners share.

    Parameters
    ----------
    rho : float
        Step parameter ρ > 0.
    horizon : int
        T, the number of answers.
    l2 : float
        Weight of the regulariser, > 0: σ = 2·l2 is the strong convexity that the step divides by.

    Raises
    ------
    ValueError
        If one of them is not positive.
    """
    if not (rho > 0 and horizon > 0 and l2 > 0):
        raise ValueError(f"rho, horizon and l2 must be positive, got {rho}, {horizon} and {l2}")
    return rho / (float(horizon) ** 2 * 2 * l2)


def step_sizes(rho: float, horizon: int, l2: float, records: ArrayLike) -> Float:
    """lr_i = Nρn_i/(nT²σ) of each owner.

    Parameters
    ----------
    rho, horizon, l2
        As in `base_step`.
    records : array_like, shape (N,)
        Records n_i of each owner.

    Returns
    -------
    ndarray, shape (N,)
    """
    n = np.asarray(records, dtype=float)
    return np.asarray(base_step(rho, horizon, l2) * len(n) * n / n.sum())


def steepness(steps: ArrayLike, curvatures: ArrayLike) -> Float:
    """h_i = lr_i·λ_max(H_i), from `step_sizes` and `largest_curvatures`; h = 1 converges fastest."""
    return np.asarray(np.asarray(steps, dtype=float) * np.asarray(curvatures, dtype=float))


def rho_for_h(h: float, horizon: int, l2: float, records: ArrayLike, curvatures: ArrayLike) -> float:
    """The ρ at which the steepest owner has h_i = h.

    Parameters
    ----------
    h : float
        Wanted largest h_i, > 0.
    horizon, l2, records
        As in `step_sizes`.
    curvatures : array_like, shape (N,)
        λ_max(H_i) of each owner.

    Raises
    ------
    ValueError
        If h is not positive, or no owner's loss is curved (then h is 0 for every ρ).
    """
    steepest = float(steepness(step_sizes(1.0, horizon, l2, records), curvatures).max())
    if not (h > 0 and steepest > 0):
        raise ValueError(f"h and the largest curvature must be positive, got {h} and {np.max(curvatures)}")
    return h / steepest


def stability_threshold(owners: int) -> float:
    """The h below which equal owners with equal wake rates are mean-square stable.

    [(2N+1) + √((2N+1)² + 8N(N+1))]/(2N): 4 for one owner, 1 + √3 for many. It is where the denominator
    of the exact noise floor (`p2psim.theory.noise_floor`) vanishes.
    """
    if owners < 1:
        raise ValueError(f"a star has at least one owner, got {owners}")
    b = 2 * owners + 1
    return float((b + np.sqrt(b**2 + 8.0 * owners * (owners + 1))) / (2 * owners))


def surely_stable(h: ArrayLike, reweighting: ArrayLike = 1.0) -> bool:
    """Whether max_i r_i·h_i ≤ 2: sufficient for any owners and any order of answers.

    Parameters
    ----------
    h : array_like, shape (N,)
        h_i of each owner.
    reweighting : array_like, optional
        Factor r_i on each owner's gradient.
    """
    return bool(np.max(np.asarray(h, dtype=float) * np.asarray(reweighting, dtype=float)) <= 2)


def stability(h: ArrayLike, reweighting: ArrayLike = 1.0) -> Verdict:
    """What can be said of mean-square stability from the h_i alone.

    ``stable`` if the sufficient condition holds, or owners that are nearly equal (h_i within `NEARLY_EQUAL`) are all
    below the threshold of equal ones; ``unstable`` if nearly equal owners are all at or above it; else ``undecided``.
    """
    steep = np.atleast_1d(np.asarray(h, dtype=float) * np.asarray(reweighting, dtype=float))
    if surely_stable(steep):
        return "stable"
    threshold = stability_threshold(len(steep))
    if np.ptp(steep) <= NEARLY_EQUAL * steep.max():
        if steep.max() < threshold:
            return "stable"
        if steep.min() >= threshold:
            return "unstable"
    return "undecided"


def contraction(rho: float, horizon: int, l2: float, records: ArrayLike, hessians: ArrayLike) -> float:
    """T·lr·λ_min/(N+1): how often the slowest mode is contracted by e over the horizon.

    For small steps the mean of the slowest mode shrinks by about 1 − lr·λ_min/(N+1) a step, so 4 or more
    is needed to converge. Unequal owners act through their mean, hence lr·λ_min = ρ/(T²σ)·λ_min(H) with
    H = Σ (n_i/n)·H_i.

    Parameters
    ----------
    rho, horizon, l2, records
        As in `step_sizes`.
    hessians : array_like, shape (N, p, p)
        H_i of each owner's mean loss.
    """
    n = np.asarray(records, dtype=float)
    mean = np.tensordot(n / n.sum(), np.asarray(hessians, dtype=float), axes=1)
    return base_step(rho, horizon, l2) * horizon * float(np.linalg.eigvalsh(mean)[0]) / (len(n) + 1)


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
    sizes = np.array([coalition.bit_count() for coalition in range(worth.size)])
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
    return Shapley(added.mean(axis=0), added.std(axis=0, ddof=1) / np.sqrt(permutations))


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
    return np.linalg.solve(l2 * np.eye(moment.shape[1]) + np.tensordot(w, gram, 1), w @ moment)


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
