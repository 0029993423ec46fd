"""Weights and spectra of graphs: the matrix W, eigenvalues of the Laplacian, the diameter, and Metropolis weights.

Eigenvalues show how fast information spreads over a graph. Metropolis weights are those of gossip averaging, x ← W x.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.process import one_thread
from p2psim.network.changes import rounds_of
from p2psim.network.graph import Graph, components
from p2psim.network.mixing import mixing_matrix

#: Up to so many nodes, eigenvalues come from the full matrix, and the diameter is found.
_DENSE, _DIAMETER = 1_000, 2_000

#: Above so many nodes eigenvalues are left out.
_MOST = 200_000

#: Entries of a banded factor: 240 MB.
BAND = 30_000_000

#: Restarts of the Lanczos method before an eigenvalue is left out.
_RESTARTS = 50

#: Gives the solution x of L x = b, for b that sum to zero, up to a constant.
Solver = Callable[[np.ndarray], np.ndarray]


def weight_matrix(links: Graph) -> Any:
    """W as a ``scipy.sparse.csr_array``; a learner is the last node.

    Returns
    -------
    csr_array, shape (n, n), or (n + 1, n + 1) with a learner

    Raises
    ------
    MeaningError
        If links come and go.
    """
    from scipy.sparse import coo_array, csr_array

    if links.changes is not None:
        raise MeaningError(
            "network.topology",
            "the graph changes with time: its weights are those of a moment (graph_at gives one)",
        )
    n = links.agents
    if not links.star:
        return csr_array((links.weights, links.indices, links.indptr), shape=(n, n))
    owners, learner = np.arange(n), np.full(n, n)
    ends = (np.concatenate([owners, learner]), np.concatenate([learner, owners]))
    return coo_array((np.tile(links.weights, 2), ends), shape=(n + 1, n + 1)).tocsr()


def dense_lambda2(weights: np.ndarray) -> float:
    """Second smallest eigenvalue of the Laplacian D − W; 0 for a single node.

    Parameters
    ----------
    weights : ndarray, shape (n, n)
        Symmetric.
    """
    from scipy.linalg import eigvalsh

    if len(weights) < 2:
        return 0.0
    return float(eigvalsh(np.diag(weights.sum(axis=1)) - weights, subset_by_index=[1, 1])[0])


def spectral_facts(links: Graph) -> dict[str, float]:
    """Facts about a graph; a learner counts as a node.

    Returns
    -------
    dict
        ``lambda2``: second smallest eigenvalue of the Laplacian D − W. ``spectral_gap``: that of the normalised
        Laplacian I − D^(−1/2) W D^(−1/2), so 1 less the second largest eigenvalue of the walk D^(−1) W. Both hold
        to about 1e-5 above 1,000 nodes; they are left out above 200,000, and where the solver does not converge
        (large graphs that are neither narrow nor well connected). ``degree_min``, ``_mean``, ``_max``, ``_std``:
        numbers of neighbours. ``weight_min``, ``_mean``, ``_max``: of links. ``weighted_degree_min``, ``_max``:
        D_ii. ``diameter``: most links on a shortest path, up to 2,000 nodes of a connected graph. Of a graph that
        changes and comes back, ``rounds`` and ``product_gap`` instead, and numbers of neighbours in all its rounds:
        with P the product of the Metropolis matrices of its rounds, in order, the gap is 1 − ‖P − 11ᵀ/n‖₂, for up to
        1,000 agents. At 1 all agents that average in rounds agree after one period.

    Raises
    ------
    MeaningError
        If the graph changes and is not known to come back.
    """
    with one_thread():  # last digits must not depend on the number of threads
        return _facts(links) if links.changes is None else _facts_of_period(links)


def _facts_of_period(links: Graph) -> dict[str, float]:
    rounds, n = rounds_of(links), links.agents
    degrees = np.array([np.diff(one.indptr) for one in rounds])
    facts = {
        "rounds": float(len(rounds)),
        "degree_min": float(degrees.min()),
        "degree_mean": float(degrees.mean()),
        "degree_max": float(degrees.max()),
    }
    if n <= _DENSE:
        product = np.eye(n)
        for one in rounds:
            product = mixing_matrix(one, "metropolis") @ product
        facts["product_gap"] = 1 - float(np.linalg.norm(product - 1 / n, ord=2))
    return facts


def _facts(links: Graph) -> dict[str, float]:
    matrix = weight_matrix(links)
    counts, strengths = np.diff(matrix.indptr), np.asarray(matrix.sum(axis=1)).ravel()
    joined = components(links) == 1
    lambda2 = _second(matrix, strengths, False) if joined else 0.0
    if lambda2 is not None and np.ptp(strengths) <= 1e-12 * strengths[0]:
        gap: float | None = lambda2 / strengths[0]
    else:
        gap = _second(matrix, strengths, True) if joined else 0.0
    facts = {
        name: float(value)
        for name, value in (("lambda2", lambda2), ("spectral_gap", gap))
        if value is not None
    }
    facts |= {
        "degree_min": float(counts.min()),
        "degree_mean": float(counts.mean()),
        "degree_max": float(counts.max()),
        "degree_std": float(counts.std()),
        "weight_min": float(matrix.data.min()),
        "weight_mean": float(matrix.data.mean()),
        "weight_max": float(matrix.data.max()),
        "weighted_degree_min": float(strengths.min()),
        "weighted_degree_max": float(strengths.max()),
    }
    if joined and counts.size <= _DIAMETER:
        facts["diameter"] = float(_diameter(matrix))
    return facts


def _second(matrix: Any, strengths: np.ndarray, normalised: bool) -> float | None:
    """Second smallest eigenvalue of the (normalised) Laplacian of a connected graph."""
    from scipy.sparse import csr_array, diags_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = strengths.size
    scale = np.sqrt(strengths) if normalised else np.ones(n)
    if n <= _DENSE:
        from scipy.linalg import eigvalsh

        laplacian = (np.diag(strengths) - matrix.toarray()) / scale / scale[:, None]
        return float(eigvalsh(laplacian, subset_by_index=[1, 1])[0])
    if n > _MOST:
        return None
    order = reverse_cuthill_mckee(csr_array(matrix), symmetric_mode=True)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    entries = matrix.tocoo()
    band = int(np.abs(place[entries.row] - place[entries.col]).max())
    laplacian = diags_array(strengths).tocsr() - matrix
    null = scale / np.linalg.norm(scale)
    if n * (band + 1) <= BAND:
        return _by_inverse(_grounded(laplacian[order][:, order], band), scale[order], null[order], 1e-10)
    if not normalised and strengths.max() > 8 * strengths.mean():  # hubs: 2·max D_ii is far above λ₂
        return _by_inverse(_conjugate_gradients(laplacian, strengths), scale, null, 1e-6)
    inverse = diags_array(1 / scale)
    return _by_lanczos(inverse @ laplacian @ inverse, null)


def _grounded(laplacian: Any, band: int) -> Solver:
    """Solve with the Laplacian of a connected graph: its last node grounded, it has a banded Cholesky factor."""
    from scipy.linalg import cho_solve_banded, cholesky_banded

    n = laplacian.shape[0]
    entries = laplacian.tocoo()
    kept = (entries.row >= entries.col) & (entries.row < n - 1)
    rows, columns = entries.row[kept], entries.col[kept]
    lower = np.zeros((band + 1, n - 1))
    lower[rows - columns, columns] = entries.data[kept]
    factor = cholesky_banded(lower, lower=True)
    return lambda vector: np.append(cho_solve_banded((factor, True), vector[:-1]), 0.0)


def _conjugate_gradients(laplacian: Any, strengths: np.ndarray) -> Solver:
    """Solve with the Laplacian of a well connected graph."""
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import cg

    jacobi = diags_array(1 / strengths).tocsr()
    return lambda vector: np.asarray(cg(laplacian, vector, rtol=1e-9, maxiter=1000, M=jacobi)[0])


def _by_inverse(solve: Solver, scale: np.ndarray, null: np.ndarray, tolerance: float) -> float | None:
    """Largest eigenvalue of the pseudo-inverse: where eigenvalues are small and close for the largest of all."""

    def apply(vector: np.ndarray) -> np.ndarray:
        balanced = vector - null * (null @ vector)
        solved = solve(scale * balanced) * scale
        return solved - null * (null @ solved)

    largest = _largest(apply, null.size, tolerance)
    return None if largest is None else 1 / largest


def _by_lanczos(laplacian: Any, null: np.ndarray) -> float | None:
    """Smallest eigenvalue off the null vector, as the largest of what it leaves of a bound."""
    bound = float(np.abs(laplacian).sum(axis=1).max())

    def apply(vector: np.ndarray) -> np.ndarray:
        return bound * vector - laplacian @ vector - bound * null * (null @ vector)

    largest = _largest(apply, null.size, 1e-6)
    return None if largest is None else bound - largest


def _largest(apply: Callable[[np.ndarray], np.ndarray], n: int, tolerance: float) -> float | None:
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    start = np.random.Generator(np.random.PCG64(0)).standard_normal(n)  # the same facts at every call
    operator = LinearOperator((n, n), matvec=lambda vector: apply(vector.ravel()), dtype=np.float64)
    try:
        found = eigsh(
            operator, k=1, which="LA", v0=start, tol=tolerance, maxiter=_RESTARTS, ncv=40,
            return_eigenvectors=False,
        )  # fmt: skip
    except ArpackNoConvergence:
        return None
    return float(found[0])


def _diameter(matrix: Any) -> int:
    """Most steps from anyone to anyone, all at once: each node's set of those it has reached is a row of bits."""
    n = matrix.shape[0]
    reached = np.packbits(np.eye(n, dtype=bool), axis=1)
    full = np.packbits(np.ones((1, n), dtype=bool), axis=1)
    steps = 0
    rows = max(
        1, BAND // reached.shape[1] * n // max(matrix.nnz, 1)
    )  # nodes whose neighbours' bits are held at once
    while (reached != full).any():
        before = reached.copy()
        for start in range(0, n, rows):
            stop = min(n, start + rows)
            here = matrix.indptr[start : stop + 1]
            near = before[matrix.indices[here[0] : here[-1]]]
            reached[start:stop] |= np.bitwise_or.reduceat(near, here[:-1] - here[0], axis=0)
        steps += 1
    return steps


def metropolis(links: Graph) -> Any:
    """W_ij = 1/(1 + max(d_i, d_j)) for linked i ≠ j, d the numbers of neighbours, and W_ii what is left of 1.

    Symmetric and doubly stochastic, with W_ii ≥ 1/(1 + d_i) > 0 (Xiao, Boyd and Kim 2007, "Distributed average
    consensus with least-mean-square deviation", section 2, local-degree weights with one added). The links' own weights
    are not used.

    Parameters
    ----------
    links : Graph
        A learner is the last node.

    Returns
    -------
    csr_array, shape (n, n), or (n + 1, n + 1) with a learner
    """
    from scipy.sparse import coo_array, diags_array

    linked = weight_matrix(links).tocoo()
    degrees = np.bincount(linked.row, minlength=linked.shape[0])
    values = 1 / (1 + np.maximum(degrees[linked.row], degrees[linked.col]))
    between = coo_array((values, (linked.row, linked.col)), shape=linked.shape).tocsr()
    return (between + diags_array(1 - np.asarray(between.sum(axis=1)).ravel())).tocsr()
