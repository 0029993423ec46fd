"""Figures of the network: metrics at the end against a swept number, metrics along the run, and causes of failure.

The swept number is one of the network, such as airtime. Causes of failure are the reasons why messages did not arrive.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from p2psim.core.errors import InputError
from p2psim.core.figure_names import MEASURED_AXES
from p2psim.core.intervals import Interval, mean_interval
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, style
from p2psim.report.curves import curves, finals, labels
from p2psim.report.figures.bands import (
    MOST_LINES,
    MOST_ROWS,
    apart,
    axis_label,
    axis_words,
    entitle,
    grid_panels,
    left_out,
    name,
    panels,
    row_panels,
    stem,
)
from p2psim.report.source import Source, as_text, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A log axis from this ratio of largest and smallest value on.
WIDE = 10

#: Confidence of each interval.
CONFIDENCE = 0.95


def draw_load(source: Source) -> "dict[str, Figure]":
    """Means at the end with their intervals, a panel a metric and a line for each combination of what else is swept.

    Raises
    ------
    InputError
        If no number of the network is swept, or nothing was recorded that could be drawn.
    """
    keys = numbers_of_the_network(source)
    if not keys:
        raise InputError("the run sweeps no number of the network, such as network.channel.airtime")
    names = [source.metric] if source.metric else _in_order(source)
    if not names:
        raise InputError("the run recorded nothing to draw")
    return {f"load-{_short(key)}" if len(keys) > 1 else "load": _figure(source, key, names) for key in keys}


def numbers_of_the_network(source: Source) -> list[str]:
    """Swept keys of the network that are a number in every cell, with at least two values."""
    found = []
    for key in source.swept:
        numbers = pd.to_numeric(source.metrics[key], errors="coerce")
        if key.startswith("network.") and np.isfinite(numbers).all() and numbers.nunique() > 1:
            found.append(key)
    return found


def _in_order(source: Source) -> list[str]:
    """Metrics that the run recorded: of models first, then of the network."""
    recorded = [metric for metric in source.recorded() if metric not in MEASURED_AXES.values()]
    return [
        *(metric for metric in recorded if metric not in NETWORK_METRICS),
        *(metric for metric in NETWORK_METRICS if metric in recorded),
        *(metric for metric in MEASURED_AXES.values() if metric in source.recorded()),
    ]


def _short(key: str) -> str:
    return key.split(".")[-1]


def _figure(source: Source, key: str, names: list[str]) -> "Figure":
    names, constant = apart(source, names)
    figure, grid = panels(len(names), f"{_short(key)}")
    for axes, metric in zip(grid, names, strict=True):
        _panel(axes, source, key, metric)
    entitle(figure, source, f"the end of the run against {key}")
    style.add_legend(figure, grid[0])
    replicas = source.metrics.groupby("cell")["replica"].nunique()
    remarks = [
        f"Last record: mean of {notes.replicas(replicas.tolist())} with Student's t interval, 95 % each, not "
        "of all together."
    ]
    ends = np.concatenate([finals(source, metric)["value"].to_numpy(dtype=float) for metric in names])
    if bad := int((~np.isfinite(ends)).sum()):
        remarks.append(f"{bad} values that end infinite or undefined are left out.")
    if constant:
        remarks.append(f"Always the same: {', '.join(constant)}.")
    style.add_footnote(figure, [*remarks, *notes.run_notes(source)])
    return figure


def _panel(axes: "Axes", source: Source, key: str, metric: str) -> None:
    table = finals(source, metric)
    table = table[table["model"] == "main"] if (table["model"] == "main").any() else table
    others = [one for one in source.swept if one != key]
    named = labels(others, table)
    x = table[key].astype(float)
    positive = x[x > 0]
    log = bool((x > 0).all()) and bool(positive.max() >= WIDE * positive.min())
    if log:
        axes.set_xscale("log")
        style.plain_ticks(axes, x.unique())
    groups = table.groupby([*others, "model"], sort=False, observed=True, dropna=False)
    for index, (_, group) in enumerate(groups):
        look = style.line_style(index)
        parts = [(float(place), _interval(part["value"])) for place, part in group.groupby(x, sort=True)]
        parts = [(place, interval) for place, interval in parts if np.isfinite(interval.estimate)]
        places = np.array([place for place, _ in parts])
        label = named[tuple(group[[*others, "model"]].iloc[0])]
        axes.plot(
            places, [interval.estimate for _, interval in parts], label=label or None, markersize=5, linewidth=1.5,
            **look,
        )  # fmt: skip
        known = [(place, interval) for place, interval in parts if interval.known]
        axes.vlines(
            [place for place, _ in known], [one.low for _, one in known], [one.high for _, one in known],
            color=look["color"], linewidth=2.0, alpha=0.6,
        )  # fmt: skip
    name(axes, metric.replace("_", " "))


def _interval(values: "pd.Series[float]") -> Interval:
    numbers = values.to_numpy(dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    return mean_interval(numbers, CONFIDENCE) if numbers.size else Interval(np.nan, np.nan, np.nan)


#: Why an attempt to deliver a message fails: the metrics that are its shares, and what a person calls them.
CAUSES = {
    "loss_rate": "lost by the channel",
    "collision_rate": "collided",
    "offline_rate": "receiver away",
    "unsent_rate": "never sent",
}

#: Columns of a figure that has one for each value of a swept key.
MOST_COLUMNS = 6

#: Bands are drawn for up to so many lines; more would hide each other.
MOST_BANDS = 6


def recorded_of_network(source: Source) -> list[str]:
    """Metrics of the network that the run recorded, or the one that is asked for, in the order of their table.

    Raises
    ------
    InputError
        If there is none.
    """
    wanted = source.recorded() if source.metric is None else [source.metric]
    found = [metric for metric in NETWORK_METRICS if metric in wanted and metric in source.recorded()]
    if not found:
        raise InputError(
            f"the run recorded no such metric of the network; record.metrics can name {', '.join(NETWORK_METRICS)}"
        )
    return found


def draw_network(source: Source) -> "dict[str, Figure]":
    """A panel for each metric of the network, and stacked causes of failure with a panel for each cell.

    Where there are many cells, metrics have a panel for each value of a swept key, and causes a bar for each cell.

    Raises
    ------
    InputError
        If no metric of the network was recorded.
    """
    names = recorded_of_network(source)
    cells = source.metrics["cell"].nunique()
    crowded = cells > MOST_LINES and bool(source.swept)
    figures = {stem(source, "network"): _facets(source, names) if crowded else _metrics(source, names)}
    causes = [metric for metric in CAUSES if metric in names and (source.rows(metric)["value"] > 0).any()]
    if causes and source.metric is None:
        if cells <= MOST_LINES:
            figures[stem(source, "network-causes")] = _causes(source, causes)
        else:
            figures["network-causes"] = _bars(source, causes)
    return figures


def columns(source: Source) -> list[tuple[str, Source]]:
    """Parts of a run of many cells, by name: at most `MOST_LINES` cells each.

    The values of the swept key that has the fewest, if there are at most `MOST_COLUMNS` of them; cells in their order
    where no key divides them so.
    """
    cells = source.metrics.drop_duplicates("cell").sort_values("cell")
    values = {key: cells[key].nunique(dropna=False) for key in source.swept}
    fitting = [
        key
        for key, count in values.items()
        if count <= MOST_COLUMNS and cells.groupby(key, dropna=False).size().max() <= MOST_LINES
    ]
    if fitting:
        key = min(fitting, key=lambda one: values[one])
        word = key.split(".")[-1]
        return [(named(word, as_text(part.fixed[key])), part) for part in source.facets(key)]
    numbers = cells["cell"].tolist()
    runs = [numbers[start : start + MOST_LINES] for start in range(0, len(numbers), MOST_LINES)]
    return [
        (
            f"cells {run[0]} to {run[-1]}",
            replace(source, metrics=source.metrics[source.metrics["cell"].isin(run)]),
        )
        for run in runs
    ]


def _facets(source: Source, names: list[str]) -> "Figure":
    """A row of panels for each metric, a column for each part of the cells, a line for each cell of it."""
    names, constant = apart(source, names)
    parts = columns(source)
    shown = parts[:MOST_COLUMNS]
    figure, grid = grid_panels(
        [metric.replace("_", " ") for metric in names],
        [of for of, _ in shown],
        axis_label(source),
    )
    looks: dict[str, int] = {}
    for row, metric in zip(grid, names, strict=True):
        for axes, (_, part) in zip(row, shown, strict=True):
            drawn = curves(part, metric)
            for curve in drawn:
                look = style.line_style(looks.setdefault(curve.label, len(looks)))
                axes.plot(
                    curve.x, curve.median, linewidth=1.5, color=look["color"], linestyle=look["linestyle"]
                )
            axes.margins(x=0.02)
    entitle(figure, source, f"the network against {axis_words(source)}")
    # Not every column need have every line.
    for label, index in looks.items():
        look = style.line_style(index)
        grid[0][0].plot([], [], label=label or None, color=look["color"], linestyle=look["linestyle"])
    style.add_legend(figure, grid[0][0])
    remarks = [f"Median of {notes.replicas([curve.replicas for curve in drawn])}."]
    if len(parts) > len(shown):
        remarks.append(
            f"The first {MOST_COLUMNS * MOST_LINES} of {source.metrics['cell'].nunique()} cells are drawn; --facet KEY "
            "draws a figure for each value of a swept key."
        )
    if constant:
        remarks.append(f"Always the same: {', '.join(constant)}.")
    style.add_footnote(figure, [*remarks, *notes.run_notes(source)])
    return figure


def _metrics(source: Source, names: list[str]) -> "Figure":
    names, constant = apart(source, names)
    figure, grid = panels(len(names), axis_label(source))
    drawn = []
    for axes, metric in zip(grid, names, strict=True):
        drawn = curves(source, metric)
        for index, curve in enumerate(drawn):
            look = style.line_style(index)
            if len(drawn) <= MOST_BANDS:
                axes.fill_between(
                    curve.x, curve.low, curve.high, color=look["color"], alpha=0.15, linewidth=0
                )
            axes.plot(
                curve.x, curve.median, label=curve.label or None, linewidth=1.5, color=look["color"],
                linestyle=look["linestyle"],
            )  # fmt: skip
        name(axes, metric.replace("_", " "))
        axes.margins(x=0.02)
    entitle(figure, source, f"the network against {axis_words(source)}")
    style.add_legend(figure, grid[0])
    replicas = notes.replicas([curve.replicas for curve in drawn])
    band = " and 25 to 75 %" if len(drawn) <= MOST_BANDS else ""
    remarks = [f"Median{band} of {replicas}."]
    if constant:
        remarks.append(f"Always the same: {', '.join(constant)}.")
    style.add_footnote(figure, [*remarks, *notes.run_notes(source)])
    return figure


def _causes(source: Source, causes: list[str]) -> "Figure":
    by_cause = [curves(source, metric) for metric in causes]
    cells = len(by_cause[0])
    figure, grid = panels(cells, axis_label(source))
    top = 0.0
    for place, axes in enumerate(grid):
        lines = [of_cells[place] for of_cells in by_cause]
        heights = np.array([line.mean for line in lines])
        looks = [style.line_style(index)["color"] for index in range(len(causes))]
        axes.stackplot(lines[0].x, heights, colors=looks, labels=[CAUSES[c] for c in causes], alpha=0.85)
        top = max(top, float(heights.sum(axis=0).max()))
        name(axes, lines[0].label)
        axes.margins(x=0)
    for axes in grid:
        axes.set_ylim(0, min(1.0, 1.1 * top) or 1.0)
    figure.supylabel("share of attempts so far that failed", fontsize="medium")
    entitle(figure, source, f"why messages did not arrive, against {axis_words(source)}")
    style.add_legend(figure, grid[0])
    style.add_footnote(figure, [*_of_causes(source), *notes.run_notes(source)])
    return figure


def _bars(source: Source, causes: list[str]) -> "Figure":
    """A bar for each cell: shares of all attempts until the end that failed, by their cause, one beside the other."""
    tables = {cause: finals(source, cause).groupby("cell")["value"].mean() for cause in causes}
    cells = source.rows(causes[0]).drop_duplicates("cell").sort_values("cell")
    named = labels(source.swept, cells)
    numbers = cells["cell"].tolist()
    names = [named[tuple(row)] for row in cells[[*source.swept, "model"]].itertuples(index=False)]
    figure, (axes,) = row_panels(names[:MOST_ROWS], 1)
    left = np.zeros(min(len(names), MOST_ROWS))
    for index, cause in enumerate(causes):
        width = tables[cause].loc[numbers[:MOST_ROWS]].to_numpy(dtype=float)
        colour = style.line_style(index)["color"]
        axes.barh(range(len(width)), width, left=left, color=colour, alpha=0.85, label=CAUSES[cause])
        left = left + width
    axes.set_xlim(left=0)
    axes.set_xlabel("share of all attempts that failed")
    entitle(figure, source, "why messages did not arrive")
    style.add_legend(figure, axes)
    style.add_footnote(figure, [*_of_causes(source), *left_out(len(names)), *notes.run_notes(source)])
    return figure


def _of_causes(source: Source) -> list[str]:
    """What is to be said under figures of causes."""
    left = [CAUSES[cause] for cause in CAUSES if cause not in source.recorded()]
    remarks = ["Mean over replicas. An attempt is a message to one receiver, each time that it is sent."]
    if left:
        remarks.append(f"Not recorded: {', '.join(left)}.")
    return remarks
