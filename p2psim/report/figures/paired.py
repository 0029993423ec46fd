"""Differences of every cell from a reference cell, pair by pair of replicas, with their intervals."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from p2psim.core.errors import InputError
from p2psim.report import notes, style
from p2psim.report.curves import distinct
from p2psim.report.figures.bands import MOST_ROWS
from p2psim.report.source import Source, as_text, named, relabelled
from p2psim.scenario.record import label_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Confidence of each interval.
CONFIDENCE = 0.95


def draw_paired(source: Source) -> "dict[str, Figure]":
    """Forest plot: a row for each cell that is not a reference, of the metric asked for or of each.

    Raises
    ------
    InputError
        If no reference is given, no cell is one, or there are too many others for a figure.
    """
    if not source.reference:
        raise InputError("give the cells to compare with: --reference KEY=VALUE, a swept key and its value")
    from p2psim.analysis.comparison import compare_within

    if source.metric is not None:
        source.rows(source.metric)
    table = relabelled(
        compare_within(source.result, source.reference, CONFIDENCE), getattr(source.result, "labels", {})
    )
    # A metric of single agents is compared by its mean over them, and says so in its name.
    plain = table["metric"].str.removesuffix(" (mean over agents)")
    table = table.assign(metric=plain)
    names = [source.metric] if source.metric else list(dict.fromkeys(plain))
    return {f"paired-{name}": _figure(source, name, table[table["metric"] == name]) for name in names}


def _figure(source: Source, metric: str, table: pd.DataFrame) -> "Figure":
    if len(table) > MOST_ROWS:
        raise InputError(f"{len(table)} cells and models are too many for one figure")
    named = [style.broken(text) for text in _labels(source, table)]
    figure = style.new_figure(7.6, 1.6 + sum(0.14 + 0.18 * len(lines) for lines in named))
    axes = figure.add_subplot()
    axes.axvline(0.0, color="0.25", linewidth=1.0)
    look = style.line_style(0)
    for row, (estimate, low, high) in enumerate(
        table[["difference", "low", "high"]].itertuples(index=False, name=None)
    ):
        if np.isfinite([low, high]).all():
            axes.plot([low, high], [row, row], color=look["color"], linewidth=2.2, solid_capstyle="butt")
        shown = bool(low > 0 or high < 0)
        axes.plot(
            [estimate], [row], marker="o", markersize=7, linestyle="none", color=look["color"],
            markerfacecolor=look["color"] if shown else "white", markeredgewidth=1.6,
        )  # fmt: skip
    axes.set_yticks(range(len(named)), ["\n".join(lines) for lines in named], fontsize="small")
    axes.set_ylim(len(named) - 0.5, -0.5)
    reference = ", ".join(f"{key.split('.')[-1]} = {value}" for key, value in source.reference.items())
    axes.set_xlabel(style.wrapped(f"{label_of(metric)}: difference", 60))
    figure.set_figwidth(5.2 + 0.085 * max(len(line) for lines in named for line in lines))
    title = style.wrapped(
        source.title(f"{metric.replace('_', ' ')} at the end, less that with {reference}"),
        int(figure.get_figwidth() / style.TITLE_CHARACTER),
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    style.add_footnote(figure, [*_remarks(table), *notes.run_notes(source)])
    return figure


def _labels(source: Source, table: pd.DataFrame) -> list[str]:
    """Values of the swept keys of each row, and its model where there are several."""
    columns = {key.split(".")[-1]: distinct([as_text(value) for value in table[key]]) for key in source.swept}
    if table["model"].nunique() > 1:
        columns["model"] = [str(model) for model in table["model"]]
    return [", ".join(named(key, texts[row]) for key, texts in columns.items()) for row in range(len(table))]


def _remarks(table: pd.DataFrame) -> list[str]:
    pairs = notes.between([int(n) for n in table["pairs"]])
    out = [
        f"Mean difference over {pairs} pairs of replicas of the same number, with Student's t interval: 95 % each, "
        "not all together. Filled: the interval leaves out zero."
    ]
    if lost := int(table["not finite"].sum()):
        out.append(f"{lost} pairs are left out, since one of the two ends infinite or undefined.")
    if table["low"].isna().any():
        out.append("No interval where there are fewer than two pairs.")
    return out
