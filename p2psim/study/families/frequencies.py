"""Which agent wakes how often in the long run: of a star, which owner answers."""

from __future__ import annotations

import numpy as np

from p2psim.network.simulation import Network
from p2psim.theory.dropout import answer_frequencies


def long_run_frequencies(network: Network) -> tuple[np.ndarray, bool]:
    """γ_i of each agent, shape (N,), adding up to one, and whether they are known beforehand.

    Where it cannot be said how often agents are there, they are taken to be there always.
    """
    assert network.rates is not None
    shares = network.shares()
    known = not np.isnan(shares).any()
    return answer_frequencies(network.rates, shares if known else np.ones(shares.size)), known
