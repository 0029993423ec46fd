"""Results of a study as tables for people: where each cell ended, metrics as columns, and when a target was reached.

Replicas that do not reach a target are censored where they end, and kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from p2psim.core.errors import InputError
from p2psim.core.printing import last_parts, show
from p2psim.runs.tables import FLAGS
from p2psim.scenario.record import metric_named

#: Models with a privacy guarantee: the run's own, and the baseline of records that are noised one by one.
PRIVATE_MODELS = ("main", "local-dp")

#: Metrics of models that owners could have without anybody's help: they are computed without noise.
OF_NO_RELEASE = ("isolated_fitness",)


def summary_of(last: pd.Series[float], ledger: pd.DataFrame, notes: Sequence[Sequence[str]]) -> pd.DataFrame:
    """Table of `Result.summary` without the swept columns.

    Parameters
    ----------
    last : Series
        Last values by cell, model, metric and replica.
    ledger : DataFrame
    notes : sequence of sequence of str
        What is to be said of each cell.
    """
    keys = ["cell", "model", "metric"]
    levels = np.array([0.25, 0.5, 0.75])
    groups = last.groupby(keys, observed=True, sort=True)
    # Between two infinities interpolation gives no number: the lower of them.
    spread = groups.quantile(levels).fillna(groups.quantile(levels, interpolation="lower")).unstack()
    spread = spread.reindex(columns=levels)  # where nothing was recorded there are no columns
    spread.columns = pd.Index(["q25", "median", "q75"])
    spread.insert(0, "replicas", groups.size())
    table = spread.reset_index().merge(_privacy(ledger, notes), on="cell", how="left")
    open_models = ~table["model"].isin(PRIVATE_MODELS) | table["metric"].str.startswith(OF_NO_RELEASE)
    table.loc[open_models, ["epsilon spent", "budget"]] = np.inf
    table.loc[open_models, "flags"] = "not_private"
    # Every record is noised by itself with the whole budget of its owner, whatever the releases of the run cost.
    noised = table["model"] == "local-dp"
    table.loc[noised, "epsilon spent"] = budget = table.loc[noised, "budget"]
    graph = table.loc[noised, "flags"].str.contains("public_graph_assumed")
    table.loc[noised, "flags"] = [
        ", ".join(["not_private"] * bool(np.isinf(eps)) + ["public_graph_assumed"] * bool(given))
        for eps, given in zip(budget, graph, strict=True)
    ]
    return table


def readable(table: pd.DataFrame, swept: Sequence[str]) -> pd.DataFrame:
    """A summary for a terminal: one row per cell and model, the run's own first, metrics as columns.

    Rows of one model that are the same for all values of a key, as of baselines which it does not concern, are one
    row; metrics of one model that differ in what they cost have several.
    """
    columns = dict.fromkeys(["model", "replicas", *table["metric"], _EPSILON, "flags"])
    names = last_parts(swept, columns)
    rows: list[dict[str, Any]] = []
    for model in sorted(dict.fromkeys(table["model"]), key=lambda model: model != "main"):
        of_costs: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
        for row in table[table["model"] == model].to_dict("records"):
            epsilon = show(row["epsilon spent"])
            if np.isfinite(row["epsilon spent"]):
                epsilon += f" of {show(row['budget'])}"
            of_costs.setdefault((row["cell"], epsilon, row["flags"]), []).append(row)
        of_model = []
        for (_, epsilon, flags), [first, *others] in of_costs.items():
            key = {names[name]: first[name] for name in swept}
            values = {row["metric"]: _with_quartiles(row) for row in (first, *others)}
            rest = {"model": model, "replicas": first["replicas"], _EPSILON: epsilon, "flags": flags}
            of_model.append((key, dict.fromkeys(columns) | values | rest))
        for name in names.values():
            of_model = _without(name, of_model)
        rows += [key | rest for key, rest in of_model]
    return pd.DataFrame(rows, columns=[*names.values(), *columns], dtype=object)


def _without(name: str, rows: list[tuple[dict[str, Any], dict[str, Any]]]) -> list[Any]:
    """Rows for all values of a key, if its value makes no difference to any of them."""
    same: dict[tuple[Any, ...], list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for key, rest in rows:
        same.setdefault(tuple(key[other] for other in key if other != name), []).append((key, rest))
    if len(same) == len(rows) or any(rest != group[0][1] for group in same.values() for _, rest in group):
        return rows
    return [(key | {name: "all"}, rest) for (key, rest), *_ in same.values()]


#: Head of what agents have spent at most, of the largest budget.
_EPSILON = "ε of budget"


def _with_quartiles(row: Mapping[Any, Any]) -> Any:
    """A median, and the quartiles in words that no line break parts."""
    median, low, high = row["median"], row["q25"], row["q75"]
    if row["replicas"] < 2 or low == median == high:
        return float(median)
    return f"{show(float(median))}\u00a0[{show(float(low))},\u00a0{show(float(high))}]"


def raised_flags(ledger: pd.DataFrame) -> pd.DataFrame:
    """Which of the `FLAGS` of its columns each row of a ledger raises."""
    return ledger[[name for name in FLAGS if name in ledger]].astype("boolean").fillna(False).astype(bool)


def _privacy(ledger: pd.DataFrame, notes: Sequence[Sequence[str]]) -> pd.DataFrame:
    """Largest ε and budget, and flags, of each cell."""
    columns = [str(name) for name in ledger if name != "epsilon_claimed"]
    epsilons = [name for name in columns if name.startswith("epsilon_")]
    numbers = ledger["cell"]
    spent = ledger[epsilons].max(axis=1) if epsilons else pd.Series(np.nan, ledger.index)
    costs = pd.DataFrame({"epsilon spent": spent, "budget": ledger["budget"]})
    largest = costs.groupby(numbers, sort=True).max()
    raised = raised_flags(ledger).groupby(numbers, sort=True).any()
    names = raised.columns.to_numpy(dtype=object)
    rows = zip(largest.index.tolist(), raised.to_numpy(), strict=True)
    flags = [", ".join((*names[flags], *notes[number])) for number, flags in rows]
    return largest.astype(float).rename_axis("cell").assign(flags=flags).reset_index()


def wide(metrics: pd.DataFrame) -> pd.DataFrame:
    """Give each metric a column, with a row per moment."""
    keys = ["cell", "replica", "model", "agent", "step", "time"]
    metrics = metrics[[*keys, "metric", "value"]].astype({"metric": "str", "model": "str"})
    # Two records at the same moment stay two rows.
    metrics["again"] = metrics.groupby([*keys, "metric"], dropna=False, sort=False).cumcount()
    table = metrics.set_index([*keys, "again", "metric"])["value"].unstack("metric").reset_index()
    table.columns.name = None
    return table.drop(columns="again").astype({"agent": "Int32"})


_LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


def latex(table: pd.DataFrame) -> str:
    """Write a table in LaTeX, in the style of booktabs: text to the left, numbers with four digits to the right."""

    def cell(value: Any) -> str:
        if not isinstance(value, float):
            return str(value).translate(_LATEX)
        beyond = {np.inf: r"$\infty$", -np.inf: r"$-\infty$"}
        return f"{value:.4g}" if np.isfinite(value) else beyond.get(value, "--")

    columns = "".join("r" if pd.api.types.is_numeric_dtype(kind) else "l" for kind in table.dtypes)
    cells = [list(table.columns), *table.to_numpy(dtype=object).tolist()]
    rows = [" & ".join(map(cell, row)) + r" \\" for row in cells]
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", ""])


_RUN = ["cell", "model", "replica"]


def rises(metric: str) -> bool:
    """Whether a target of the metric, or of a group's, is reached from below."""
    known = metric_named(metric)
    return known is not None and known.rises


def of_metric(metrics: pd.DataFrame, metric: str, path: Path) -> pd.DataFrame:
    """Rows of one metric: of all agents, or of single agents where there are no others."""
    rows = metrics[metrics["metric"] == metric]
    if rows.empty:
        known = ", ".join(sorted(map(str, metrics["metric"].unique())))
        raise InputError(f"{path}: no metric {metric!r} was recorded; known: {known}")
    of_all = rows["agent"].isna()
    return rows[of_all] if of_all.any() else rows


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
    if not np.isfinite(target):
        raise InputError(f"a target must be finite, got {target}")
    moments = rows.astype({"model": str}).groupby([*dict.fromkeys([*_RUN, "step", "time", axis])], sort=True)
    table = moments["value"].agg(lambda values: values.mean(skipna=False)).reset_index()
    value = table["value"].to_numpy(dtype=float)
    # An undefined value reaches nothing.
    table["reached"] = value >= target if rising else value <= target
    first, last = table[table["reached"]].drop_duplicates(_RUN), table.drop_duplicates(_RUN, keep="last")
    ends = pd.concat([first, last]).drop_duplicates(_RUN).sort_values(_RUN, ignore_index=True)
    return ends[[*_RUN, axis, "reached"]]


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
