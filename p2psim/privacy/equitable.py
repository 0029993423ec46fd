"""Nodes of a matrix that no power of it tells apart, found by colour refinement."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Entries that differ by no more than this are the same number: sums of a few fractions differ by rounding.
SAME = 1e-12

_GOLDEN, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


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
    if not values.size:
        return np.zeros(0, np.uint64)
    order = np.argsort(values, kind="stable")
    steps = np.diff(values[order], prepend=values[order[0]]) > SAME
    classes = np.empty(values.size, np.uint64)
    classes[order] = np.cumsum(steps).astype(np.uint64)
    return classes


def _mix(numbers: np.ndarray) -> np.ndarray:
    """splitmix64 of each number."""
    mixed = numbers.astype(np.uint64) + _GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
    return mixed ^ (mixed >> np.uint64(31))
