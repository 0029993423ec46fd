"""Accountants turn what agents released into (ε, δ). One that does not know a release refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

AccountantName = Literal["basic"]

#: From the pure-DP losses of all releases, agent by agent, and where each agent's begin, to ε and δ of each agent.
Accountant = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def basic(epsilons: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Basic composition: the sum of the ε of each release, at δ = 0 (Dwork et al. 2006).

    Parameters
    ----------
    epsilons : ndarray, shape (releases,)
        Pure-DP loss of each release; infinite where nothing is guaranteed.
    offsets : ndarray of int64, shape (N + 1,)
        Agent i's are epsilons[offsets[i]:offsets[i + 1]].

    Returns
    -------
    epsilon, delta : ndarray, shape (N,)
        The sums are taken in extended precision.
    """
    agents = offsets.size - 1
    total = np.zeros(agents)
    some = np.diff(offsets) > 0
    if some.any():
        total[some] = np.add.reduceat(epsilons.astype(np.longdouble), offsets[:-1][some])
    return total, np.zeros(agents)


ACCOUNTANTS: dict[str, Accountant] = {"basic": basic}
