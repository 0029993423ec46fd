"""Bands of metrics along the run: of any metric, of ψ, of groups of agents, and of the network."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.core.figures import MEASURED_AXES
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, panels, scales, style
from p2psim.report.channels import MOST_PANELS, Plan
from p2psim.report.curves import Alike, Drawn, MetricCurve, all_curves, finals
from p2psim.report.source import FITNESS, Source
from p2psim.report.words import is_fraction, words

#: Metrics of the worst tenth of agents, by the metric of all of them.
WORST = {"test_accuracy": "worst_decile_accuracy"}


def band_figure(source: Source, metrics: Sequence[str], title: str, log: bool | None = None) -> Figure:
    """Draw medians and bands of metrics, a panel for each and for each value of a key that is no colour or dash.

    Parameters
    ----------
    source : Source
    metrics : sequence of str
    title : str
    log : bool, optional
        Log axis for the values, unless the source says it; by default the values decide.
    """
    metrics, constant = panels.changing(source, metrics)
    plan = Plan(source)
    figure, grid = panels.metric_panels(plan, metrics, panels.axis_label(source))
    shown: list[Drawn[MetricCurve]] = []
    ends: list[tuple[float, str, object]] = []
    alike: Alike = []
    hidden: list[str] = []
    for row, metric in zip(grid, metrics, strict=True):
        drawn, same = all_curves(source, metric, plan)
        alike += same if len(metrics) == 1 else []
        looks = panels.references(drawn)
        mains = [one for one in drawn if one.is_main] or drawn
        values = np.concatenate([one.what.values for one in mains])
        is_log = scales.is_log(log if source.log is None else source.log, values, is_fraction(metric))
        for panel, axes in enumerate(row):
            scales.fit_values(axes, values, is_log, is_fraction(metric))
            if plan.is_alone:
                for one in mains:
                    axes.plot(one.what.x, one.what.median, color="0.85", linewidth=0.8, zorder=1)
            for one in drawn:
                if panel in one.panels:
                    panels.draw_curve(axes, one, None if one.is_main else looks[one.model])
            scales.few_ticks(axes)
        visible, note = panels.on_scale(row, drawn, lambda curve: curve.median, metric)
        hidden += note
        if len(metrics) == 1:
            panels.name_values(figure, row, style.metric_label(metric))
            ends = [one.end(_last(one.what), source.main) for one in visible]
        shown += visible
    mains = [one for one in shown if one.is_main] or shown
    if len(shown) > 1:
        panels.explain(figure, [axes for row in grid for axes in row], plan, shown, ends)
    agents = max(one.what.agents for one in shown)
    counts = [one.what.replicas for one in mains]
    cut = source.against != "epsilon" and any(one.what.held for one in mains)
    remarks = [notes.spread(source, counts, agents=agents, cut=cut), *hidden, *constant, *notes.alike(alike)]
    diverged = sum(int(np.isinf(one.what.each).any(axis=0).sum()) for one in mains)
    remarks += [f"{diverged} of {sum(counts)} replicas diverge and count as +∞."] if diverged else []
    panels.finish(figure, source, title, remarks)
    return figure


def _last(curve: MetricCurve) -> float:
    finite = curve.median[np.isfinite(curve.median)]
    return float(finite[-1]) if finite.size else np.nan


def draw_curves(source: Source) -> dict[str, Figure]:
    """Bands of the metric asked for, or of every metric that has no figure of its own.

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
    against = panels.axis_words(source)
    return {
        panels.stem(source, f"curves-{metric}"): band_figure(
            source, [metric], f"{words(metric)} against {against}"
        )
        for metric in names
    }


def _changes(source: Source, metric: str) -> bool:
    by = ["cell", "model", "replica", "agent"]
    values = source.rows(metric).groupby(by, observed=True, dropna=False)["value"]
    return bool((values.nunique(dropna=False) > 1).any())


def draw_fitness(source: Source) -> dict[str, Figure]:
    """Bands of ψ on a log axis, a line for each swept value.

    Raises
    ------
    InputError
        If the run did not record ``relative_fitness``, or another metric is asked for.
    """
    if source.metric not in (None, FITNESS):
        raise InputError(f"fitness draws {FITNESS}; the kind for {source.metric} is curves")
    title = f"{words(FITNESS)} against {panels.axis_words(source)}"
    return {panels.stem(source, "fitness"): band_figure(source, [FITNESS], title, log=True)}


