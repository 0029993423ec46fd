"""One answer of the asynchronous star (F Algorithm 1) as a random affine map, and the quadratic model that it uses.

The map is for owners with affine answers. The quadratic model is all that forecasts need of a loss: `Statistics` are
such a model, exactly, for squared loss, and `LocalModel` is that of any smooth fitness near its minimiser.

With z = (θ_L, θ_1 … θ_N) − θ*, owner i answers with probability γ_i, independently of the past, and with
z̄ = (z_L + z_i)/2

    z_L ← a·z̄ + e_L,    z_i ← M_i·z̄ + e_i + ξ_i,    all else stays,

    a = 1 − 2c_L·α·l2,   e_L = (a − 1)θ*,   s_i = N·α·(n_i/n)·r_i,
    M_i = (1 − α·l2)I − 2s_i·A_i,   e_i = (M_i − I)θ* + 2s_i·b_i,   ξ_i = −s_i·w_i,

α = ρ/(T²σ) and r_i the factor on owner i's answer. Neither projection nor clipping is in it.

Owners with the same map are one class: their blocks of second moments are alike. Where all A_i have the same
eigenvectors, the coordinates along them do not mix: p modes of models with one coordinate. Both only save work.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from p2psim.learning.star.algorithms import learner_weight
from p2psim.theory.forecasts.statistics import Owners, Statistics, alike_rows
from p2psim.theory.star import Form


@dataclass(frozen=True)
class LocalModel(Owners):
    """Owners whose answers are taken to be affine, and a fitness that is taken to be quadratic.

    `among` measures what some reach on the fitness of all. The model is exact for squared loss where neither clipping
    nor the box acts. Else an approximation: answers are expanded at the
    model where those that owners really give, clipped ones, balance; that is θ* where no gradient is clipped there.

    Attributes
    ----------
    records : ndarray, shape (N,)
        n_i.
    gram : ndarray, shape (N, p, p)
        A_i, half the Jacobian of owner i's answer.
    moment : ndarray, shape (N, p)
        b_i, so that 2(A_iθ − b_i) is its answer where it is expanded.
    l2 : float
    optimum : ndarray, shape (p,)
        θ* of f.
    hessian : ndarray, shape (p, p)
        H, half the Hessian of f at θ*, without clipping.
    minimum : float
        f(θ*).
    isolated : ndarray, shape (N,)
        ψ of what each owner reaches alone, without noise.
    """

    of_each = ("gram", "moment", "isolated")
    unweighted = ("isolated",)

    records: np.ndarray
    gram: np.ndarray
    moment: np.ndarray
    l2: float
    optimum: np.ndarray
    hessian: np.ndarray
    minimum: float
    isolated: np.ndarray

    def diagonal(self) -> LocalModel:
        """With what owners' A_i have off the eigenvectors of H left out: a cheaper model, to search with."""
        _, basis = np.linalg.eigh(self.hessian)
        own = np.einsum("pj,ipq,qj->ij", basis, self.gram, basis)
        return replace(
            self,
            gram=np.einsum("pj,ij,qj->ipq", basis, own, basis),
            # The answer at θ* stays what it is.
            moment=self.moment
            + np.einsum("pj,ij,qj,q->ip", basis, own, basis, self.optimum)
            - self.gram @ self.optimum,
        )


#: What a linear star is made of: exact for squared loss, or near the minimiser of any smooth fitness.
Quadratic: TypeAlias = Statistics | LocalModel

#: Off the diagonal, relative to the largest entry, up to which matrices count as diagonal: rounding.
_DIAGONAL = 1e-12


@dataclass(frozen=True)
class LinearStar:
    """Maps of all classes of owners, mode by mode.

    m modes of q coordinates, m·q = p: (1, p), or (p, 1) where owners share eigenvectors. G classes.

    Attributes
    ----------
    basis : ndarray, shape (p, p)
        Orthogonal; its columns are the coordinates that modes are made of.
    classes : ndarray of int, shape (N,)
        Class of each owner.
    members : ndarray, shape (G,)
        Owners of each class.
    chance : ndarray, shape (G,)
        γ of one owner of each class.
    noise_steps : ndarray, shape (N,)
        Noise of a coordinate of an answer is multiplied by this, N·α·n_i/n times the learner's weight of the answer.
    decay : float
        a.
    own : ndarray, shape (m, G, q, q)
        M.
    learner_shift : ndarray, shape (m, q)
        e_L.
    own_shift : ndarray, shape (m, G, q)
        e.
    start : ndarray, shape (m, q)
        First model of the learner and of all owners, less θ*.
    weight : ndarray, shape (m, q, q)
        H: f(θ) − f(θ*) = Σ over modes of dᵀHd.
    """

    basis: np.ndarray
    classes: np.ndarray
    members: np.ndarray
    chance: np.ndarray
    noise_steps: np.ndarray
    decay: float
    own: np.ndarray
    learner_shift: np.ndarray
    own_shift: np.ndarray
    start: np.ndarray
    weight: np.ndarray


