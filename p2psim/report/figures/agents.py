"""Single agents: last values by their records or degree, and their distribution."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.report import notes, panels, scales, style
from p2psim.report.channels import Plan
from p2psim.report.curves import drawn, parts_of, quartiles_of
from p2psim.report.source import FITNESS, Float, Source
from p2psim.report.words import is_fraction, words

#: What a run without metrics of single agents is to record.
_ADVICE = "name one in record.per_agent, such as test_accuracy of agents' own models, or local_accuracy"

#: Agents are gathered in so many groups of equal size.
BINS = 8


def metrics_of_agents(source: Source) -> list[str]:
    """Metrics that were recorded of single agents, or the one that is asked for.

    A metric of a learner's model has one value per replica, whatever the number of agents: it is none of them.

    Raises
    ------
    InputError
        If there is none.
    """
    of_each = source.metrics[source.metrics["agent"].notna() & (source.metrics["metric"] != FITNESS)]
    counts = of_each.groupby(of_each["metric"].astype(str))["agent"].nunique()
    least = min(2, source.agents["index"].nunique())
    names = [str(metric) for metric, count in counts.items() if count >= least]
    if source.metric is not None:
        source.rows(source.metric)
    if source.metric is not None and source.metric not in names:
        known = f"of single agents the run has {', '.join(names)}" if names else _ADVICE
        raise InputError(f"{source.metric} has one value per replica, not one per agent; {known}")
    if not names:
        learner = f" ({', '.join(map(str, counts.index))} has one value per replica)" if len(counts) else ""
        raise InputError(f"the run recorded no metric of single agents{learner}; {_ADVICE}")
    return [name for name in names if source.metric in (None, name)]


def last_values(source: Source, metric: str) -> pd.DataFrame:
    """Last values of single agents."""
    rows = source.rows(metric)
    rows = rows[rows["agent"].notna()].sort_values(["step", "time"], kind="stable")
    last = rows.drop_duplicates(["cell", "model", "replica", "agent"], keep="last")
    return last.astype({"agent": "int64"})


def draw_agents(source: Source) -> dict[str, Figure]:
    """Quartiles over agents of like numbers of records, at the last record.

    Raises
    ------
    InputError
        If no metric was recorded of single agents, or all have the same number of records.
    """
    figures, below = {}, "records of an agent (number)"
    for metric in metrics_of_agents(source):
        table = with_number(source, metric, "records")
        if table["records"].nunique() < 2:
            message = "all agents have the same number of records, so there is nothing to draw against"
            raise InputError(message)
        figures[f"agents-{metric}"] = by_number(source, metric, table, "records", below, "their records")
    return figures


def with_number(source: Source, metric: str, column: str) -> pd.DataFrame:
    """Last values of single agents, with a number from the table of agents in a column of its name."""
    agents = source.agents.rename(columns={"index": "agent"})[["cell", "replica", "agent", column]]
    agents = agents.astype({"agent": "int64"})
    return last_values(source, metric).merge(agents, on=["cell", "replica", "agent"])


def by_number(source: Source, metric: str, table: pd.DataFrame, column: str, below: str, what: str) -> Figure:
    """Quartiles of the values of agents with like numbers in a column."""
    edges = np.unique(np.quantile(table[column].to_numpy(dtype=float), np.linspace(0, 1, BINS + 1)))
    if table[column].nunique() <= BINS:
        edges = np.append(np.unique(table[column].to_numpy(dtype=float)), np.inf)
    plan = Plan(source)
    binned = [(line, model, _binned(rows, column, edges)) for line, model, rows in parts_of(table, plan)]
    keyed = ((line, model, one, tuple(one[1][1].round(12))) for line, model, one in binned)
    shown, alike = drawn(plan, keyed)
    figure, (grid,) = panels.metric_panels(plan, [metric], below)
    values = np.concatenate([one.what[1].ravel() for one in shown if one.is_main])
    log = scales.is_log(source.log, values, is_fraction(metric))
    looks = panels.references(shown)
    for panel, axes in enumerate(grid):
        scales.fit_values(axes, values, log, is_fraction(metric))
        for one in shown:
            if panel not in one.panels:
                continue
            x, (low, median, high) = one.what
            label = one.label or words(metric)
            look = one.line.look if one.is_main else looks[one.model]
            if one.is_main:
                style.shade(axes, x, low, high, look["color"])
            axes.plot(x, median, label=label, **look)
            style.note(axes, label, x, median, low, high)
        scales.number_axis(axes, table[column])
    panels.name_values(figure, grid, style.metric_label(metric))
    visible, note = panels.on_scale(grid, shown, lambda what: what[1][1], metric)
    ends = [one.end(float(one.what[1][1, -1]), source.main) for one in visible]
    if len(visible) > 1:
        panels.explain(figure, grid, plan, visible, ends)
    remark = f"Line: median over agents and replicas, band: 25 to 75 %, in {len(edges) - 1} groups by {what}."
    panels.finish(
        figure, source, f"{words(metric)} of agents by {what}", [remark, *note, *notes.alike(alike)]
    )
    return figure


def _binned(group: pd.DataFrame, column: str, edges: Float) -> tuple[Float, Float]:
    """Mean number and quartiles of the values in each group that has agents."""
    numbers, values = group[column].to_numpy(dtype=float), group["value"].to_numpy(dtype=float)
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
    used = np.unique(place)
    means = np.array([numbers[place == k].mean() for k in used])
    return means, quartiles_of([values[place == k] for k in used])


def draw_ecdf(source: Source) -> dict[str, Figure]:
    """Share of the agents whose last value is at most x: who was left behind.

    Raises
    ------
    InputError
        If no metric was recorded of single agents.
    """
    figures = {}
    for metric in metrics_of_agents(source):
        plan = Plan(source)
        parts = list(parts_of(last_values(source, metric), plan))
        # Undefined values stand last, and count as what no x reaches.
        sorted_values = [
            (line, model, np.sort(rows["value"].to_numpy(dtype=float))) for line, model, rows in parts
        ]
        shown, alike = drawn(plan, ((line, model, v, v.tobytes()) for line, model, v in sorted_values))
        figure, (grid,) = panels.metric_panels(plan, [metric], style.metric_label(metric))
        values: Sequence[Float] = [one.what[np.isfinite(one.what)] for one in shown if one.is_main]
        log = scales.is_log(source.log, np.concatenate(values), is_fraction(metric))
        looks = panels.references(shown)
        for panel, axes in enumerate(grid):
            if log:
                axes.set_xscale("log", nonpositive="mask")
            for one in shown:
                if panel in one.panels:
                    look = {**one.line.look, "marker": ""} if one.is_main else looks[one.model]
                    share = np.arange(1, one.what.size + 1) / one.what.size
                    axes.step(one.what, share, where="post", label=one.label or words(metric), **look)
                    style.note(axes, one.label or words(metric), one.what, share)
            if not log:
                scales.few_ticks(axes)
            scales.fit_values(axes, np.concatenate(values), log, is_fraction(metric), across=True)
            axes.set_ylim(0, 1.01)
        panels.name_values(figure, grid, "share of agents at or below (fraction)")
        visible, note = panels.on_scale(grid, shown, lambda sorted_of: sorted_of, metric, across=True)
        panels.explain(figure, grid, plan, visible)
        count = notes.between([int(rows["agent"].nunique()) for _, _, rows in parts])
        replicas = notes.replicas([int(rows["replica"].nunique()) for _, _, rows in parts])
        remarks = [f"n = {count} agents × {replicas}, at the last record.", *note, *notes.alike(alike)]
        undefined = sum(int(np.isnan(one).sum()) for _, _, one in sorted_values)
        if undefined:
            remarks.append(f"{undefined} values are undefined, and lie at or below no x.")
        panels.finish(figure, source, f"{words(metric)} of single agents", remarks)
        figures[f"ecdf-{metric}"] = figure
    return figures
