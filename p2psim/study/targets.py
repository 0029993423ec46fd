"""When a metric first reached a target, in each replica; those that never did are told, not dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import InputError
from p2psim.study.recordable import metric_named

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
    found = []
    for _, run in table.groupby(_RUN, sort=True):
        there = run[run["reached"]]
        found.append(there.iloc[0] if len(there) else run.iloc[-1])
    out = pd.DataFrame(found)[[*_RUN, axis, "reached"]].reset_index(drop=True)
    return out.astype({"reached": bool, "cell": rows["cell"].dtype, "replica": rows["replica"].dtype})
