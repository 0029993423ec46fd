"""What the network did, and what was learned, against a number of the network that is swept, such as airtime."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from p2psim.errors import InputError
from p2psim.figure_names import MEASURED_AXES
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, style
from p2psim.report.curves import finals, labels
from p2psim.report.panels import apart, entitle, name, panels
from p2psim.report.source import Source
from p2psim.study.intervals import Interval, mean_interval

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
