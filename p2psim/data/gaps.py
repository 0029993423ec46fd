"""Missing numbers, filled by what is fitted on the learner's public rows alone."""

from typing import Literal

import numpy as np

from p2psim.core.errors import MeaningError

Fill = Literal["mean", "median"]


def fill_gaps(X: np.ndarray, public: np.ndarray, rule: Fill, names: tuple[str, ...]) -> dict[str, float]:
    """Replace NaN in each column, in place, by the mean or median of its public values.

    Parameters
    ----------
    X : ndarray of float64, shape (n, p)
    public : ndarray of int, shape (m,)
        The public rows.
    rule : {"mean", "median"}
    names : tuple of str
        The p columns.

    Returns
    -------
    dict
        What each column with missing values was filled with.

    Raises
    ------
    MeaningError
        If there are no public rows, or a column has no value on them.
    """
    filled: dict[str, float] = {}
    for j in np.flatnonzero(np.isnan(X).any(axis=0)):
        known = X[public, j]
        known = known[~np.isnan(known)]
        if not known.size:
            raise MeaningError(
                "data.public",
                f"data.source.missing: {rule} is fitted on public rows, and column {names[j]!r} has no value on the "
                f"{len(public)} public rows; give more with public: {{last: n}}, or data.source.missing: drop",
            )
        value = float(known.mean() if rule == "mean" else np.median(known))
        X[np.isnan(X[:, j]), j] = value
        filled[names[j]] = value
    return filled
