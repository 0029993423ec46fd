"""Sparse matrices that are full enough to be dense ones."""

from __future__ import annotations

from typing import Any

#: From this share of all entries on a dense product takes less time.
_DENSE = 0.1


def dense_where_full(matrix: Any) -> Any:
    """A square csr_array, or the same as an ndarray where at least a tenth of its entries are given."""
    n = matrix.shape[0]
    return matrix.toarray() if matrix.nnz >= _DENSE * n * n else matrix
