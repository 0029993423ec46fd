"""Accountants turn what an agent released into (ε, δ). One that does not know a release refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

AccountantName = Literal["basic"]


def basic(epsilons: np.ndarray) -> tuple[float, float]:
    """Basic composition: the sum of the ε of each release, at δ = 0 (Dwork et al. 2006).

    Parameters
    ----------
    epsilons : ndarray, shape (releases,)
        Pure-DP loss of each release; infinite where nothing is guaranteed.

    Returns
    -------
    epsilon, delta : float
        The sum is taken in extended precision.
    """
    return float(np.sum(epsilons, dtype=np.longdouble)), 0.0


ACCOUNTANTS: dict[str, Callable[[np.ndarray], tuple[float, float]]] = {"basic": basic}
