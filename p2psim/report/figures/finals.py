"""Final values of every cell and model side by side, or against a number of the data that is swept (B figure 2c).

`draw_paired` draws differences of every cell from a reference cell, pair by pair of replicas, with their intervals.
"""

from typing import TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.core.figure_names import MEASURED_AXES
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, panels, style
from p2psim.report.curves import finals, is_number, labelled, once, quartiles_of, samples_by, values_of_rows
from p2psim.report.source import FITNESS, Source, relabelled, short
from p2psim.scenario.record import label_of

#: Parts of a table of final values with their labels and models.
Parts: TypeAlias = list[tuple[str, str, pd.DataFrame]]

#: What is drawn of a metric: its name, parts of its final values, and whether their axis is logarithmic.
End: TypeAlias = tuple[str, Parts, bool]
Ends: TypeAlias = list[End]

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
    tables = {metric: finals(source, metric) for metric in metrics}
    first = tables[metrics[0]]
    if len(first[["cell", "model"]].drop_duplicates()) < 2:
        raise InputError(
            "there is nothing to compare: one cell and one model; sweep a key, or add learning.baselines"
        )
    shown, constant = panels.changing(source, metrics) if len(metrics) > 1 else (metrics, [])
    key = _number_of_the_data(source, first) if source.key is None else swept_number(source, source.key)
    others = [other for other in source.swept if other != key]
    drawn: Ends = []
    lost: list[str] = []
    for metric in shown:
        values = tables[metric]["value"].to_numpy(dtype=float)
        drawn.append(
            (metric, once(labelled(tables[metric], others), _values), style.is_log(source.log, values))
        )
        of = f" ({panels.words(metric)})" if len(shown) > 1 else ""
        if bad := int((~np.isfinite(values)).sum()):
            lost.append(f"{bad} of {len(values)} replicas end infinite or undefined{of}, counted as +∞.")
        if drawn[-1][-1]:
            lost += notes.hidden_note([values])
    counts = notes.replicas(first.groupby(["cell", "model"])["replica"].nunique().tolist())
    over = notes.means_note(max(int(source.rows_of_all(metric)["agent"].nunique()) for metric in shown))
    remarks = [f"Last record: median and {source.band_words} of {counts}; diamond: mean.{over}"]
    if key is None:
        remarks += panels.left_out(len(drawn[0][1]))
    remarks += [*lost, *constant, *notes.comparability(shown, source)]
    return _rows(source, drawn, remarks) if key is None else _against(source, drawn, key, remarks)


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
    keys = [key for key in source.swept if key.startswith("data.") and is_number(table[key])]
    return keys[0] if len(keys) == 1 else None


def _values(group: pd.DataFrame) -> tuple[float, ...]:
    return tuple(np.sort(group["value"].to_numpy(dtype=float)).round(12).tolist())


def _rows(source: Source, drawn: Ends, remarks: list[str]) -> Figure:
    """A row for each cell and model, and a panel for each metric."""
    names = [label or "main" for label, *_ in drawn[0][1]]
    figure, grid = panels.row_panels(names[: panels.MOST_ROWS], len(drawn))
    size = "medium" if len(drawn) == 1 else "small"
    for axes, (metric, parts, log) in zip(grid, drawn, strict=True):
        if log:
            axes.set_xscale("log", nonpositive="mask")
        shown = parts[: panels.MOST_ROWS]
        models = list(dict.fromkeys(model for _, model, _ in shown))
        for row, (_, model, group) in enumerate(shown):
            look = style.line_style(models.index(model))
            values = group["value"].to_numpy(dtype=float)
            low, median, high = quartiles_of([values], source.quantile)[:, 0]
            style.bar(axes, row, low, high, look["color"])
            style.mark(axes, [median], [row], look["marker"], 7, look["color"])
            _mean(axes, values.mean(), row)
        axes.set_xlabel(style.metric_label(metric), fontsize=size)
        axes.tick_params(axis="x", labelsize=size)
    panels.finish_panels(figure, source, _title(drawn), remarks)
    return figure


def _title(drawn: Ends) -> str:
    return f"{panels.words(drawn[0][0]) if len(drawn) == 1 else 'the network'} at the end"


def _mean(axes: Axes, x: float, y: float) -> None:
    style.mark(axes, [x], [y], "D", 4.5, "white", markeredgecolor="black", zorder=4)


def _against(source: Source, drawn: Ends, key: str, remarks: list[str]) -> Figure:
    """A panel for each metric, with a line for each combination of what else is swept."""
    x, (first, *more) = style.key_label(key), drawn
    if not more:
        figure, axes = style.new_axes()
        _draw_against(axes, source, first, key)
        panels.finish(figure, axes, source, x, style.metric_label(first[0]), _title(drawn), remarks)
        return figure
    figure, grid = panels.new_panels(len(drawn), x)
    for axes, ends in zip(grid, drawn, strict=True):
        _draw_against(axes, source, ends, key)
        panels.name(axes, panels.words(ends[0]))
    panels.finish_panels(figure, source, _title(drawn), remarks, legend=grid[0])
    return figure


def _draw_against(axes: Axes, source: Source, ends: End, key: str) -> None:
    _, parts, log = ends
    if log:
        axes.set_yscale("log", nonpositive="mask")
    ticks: set[float] = set()
    for index, (label, _, group) in enumerate(parts):
        look = style.line_style(index)
        x, samples = samples_by(group, key)
        low, median, high = quartiles_of(samples, source.quantile)
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
    table = compare_within(source.result, source.reference, CONFIDENCE)
    table = relabelled(table, getattr(source.result, "labels", {}))
    # A metric of single agents is compared by its mean over them, and says so in its name.
    table["metric"] = table["metric"].str.removesuffix(" (mean over agents)")
    names = [source.metric] if source.metric else list(dict.fromkeys(table["metric"]))
    return {f"paired-{metric}": _paired(source, metric, table[table["metric"] == metric]) for metric in names}


def _paired(source: Source, metric: str, table: pd.DataFrame) -> Figure:
    if len(table) > panels.MOST_ROWS:
        raise InputError(f"{len(table)} cells and models are too many for one figure")
    values = values_of_rows(source.swept, [table[key] for key in source.swept], len(table))
    if table["model"].nunique() > 1:
        values = [[*row, f"model = {model}"] for row, model in zip(values, table["model"], strict=True)]
    names = list(map(", ".join, values))
    figure, (axes,) = panels.row_panels(names, 1, many=False)
    axes.axvline(0.0, color="0.25", linewidth=1.0)
    colour = style.line_style(0)["color"]
    rows = table[["difference", "low", "high"]].itertuples(index=False, name=None)
    for row, (estimate, low, high) in enumerate(rows):
        if np.isfinite([low, high]).all():
            style.bar(axes, row, low, high, colour)
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
    reference = ", ".join(f"{short(key)} = {value}" for key, value in source.reference.items())
    title = f"{panels.words(metric)} at the end, less that with {reference}"
    panels.finish_panels(figure, source, title, remarks)
    return figure
