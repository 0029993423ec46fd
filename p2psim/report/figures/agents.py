"""Single agents: last values by their records or degree, and their distribution."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.report import panels, scales, style
from p2psim.report.channels import Plan
from p2psim.report.curves import drawn, parts_of, quartiles_of
from p2psim.report.source import FITNESS, Float, Source
from p2psim.report.words import is_fraction, words

#: Agents are gathered in so many groups of equal size.
BINS = 8


def metrics_of_agents(source: Source) -> list[str]:
    """Metrics that were recorded of single agents, or the one that is asked for.

    Raises
    ------
    InputError
        If there is none.
    """
    of_each = source.metrics[source.metrics["agent"].notna() & (source.metrics["metric"] != FITNESS)]
    names = sorted(map(str, of_each["metric"].unique()))
    if source.metric is not None:
        names = [metric for metric in names if metric == source.metric]
    if not names:
        raise InputError("the run recorded no metric of single agents; name one in record.per_agent")
    return names


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
    return {
        f"agents-{metric}": by_number(
            source,
            metric,
            records_and_values(source, metric),
            "records",
            "records of an agent (number)",
            "their records",
        )
        for metric in metrics_of_agents(source)
    }


def records_and_values(source: Source, metric: str) -> pd.DataFrame:
    """Last values of single agents, with the number of their records in the column ``records``.

    Raises
    ------
    InputError
        If all agents have the same number of records.
    """
    agents = source.agents.rename(columns={"index": "agent"})[["cell", "replica", "agent", "records"]]
    table = last_values(source, metric).merge(
        agents.astype({"agent": "int64"}), on=["cell", "replica", "agent"]
    )
    if table["records"].nunique() < 2:
        raise InputError("all agents have the same number of records, so there is nothing to draw against")
    return table


def by_number(source: Source, metric: str, table: pd.DataFrame, column: str, below: str, what: str) -> Figure:
    """Quartiles of the values of agents with like numbers in a column."""
    edges = np.unique(np.quantile(table[column].to_numpy(dtype=float), np.linspace(0, 1, BINS + 1)))
    if table[column].nunique() <= BINS:
        edges = np.append(np.unique(table[column].to_numpy(dtype=float)), np.inf)
    plan = Plan(source)
    binned = [(line, model, _binned(rows, column, edges)) for line, model, rows in parts_of(table, plan)]
    shown, _ = drawn(plan, ((line, model, one, tuple(one[1][1].round(12))) for line, model, one in binned))
    figure, (grid,) = panels.metric_panels(plan, [metric], below)
    values = np.concatenate([one.what[1].ravel() for one in shown if one.is_main])
    log = scales.is_log(source.log, values, is_fraction(metric))
    looks = panels.references(shown)
    ends = []
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
            ends.append(
                (
                    float(median[-1]),
                    one.line.short or source.main if one.is_main else one.label,
                    look["color"],
                )
            )
        scales.number_axis(axes, table[column])
    panels.name_values(figure, grid, style.metric_label(metric))
    if len(shown) > 1:
        panels.explain(figure, grid, plan, shown, ends)
    remark = f"Line: median over agents and replicas, band: 25 to 75 %, in {len(edges) - 1} groups by {what}."
    panels.finish(figure, source, f"{words(metric)} of agents by {what}", [remark])
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
        sorted_values = [
            (line, model, np.sort(rows["value"].dropna().to_numpy(dtype=float)))
            for line, model, rows in parts
        ]
        shown, _ = drawn(plan, ((line, model, v, v.tobytes()) for line, model, v in sorted_values))
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
        panels.explain(figure, grid, plan, shown)
        count = int(parts[0][2]["agent"].nunique())
        replicas = int(source.metrics["replica"].nunique())
        remark = f"n = {count} agents × {replicas} replicas, at the last record."
        panels.finish(figure, source, f"{words(metric)} of single agents", [remark])
        figures[f"ecdf-{metric}"] = figure
    return figures
