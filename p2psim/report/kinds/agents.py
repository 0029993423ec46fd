"""A metric of single agents against the number of their records (B figure 3)."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from p2psim.errors import InputError
from p2psim.report import notes, style
from p2psim.report.curves import labels, quartiles
from p2psim.report.source import FITNESS, Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Agents are gathered in so many groups of equal size, by their records.
BINS = 8


def draw_agents(source: Source) -> "dict[str, Figure]":
    """Quartiles over agents of like numbers of records, at the last record, a line for each cell and model.

    Raises
    ------
    InputError
        If no metric was recorded of single agents, or all have the same number of records.
    """
    of_each = source.metrics[source.metrics["agent"].notna() & (source.metrics["metric"] != FITNESS)]
    names = sorted(map(str, of_each["metric"].unique()))
    if source.metric is not None:
        names = [name for name in names if name == source.metric]
    if not names:
        raise InputError("the run recorded no metric of single agents; name one in record.per_agent")
    return {f"agents-{name}": _figure(source, name) for name in names}


def _figure(source: Source, metric: str) -> "Figure":
    table = by_records(source, metric)
    edges = _edges(table["records"].to_numpy(dtype=float))
    figure = style.new_figure()
    axes = figure.add_subplot()
    named = labels(source.swept, table)
    drawn: set[tuple[object, ...]] = set()
    index = 0
    for _, group in table.groupby(["cell", "model"], sort=True, observed=True):
        head = tuple(group[[*source.swept, "model"]].iloc[0])
        x, low, median, high = _binned(group, edges)
        values = (head[-1], *median.round(12))
        # A baseline that nothing swept changes is drawn once.
        if head[-1] != "main" and values in drawn:
            continue
        drawn.add(values)
        look = style.line_style(index)
        index += 1
        label = str(head[-1]) if head[-1] != "main" else named[head] or None
        axes.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
        axes.plot(x, median, label=label, markersize=6, linewidth=1.6, **look)
    axes.set_xlabel("records of an agent (number)")
    axes.set_ylabel(style.metric_label(metric))
    style.add_title(axes, source.title(f"{metric.replace('_', ' ')} of agents by their records"))
    style.add_legend(figure, axes)
    count = len(edges) - 1
    remark = (
        f"Last record: median and 25 to 75 % over agents and replicas, in {count} groups of agents with like numbers "
        "of records, drawn at the group's mean."
    )
    style.add_footnote(figure, [remark, *notes.run_notes(source)])
    return figure


def by_records(source: Source, metric: str) -> pd.DataFrame:
    """Last values of single agents, with the number of their records in the column ``records``.

    Raises
    ------
    InputError
        If all agents have the same number of records.
    """
    rows = source.rows(metric)
    rows = rows[rows["agent"].notna()].sort_values(["step", "time"], kind="stable")
    last = rows.drop_duplicates(["cell", "model", "replica", "agent"], keep="last")
    agents = source.agents.rename(columns={"index": "agent"})[["cell", "replica", "agent", "records"]]
    table = last.astype({"agent": "int64"}).merge(
        agents.astype({"agent": "int64"}), on=["cell", "replica", "agent"]
    )
    if table["records"].nunique() < 2:
        raise InputError("all agents have the same number of records, so there is nothing to draw against")
    return table


def _edges(records: np.ndarray) -> np.ndarray:
    return np.unique(np.quantile(records, np.linspace(0, 1, BINS + 1)))


def _binned(group: pd.DataFrame, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean number of records and quartiles of the values in each group that has agents."""
    records, values = group["records"].to_numpy(dtype=float), group["value"].to_numpy(dtype=float)
    place = np.clip(np.searchsorted(edges, records, side="right") - 1, 0, len(edges) - 2)
    used = np.unique(place)
    x = np.array([records[place == k].mean() for k in used])
    low, median, high = np.array([quartiles(values[place == k][None, :])[:, 0] for k in used]).T
    return x, low, median, high
