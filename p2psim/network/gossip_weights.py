"""Weights of gossip averaging: the matrix W of x ← W x on a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from p2psim.network.links import Links
from p2psim.network.spectrum import weight_matrix


def metropolis(links: Links) -> Any:
    """W_ij = 1/(1 + max(d_i, d_j)) for linked i ≠ j, d the numbers of neighbours, and W_ii what is left of 1.

    Symmetric and doubly stochastic, with W_ii ≥ 1/(1 + d_i) > 0 (Xiao, Boyd and Kim 2007, "Distributed average
    consensus with least-mean-square deviation", section 2, local-degree weights with one added). The links' own weights
    are not used.

    Parameters
    ----------
    links : Links
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
