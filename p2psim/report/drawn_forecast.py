"""What the figures of forecasts are drawn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Drawn:
    """What of a forecast is drawn.

    Attributes
    ----------
    label : str
        What distinguishes the cell from the others: its swept values.
    owners_named : tuple of str, length N
        Labels of the owners.
    notes : tuple of str
        What must be said under each figure, such as why the forecast is approximate.
    steps, psi, noiseless : ndarray, shape (records,)
        Answers, E[ψ], and E[ψ] without noise.
    noise : ndarray, shape (N,)
        What each owner's noise adds at the end.
    alone : float
        Mean isolated ψ.
    epsilon : float
        Equal ε of average owners.
    owners : int
        N.
    psi_of : callable
        E[ψ] of (number of average owners, ε).
    records, isolated : ndarray, shape (N,)
        n_i, and the ψ that each owner reaches alone.
    psi_at : callable
        E[ψ] of a factor by which all budgets are multiplied; infinite where it is no number.
    calibration : tuple or None
        Steps, means and standard errors of pilot replicas.
    """

    label: str
    owners_named: tuple[str, ...]
    notes: tuple[str, ...]
    steps: np.ndarray
    psi: np.ndarray
    noiseless: np.ndarray
    noise: np.ndarray
    alone: float
    epsilon: float
    owners: int
    psi_of: Callable[[int, float], float]
    records: np.ndarray
    isolated: np.ndarray
    psi_at: Callable[[float], float]
    calibration: tuple[np.ndarray, np.ndarray, np.ndarray] | None
