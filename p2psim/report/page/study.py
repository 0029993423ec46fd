"""What a page says of a whole study: summary, results, privacy, provenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from p2psim.core.printing import key_values
from p2psim.report.page.encoding import Packer
from p2psim.runs.ledger_check import broken_bounds
from p2psim.runs.result import Result
from p2psim.runs.summary import raised_flags, rises
from p2psim.runs.verification import ReplicaCheck
from p2psim.scenario.figure import given_words
from p2psim.scenario.record import label_of

#: Curves, and points of each, that a page holds at most.
MOST_CURVES, MOST_POINTS = 400, 240
#: Fewer replicas are drawn each.
FEW = 8

#: What each flag of the ledger means.
FLAG_TEXTS = {
    "bound_violated": "A record's gradient exceeded the claimed bound: the noise was too small, and ε does not hold.",
    "over_budget": "The releases cost the real records more than the ε that was promised.",
    "not_private": "Nothing is guaranteed: no noise was added, or the sensitivity was read off the data.",
    "public_graph_assumed": "ε holds only if the graph or features are public: they were computed from the records.",
    "data_dependent_step": "The step size was computed from the records, and ε does not account for that.",
    "scaled_records": "Noise was drawn as if each record stood for several; ε of the real records is larger.",
    "clairvoyant": "The noise depends on releases to come, which nobody can know in advance.",
}


def study(
    result: Result, packer: Packer, question: str, checked: Sequence[ReplicaCheck] | None
) -> dict[str, Any]:
    """Plain values about a study; curves go to the packer."""
    described, table = result.described, result.summary()
    names, words = given_words(result.scenario_tree, table)

    def word(key: str, value: Any) -> Any:
        value = result.labels.get(key, {}).get(value, value)
        return words.get(key, {}).get(value, value)

    cells = [
        {
            "label": key_values({names.get(key, key): word(key, value) for key, value in cell.swept.items()}),
            "notes": cell.notes,
        }
        for cell in described.cells
    ]
    return {
        "name": described.name,
        "question": question,
        "seed": described.seed,
        "replicas": len({replica for _, replica in described.runs}),
        "simulations": len(described.runs),
        "cells": cells,
        "badges": _badges(result),
        "warnings": [*broken_bounds(result.ledger), *result.warnings],
        "scenario": result.whole("scenario.yaml").read_text(encoding="utf-8"),
        "summary": {
            "columns": list(table),
            "rows": table.astype(object).to_numpy().tolist(),
            "swept": result.swept,
        },
        "curves": _curves(result, packer),
        "flags": FLAG_TEXTS,
        "made_by": described.made_by,
        "commands": [
            {"arguments": entry.arguments, "p2psim": entry.p2psim, "ended": entry.ended}
            for entry in described.invocations
        ],
        "files": [[name, size, sha] for name, (size, sha) in sorted(described.files.items())],
        "format": described.format,
        "verified": None if checked is None else _verdict(checked),
    }


def _badges(result: Result) -> list[list[str]]:
    """What must stand beside every number: a text, what it means, and how bad it is."""
    flags = raised_flags(result.ledger)
    known = (
        ("not_private", "NOT PRIVATE", "bad"), ("bound_violated", "ε VOID", "bad"),
        ("over_budget", "OVER BUDGET", "bad"),
        ("scaled_records", "SCALED RECORDS", "warn"), ("clairvoyant", "CLAIRVOYANT", "warn"),
        ("data_dependent_step", "STEP FROM DATA", "warn"), ("public_graph_assumed", "PUBLIC GRAPH ASSUMED", "warn"),
    )  # fmt: skip
    shares = {name: float(flags[name].mean()) for name in flags}
    badges = []
    for name, text, how in known:
        if share := shares.get(name, 0.0):
            part = "" if share == 1 else f" ({share:.0%} of agents)"
            badges.append([f"{text}{part}", FLAG_TEXTS[name], how])
    return badges or [["PRIVATE AS CLAIMED", "No row of the ledger raises a flag.", "good"]]


def _verdict(checked: Sequence[ReplicaCheck]) -> dict[str, Any]:
    wrong = [
        f"cell {one.cell}, replica {one.replica}: {one.fault}" for one in checked if one.verdict == "wrong"
    ]
    unclear = sum(one.verdict == "not comparable" for one in checked)
    largest = max((one.largest for one in checked if one.verdict == "right"), default=0.0)
    return {"simulations": len(checked), "wrong": wrong, "unclear": unclear, "largest": largest}


def _curves(result: Result, packer: Packer) -> list[dict[str, Any]]:
    """Each metric of each cell and model along the run: its replicas, or quantiles of them where there are many."""
    rows = result.metrics[result.metrics["agent"].isna()]
    by_time = "time" in str(result.scenario_tree.get("record", {}).get("every", ""))
    axis, other = ("time", "step") if by_time else ("step", "time")
    listed: list[dict[str, Any]] = []
    groups: Any = rows.groupby(["metric", "model", "cell"], observed=True, sort=True)
    for (metric, model, cell), group in groups:
        wide = group.pivot_table(index=axis, columns="replica", values="value", aggfunc="last", sort=True)
        if len(wide) < 2 or len(listed) == MOST_CURVES:
            continue
        kept = np.unique(np.linspace(0, len(wide) - 1, min(len(wide), MOST_POINTS)).astype(int))
        values = wide.to_numpy(float)[kept]
        if values.shape[1] >= FEW:
            # Between two infinities there is no number, and where nobody recorded there is none.
            with np.errstate(invalid="ignore"):
                values = pd.DataFrame(values).quantile([0.0, 0.25, 0.5, 0.75, 1.0], axis=1).to_numpy().T
        name = f"curve/{len(listed)}"
        packer.add(f"{name}/{axis}", wide.index.to_numpy(float)[kept])
        packer.add(f"{name}/{other}", group.groupby(axis)[other].median().to_numpy(float)[kept])
        packer.add(f"{name}/value", values.astype(np.float32).T)
        listed.append(
            {
                "metric": str(metric),
                "label": label_of(str(metric)),
                "rises": rises(str(metric)),
                "model": str(model),
                "cell": int(cell),
                "replicas": wide.shape[1],
                "rows": values.shape[1],
            }
        )
    return listed
