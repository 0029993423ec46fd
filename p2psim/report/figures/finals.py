"""Final values of every cell and model side by side, or against a number of the data that is swept (B figure 2c).

`draw_paired` draws differences of every cell from a reference cell, pair by pair of replicas, with their intervals.
"""

from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.core.figure_names import MEASURED_AXES
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, style
from p2psim.report.curves import distinct, finals, labelled, quartiles_of, samples_by
from p2psim.report.panels import (
    MOST_ROWS,
    changing,
    finish,
    finish_panels,
    left_out,
    name,
    panels,
    row_panels,
    words,
)
from p2psim.report.source import FITNESS, Source, as_text, named, relabelled
from p2psim.scenario.record import label_of

#: Parts of a table of final values with their labels and models.
Parts: TypeAlias = list[tuple[str, str, pd.DataFrame]]

#: Confidence of the interval of each difference.
CONFIDENCE = 0.95


def draw_finals(source: Source) -> dict[str, Figure]:
    """Medians with 25 to 75 % bars and means, of the metric asked for or of every metric but ψ.

    Metrics of the network are panels of one figure.

    Raises
    ------
    InputError
        If the run has no such metric, or has nothing to compare.
    """
    elsewhere = (FITNESS, *MEASURED_AXES.values())
    names = [metric for metric in source.recorded() if metric not in elsewhere]
    if source.metric:
        names = [source.metric]
    if not names:
        raise InputError(f"the run has no metric besides {FITNESS}; add one to record.metrics")
    of_network = [name for name in names if name in NETWORK_METRICS]
    together = of_network if len(of_network) > 1 else []
    figures = {f"finals-{name}": _figure(source, [name]) for name in names if name not in together}
    if together:
        figures["finals-network"] = _figure(source, together)
    return figures


def _figure(source: Source, metrics: list[str]) -> Figure:
    tables = {metric: last_values(source, metric) for metric in metrics}
    first = tables[metrics[0]]
    if len(first[["cell", "model"]].drop_duplicates()) < 2:
        raise InputError(
            "there is nothing to compare: one cell and one model; sweep a key, or add learning.baselines"
        )
    shown, constant = changing(source, metrics) if len(metrics) > 1 else (metrics, [])
    key = _number_of_the_data(source, first) if source.key is None else swept_number(source, source.key)
    values = [tables[metric]["value"].to_numpy(dtype=float) for metric in shown]
    logs = [style.is_log(source.log, of_metric) for of_metric in values]
    many = sorted(first.groupby(["cell", "model"])["replica"].nunique().unique())
    of = f"{source.band_words} of {notes.replicas(list(map(int, many)))}"
    over = notes.means_note(max(_averaged(source, metric) for metric in shown))
    remarks = [f"Last record: median and {of}; diamond: mean.{over}"]
    parts = [_once(tables[metric], [other for other in source.swept if other != key]) for metric in shown]
    if key is None:
        remarks += left_out(len(parts[0]))
    for metric, of_metric, log in zip(shown, values, logs, strict=True):
        of = f" ({words(metric)})" if len(shown) > 1 else ""
        if bad := int((~np.isfinite(of_metric)).sum()):
            remarks.append(
                f"{bad} of {len(of_metric)} replicas end infinite or undefined{of}, counted as +∞."
            )
        if log:
            remarks += notes.hidden_note([of_metric])
    remarks += [*constant, *notes.comparability(shown, source.swept)]
    if key is None:
        return _rows(source, shown, parts, logs, remarks)
    return _against(source, shown, parts, logs, key, remarks)


def last_values(source: Source, metric: str) -> pd.DataFrame:
    """Final values as `finals` gives them, of all agents where the run has that; equal baselines of cells only once."""
    table = finals(source, metric)
    own = source.rows(metric)
    if own["agent"].isna().any() and own["agent"].notna().any():
        narrowed = source.metrics[(source.metrics["metric"] != metric) | source.metrics["agent"].isna()]
        table = finals(replace(source, metrics=narrowed), metric)
    return table


def _averaged(source: Source, metric: str) -> int:
    """How many agents' values the final ones are means of; 0 for a metric of all of them."""
    own = source.rows(metric)["agent"]
    return 0 if own.isna().any() else int(own.nunique())


def swept_number(source: Source, key: str) -> str:
    """The key, if the run sweeps it over numbers.

    Raises
    ------
    InputError
        If it does not.
    """
    source.check_swept(key)
    if pd.to_numeric(source.metrics[key], errors="coerce").isna().any():
        raise InputError(f"{key} must be a number in every cell to be an axis")
    return key


def _number_of_the_data(source: Source, table: pd.DataFrame) -> str | None:
    """A swept key of the data with at least two numbers, if there is just one."""
    found = []
    for key in source.swept:
        numbers = pd.to_numeric(table[key], errors="coerce")
        if key.startswith("data.") and numbers.notna().all() and numbers.nunique() > 1:
            found.append(key)
    return found[0] if len(found) == 1 else None


def _once(table: pd.DataFrame, keys: list[str]) -> Parts:
    """Parts of the table; a baseline with the same values in all of them is kept once, and named by its model alone."""
    out: Parts = []
    by_model: dict[str, set[tuple[float, ...]]] = {}
    for label, model, group in labelled(table, keys):
        values = tuple(np.sort(group["value"].to_numpy(dtype=float)).round(12).tolist())
        known = by_model.setdefault(model, set())
        if model == "main" or values not in known:
            out.append((label, model, group))
        known.add(values)
    return [
        (model if model != "main" and len(by_model[model]) == 1 else label, model, group)
        for label, model, group in out
    ]


