"""Final values of every cell and model side by side, or against a number of the data that is swept (B figure 2c)."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from p2psim.core.errors import InputError
from p2psim.core.figure_names import MEASURED_AXES
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, style
from p2psim.report.curves import finals, labels, quartiles
from p2psim.report.figures.bands import MOST_ROWS, apart, entitle, left_out, name, panels, row_panels
from p2psim.report.source import FITNESS, Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_finals(source: Source) -> "dict[str, Figure]":
    """Medians with 25 to 75 % bars and means, of the metric asked for or of every metric but ψ.

    Metrics of the network are panels of one figure.

    Raises
    ------
    InputError
        If the run has no such metric, or has nothing to compare.
    """
    names = (
        [source.metric]
        if source.metric
        else [m for m in source.recorded() if m not in (FITNESS, *MEASURED_AXES.values())]
    )
    if not names:
        raise InputError(f"the run has no metric besides {FITNESS}; add one to record.metrics")
    of_network = [name for name in names if name in NETWORK_METRICS]
    together = of_network if len(of_network) > 1 else []
    figures = {f"finals-{name}": _figure(source, [name]) for name in names if name not in together}
    if together:
        figures["finals-network"] = _figure(source, together)
    return figures


def _figure(source: Source, metrics: list[str]) -> "Figure":
    tables = {metric: last_values(source, metric) for metric in metrics}
    first = tables[metrics[0]]
    if len(first[["cell", "model"]].drop_duplicates()) < 2:
        raise InputError(
            "there is nothing to compare: one cell and one model; sweep a key, or add learning.baselines"
        )
    shown, constant = apart(source, metrics) if len(metrics) > 1 else (metrics, [])
    key = _number_of_the_data(source, first) if source.key is None else swept_number(source, source.key)
    values = [tables[metric]["value"].to_numpy(dtype=float) for metric in shown]
    logs = [style.is_log(source.log, of_one) for of_one in values]
    rows = 0
    if key is None:
        groups = [_once(tables[metric], source.swept) for metric in shown]
        rows = len(groups[0])
        figure = _rows(source, shown, groups, logs)
    elif len(shown) == 1:
        figure = _against(source, shown[0], tables[shown[0]], key, logs[0])
    else:
        figure = _panels_against(source, {metric: tables[metric] for metric in shown}, key, logs)
    many = sorted(first.groupby(["cell", "model"])["replica"].nunique().unique())
    of = f"{source.band_words} of {notes.replicas(list(map(int, many)))}"
    over = notes.means_note(max(_averaged(source, metric) for metric in shown))
    remarks = [f"Last record: median and {of}; diamond: mean.{over}"]
    remarks += left_out(rows)
    for metric, of_one, log in zip(shown, values, logs, strict=True):
        of = f" ({metric.replace('_', ' ')})" if len(shown) > 1 else ""
        if bad := int((~np.isfinite(of_one)).sum()):
            remarks.append(f"{bad} of {len(of_one)} replicas end infinite or undefined{of}, counted as +∞.")
        if log:
            remarks += notes.hidden_note([of_one])
    if constant:
        remarks.append(f"Always the same: {', '.join(constant)}.")
    remarks += notes.comparability(shown, source.swept)
    style.add_footnote(figure, [*remarks, *notes.run_notes(source)])
    return figure


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
    if key not in source.swept:
        raise InputError(f"the run does not sweep {key!r}; it sweeps {', '.join(source.swept) or 'nothing'}")
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


def _once(table: pd.DataFrame, keys: list[str]) -> list[tuple[str, pd.DataFrame]]:
    """Groups of the table with their labels; a baseline with the same values in all of them is kept once."""
    named = labels(keys, table)
    out: list[tuple[str, pd.DataFrame]] = []
    seen: set[tuple[object, ...]] = set()
    models: dict[str, set[tuple[object, ...]]] = {}
    for _, group in table.groupby([*keys, "model"], sort=False, observed=True, dropna=False):
        model = str(group["model"].iloc[0])
        values = (model, *np.sort(group["value"].to_numpy(dtype=float)).round(12).tolist())
        models.setdefault(model, set()).add(values)
        if model == "main" or values not in seen:
            out.append((named[tuple(group[[*keys, "model"]].iloc[0])], group))
        seen.add(values)
    # A baseline that nothing swept changes is named by its model alone.
    return [
        (
            model if (model := str(group["model"].iloc[0])) != "main" and len(models[model]) == 1 else label,
            group,
        )
        for label, group in out
    ]


def _rows(
    source: Source, metrics: list[str], groups: list[list[tuple[str, pd.DataFrame]]], logs: list[bool]
) -> "Figure":
    """A row for each cell and model, and a panel for each metric."""
    named = [label or "main" for label, _ in groups[0]][:MOST_ROWS]
    figure, panels_of = row_panels(named, len(metrics))
    for axes, metric, of_one, log in zip(panels_of, metrics, groups, logs, strict=True):
        if log:
            axes.set_xscale("log", nonpositive="mask")
        _draw_rows(axes, of_one[:MOST_ROWS], source.band)
        axes.set_xlabel(style.metric_label(metric), fontsize="medium" if len(metrics) == 1 else "small")
        axes.tick_params(axis="x", labelsize="medium" if len(metrics) == 1 else "small")
    what = metrics[0].replace("_", " ") if len(metrics) == 1 else "the network"
    entitle(figure, source, f"{what} at the end")
    return figure


def _draw_rows(axes: "Axes", groups: list[tuple[str, pd.DataFrame]], band: tuple[float, float]) -> None:
    kinds = list(dict.fromkeys(str(group["model"].iloc[0]) for _, group in groups))
    for row, (_, group) in enumerate(groups):
        look = style.line_style(kinds.index(str(group["model"].iloc[0])))
        values = group["value"].to_numpy(dtype=float)
        low, median, high = quartiles(values[None, :], band)[:, 0]
        axes.plot([low, high], [row, row], color=look["color"], linewidth=2.2, solid_capstyle="butt")
        axes.plot([median], [row], color=look["color"], marker=look["marker"], markersize=7, linestyle="none")
        _mean(axes, values.mean(), row)


def _mean(axes: "Axes", x: float, y: float) -> None:
    axes.plot(
        [x],
        [y],
        marker="D",
        markersize=4.5,
        color="white",
        markeredgecolor="black",
        linestyle="none",
        zorder=4,
    )


def _against(source: Source, metric: str, table: pd.DataFrame, key: str, log: bool) -> "Figure":
    figure = style.new_figure()
    axes = figure.add_subplot()
    _draw_against(axes, source, table, key, log)
    axes.set_xlabel(style.key_label(key))
    axes.set_ylabel(style.metric_label(metric))
    style.add_title(axes, source.title(f"{metric.replace('_', ' ')} at the end"))
    style.add_legend(figure, axes)
    return figure


def _panels_against(source: Source, tables: dict[str, pd.DataFrame], key: str, logs: list[bool]) -> "Figure":
    figure, grid = panels(len(tables), style.key_label(key))
    for axes, (metric, table), log in zip(grid, tables.items(), logs, strict=True):
        _draw_against(axes, source, table, key, log)
        name(axes, metric.replace("_", " "))
    entitle(figure, source, "the network at the end")
    style.add_legend(figure, grid[0])
    return figure


def _draw_against(axes: "Axes", source: Source, table: pd.DataFrame, key: str, log: bool) -> None:
    if log:
        axes.set_yscale("log", nonpositive="mask")
    others = [name for name in source.swept if name != key]
    groups = _once(table, others)
    for index, (label, group) in enumerate(groups):
        look = style.line_style(index)
        parts = [
            (float(str(x)), part["value"].to_numpy(dtype=float)) for x, part in group.groupby(key, sort=True)
        ]
        x = np.array([x for x, _ in parts])
        low, median, high = np.array([quartiles(values[None, :], source.band)[:, 0] for _, values in parts]).T
        axes.vlines(x, low, high, color=look["color"], linewidth=2.2, alpha=0.6)
        axes.plot(x, median, label=label or None, markersize=6, linewidth=1.6, **look)
        for place, values in parts:
            _mean(axes, place, values.mean())
    ticks = sorted(set(table[key].astype(float).tolist()))
    if source.key is None:
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    else:
        style.number_axis(axes, ticks)