def linear_star(
    statistics: Quadratic,
    step: float,
    form: Form = "corrected",
    frequencies: np.ndarray | None = None,
    reweights: np.ndarray | None = None,
    learner_weights: np.ndarray | None = None,
    together: bool = False,
) -> LinearStar:
    """Maps of a star whose learner and owners start at zero, as in F.

    Parameters
    ----------
    statistics : Quadratic
    step : float
        α = ρ/(T²σ) > 0.
    form : {"printed", "corrected"}
        c_L.
    frequencies : ndarray, shape (N,), optional
        γ_i > 0, adding up to one; equal when left out.
    reweights : ndarray, shape (N,), optional
        r_i, on the gradient; 1 when left out.
    learner_weights : ndarray, shape (N,), optional
        The part of r_i that the learner applies, and so to the noise as well; all of it when left out.
    together : bool
        Keep all coordinates in one mode.

    Raises
    ------
    ValueError
        If the step is not positive, or frequencies are not positive or do not add up to one.
    """
    N, p = statistics.moment.shape
    gamma = np.full(N, 1 / N) if frequencies is None else np.asarray(frequencies, dtype=float)
    if not (step > 0 and np.isfinite(step)):
        raise ValueError(f"the step must be positive and finite, got {step}")
    if not ((gamma > 0).all() and abs(gamma.sum() - 1) < 1e-9):
        raise ValueError(f"frequencies must be positive and add up to one, got {gamma}")
    weights = np.ones(N) if reweights is None else np.asarray(reweights, dtype=float)
    on_noise = weights if learner_weights is None else np.asarray(learner_weights, dtype=float)
    moves = N * step * statistics.shares * weights
    eye = np.eye(p)
    own = (1 - step * statistics.l2) * eye - 2 * moves[:, None, None] * statistics.gram
    optimum = statistics.optimum
    shifts = (own - eye) @ optimum + 2 * moves[:, None] * statistics.moment
    decay = 1 - 2 * learner_weight(N, form) * step * statistics.l2
    classes, first = alike_rows(np.column_stack([own.reshape(N, -1), shifts, gamma]))
    own, shifts = own[first], shifts[first]
    basis, modes = (np.eye(p), 1) if together else _modes(own, statistics.hessian)
    size = p // modes

    def vectors(values: np.ndarray) -> np.ndarray:
        turned = values @ basis
        return np.moveaxis(turned.reshape(*values.shape[:-1], modes, size), -2, 0)

    def matrices(values: np.ndarray) -> np.ndarray:
        turned = basis.T @ values @ basis
        if modes == 1:
            return turned[None]
        return np.moveaxis(np.diagonal(turned, axis1=-2, axis2=-1), -1, 0)[..., None, None]

    return LinearStar(
        basis=basis,
        classes=classes,
        members=np.bincount(classes).astype(float),
        chance=gamma[first],
        noise_steps=N * step * statistics.shares * on_noise,
        decay=decay,
        own=np.ascontiguousarray(matrices(own)),
        learner_shift=vectors((decay - 1) * optimum),
        own_shift=np.ascontiguousarray(vectors(shifts)),
        start=vectors(0.0 - optimum),  # no negative zero
        weight=matrices(statistics.hessian),
    )


def _modes(own: np.ndarray, hessian: np.ndarray) -> tuple[np.ndarray, int]:
    """Eigenvectors that all maps share and p modes, or the identity and one."""
    p = len(hessian)
    # A mixture with unequal weights tells apart directions in which the mean alone is degenerate.
    mixture = np.tensordot(np.cos(1.0 + np.arange(len(own))), own, 1)
    _, basis = np.linalg.eigh(mixture + hessian * np.abs(mixture).max() / np.abs(hessian).max())
    for matrix in (*own, hessian):
        turned = basis.T @ matrix @ basis
        if np.abs(turned - np.diag(np.diag(turned))).max() > _DIAGONAL * np.abs(matrix).max():
            return np.eye(p), 1
    return basis, p
