"""When each replica first reached a target, and the share that has reached it; censored replicas are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.errors import InputError
from p2psim.scenario.record import metric_named

if TYPE_CHECKING:
    import pandas as pd

_RUN = ["cell", "model", "replica"]


def rises(metric: str) -> bool:
    """Whether a target of the metric, or of a group's, is reached from below."""
    known = metric_named(metric)
    return known is not None and known.rises


def first_reached(rows: pd.DataFrame, axis: str, target: float, rising: bool) -> pd.DataFrame:
    """First record at which each replica had reached a target.

    Parameters
    ----------
    rows : DataFrame
        Of one metric, from `Result.metrics`; values of several agents are averaged.
    axis : str
        Column that says where a record is.
    target : float
        Finite.
    rising : bool
        Whether it is reached by a value of at least, or of at most, the target.

    Returns
    -------
    DataFrame
        One row a cell, model and replica: ``cell``, ``model``, ``replica``, the axis, and ``reached``. Where that is
        false, the axis tells of the last record, until which the target was not reached.

    Raises
    ------
    InputError
        If the target is not finite.
    """
    import pandas as pd

    if not np.isfinite(target):
        raise InputError(f"a target must be finite, got {target}")
    moments = rows.astype({"model": str}).groupby([*dict.fromkeys([*_RUN, "step", "time", axis])], sort=True)
    table = moments["value"].agg(lambda values: values.mean(skipna=False)).reset_index()
    value = table["value"].to_numpy(dtype=float)
    # An undefined value reaches nothing.
    table["reached"] = value >= target if rising else value <= target
    reached = []
    for _, run in table.groupby(_RUN, sort=True):
        there = run[run["reached"]]
        reached.append(there.iloc[0] if len(there) else run.iloc[-1])
    out = pd.DataFrame(reached)[[*_RUN, axis, "reached"]].reset_index(drop=True)
    return out.astype({"reached": bool, "cell": rows["cell"].dtype, "replica": rows["replica"].dtype})


@dataclass(frozen=True)
class Reached:
    """Estimated share that has reached the target, as a step function.

    Attributes
    ----------
    at : ndarray, shape (m,)
        Where the share rises, ascending.
    share : ndarray, shape (m,)
        From there on, in (0, 1].
    low, high : ndarray, shape (m,)
        Ends of its confidence interval.
    variance : ndarray, shape (m,)
        Greenwood's; 0 where the share is 1.
    """

    at: np.ndarray
    share: np.ndarray
    low: np.ndarray
    high: np.ndarray
    variance: np.ndarray

    def quantile(self, share: float) -> float:
        """Where this share, in (0, 1], has reached it; infinite where fewer ever do."""
        # 1 − Π(1 − d/n) is a share like 10/20 only to rounding.
        there = np.flatnonzero(self.share >= share * (1 - 1e-12))
        return float(self.at[there[0]]) if there.size else np.inf


def share_reached(at: np.ndarray, reached: np.ndarray, confidence: float = 0.95) -> Reached:
    """Share that has reached a target, by the product-limit estimator.

    Parameters
    ----------
    at : ndarray, shape (n,)
        Where each reached the target, or was last seen without having reached it.
    reached : ndarray of bool, shape (n,)
        Which of the two.
    confidence : float
        Of each interval by itself, in (0, 1).

    Returns
    -------
    Reached

    Notes
    -----
    One less the survival function of Kaplan and Meier (1958), with Greenwood's variance. Where nobody is lost sight of
    it is the plain share. Intervals are Wilson's at the number of independent replicas that would have this variance
    (Rothman 1978): Wilson's own where nobody is lost sight of, and, unlike normal ones, of some width where all or none
    have reached the target.
    """
    from scipy.stats import norm

    at, reached = np.asarray(at, dtype=float), np.asarray(reached, dtype=bool)
    where = np.unique(at[reached])
    # Who is lost sight of where others reach the target has been there until then.
    risk = (at[None, :] >= where[:, None]).sum(axis=1)
    events = ((at[None, :] == where[:, None]) & reached).sum(axis=1)
    left = np.cumprod(1 - events / risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = left**2 * np.cumsum(events / (risk * (risk - events)))
    certain = left == 0
    variance = np.where(certain, 0.0, variance)
    lost_before = ((at[None, :] < where[:, None]) & ~reached).sum(axis=1)
    size = np.where(certain, at.size - lost_before, left * (1 - left) / np.where(certain, 1.0, variance))
    low, high = _wilson(1 - left, size, float(norm.ppf((1 + confidence) / 2)))
    return Reached(where, 1 - left, low, high, variance)


def _wilson(share: np.ndarray, size: np.ndarray, z: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's (1927) interval of a share of so many."""
    centre = (share + z**2 / (2 * size)) / (1 + z**2 / size)
    half = z / (1 + z**2 / size) * np.sqrt(share * (1 - share) / size + z**2 / (4 * size**2))
    return np.maximum(0.0, centre - half), np.minimum(1.0, centre + half)
