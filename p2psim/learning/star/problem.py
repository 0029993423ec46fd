"""The objective that a star minimises, with its exact optimum.

The objective keeps the owners' records and, for each owner, sums over them.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from p2psim.core.compiled import njit, unwritten
from p2psim.core.errors import MeaningError, SimulationError
from p2psim.learning.batches import GradientRule, record_norms
from p2psim.learning.losses import Loss
from p2psim.learning.losses.compiled import add_product
from p2psim.learning.optimum import check_minimiser, check_unique, minimise, minimise_squared
from p2psim.learning.star.owners import BLOCK, FROM_MENDED_SUMS, FROM_RECORDS, FROM_SUMS


class Recorded(NamedTuple):
    """Models of the learner, in order.

    Attributes
    ----------
    step : ndarray of int64, shape (rows,)
        Commits so far.
    time : ndarray, shape (rows,)
        Simulated time, in mean clock periods.
    theta : ndarray, shape (rows, p)
    """

    step: np.ndarray
    time: np.ndarray
    theta: np.ndarray


#: Rows that are looked at together, so that temporary arrays stay small.
_ROWS = 1 << 16

#: ψ may be so far below zero: what rounding, and the accuracy of θ*, leave.
LOWEST = 1e-9


@njit(allocates=False)
def quadratic_gap(theta, centre, hessian, slope_there, gap, s, out):  # type: ignore[no-untyped-def]
    """Write sᵀd + dᵀHd with d = θ − centre to ``out``, for each row of ``theta``: the same alone and among others.

    ``gap`` and ``s``, shape (p,) each, are room.
    """
    rows, p = theta.shape
    for k in range(rows):
        for a in range(p):
            gap[a], s[a] = theta[k, a] - centre[a], slope_there[a]
        add_product(hessian, gap, s)
        total = 0.0
        for a in range(p):
            total += s[a] * gap[a]
        out[k] = total


@dataclass(frozen=True)
class StarProblem:
    """Fitness f(θ) = l2·‖θ‖² + (1/n) Σ_i Σ_{(x, y) ∈ D_i} ℓ(θᵀx, y) over Θ = {‖θ‖_∞ ≤ theta_max}.

    Attributes
    ----------
    loss : Loss
    l2, theta_max : float
        Positive; l2 may be 0 where the optimum is unique.
    X : ndarray, shape (n, p)
        Records, owner by owner; with the intercept's column where there is one.
    y : ndarray, shape (n,)
    offsets : ndarray of int64, shape (N + 1,)
        Owner i holds rows offsets[i] to offsets[i + 1].
    x_l1 : ndarray, shape (n,)
        ‖x‖₁ of each record.
    gram : ndarray, shape (N, p, p)
        XᵀX/n_i of each owner.
    moment : ndarray, shape (N, p)
        Xᵀy/n_i of each owner.
    energy : ndarray, shape (N,)
        yᵀy/n_i of each owner.
    optimum : ndarray, shape (p,)
        θ*, the exact minimiser over Θ.
    minimum : float
        f(θ*).
    test_X, test_y : ndarray, shape (t, p) and (t,), or None
        Records of all owners that are held out; None where there are none.
    """

    loss: Loss
    l2: float
    theta_max: float
    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    x_l1: np.ndarray
    gram: np.ndarray
    moment: np.ndarray
    energy: np.ndarray
    optimum: np.ndarray
    minimum: float
    test_X: np.ndarray | None = None
    test_y: np.ndarray | None = None

    @property
    def owners(self) -> int:
        """Number N of owners."""
        return self.offsets.size - 1

    @property
    def dimension(self) -> int:
        """Length p of a model."""
        return self.X.shape[1]

    @cached_property
    def records(self) -> np.ndarray:
        """n_i, shape (N,)."""
        return np.diff(self.offsets)

    @cached_property
    def shares(self) -> np.ndarray:
        """n_i/n, shape (N,)."""
        return self.records / self.offsets[-1]

    @property
    def box_is_active(self) -> bool:
        """Whether θ* lies on the boundary of Θ, which an interior point method approaches from inside."""
        return bool(np.abs(self.optimum).max() >= self.theta_max * (1 - 1e-6))

    def test_loss(self, theta: np.ndarray) -> np.ndarray:
        """Mean loss of the records held out at each row of ``theta``, shape (rows, p) to (rows,)."""
        assert self.test_X is not None
        assert self.test_y is not None
        return np.array([self.loss.values(self.test_X @ one, self.test_y).mean() for one in theta])

    def fitness(self, theta: np.ndarray) -> np.ndarray:
        """Fitness f at each row of ``theta``, shape (rows, p) to (rows,)."""
        theta = np.atleast_2d(theta)
        total = np.zeros(len(theta))
        for first in range(0, self.y.size, _ROWS):
            rows = slice(first, first + _ROWS)
            for j, one in enumerate(theta):
                total[j] += self.loss.values(self.X[rows] @ one, self.y[rows]).sum()
        return total / self.y.size + self.l2 * np.einsum("kp,kp->k", theta, theta)

    def relative_fitness(self, theta: np.ndarray) -> np.ndarray:
        """ψ = f/f(θ*) − 1 at each row of ``theta``, shape (rows, p) to (rows,).

        For the squared loss from f(θ) − f(θ*) = ∇f(θ*)ᵀd + dᵀ(G + l2·I)d with d = θ − θ*: no difference of nearly
        equal numbers, and no cost that grows with the records.
        """
        theta = np.atleast_2d(theta)
        if not self.loss.is_squared_error:
            return self.checked(self.fitness(theta) / self.minimum - 1.0, theta)
        hessian, slope = self._expansion
        gaps, (gap, s) = np.empty(len(theta)), np.empty((2, self.dimension))
        quadratic_gap(theta, unwritten(self.optimum), hessian, slope, gap, s, gaps)
        return self.checked(gaps / self.minimum, theta)

    def checked(self, psi: np.ndarray, theta: np.ndarray) -> np.ndarray:
        """ψ as it is, shape (rows,), where no row of ``theta``, shape (rows, p), is better than θ* beyond rounding.

        Raises
        ------
        SimulationError
            If one in Θ is: then θ* is no minimiser. Where the box acts on θ*, models outside may be better.
        """
        # Where the curvature overflows, so does what follows: that l2 is too large shows here, whatever the models are.
        if np.isfinite(self.largest_curvature) and (psi >= -LOWEST).all():
            return psi
        # Terms of the quadratic form may cancel where the data determine little.
        squares = np.square(theta - self.optimum).sum(axis=1)
        rounding = 2.0**-48 * self.dimension * (self.largest_curvature * squares / self.minimum)
        below = psi < -(LOWEST + rounding)
        if self.box_is_active:
            below &= np.abs(theta).max(axis=1) <= self.theta_max
        if below.any():
            raise SimulationError(
                f"ψ is {psi[below].min():.3g}: a model is better than θ*, which the minimiser of the {self.loss.kind} "
                "loss took for the optimum"
            )
        return psi

    def check(self) -> None:
        """Raise a SimulationError if θ* does not minimise the fitness, or f(θ*) is another number."""
        check_minimiser(self.loss, self.optimum, self.X, self.y, self.l2, self.theta_max)
        again = float(self.fitness(self.optimum)[0])
        if not abs(again - self.minimum) <= LOWEST * abs(self.minimum):
            raise SimulationError(f"f(θ*) is {again:.12g}, and not {self.minimum:.12g}")

    @cached_property
    def largest_curvature(self) -> float:
        """Bound on the curvature of f; 2·l2 where the loss has none."""
        curvature = self.loss.curvature if np.isfinite(self.loss.curvature) else 0.0
        return float(curvature * (self.shares @ np.trace(self.gram, axis1=1, axis2=2)) + 2 * self.l2)

    @cached_property
    def _expansion(self) -> tuple[np.ndarray, np.ndarray]:
        """G + l2·I, and ∇f(θ*), of the squared loss."""
        hessian = np.einsum("i,ipq->pq", self.shares, self.gram) + self.l2 * np.eye(self.dimension)
        slope = 2 * (hessian @ self.optimum - self.shares @ self.moment)
        if not self.box_is_active:
            slope[:] = 0.0  # zero at an inner minimum: what is left is rounding
        return hessian, slope

    def hessian_peaks(self) -> np.ndarray:
        """Largest eigenvalue of the Hessian of each owner's mean loss (an upper bound for logistic), shape (N,)."""
        return self.loss.curvature * self._largest_eigenvalues

    @cached_property
    def _largest_eigenvalues(self) -> np.ndarray:
        """Of XᵀX/n_i of each owner, shape (N,)."""
        return np.array([np.linalg.eigvalsh(gram)[-1] for gram in self.gram])

    @cached_property
    def x_l2(self) -> np.ndarray:
        """‖x‖₂ of each record, shape (n,)."""
        return record_norms(self.X, 2)

    def norms(self, order: int) -> np.ndarray:
        """‖x‖ of each record, of order 1 or 2, shape (n,)."""
        return self.x_l1 if order == 1 else self.x_l2

    @property
    def bytes_of_data(self) -> int:
        """Size of the records."""
        return self.X.nbytes + self.y.nbytes + self.x_l1.nbytes

    def reaches(self, clip: float, order: int) -> tuple[np.ndarray, np.ndarray]:
        """How far from θ*, in Euclidean norm, no record is clipped: of a block of `BLOCK` rows, and of an owner's.

        For squared loss a record's gradient has the norm 2|θᵀx − y|·‖x‖, and |θᵀx − y| grows by at most
        ‖θ − θ*‖₂·‖x‖₂. What clipping does is continuous: a reach that rounding has made too large does not matter.
        """
        known = self._reaches
        if (clip, order) not in known:
            reaches = np.full(-(-self.y.size // BLOCK) * BLOCK, np.inf)
            for first in range(0, self.y.size, _ROWS):
                rows = slice(first, min(first + _ROWS, self.y.size))
                norms = self.norms(order)[rows]
                with np.errstate(over="ignore", invalid="ignore"):  # a reach that is no number is none
                    room = clip / 2 - np.abs(self.X[rows] @ self.optimum - self.y[rows]) * norms
                    step = norms * self.x_l2[rows]
                    np.divide(room, step, out=reaches[rows], where=step > 0)
            of_owners = [reaches[first:last].min(initial=np.inf) for first, last in pairwise(self.offsets)]
            known[clip, order] = reaches.reshape(-1, BLOCK).min(axis=1), np.array(of_owners)
        return known[clip, order]

    @cached_property
    def _reaches(self) -> dict[tuple[float, int], tuple[np.ndarray, np.ndarray]]:
        return {}

    def largest_gradients(self, order: int = 1) -> np.ndarray:
        """Largest norm, of order 1 or 2, that each record's gradient can reach on Θ, shape (n,)."""
        return self.loss.slope_bounds(self.x_l1, self.y, self.theta_max) * self.norms(order)

    @cached_property
    def isolated_optima(self) -> np.ndarray:
        """θ_i*, the minimiser of the fitness of each owner's records alone, shape (N, p)."""
        optima = np.empty((self.owners, self.dimension))
        for i in range(self.owners):
            rows = slice(self.offsets[i], self.offsets[i + 1])
            check_unique(self.gram[i], self.l2, f"for isolated_fitness, the records of owner {i}")
            if self.loss.is_squared_error:
                optima[i] = minimise_squared(self.gram[i], self.moment[i], self.l2, self.theta_max)
            else:
                optima[i] = minimise(self.loss, self.X[rows], self.y[rows], self.l2, self.theta_max)
        return optima


def star_problem(
    X: np.ndarray, y: np.ndarray, offsets: np.ndarray, loss: Loss, l2: float, theta_max: float
) -> StarProblem:
    """Build the problem: sums over each owner's records, and the exact optimum.

    Parameters
    ----------
    X : ndarray, shape (n, q)
        Records, owner by owner, without the intercept.
    y : ndarray, shape (n,)
        Targets; ±1 where the loss needs classes.
    offsets : ndarray of int64, shape (N + 1,)
    loss : Loss
    l2, theta_max : float
        Positive; l2 may be 0 where the optimum is unique.

    Returns
    -------
    StarProblem

    Raises
    ------
    MeaningError
        If l2 is 0, and the records have more optima than one or are fitted without error.
    """
    if loss.intercept:
        X = np.column_stack([X, np.ones(len(X))])
    X = np.ascontiguousarray(X, dtype=np.float64)
    y = np.ascontiguousarray(y, dtype=np.float64)
    owners, p = offsets.size - 1, X.shape[1]
    gram, moment, energy = np.empty((owners, p, p)), np.empty((owners, p)), np.empty(owners)
    for i in range(owners):
        Xi, yi = X[offsets[i] : offsets[i + 1]], y[offsets[i] : offsets[i + 1]]
        gram[i], moment[i], energy[i] = Xi.T @ Xi / yi.size, Xi.T @ yi / yi.size, yi @ yi / yi.size
    x_l1 = record_norms(X, 1)
    shares = np.diff(offsets) / offsets[-1]
    pooled, whose = np.einsum("i,ipq->pq", shares, gram), "the owners' records"
    check_unique(pooled, l2, whose)
    if loss.is_squared_error:
        optimum = minimise_squared(pooled, shares @ moment, l2, theta_max)
    else:
        optimum = minimise(loss, X, y, l2, theta_max)
        if l2 == 0:
            check_unique((X * loss.second_slopes(X @ optimum, y)[:, None]).T @ X, l2, whose)
    offsets = np.asarray(offsets, dtype=np.int64)
    problem = StarProblem(loss, l2, theta_max, X, y, offsets, x_l1, gram, moment, energy, optimum, np.nan)
    minimum, start = problem.fitness(np.stack([optimum, np.zeros(p)]))
    if l2 == 0 and minimum <= LOWEST * start:
        message = "must be positive: a model fits all records without error, so ψ would divide by 0; got 0"
        raise MeaningError("learning.regularizer.l2", message)
    return replace(problem, minimum=float(minimum))


@dataclass(frozen=True, kw_only=True)
class OwnerRule(GradientRule):
    """The same of an owner, with what its problem allows.

    Attributes
    ----------
    how : int
        ``FROM_SUMS`` where that is exact, ``FROM_MENDED_SUMS`` for other squared losses without a grid, else
        ``FROM_RECORDS``.
    suspects : ndarray of int64
        Rows of the records that can exceed the bound, owner by owner.
    suspect_offsets : ndarray of int64, shape (N + 1,)
    """

    how: int
    suspects: np.ndarray
    suspect_offsets: np.ndarray


def gradient_rule(
    problem: StarProblem,
    clip: float = np.inf,
    bound: float = np.inf,
    order: int = 1,
    grid: float | None = None,
) -> OwnerRule:
    """Choose the cheapest exact way to compute gradients.

    Sums serve the squared loss when no record can reach the clipping norm on Θ: the cost of a gradient then does
    not grow with the records. Where a record can, sums are mended for those that are clipped; not on a grid, where
    clipped gradients often add up to what lies between two of its points, and the last digit then decides. For the
    check of a claimed bound, only those records are looked at that can exceed it somewhere on Θ.

    Parameters
    ----------
    problem : StarProblem
    clip, bound, order, grid
        See `p2psim.learning.batches.GradientRule`.
    """
    # A relative margin for rounding, on the safe side of neither: a bound met exactly is no violation.
    margin, gradients = bound * (1 + 1e-12), np.zeros(1)
    if np.isfinite(min(clip, bound)):
        gradients = problem.largest_gradients(order)
    how = FROM_RECORDS
    if problem.loss.is_squared_error and gradients.max() <= clip:
        how = FROM_SUMS
    elif problem.loss.is_squared_error and grid is None:
        how = FROM_MENDED_SUMS
    suspects = np.flatnonzero(gradients > margin)
    return OwnerRule(
        clip=clip,
        order=order,
        grid=grid,
        bound=margin,
        how=how,
        suspects=suspects,
        suspect_offsets=np.searchsorted(suspects, problem.offsets),
    )