def draw_groups(source: Source) -> dict[str, Figure]:
    """A panel for each cell, with a line for all agents, each group, and the worst tenth.

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
        message = "the run recorded nothing of groups; set record.by: group, or record worst_decile_accuracy"
        raise InputError(message)
    return figures


def _of_groups(source: Source, metric: str, lines: dict[str, str]) -> Figure:
    plan = Plan(source)
    drawn = {part: [one for one in all_curves(source, part, plan)[0] if one.is_main] for part in lines}
    present = sorted({one.line.number for of_part in drawn.values() for one in of_part})
    if len(present) > MOST_PANELS:
        raise InputError(
            f"{len(present)} cells are too many for one figure, which has up to {MOST_PANELS} panels; draw one for "
            "each value of a swept key: --facet KEY"
        )
    ordered = all(text.replace(".", "").isdecimal() for text in list(lines.values())[1:])
    shades = style.colours(len(lines) - 1, ordered)
    shaded = zip(list(lines)[1:], shades, strict=True)
    looks = {part: {"color": color, "linestyle": "-"} for part, color in shaded}
    looks[metric] = {"color": "black", "linestyle": "-"}
    figure, grid = panels.new_panels(len(present), panels.axis_label(source), sharey=True)
    values = np.concatenate([one.what.values for of_part in drawn.values() for one in of_part])
    log = scales.is_log(source.log, values, is_fraction(metric))
    for axes, number in zip(grid, present, strict=True):
        panels.name(axes, plan.lines[number].label)
        scales.fit_values(axes, values, log, is_fraction(metric))
        for part, of_part in drawn.items():
            for one in of_part:
                if one.line.number == number:
                    panels.draw_curve(axes, Drawn(one.line, "main", lines[part], (), one.what), looks[part])
        scales.few_ticks(axes)
    panels.name_values(figure, grid, style.metric_label(metric))
    style.add_legend(figure, grid[0])
    counts = [one.what.replicas for of_part in drawn.values() for one in of_part]
    title = f"{words(metric)} of groups against {panels.axis_words(source)}"
    panels.finish(figure, source, title, [notes.spread(source, counts)])
    return figure


#: Why an attempt to deliver a message fails: the metrics that are its shares, and what a person calls them.
CAUSES = {
    "loss_rate": "lost by the channel",
    "collision_rate": "collided",
    "offline_rate": "receiver offline",
    "unsent_rate": "never sent",
}


def draw_network(source: Source) -> dict[str, Figure]:
    """A panel for each metric of the network, and causes of failure in a bar for each cell.

    Where lines are too many for one panel, each metric has a figure with panels of its own.

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
    title = f"the network against {panels.axis_words(source)}"
    if len(Plan(source).titles) <= panels.MOST_COLUMNS:
        figures = {panels.stem(source, "network"): band_figure(source, names, title)}
    else:
        figures = {
            panels.stem(source, f"network-{name}"): band_figure(source, [name], title)
            for name in panels.changing(source, names)[0]
        }
    causes = [metric for metric in CAUSES if metric in names and (source.rows(metric)["value"] > 0).any()]
    if causes and source.metric is None:
        figures["network-causes"] = _causes(source, causes)
    return figures


def _causes(source: Source, causes: list[str]) -> Figure:
    """A bar for each cell: shares of all attempts until the end that failed, by their cause, one beside the other."""
    plan = Plan(source, panels=False)
    lines = {line.number: line.label or source.main for line in plan.lines}
    shown = list(lines)[: panels.MOST_ROWS]
    of_cell = {cell: line.number for cell, line in plan.of_cell.items()}
    figure, (axes,) = panels.row_panels([lines[number] for number in shown], 1)
    left = np.zeros(len(shown))
    for cause, colour in zip(causes, style.colours(len(causes)), strict=True):
        table = finals(source, cause)
        width = table.groupby(table["cell"].map(of_cell))["value"].mean().loc[shown].to_numpy(dtype=float)
        axes.barh(range(len(width)), width, left=left, color=colour, height=0.7, label=CAUSES[cause])
        style.note(axes, CAUSES[cause], np.arange(len(width)), width)
        left = left + width
    axes.set_xlim(0, min(1.0, 1.08 * float(left.max())) or 1.0)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("share of all attempts that failed (fraction), lower is better")
    style.add_legend(figure, axes)
    counts = source.metrics.groupby("cell")["replica"].nunique().tolist()
    remarks = [f"n = {notes.replicas(counts)}; bar: mean.", *panels.left_out(len(lines))]
    panels.finish(figure, source, "why messages did not arrive", remarks)
    return figure
