"""Final values of every cell and model side by side, or against a number of the data that is swept (B figure 2c)."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from p2psim.errors import InputError
from p2psim.figure_names import MEASURED_AXES
from p2psim.report import notes, style
from p2psim.report.curves import finals, labels, quartiles
from p2psim.report.source import FITNESS, Source

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A log axis from this ratio of largest and smallest value on.
WIDE = 100

#: More rows than this cannot be read.
MOST_ROWS = 60


def draw_finals(source: Source) -> "dict[str, Figure]":
    """Medians with 25 to 75 % bars and means, of the metric asked for or of every metric but ψ.

    Raises
    ------
    InputError
        If the run has no such metric, has nothing to compare, or too much for a figure.
    """
    names = (
        [source.metric]
        if source.metric
        else [m for m in source.recorded() if m not in (FITNESS, *MEASURED_AXES.values())]
    )
    if not names:
        raise InputError(f"the run has no metric besides {FITNESS}; add one to record.metrics")
    return {f"finals-{name}": _figure(source, name) for name in names}


def _figure(source: Source, metric: str) -> "Figure":
    table = last_values(source, metric)
    rows = len(table[["cell", "model"]].drop_duplicates())
    if rows < 2:
        raise InputError(
            "there is nothing to compare: one cell and one model; sweep a key, or add learning.baselines"
        )
    key = _number_of_the_data(source, table) if source.key is None else swept_number(source, source.key)
    values = table["value"].to_numpy(dtype=float)
    finite = values[np.isfinite(values)]
    positive = bool(len(finite)) and bool(finite.min() > 0)
    log = positive and bool(finite.max() > WIDE * finite.min()) if source.log is None else source.log
    if key is None:
        if rows > MOST_ROWS:
            raise InputError(
                f"{rows} cells and models are too many for one figure; run fewer, or draw curves"
            )
        figure = _rows(source, metric, table, log)
    else:
        figure = _against(source, metric, table, key, log)
    many = sorted(table.groupby(["cell", "model"])["replica"].nunique().unique())
    remarks = [
        f"Last record: median and {source.band_words} of {notes.between(list(map(int, many)))} replicas; diamond: mean."
    ]
    if bad := int((~np.isfinite(values)).sum()):
        remarks.append(f"{bad} of {len(values)} replicas end infinite or undefined, counted as +∞.")
    if log:
        remarks += notes.hidden_note([values])
    style.add_footnote(figure, [*remarks, *notes.run_notes(source)])
    return figure


def last_values(source: Source, metric: str) -> pd.DataFrame:
    """Final values as `finals` gives them, of all agents where the run has that; equal baselines of cells only once."""
    table = finals(source, metric)
    own = source.rows(metric)
    if own["agent"].isna().any() and own["agent"].notna().any():
        narrowed = source.metrics[(source.metrics["metric"] != metric) | source.metrics["agent"].isna()]
        table = finals(_with(source, narrowed), metric)
    return table


def _with(source: Source, metrics: pd.DataFrame) -> Source:
    from dataclasses import replace

    return replace(source, metrics=metrics)


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


def _rows(source: Source, metric: str, table: pd.DataFrame, log: bool) -> "Figure":
    groups = _once(table, source.swept)
    named = [style.broken(label or "main") for label, _ in groups]
    figure = style.new_figure(7.6, 1.6 + sum(0.14 + 0.18 * len(lines) for lines in named))
    axes = figure.add_subplot()
    kinds = list(dict.fromkeys(str(group["model"].iloc[0]) for _, group in groups))
    if log:
        axes.set_xscale("log", nonpositive="mask")
    for row, (_, group) in enumerate(groups):
        look = style.line_style(kinds.index(str(group["model"].iloc[0])))
        values = group["value"].to_numpy(dtype=float)
        low, median, high = quartiles(values[None, :], source.band)[:, 0]
        axes.plot([low, high], [row, row], color=look["color"], linewidth=2.2, solid_capstyle="butt")
        axes.plot([median], [row], color=look["color"], marker=look["marker"], markersize=7, linestyle="none")
        _mean(axes, values.mean(), row)
    axes.set_yticks(range(len(groups)), ["\n".join(lines) for lines in named], fontsize="small")
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set_xlabel(style.metric_label(metric))
    figure.set_figwidth(5.2 + 0.085 * max(len(line) for lines in named for line in lines))
    title = style.wrapped(
        source.title(f"{metric.replace('_', ' ')} at the end"),
        int(figure.get_figwidth() / style.TITLE_CHARACTER),
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return figure


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
    axes.set_xlabel(style.key_label(key))
    ticks = sorted(set(table[key].astype(float).tolist()))
    if source.key is None:
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    else:
        style.number_axis(axes, ticks)
    axes.set_ylabel(style.metric_label(metric))
    style.add_title(axes, source.title(f"{metric.replace('_', ' ')} at the end"))
    style.add_legend(figure, axes)
    return figure
