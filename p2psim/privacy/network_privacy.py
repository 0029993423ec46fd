"""Who learns what about whom when agents add noise once and then gossip: all pairs, by distance, and in ε.

Agent u holds x_u and starts from x⁰_u = x_u + σ z_u, z_u standard normal; then x^(t+1) = W x^t. Agent v sees its own
start and what its neighbours send it at steps 0 … T − 1: linear functions A_v x⁰ of the starts, with the row e_v and,
for each neighbour w and each step t, row w of W^t. All noise is in x⁰, so the view is a Gaussian whose mean alone
depends on the data. When x_u changes by Δ, the view's mean moves by A_v e_u Δ, and its covariance is σ² A_v A_vᵀ, so
the loss of u towards v is exactly that of one Gaussian release with

    μ² = (Δ/σ)² e_uᵀ A_vᵀ (A_v A_vᵀ)⁺ A_v e_u = (Δ/σ)² [P]_uu,

P the orthogonal projector on the row space of A_v (Mahalanobis distance of two Gaussians; Dong, Roth and Su 2022 for
what follows from μ). [P]_uu, from 0 to 1, is what :func:`view` finds: 1 means that v learns as much as from x⁰_u
itself. Agents who collude stack their rows.

Adding up the losses of single messages as if their noise were fresh is not offered. The messages are functions of the
same n draws; their losses neither add up nor bound the truth from above.

`equitable_cells` finds the nodes of a matrix that no power of it tells apart, by colour refinement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from p2psim.core.process import one_thread
from p2psim.privacy.accounting.classical import gaussian_epsilon

#: A direction that stands out from those already seen by less than this part of a unit vector is none.
TOLERANCE = 1e-10

#: Between these, rounding cannot be told from a direction that is really there.
DOUBTFUL = (1e-11, 1e-7)


@dataclass(frozen=True)
class View:
    """What a group of agents sees of everybody's start.

    Attributes
    ----------
    share : ndarray, shape (n,)
        [P]_uu of each agent u, from 0 (nothing) to 1 (all that it sent out itself).
    rank : int
        Dimension of the row space.
    kept, dropped : float
        How far the faintest direction that was counted, and the clearest that was not, stood out from the others (unit
        vectors); infinite and 0 where there was none.
    """

    share: np.ndarray
    rank: int
    kept: float
    dropped: float

    @property
    def doubtful(self) -> bool:
        """Whether the rank, and so the shares, hang on a direction that rounding may have made or hidden."""
        return self.kept < DOUBTFUL[1] or self.dropped > DOUBTFUL[0]


def view(weights: Any, group: Sequence[int], steps: int) -> View:
    """Find what a group sees when the same W is applied at each step.

    Row w of W^t is (Wᵀ)^t e_w, so the row space grows as S_1 = span{e_v, e_w}, S_(t+1) = S_t + Wᵀ S_t: v and w over
    the group and its neighbours. (Wᵀ e_v is in S_1, so v's own later states add nothing.) The powers themselves
    become parallel to the all-ones vector as fast as gossip converges, so they are never formed: an orthonormal basis
    of S_t is multiplied by Wᵀ and made orthogonal to itself, twice (block Arnoldi). That gives the exact space for a
    matrix that differs from W by rounding.

    Rounding breaks symmetry, and each step magnifies what it broke by one over how far the new directions stand out.
    Where a graph has symmetries this soon finds directions that are not there. So nodes that no power of W tells
    apart are first joined (`equitable_cells`): all rows are constant on those cells.
    What is left for `TOLERANCE` are algebraic coincidences. On the graphs that this was tried on (with exact ranks by
    arithmetic modulo a prime), directions that were there stood out by more than 1e-5, and those that were not by
    less than 1e-11; a case in between is `View.doubtful`.

    Parameters
    ----------
    weights : ndarray or sparse array, shape (n, n)
        W; agent v hears w where W_vw ≠ 0.
    group : sequence of int
        Agents who put together what they see.
    steps : int
        T ≥ 0; with 0 nothing was sent.

    Returns
    -------
    View
    """
    matrix = as_csr(weights)
    share = np.zeros(matrix.shape[0])
    own = np.unique(np.asarray(group, np.int64))
    start = np.union1d(own, matrix[own].indices) if steps else own
    hops = dijkstra(matrix, indices=start, unweighted=True, limit=max(0, steps - 1), min_only=True)
    near = np.flatnonzero(np.isfinite(hops))
    inside = csr_array(matrix[near][:, near].T)
    first = np.searchsorted(near, start)
    cells = equitable_cells(inside, first)
    sizes = np.bincount(cells)
    # Wᵀ on unit vectors that are constant on a cell and zero elsewhere.
    joining = csr_array((1 / np.sqrt(sizes[cells]), (np.arange(near.size), cells)))
    joined = csr_array(joining.T @ inside @ joining)
    block = np.zeros((sizes.size, first.size))
    block[cells[first], np.arange(first.size)] = 1.0
    # An orthonormal basis of block, Wᵀ·block, …, (Wᵀ)^(steps − 1)·block.
    basis, kept, dropped = block, np.inf, 0.0
    for _ in range(steps - 1):
        if basis.shape[1] == basis.shape[0]:
            break
        block, least, most = new_directions(joined @ block, basis)
        kept, dropped = min(kept, least), max(dropped, most)
        if not block.shape[1]:
            break
        basis = np.hstack([basis, block])
    share[near] = ((basis**2).sum(axis=1) / sizes)[cells]
    return View(np.clip(share, 0.0, 1.0), basis.shape[1], kept, dropped)


def as_csr(weights: Any) -> Any:
    """A matrix as a ``scipy.sparse.csr_array`` without stored zeros."""
    matrix = csr_array(weights, dtype=np.float64)
    matrix.eliminate_zeros()
    return matrix


def new_directions(
    vectors: np.ndarray, basis: np.ndarray, unit: float = 1.0
) -> tuple[np.ndarray, float, float]:
    """Directions that vectors have beyond a basis, and the closest decisions about them.

    Parameters
    ----------
    vectors : ndarray, shape (n, k)
    basis : ndarray, shape (n, r)
        Orthonormal.
    unit : float
        Length that vectors are measured by.

    Returns
    -------
    directions : ndarray, shape (n, q)
        Orthonormal, and orthogonal to the basis.
    kept, dropped : float
        Smallest singular value that was counted, and largest that was not, in units.
    """
    left = vectors
    for _ in range(2):  # once leaves errors of the size of what was taken away; twice is enough (Kahan)
        left = left - basis @ (basis.T @ left)
    directions, sizes, _ = np.linalg.svd(left / unit, full_matrices=False)
    counts = sizes > TOLERANCE
    # Never more than there is room for.
    counts[basis.shape[0] - basis.shape[1] :] = False
    found = directions[:, counts]
    found = found - basis @ (basis.T @ found)
    if found.shape[1]:
        found = np.linalg.qr(found)[0]
    kept, dropped = sizes[counts], sizes[~counts]
    return found, float(kept.min(initial=np.inf)), float(dropped.max(initial=0.0))


def view_of_many(matrices: Sequence[Any], group: Sequence[int]) -> View:
    """Find what a group sees when step t applies a matrix W_t of its own, as in randomised gossip.

    Rows are those of W_(t−1) … W_0, so there is no one matrix to grow the space by. What is left of everybody's row
    when the space seen so far is taken out of it, R, is carried along instead: R ← W_t R. Rows of members are known,
    so zero. Rounding is relative to the largest row of R, and so are the decisions; n² numbers are held.

    Parameters
    ----------
    matrices : sequence of (ndarray or sparse array), shape (n, n)
        W_0 … W_(T−1), at least one; at step t agent v hears w where [W_t]_vw ≠ 0.
    group : sequence of int

    Returns
    -------
    View
    """
    own = np.unique(np.asarray(group, np.int64))
    n = matrices[0].shape[0]
    left, basis = np.eye(n), np.eye(n)[:, own]
    left[own] = 0.0
    kept, dropped = np.inf, 0.0
    for given in matrices:
        matrix = as_csr(given)
        unit = float(np.sqrt((left**2).sum(axis=1).max()))
        if unit == 0:
            break
        heard = np.setdiff1d(matrix[own].indices, own)
        if heard.size:
            found, least, most = new_directions(left[heard].T, basis, unit)
            kept, dropped = min(kept, least), max(dropped, most)
            basis = np.hstack([basis, found])
            left = left - (left @ found) @ found.T
            left[heard] = 0.0
        left = np.asarray(matrix @ left)
        left[own] = 0.0
    return View(np.clip((basis**2).sum(axis=1), 0.0, 1.0), basis.shape[1], kept, dropped)


#: Entries that differ by no more than this are the same number: sums of a few fractions differ by rounding.
SAME = 1e-12


def equitable_cells(matrix: Any, apart: np.ndarray) -> np.ndarray:
    """Cells of the coarsest partition that keeps some nodes apart and in which rows of one cell look alike.

    Two nodes share a cell only if, for every cell and every value, their rows have that value equally often in that
    cell. So sums of a row over a cell are the same for all rows of a cell (the partition is *equitable*), and the
    matrix takes vectors that are constant on cells to such vectors.

    Multisets of (value, cell) are compared by sums of 64-bit hashes (splitmix64): two that differ are taken for equal
    with a chance of about n²/2⁶⁴.

    Parameters
    ----------
    matrix : csr_array, shape (n, n)
    apart : ndarray of int
        Nodes that each have a cell of their own.

    Returns
    -------
    ndarray of int64, shape (n,)
        Cell of each node, counted from 0.
    """
    n = matrix.shape[0]
    rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
    values = _classes(matrix.data)
    cells = np.zeros(n, np.int64)
    cells[apart] = np.arange(1, apart.size + 1)
    count = np.unique(cells).size
    while True:
        seen = np.zeros(n, np.uint64)
        np.add.at(seen, rows, _mix(_mix(values) + cells[matrix.indices].astype(np.uint64)))
        finer = np.unique(_mix(_mix(cells.astype(np.uint64)) + seen), return_inverse=True)[1].reshape(-1)
        # Each round keeps what the last told apart; one that adds nothing is the last.
        if finer.max(initial=-1) + 1 == count:
            return finer.astype(np.int64)
        cells, count = finer.astype(np.int64), int(finer.max()) + 1


def _classes(values: np.ndarray) -> np.ndarray:
    """The same number for values that rounding alone tells apart."""
    order = np.argsort(values, kind="stable")
    classes = np.empty(values.size, np.uint64)
    classes[order] = np.cumsum(np.diff(values[order], prepend=values[order[:1]]) > SAME)
    return classes


def _mix(numbers: np.ndarray) -> np.ndarray:
    """splitmix64 of each number."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@dataclass(frozen=True)
class Shares:
    """What everybody learns of everybody.

    Attributes
    ----------
    share : ndarray, shape (n, n)
        Row v, column u: μ²σ²/Δ² of u towards v (with the colluders).
    doubtful : ndarray of bool, shape (n,)
        `View.doubtful` of each v.
    """

    share: np.ndarray
    doubtful: np.ndarray


def shares(weights: Any, steps: int, colluders: Sequence[int] = ()) -> Shares:
    """Find what everybody learns of everybody, each agent alone or together with colluders.

    Takes about 1 ms for each agent while T hops reach few agents; then up to about 4 n·r² operations each, r the
    rank: see the page on privacy for times.

    Parameters
    ----------
    weights : ndarray or sparse array, shape (n, n), or a sequence of T of them
        W, or W_0 … W_(T−1).
    steps : int
        T.
    colluders : sequence of int
        Agents whose views are added to everybody's.
    """
    many = isinstance(weights, list | tuple)
    n = weights[0].shape[0] if many else weights.shape[0]
    with one_thread():  # last digits must not depend on the number of threads
        views = [
            view_of_many(weights[:steps], [v, *colluders]) if many else view(weights, [v, *colluders], steps)
            for v in range(n)
        ]
    return Shares(np.stack([each.share for each in views]), np.array([each.doubtful for each in views]))


@dataclass(frozen=True)
class Distance:
    """Shares over all ordered pairs of different agents that are so many hops apart."""

    hops: int
    pairs: int
    mean: float
    least: float
    most: float


def hop_distances(weights: Any) -> np.ndarray:
    """Hops from each agent to each other along W_ij ≠ 0, shape (n, n); infinite where there is no way."""
    return np.asarray(dijkstra(as_csr(weights), unweighted=True))


def by_distance(values: np.ndarray, hops: np.ndarray) -> list[Distance]:
    """Mean, least and largest value at each distance.

    Parameters
    ----------
    values : ndarray, shape (n, n)
        Of v about u; any quantity.
    hops : ndarray, shape (n, n)
        From `hop_distances`; agents that no way leads to are left out.
    """
    distances = np.unique(hops[np.isfinite(hops) & (hops > 0)])
    at = [(int(distance), values[hops == distance]) for distance in distances]
    return [Distance(hop, v.size, float(v.mean()), float(v.min()), float(v.max())) for hop, v in at]


def epsilons(share: np.ndarray, ratio: float, delta: float) -> np.ndarray:
    """Find ε at δ of each share, exactly: that of one Gaussian release with μ = (Δ/σ)·√share.

    Parameters
    ----------
    share : ndarray of any shape
    ratio : float
        Δ/σ, sensitivity in L2 by standard deviation.
    delta : float
        In (0, 1).
    """
    # Shares that rounding alone tells apart are priced once: all are rounded up, by less than 1e-11 of themselves.
    fraction, exponent = np.frexp(share)
    rounded = np.minimum(1.0, np.ldexp(np.ceil(fraction * 2.0**38) / 2.0**38, exponent))
    different, where = np.unique(rounded, return_inverse=True)
    return np.asarray(gaussian_epsilon(ratio * np.sqrt(different), delta)[where].reshape(share.shape))
