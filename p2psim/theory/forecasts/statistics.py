"""Second moments of owners' records, which they could exchange before a star is run, and what follows from them.

The moments are exact or have noise. With z = (x, y) a party's joint moment is M = ZᵀZ/n, whose blocks are A = XᵀX/n,
b = Xᵀy/n and c = yᵀy/n. Its entries on and above the diagonal are what the party releases: p(p + 1)/2 + p + 1 numbers.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np


class Owners:
    """Owners with records, of a frozen dataclass whose fields ``of_each`` have one row per owner.

    Attributes
    ----------
    records : ndarray, shape (N,)
        n_i > 0.
    """

    records: np.ndarray
    #: Fields beside ``records`` with one row per owner.
    of_each: ClassVar[tuple[str, ...]]
    #: Those of them whose plain mean counts, not the one weighted by records.
    unweighted: ClassVar[tuple[str, ...]] = ()

    @cached_property
    def shares(self) -> np.ndarray:
        """n_i/n, shape (N,)."""
        return self.records / self.records.sum()

    def alike(self, owners: int) -> Self:
        """As many owners of equal size, each with the second moments of all records together.

        Parameters
        ----------
        owners : int
            Each has n/N records, so that the number of records grows with it.
        """
        repeated = {"records": np.full(owners, self.records.mean())}
        for name in self.of_each:
            values = getattr(self, name)
            mean = values.mean(axis=0) if name in self.unweighted else np.tensordot(self.shares, values, 1)
            repeated[name] = np.broadcast_to(mean, (owners, *np.shape(mean)))
        return replace(self, **repeated)  # type: ignore[type-var]

    def among(self, members: np.ndarray) -> Self:
        """Some of the owners, by their numbers."""
        rows = {name: getattr(self, name)[members] for name in ("records", *self.of_each)}
        return replace(self, **rows)  # type: ignore[type-var]


def alike_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Class of each row, rows that are equal to the last bit being one class; and the first row of each class."""
    known: dict[bytes, int] = {}
    classes = np.array([known.setdefault(row.tobytes(), len(known)) for row in rows], np.int64)
    return classes, np.unique(classes, return_index=True)[1]


@dataclass(frozen=True)
class Statistics(Owners):
    """Second moments of the owners' records, for squared loss ℓ = (θᵀx − y)² and g = l2·‖θ‖².

    Attributes
    ----------
    records : ndarray, shape (N,)
        n_i > 0.
    gram : ndarray, shape (N, p, p)
        A_i = XᵀX/n_i.
    moment : ndarray, shape (N, p)
        b_i = Xᵀy/n_i.
    energy : ndarray, shape (N,)
        yᵀy/n_i.
    l2 : float
        Positive.
    """

    of_each = ("gram", "moment", "energy")

    records: np.ndarray
    gram: np.ndarray
    moment: np.ndarray
    energy: np.ndarray
    l2: float

    @property
    def owners(self) -> int:
        """Number N of owners."""
        return len(self.moment)

    @property
    def dimension(self) -> int:
        """Length p of a model."""
        return self.moment.shape[1]

    @cached_property
    def hessian(self) -> np.ndarray:
        """H = l2·I + Σ (n_i/n)A_i, half the Hessian of f, shape (p, p)."""
        return self.l2 * np.eye(self.dimension) + np.tensordot(self.shares, self.gram, 1)

    @cached_property
    def optimum(self) -> np.ndarray:
        """θ*, the minimiser of f over all models, shape (p,)."""
        return np.linalg.solve(self.hessian, self.shares @ self.moment)

    @cached_property
    def minimum(self) -> float:
        """f(θ*)."""
        return float(self.shares @ self.energy - self.shares @ self.moment @ self.optimum)

    @cached_property
    def isolated(self) -> np.ndarray:
        """θ_i*, what each owner reaches alone without noise, shape (N, p)."""
        own = self.gram + self.l2 * np.eye(self.dimension)
        return np.linalg.solve(own, self.moment[:, :, None])[:, :, 0]

    def excess(self, theta: np.ndarray) -> np.ndarray:
        """How far f lies above f(θ*), at models of shape (…, p): (θ − θ*)ᵀH(θ − θ*)."""
        away = theta - self.optimum
        return np.einsum("...p,pq,...q->...", away, self.hessian, away)


#: n times the sensitivity of those entries, when one of n records with ‖x‖₁ ≤ 1 and |y| ≤ 1 is replaced.
#:
#: A record is a mixture Σ w_j·(s_j·e_j, y) of corners of the ball, s_j = ±1, so its entries are the same mixture, with
#: weights w_j·w_k, of those of pairs of corners. Norms are convex, so two records differ most where each is made of one
#: pair. One corner twice against another twice, e_j against ±e_k: A moves by 2 in L1 and √2 in L2, b by
#: |y| + |y'| and (|y|² + |y'|²)^½, c by |y² − y'²|; together at most 4 and 2, reached at |y| = |y'| = 1. The same
#: corner with another sign moves b by 2 alone. All other pairs of corners move less.
SENSITIVITY: dict[Literal["l1", "l2"], float] = {"l1": 4.0, "l2": 2.0}


def joint_moment(gram: np.ndarray, moment: np.ndarray, energy: float) -> np.ndarray:
    """M, shape (p + 1, p + 1), of A (p, p), b (p,) and c."""
    return np.block([[gram, moment[:, None]], [moment[None], np.full((1, 1), energy)]])


def entries_of(joint: np.ndarray) -> np.ndarray:
    """Entries of M on and above the diagonal, row by row, shape ((p + 1)(p + 2)/2,)."""
    return joint[np.triu_indices(len(joint))]


def of_entries(entries: np.ndarray) -> np.ndarray:
    """M from `entries_of`."""
    size = int((np.sqrt(8 * entries.size + 1) - 1) / 2)
    joint = np.zeros((size, size))
    joint[np.triu_indices(size)] = entries
    return joint + np.triu(joint, 1).T


def nearest_psd(joint: np.ndarray) -> np.ndarray:
    """The positive semidefinite matrix nearest to a symmetric one in the Frobenius norm: negative eigenvalues become 0.

    Higham, "Computing a nearest symmetric positive semidefinite matrix" (1988), theorem 2.1.
    """
    values, vectors = np.linalg.eigh((joint + joint.T) / 2)
    if values[0] >= 0:
        return joint
    nearest: np.ndarray = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (nearest + nearest.T) / 2


def disclosed(
    joint: np.ndarray, x_bound: float, y_bound: float, scale: float, noise: np.ndarray
) -> np.ndarray:
    """M with noise, made positive semidefinite; shape (p + 1, p + 1).

    Noise is added to the moments of (x/x_bound, y/y_bound), so that one scale serves all bounds.

    Parameters
    ----------
    joint : ndarray, shape (p + 1, p + 1)
    x_bound, y_bound : float
        Public bounds on ‖x‖₁ and |y|, positive.
    scale : float
        Of the noise of each entry.
    noise : ndarray, shape ((p + 1)(p + 2)/2,)
        Of scale 1.
    """
    units = np.append(np.full(len(joint) - 1, x_bound), y_bound)
    per = np.outer(units, units)
    return nearest_psd(of_entries(entries_of(joint / per) + scale * noise)) * per
