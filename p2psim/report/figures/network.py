"""Figures of the network: metrics at the end against a swept number, metrics along the run, and causes of failure.

The swept number is one of the network, such as airtime. Causes of failure are the reasons why messages did not arrive.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.core.figure_names import MEASURED_AXES
from p2psim.core.intervals import mean_interval
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, panels, style
from p2psim.report.curves import curves, finals, is_number, labelled, samples_by
from p2psim.report.source import Source, as_text, named, short

#: A log axis from this ratio of largest and smallest value on.
WIDE = 10

#: Confidence of each interval.
CONFIDENCE = 0.95


def draw_load(source: Source) -> dict[str, Figure]:
    """Means at the end with their intervals, a panel a metric and a line for each combination of what else is swept.

    Raises
    ------
    InputError
        If no number of the network is swept, or nothing was recorded that could be drawn.
    """
    keys = [key for key in source.swept if key.startswith("network.") and is_number(source.metrics[key])]
    if not keys:
        raise InputError("the run sweeps no number of the network, such as network.channel.airtime")
    names = [source.metric] if source.metric else _in_order(source)
    if not names:
        raise InputError("the run recorded nothing to draw")
    several = len(keys) > 1
    return {f"load-{key.split('.')[-1]}" if several else "load": _load(source, key, names) for key in keys}


def _in_order(source: Source) -> list[str]:
    """Metrics that the run recorded: of models first, then of the network."""
    axes, recorded = list(MEASURED_AXES.values()), source.recorded()
    last = [*(metric for metric in NETWORK_METRICS if metric not in axes), *axes]
    return [
        *(metric for metric in recorded if metric not in last),
        *(metric for metric in last if metric in recorded),
    ]


def _load(source: Source, key: str, names: list[str]) -> Figure:
    names, constant = panels.changing(source, names)
    figure, grid = panels.new_panels(len(names), key.split(".")[-1])
    left = 0
    for axes, metric in zip(grid, names, strict=True):
        table = finals(source, metric)
        left += int((~np.isfinite(table["value"].to_numpy(dtype=float))).sum())
        _panel(axes, source, key, table)
        panels.name(axes, panels.words(metric))
    replicas = notes.replicas(source.metrics.groupby("cell")["replica"].nunique().tolist())
    remarks = [f"Last record: mean of {replicas} with Student's t interval, 95 % each, not of all together."]
    remarks += [f"{left} values that end infinite or undefined are left out."] if left else []
    title = f"the end of the run against {key}"
    panels.finish_panels(figure, source, title, [*remarks, *constant], legend=grid[0])
    return figure


def _panel(axes: Axes, source: Source, key: str, table: pd.DataFrame) -> None:
    of_main = table["model"] == "main"
    table = (table[of_main] if of_main.any() else table).astype({key: float})
    x = table[key]
    if (x > 0).all() and x.max() >= WIDE * x.min():
        axes.set_xscale("log")
        style.plain_ticks(axes, x.unique())
    others = [other for other in source.swept if other != key]
    for index, (label, _, group) in enumerate(labelled(table, others)):
        look = style.line_style(index)
        places, samples = samples_by(group[np.isfinite(group["value"])], key)
        intervals = [mean_interval(sample, CONFIDENCE) for sample in samples]
        means = [interval.estimate for interval in intervals]
        axes.plot(places, means, label=label or None, markersize=5, linewidth=1.5, **look)
        known = [(place, i.low, i.high) for place, i in zip(places, intervals, strict=True) if i.known]
        axes.vlines(*np.array(known).reshape(-1, 3).T, color=look["color"], linewidth=2.0, alpha=0.6)


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


def draw_network(source: Source) -> dict[str, Figure]:
    """A panel for each metric of the network, and stacked causes of failure with a panel for each cell.

    Where there are many cells, metrics have a panel for each value of a swept key, and causes a bar for each cell.

    Raises
    ------
    InputError
        If no metric of the network was recorded.
    """
    names = [m for m in NETWORK_METRICS if m in source.recorded() and source.metric in (None, m)]
    if not names:
        raise InputError(
            f"the run recorded no such metric of the network; record.metrics can name {', '.join(NETWORK_METRICS)}"
        )
    cells = source.metrics["cell"].nunique()
    crowded = cells > panels.MOST_LINES and bool(source.swept)
    figures = {panels.stem(source, "network"): _facets(source, names) if crowded else _metrics(source, names)}
    causes = [metric for metric in CAUSES if metric in names and (source.rows(metric)["value"] > 0).any()]
    if causes and source.metric is None:
        few = cells <= panels.MOST_LINES
        figure = (_causes if few else _bars)(source, causes)
        figures[panels.stem(source, "network-causes") if few else "network-causes"] = figure
    return figures


def columns(source: Source) -> list[tuple[str, Source]]:
    """Parts of a run of many cells, by name: at most `MOST_LINES` cells each.

    The values of the swept key that has the fewest, if there are at most `MOST_COLUMNS` of them; cells in their order
    where no key divides them so.
    """
    cells = source.metrics.drop_duplicates("cell").sort_values("cell")
    fitting = {
        key: cells[key].nunique(dropna=False)
        for key in source.swept
        if cells.groupby(key, dropna=False).size().max() <= panels.MOST_LINES
    }
    key = min(fitting, key=lambda name: fitting[name], default=None)
    if key is not None and fitting[key] <= MOST_COLUMNS:
        return [(named(short(key), as_text(part.fixed[key])), part) for part in source.facets(key)]
    numbers = cells["cell"].tolist()
    parts = [numbers[at : at + panels.MOST_LINES] for at in range(0, len(numbers), panels.MOST_LINES)]
    return [(f"cells {part[0]} to {part[-1]}", source.of_cells(part)) for part in parts]


def _facets(source: Source, names: list[str]) -> Figure:
    """A row of panels for each metric, a column for each part of the cells, a line for each cell of it."""
    names, constant = panels.changing(source, names)
    parts = columns(source)
    shown = parts[:MOST_COLUMNS]
    figure, grid = panels.grid_panels(
        list(map(panels.words, names)), [label for label, _ in shown], panels.axis_label(source)
    )
    numbers: dict[str, int] = {}
    for row, metric in zip(grid, names, strict=True):
        for axes, (_, part) in zip(row, shown, strict=True):
            drawn = curves(part, metric)
            for curve in drawn:
                index = numbers.setdefault(curve.label, len(numbers))
                panels.draw_curve(axes, curve, index, None, band=False)
    # Not every column need have every line.
    for label, index in numbers.items():
        grid[0][0].plot([], [], label=label or None, **style.plain_line(index))
    remarks = [f"Median of {notes.replicas([curve.replicas for curve in drawn])}."]
    if len(parts) > len(shown):
        cells = source.metrics["cell"].nunique()
        remarks += panels.left_out(cells, MOST_COLUMNS * panels.MOST_LINES, "cells")
    title = f"the network against {panels.axis_words(source)}"
    panels.finish_panels(figure, source, title, [*remarks, *constant], legend=grid[0][0])
    return figure


def _metrics(source: Source, names: list[str]) -> Figure:
    names, constant = panels.changing(source, names)
    figure, grid = panels.new_panels(len(names), panels.axis_label(source))
    for axes, metric in zip(grid, names, strict=True):
        drawn = curves(source, metric)
        banded = len(drawn) <= MOST_BANDS
        for index, curve in enumerate(drawn):
            panels.draw_curve(axes, curve, index, curve.label or None, banded)
        panels.name(axes, panels.words(metric))
    replicas = notes.replicas([curve.replicas for curve in drawn])
    remark = f"Median{' and 25 to 75 %' if banded else ''} of {replicas}."
    title = f"the network against {panels.axis_words(source)}"
    panels.finish_panels(figure, source, title, [remark, *constant], legend=grid[0])
    return figure


def _causes(source: Source, causes: list[str]) -> Figure:
    by_cause = [curves(source, metric) for metric in causes]
    cells = len(by_cause[0])
    figure, grid = panels.new_panels(cells, panels.axis_label(source))
    top = 0.0
    for place, axes in enumerate(grid):
        lines = [of_cells[place] for of_cells in by_cause]
        heights = np.array([line.mean for line in lines])
        looks = [style.line_style(index)["color"] for index in range(len(causes))]
        axes.stackplot(lines[0].x, heights, colors=looks, labels=[CAUSES[c] for c in causes], alpha=0.85)
        top = max(top, float(heights.sum(axis=0).max()))
        panels.name(axes, lines[0].label)
        axes.margins(x=0)
    for axes in grid:
        axes.set_ylim(0, min(1.0, 1.1 * top) or 1.0)
    figure.supylabel("share of attempts so far that failed", fontsize="medium")
    title = f"why messages did not arrive, against {panels.axis_words(source)}"
    panels.finish_panels(figure, source, title, _of_causes(source), legend=grid[0])
    return figure


def _bars(source: Source, causes: list[str]) -> Figure:
    """A bar for each cell: shares of all attempts until the end that failed, by their cause, one beside the other."""
    tables = {cause: finals(source, cause).groupby("cell")["value"].mean() for cause in causes}
    cells = source.rows(causes[0]).drop_duplicates("cell")
    names = {int(part["cell"].iloc[0]): label for label, _, part in labelled(cells, source.swept, ["cell"])}
    shown = list(names)[: panels.MOST_ROWS]
    figure, (axes,) = panels.row_panels([names[cell] for cell in shown], 1)
    left = np.zeros(len(shown))
    for index, cause in enumerate(causes):
        width = tables[cause].loc[shown].to_numpy(dtype=float)
        colour = style.line_style(index)["color"]
        axes.barh(range(len(width)), width, left=left, color=colour, alpha=0.85, label=CAUSES[cause])
        left = left + width
    axes.set_xlim(left=0)
    axes.set_xlabel("share of all attempts that failed")
    remarks = [*_of_causes(source), *panels.left_out(len(names))]
    panels.finish_panels(figure, source, "why messages did not arrive", remarks, legend=axes)
    return figure


def _of_causes(source: Source) -> list[str]:
    """What is to be said under figures of causes."""
    left = [words for cause, words in CAUSES.items() if cause not in source.recorded()]
    remark = "Mean over replicas. An attempt is a message to one receiver, each time that it is sent."
    return [remark, f"Not recorded: {', '.join(left)}."] if left else [remark]
