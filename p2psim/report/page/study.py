"""What a page says of a whole study: summary, results, privacy, provenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from p2psim.report.notes import FEW, VOID, raised
from p2psim.report.page.encoding import Packer
from p2psim.report.source import where_defined
from p2psim.report.words import by_worth, metric_label, words_of_cells
from p2psim.runs.result import Result
from p2psim.runs.summary import broken_bounds
from p2psim.runs.tables import FLAG_MEANINGS
from p2psim.runs.verdict import kept, said, verdict_of
from p2psim.runs.verification import ReplicaCheck
from p2psim.scenario.record import label_of

#: Curves, and points of each, that a page holds at most.
MOST_CURVES, MOST_POINTS = 400, 240


def study(
    result: Result, packer: Packer, question: str, checked: Sequence[ReplicaCheck] | None
) -> dict[str, Any]:
    """Plain values about a study; curves go to the packer."""
    verdict = kept(result) if checked is None else verdict_of(result, checked)
    described, table = result.described, result.summary()
    swept = [cell.swept for cell in described.cells]
    labels, names, values = words_of_cells(swept, result.labels, result.scenario_tree)
    # The summary has labels of parts in the place of their values.
    values = {
        key: {result.labels.get(key, {}).get(str(value), value): word for value, word in of_key.items()}
        for key, of_key in values.items()
    }
    curves, left_out = _curves(result, packer)
    return {
        "name": described.name,
        "question": question,
        "seed": described.seed,
        "replicas": len({replica for _, replica in described.runs}),
        "simulations": len(described.runs),
        "cells": [{"label": label} for label in labels],
        "badges": _badges(result, labels),
        "warnings": [*broken_bounds(result.table("ledger")), *result.warnings],
        "scenario": result.whole("scenario.yaml").read_text(encoding="utf-8"),
        "summary": {
            "columns": list(table),
            "rows": table.astype(object).to_numpy().tolist(),
            "swept": result.swept,
            "words": {
                key: {"name": names[key], "values": list(of_key.items())} for key, of_key in values.items()
            },
            "metrics": by_worth(table["metric"].unique()),
        },
        "curves": curves,
        "curves_left_out": left_out,
        "axis": "time" if _by_time(result) else "step",
        "made_by": described.made_by,
        "commands": [
            {"arguments": entry.arguments, "p2psim": entry.p2psim, "ended": entry.ended}
            for entry in described.invocations
        ],
        "files": [[name, size, sha] for name, (size, sha) in sorted(described.files.items())],
        "format": described.format,
        "verified": None if verdict is None else {"text": said(verdict), "wrong": bool(verdict.get("wrong"))},
    }


#: Flags that qualify ε, which a page says besides those of figures.
_QUALIFIED = (
    ("clairvoyant", "CLAIRVOYANT", "warn"),
    ("data_dependent_step", "STEP FROM DATA", "warn"),
    ("public_graph_assumed", "PUBLIC GRAPH ASSUMED", "warn"),
)
#: Cells whose values the meaning of a badge names.
_NAMED = 6
_MEANINGS = FLAG_MEANINGS | {
    "printed": "the algorithm takes the form that its paper prints, not the corrected one"
}


def _badges(result: Result, cells: Sequence[str]) -> list[list[str]]:
    """What must stand beside every number: a text, what it means and of which cells, and how bad it is."""
    flags, badges = raised(result.ledger, result), []
    for name, text, how in (*VOID, *_QUALIFIED):
        if name not in flags or not flags[name].any():
            continue
        of = sorted(set(result.ledger.loc[flags[name], "cell"].tolist()))
        share = float(flags.loc[result.ledger["cell"].isin(of), name].mean())
        where = _where(of, len(cells))
        part = "" if share == 1 else f" ({share:.0%} of agents{' there' * bool(where)})"
        listed = "; ".join(f"cell {cell}: {cells[cell]}" for cell in of[:_NAMED]) if where else ""
        more = f"; and {len(of) - _NAMED} more" if where and len(of) > _NAMED else ""
        badges.append([f"{text}{where}{part}", f"{_MEANINGS[name]}{'; ' * bool(where)}{listed}{more}", how])
    return badges or [["PRIVATE AS CLAIMED", "no row of the ledger raises a flag", "good"]]


def _where(cells: Sequence[int], total: int) -> str:
    if len(cells) == total:
        return ""
    if len(cells) > 3:
        return f": {len(cells)} of {total} cells"
    return f": cell{'s' * (len(cells) > 1)} {', '.join(map(str, cells))}"


def _by_time(result: Result) -> bool:
    return "time" in str(result.scenario_tree.get("record", {}).get("every", ""))


def _curves(result: Result, packer: Packer) -> tuple[list[dict[str, Any]], int]:
    """Each metric of each cell and model along the run: its replicas, or quantiles of them where there are many.

    Metrics of models come first. Of more than `MOST_CURVES` the number that is left out is returned too.
    """
    rows = where_defined(result.metrics[result.metrics["agent"].isna()])
    axis, other = ("time", "step") if _by_time(result) else ("step", "time")
    listed, left_out = list[dict[str, Any]](), 0
    place = {metric: number for number, metric in enumerate(by_worth(rows["metric"].unique()))}
    groups: Any = rows.groupby(["metric", "model", "cell"], observed=True, sort=True)
    for (metric, model, cell), group in sorted(groups, key=lambda entry: place[str(entry[0][0])]):
        wide = group.pivot_table(index=axis, columns="replica", values="value", aggfunc="last", sort=True)
        if len(wide) < 2:
            continue
        if len(listed) == MOST_CURVES:
            left_out += 1
            continue
        kept = np.unique(np.linspace(0, len(wide) - 1, min(len(wide), MOST_POINTS)).astype(int))
        values = wide.to_numpy(float)[kept]
        if values.shape[1] >= FEW:
            # Between two infinities there is no number, and where nobody recorded there is none.
            with np.errstate(invalid="ignore"):
                values = pd.DataFrame(values).quantile([0.0, 0.25, 0.5, 0.75, 1.0], axis=1).to_numpy().T
        place_of, name = f"curve/{len(listed)}", str(metric)
        packer.add(f"{place_of}/{axis}", wide.index.to_numpy(float)[kept])
        packer.add(f"{place_of}/{other}", group.groupby(axis)[other].median().to_numpy(float)[kept])
        packer.add(f"{place_of}/value", values.astype(np.float32).T)
        words = {"metric": name, "label": label_of(name), "axis": metric_label(name), "model": str(model)}
        listed.append({**words, "cell": int(cell), "replicas": wide.shape[1], "rows": values.shape[1]})
    return listed, left_out
