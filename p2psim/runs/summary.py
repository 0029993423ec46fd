"""Results of a study as tables for people: where each cell ended, and metrics as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from p2psim.runs.tables import FLAGS

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
    table = spread.reset_index()
    counts = last.groupby(keys, observed=True, sort=True).size().reset_index(name="replicas")
    table = table.merge(counts, on=keys)[[*keys, "replicas", "q25", "median", "q75"]]
    table = table.merge(pd.DataFrame(_privacy(ledger, notes)), on="cell", how="left")
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


def _privacy(ledger: pd.DataFrame, notes: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
    """Largest ε and budget, and flags, of each cell."""
    epsilons = [
        str(name) for name in ledger if str(name).startswith("epsilon_") and name != "epsilon_claimed"
    ]
    flags = [name for name in FLAGS if name in ledger]
    rows = []
    for number in sorted(set(ledger["cell"].tolist())):
        group = ledger[ledger["cell"] == number]
        raised = [name for name in flags if group[name].fillna(False).astype(bool).any()]
        rows.append(
            {
                "cell": number,
                "epsilon spent": float(group[epsilons].max().max()) if epsilons else float("nan"),
                "budget": float(group["budget"].max()),
                "flags": ", ".join((*raised, *notes[number])),
            }
        )
    return rows


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
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


def latex(table: pd.DataFrame) -> str:
    """Write a table in LaTeX, in the style of booktabs: text to the left, numbers with four digits to the right."""

    def cell(value: Any) -> str:
        if isinstance(value, float):
            return (
                f"{value:.4g}"
                if np.isfinite(value)
                else {np.inf: r"$\infty$", -np.inf: r"$-\infty$"}.get(value, "--")
            )
        return str(value).translate(_LATEX)

    columns = "".join("r" if pd.api.types.is_numeric_dtype(kind) else "l" for kind in table.dtypes)
    cells = [list(table.columns), *table.to_numpy(dtype=object).tolist()]
    rows = [" & ".join(map(cell, row)) + r" \\" for row in cells]
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", ""])