def _rows(
    source: Source, metrics: list[str], parts: list[Parts], logs: list[bool], remarks: list[str]
) -> Figure:
    """A row for each cell and model, and a panel for each metric."""
    figure, grid = row_panels([label or "main" for label, *_ in parts[0]][:MOST_ROWS], len(metrics))
    alone = len(metrics) == 1
    size = "medium" if alone else "small"
    for axes, metric, of_metric, log in zip(grid, metrics, parts, logs, strict=True):
        if log:
            axes.set_xscale("log", nonpositive="mask")
        shown = of_metric[:MOST_ROWS]
        models = list(dict.fromkeys(model for _, model, _ in shown))
        for row, (_, model, group) in enumerate(shown):
            look = style.line_style(models.index(model))
            values = group["value"].to_numpy(dtype=float)
            (low,), (median,), (high,) = quartiles_of([values], source.band)
            colour = look["color"]
            axes.plot([low, high], [row, row], color=colour, linewidth=2.2, solid_capstyle="butt")
            style.mark(axes, [median], [row], look["marker"], 7, colour)
            _mean(axes, values.mean(), row)
        axes.set_xlabel(style.metric_label(metric), fontsize=size)
        axes.tick_params(axis="x", labelsize=size)
    finish_panels(figure, source, f"{words(metrics[0]) if alone else 'the network'} at the end", remarks)
    return figure


def _mean(axes: Axes, x: float, y: float) -> None:
    style.mark(axes, [x], [y], "D", 4.5, "white", markeredgecolor="black", zorder=4)


def _against(
    source: Source, metrics: list[str], parts: list[Parts], logs: list[bool], key: str, remarks: list[str]
) -> Figure:
    """A panel for each metric, with a line for each combination of what else is swept."""
    label = style.key_label(key)
    if len(metrics) == 1:
        figure, axes = style.new_axes()
        _draw_against(axes, source, parts[0], key, logs[0])
        title = f"{words(metrics[0])} at the end"
        finish(figure, axes, source, label, style.metric_label(metrics[0]), title, remarks)
        return figure
    figure, grid = panels(len(metrics), label)
    for axes, metric, of_metric, log in zip(grid, metrics, parts, logs, strict=True):
        _draw_against(axes, source, of_metric, key, log)
        name(axes, words(metric))
    finish_panels(figure, source, "the network at the end", remarks, legend=grid[0])
    return figure


def _draw_against(axes: Axes, source: Source, parts: Parts, key: str, log: bool) -> None:
    if log:
        axes.set_yscale("log", nonpositive="mask")
    ticks: set[float] = set()
    for index, (label, _, group) in enumerate(parts):
        look = style.line_style(index)
        x, samples = samples_by(group, key)
        low, median, high = quartiles_of(samples, source.band)
        axes.vlines(x, low, high, color=look["color"], linewidth=2.2, alpha=0.6)
        axes.plot(x, median, label=label or None, markersize=6, linewidth=1.6, **look)
        for place, values in zip(x, samples, strict=True):
            _mean(axes, place, values.mean())
        ticks.update(x.tolist())
    if source.key is None:
        axes.set_xticks(sorted(ticks), [f"{x:g}" for x in sorted(ticks)])
    else:
        style.number_axis(axes, sorted(ticks))


def draw_paired(source: Source) -> dict[str, Figure]:
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
    table["metric"] = table["metric"].str.removesuffix(" (mean over agents)")
    names = [source.metric] if source.metric else list(dict.fromkeys(table["metric"]))
    return {f"paired-{metric}": _paired(source, metric, table[table["metric"] == metric]) for metric in names}


def _paired(source: Source, metric: str, table: pd.DataFrame) -> Figure:
    if len(table) > MOST_ROWS:
        raise InputError(f"{len(table)} cells and models are too many for one figure")
    figure, (axes,) = row_panels(_labels(source, table), 1, many=False)
    axes.axvline(0.0, color="0.25", linewidth=1.0)
    colour = style.line_style(0)["color"]
    rows = table[["difference", "low", "high"]].itertuples(index=False, name=None)
    for row, (estimate, low, high) in enumerate(rows):
        if np.isfinite([low, high]).all():
            axes.plot([low, high], [row, row], color=colour, linewidth=2.2, solid_capstyle="butt")
        face = colour if low > 0 or high < 0 else "white"
        style.mark(axes, [estimate], [row], "o", 7, colour, markerfacecolor=face, markeredgewidth=1.6)
    axes.set_xlabel(style.wrapped(f"{label_of(metric)}: difference", 60))
    pairs = notes.between([int(n) for n in table["pairs"]])
    remarks = [
        f"Mean difference over {pairs} pairs of replicas of the same number, with Student's t interval: 95 % each, "
        "not all together. Filled: the interval leaves out zero."
    ]
    if lost := int(table["not finite"].sum()):
        remarks.append(f"{lost} pairs are left out, since one of the two ends infinite or undefined.")
    if table["low"].isna().any():
        remarks.append("No interval where there are fewer than two pairs.")
    reference = ", ".join(f"{key.split('.')[-1]} = {value}" for key, value in source.reference.items())
    finish_panels(figure, source, f"{words(metric)} at the end, less that with {reference}", remarks)
    return figure


def _labels(source: Source, table: pd.DataFrame) -> list[str]:
    """Values of the swept keys of each row, and its model where there are several."""
    columns = {key.split(".")[-1]: distinct([as_text(value) for value in table[key]]) for key in source.swept}
    if table["model"].nunique() > 1:
        columns["model"] = [str(model) for model in table["model"]]
    return [", ".join(named(key, texts[row]) for key, texts in columns.items()) for row in range(len(table))]
