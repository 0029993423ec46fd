"""Percentile bands of metrics: along the run, of groups of agents, and by agents' numbers of records.

`draw_curves` draws any recorded metric, and `draw_fitness` the relative fitness ψ (F figure 2), a line for each swept
value. `draw_groups` shows all agents, each group and the worst tenth side by side, and `draw_agents` single agents by
their numbers of records (B figure 3).
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.core.figure_names import MEASURED_AXES
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, panels, style
from p2psim.report.curves import MetricCurve, curves, labelled, once, quartiles_of
from p2psim.report.source import FITNESS, Float, Source
from p2psim.scenario.record import label_of

#: Markers along a line.
MARKS = 9

#: Agents are gathered in so many groups of equal size, by their records.
BINS = 8

#: Metrics of the worst tenth of agents, by the metric of all of them.
WORST = {"test_accuracy": "worst_decile_accuracy"}

#: Cells and models, each of which has a panel.
MOST_PANELS = 24


def band_figure(source: Source, metric: str, log: bool | None = None) -> Figure:
    """Draw the median and the band of a metric against steps or time.

    Parameters
    ----------
    source : Source
        The run.
    metric : str
        Name of the metric.
    log : bool, optional
        Log axis for the values, unless the source says it. By default, when all are positive and span more than a
        factor of 100. A log axis is given up when there is no positive value at all.
    """
    drawn = curves(source, metric)
    values = _finite_values(drawn)
    log = style.is_log(log if source.log is None else source.log, values) and bool(np.any(values > 0))
    figure, axes = style.new_axes()
    if log:
        axes.set_yscale("log", nonpositive="mask")
    alpha = 0.2 if len(drawn) <= 6 else 0.1
    for index, curve in enumerate(drawn):
        look = style.line_style(index)
        # Lines start their markers at different places, so that they stay apart where lines run together.
        gap = max(1, len(curve.x) // MARKS)
        look["markevery"] = (index * gap // len(drawn), gap)
        style.shade(axes, curve.x, curve.low, curve.high, look["color"], alpha=alpha)
        axes.plot(curve.x, curve.median, label=curve.label or None, markersize=5, linewidth=1.6, **look)
    axes.margins(x=0.02)
    style.few_ticks(axes)
    if log:
        style.few_decades(axes, values)
    remarks = [*notes.curve_notes(drawn, log, source), *notes.comparability([metric], source)]
    title = f"{panels.words(metric)} against {panels.axis_words(source)}"
    panels.finish(figure, axes, source, panels.axis_label(source), style.metric_label(metric), title, remarks)
    return figure


def _finite_values(drawn: list[MetricCurve]) -> Float:
    values = np.concatenate([part for curve in drawn for part in (curve.low, curve.median, curve.high)])
    return values[np.isfinite(values)]


def draw_curves(source: Source) -> dict[str, Figure]:
    """Percentile bands of the metric asked for, or of every metric that has no figure of its own.

    Unless asked for, a metric that never changes in any run, such as ``isolated_fitness``, is no curve: ``finals``
    shows it. Nor is one that is an axis, nor that of a group or of the network, which ``groups`` and ``network``
    show beside others.

    Raises
    ------
    InputError
        If the run did not record it, or has no other metric that changes.
    """
    elsewhere = (FITNESS, *MEASURED_AXES.values(), *NETWORK_METRICS)
    names = [name for name in source.recorded() if name not in elsewhere and not name.endswith("]")]
    names = [source.metric] if source.metric else [name for name in names if _changes(source, name)]
    if not names:
        raise InputError(f"the run has no metric besides {FITNESS} that changes; add one to record.metrics")
    return {panels.stem(source, f"curves-{metric}"): band_figure(source, metric) for metric in names}


def _changes(source: Source, metric: str) -> bool:
    by = ["cell", "model", "replica", "agent"]
    values = source.rows(metric).groupby(by, observed=True, dropna=False)["value"]
    return bool((values.nunique(dropna=False) > 1).any())


def draw_fitness(source: Source) -> dict[str, Figure]:
    """Percentile bands of ψ on a log axis, a line for each swept value.

    Raises
    ------
    InputError
        If the run did not record ``relative_fitness``, or another metric is asked for.
    """
    if source.metric not in (None, FITNESS):
        raise InputError(f"fitness draws {FITNESS}; the kind for {source.metric} is curves")
    return {panels.stem(source, "fitness"): band_figure(source, FITNESS, log=True)}


def draw_agents(source: Source) -> dict[str, Figure]:
    """Quartiles over agents of like numbers of records, at the last record, a line for each cell and model.

    Raises
    ------
    InputError
        If no metric was recorded of single agents, or all have the same number of records.
    """
    of_each = source.metrics[source.metrics["agent"].notna() & (source.metrics["metric"] != FITNESS)]
    names = sorted(map(str, of_each["metric"].unique()))
    if source.metric is not None:
        names = [metric for metric in names if metric == source.metric]
    if not names:
        raise InputError("the run recorded no metric of single agents; name one in record.per_agent")
    return {f"agents-{metric}": _by_records(source, metric) for metric in names}


def _by_records(source: Source, metric: str) -> Figure:
    table = records_and_values(source, metric)
    edges = np.unique(np.quantile(table["records"].to_numpy(dtype=float), np.linspace(0, 1, BINS + 1)))
    figure, axes = style.new_axes()
    parts = labelled(table, source.swept, ["cell", "model"])
    binned = ((label, model, _binned(group, edges)) for label, model, group in parts)
    for index, (label, _, (x, (low, median, high))) in enumerate(once(binned, _medians)):
        look = style.line_style(index)
        style.shade(axes, x, low, high, look["color"])
        axes.plot(x, median, label=label or None, markersize=6, linewidth=1.6, **look)
    groups = f"{len(edges) - 1} groups of agents with like numbers of records, drawn at the group's mean"
    remarks = [f"Last record: median and 25 to 75 % over agents and replicas, in {groups}."]
    below, title = "records of an agent (number)", f"{panels.words(metric)} of agents by their records"
    panels.finish(figure, axes, source, below, style.metric_label(metric), title, remarks)
    return figure


def records_and_values(source: Source, metric: str) -> pd.DataFrame:
    """Last values of single agents, with the number of their records in the column ``records``.

    Raises
    ------
    InputError
        If all agents have the same number of records.
    """
    rows = source.rows(metric)
    rows = rows[rows["agent"].notna()].sort_values(["step", "time"], kind="stable")
    last = rows.drop_duplicates(["cell", "model", "replica", "agent"], keep="last")
    by = ["cell", "replica", "agent"]
    agents = source.agents.rename(columns={"index": "agent"})[[*by, "records"]]
    table = last.astype({"agent": "int64"}).merge(agents.astype({"agent": "int64"}), on=by)
    if table["records"].nunique() < 2:
        raise InputError("all agents have the same number of records, so there is nothing to draw against")
    return table


def _binned(group: pd.DataFrame, edges: Float) -> tuple[Float, Float]:
    """Mean number of records and quartiles of the values in each group that has agents."""
    records, values = group["records"].to_numpy(dtype=float), group["value"].to_numpy(dtype=float)
    place = np.clip(np.searchsorted(edges, records, side="right") - 1, 0, len(edges) - 2)
    used = np.unique(place)
    means = np.array([records[place == k].mean() for k in used])
    return means, quartiles_of([values[place == k] for k in used])


def _medians(binned: tuple[Float, Float]) -> tuple[float, ...]:
    return tuple(binned[1][1].round(12).tolist())


def draw_groups(source: Source) -> dict[str, Figure]:
    """A panel for each cell and model, with a line for all agents, each group, and the worst tenth.

    Raises
    ------
    InputError
        If nothing of groups was recorded, or there are too many cells for a figure.
    """
    recorded = source.recorded()
    figures = {}
    for metric in recorded if source.metric is None else {source.metric}.intersection(recorded):
        groups = [other for other in recorded if other.startswith(f"{metric}[")]
        lines = {metric: "all agents"}
        lines |= {group: group.removeprefix(f"{metric}[").removesuffix("]") for group in groups}
        lines |= {other: "worst tenth" for other in recorded if other == WORST.get(metric)}
        if len(lines) > 1:
            figures[panels.stem(source, f"groups-{metric}")] = _of_groups(source, metric, lines)
    if not figures:
        raise InputError(
            "the run recorded nothing of groups; set record.by: group, or record worst_decile_accuracy"
        )
    return figures


def _of_groups(source: Source, metric: str, lines: dict[str, str]) -> Figure:
    drawn = {part: {curve.label: curve for curve in curves(source, part)} for part in lines}
    labels = list(dict.fromkeys(label for of_part in drawn.values() for label in of_part))
    if len(labels) > MOST_PANELS:
        raise InputError(f"{len(labels)} cells and models are too many panels for one figure")
    figure, grid = panels.new_panels(len(labels), panels.axis_label(source))
    shown: list[MetricCurve] = []
    for axes, label in zip(grid, labels, strict=True):
        for index, (part, of_part) in enumerate(drawn.items()):
            if label in of_part:
                panels.draw_curve(axes, of_part[label], index, lines[part])
                shown.append(of_part[label])
        panels.name(axes, label)
    values = _finite_values(shown)
    if values.size and np.ptp(values) > 0:
        room = 0.05 * np.ptp(values)
        for axes in grid:
            axes.set_ylim(values.min() - room, values.max() + room)
    figure.supylabel(label_of(metric), fontsize="medium")
    title = f"{panels.words(metric)} of groups against {panels.axis_words(source)}"
    panels.finish_panels(figure, source, title, notes.curve_notes(shown, False, source), legend=grid[0])
    return figure
