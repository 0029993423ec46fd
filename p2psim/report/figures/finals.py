"""Final values: of every cell in rows, against a swept number, and as differences from a reference cell."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from p2psim.core.errors import InputError
from p2psim.core.figures import MEASURED_AXES
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report import notes, panels, scales, style
from p2psim.report.channels import Plan
from p2psim.report.curves import Alike, Drawn, drawn, finals, is_number, parts_of, quartiles_of, samples_by
from p2psim.report.source import FITNESS, Source, relabelled
from p2psim.report.words import is_fraction, key_label, words

#: Confidence of the interval of each difference.
CONFIDENCE = 0.95

Ends = list[Drawn[pd.DataFrame]]


def draw_finals(source: Source) -> dict[str, Figure]:
    """Medians with bars, of the metric asked for or of every metric but ψ.

    Metrics of the network are panels of one figure.

    Raises
    ------
    InputError
        If the run has no such metric, or has nothing to compare.
    """
    elsewhere = (FITNESS, *MEASURED_AXES.values())
    names = [metric for metric in source.recorded() if metric not in elsewhere]
    if source.metric:
        names = [source.metric]
    if not names:
        raise InputError(f"the run has no metric besides {FITNESS}; add one to record.metrics")
    if len(source.rows(names[0])[["cell", "model"]].drop_duplicates()) < 2:
        raise InputError(
            "there is nothing to compare: one cell and one model; sweep a key, or add learning.baselines"
        )
    key = source.key and swept_number(source, source.key)
    key = key or _number_of_the_data(source, finals(source, names[0]))
    of_network = [name for name in names if name in NETWORK_METRICS]
    together = of_network if len(of_network) > 1 else []
    wanted = {f"finals-{name}": [name] for name in names if name not in together}
    if together:
        wanted["finals-network"] = together
    return {
        name: against_figure(source, metrics, key, _title(metrics)) if key else _rows(source, metrics)
        for name, metrics in wanted.items()
    }


def _title(metrics: Sequence[str]) -> str:
    return f"{words(metrics[0]) if len(metrics) == 1 else 'the network'} at the end"


def swept_number(source: Source, key: str) -> str:
    """The key, if the run sweeps it over numbers.

    Raises
    ------
    InputError
        If it does not.
    """
    source.check_swept(key)
    if pd.to_numeric(source.metrics[key], errors="coerce").isna().any():
        raise InputError(f"{key} must be a number in every cell to be an axis")
    return key


def _number_of_the_data(source: Source, table: pd.DataFrame) -> str | None:
    """A swept key of the data with at least two numbers, if there is just one."""
    keys = [key for key in source.swept if key.startswith("data.") and is_number(table[key])]
    return keys[0] if len(keys) == 1 else None


def ends_of(source: Source, metric: str, plan: Plan, key: str | None = None) -> tuple[Ends, Alike]:
    """Final values of each line and model of a plan, with the columns ``value`` and, of an axis, the key."""
    columns = ["value"] if key is None else [key, "value"]

    def same(rows: pd.DataFrame) -> tuple[float, ...]:
        values = rows[columns].astype(float).round(12)
        return tuple(values.sort_values(columns).to_numpy().ravel().tolist())

    table = finals(source, metric)
    return drawn(plan, ((line, model, rows, same(rows)) for line, model, rows in parts_of(table, plan)))


def draw_samples(
    axes: Axes,
    source: Source,
    label: str,
    look: dict[str, Any],
    x: np.ndarray,
    samples: Sequence[np.ndarray],
    up: bool = True,
) -> None:
    """Draw medians with bars over replicas; of few replicas each, small."""
    defined = [sample[~np.isnan(sample)] for sample in samples]
    known = np.array([sample.size > 0 for sample in defined])
    x, defined = x[known], [sample for sample in defined if sample.size]
    if not defined:
        return
    draw_spread(axes, source, label, look, x, defined, notes.are_few(map(len, defined)), up)
    median = quartiles_of(defined)[1]
    line = {**look, "linestyle": look["linestyle"] if up else "none"}
    axes.plot(*((x, median) if up else (median, x)), label=label, **line)


def draw_spread(
    axes: Axes,
    source: Source,
    label: str,
    look: Mapping[str, Any],
    x: np.ndarray,
    samples: Sequence[np.ndarray],
    few: bool,
    up: bool = True,
) -> None:
    """Draw bars over replicas, or each of a few, without the medians that both are about."""
    low, median, high = quartiles_of(samples, source.quantile)
    if few:
        for at, sample in zip(x, samples, strict=True):
            draw_each(axes, label, at, sample, look["color"], str(look["marker"]), up)
        style.note(axes, label, x, median)
    else:
        bars = axes.vlines if up else axes.hlines
        bars(x, low, high, color=look["color"], linewidth=0.2 * style.page().font, alpha=0.6)
        style.note(axes, label, x, median, low, high)


def draw_each(
    axes: Axes, label: str, at: float, sample: np.ndarray, color: Any, marker: str, up: bool = True
) -> None:
    """Draw each of few replicas small, where one of them is not all that there is."""
    places = np.full(len(sample), at)
    if len(sample) > 1:
        x, y = (places, sample) if up else (sample, places)
        style.mark(axes, x, y, marker, 3, color, alpha=0.5, markeredgewidth=0)
        style.note(axes, f"{label}, replicas", places, sample)


def against_figure(source: Source, metrics: Sequence[str], key: str, title: str) -> Figure:
    """Medians of last values against a swept number, a line for each combination of what else is swept."""
    metrics, constant = panels.changing(source, metrics)
    plan = Plan(source, without=[key])
    figure, grid = panels.metric_panels(plan, metrics, key_label(key, source.name_of(key)))
    shown: Ends = []
    alike: Alike = []
    lost: list[str] = []
    ends: list[tuple[float, str, object]] = []
    for row, metric in zip(grid, metrics, strict=True):
        of_metric, same = ends_of(source, metric, plan, key)
        looks = panels.references(of_metric)
        mains = [one for one in of_metric if one.is_main] or of_metric
        values = np.concatenate([one.what["value"].to_numpy(dtype=float) for one in mains])
        if np.ptp(values) == 0:  # nothing was learnt, so that the baselines are what there is to see
            values = np.concatenate([one.what["value"].to_numpy(dtype=float) for one in of_metric])
        log = scales.is_log(source.log, values, is_fraction(metric))
        for panel, axes in enumerate(row):
            scales.fit_values(axes, values, log, is_fraction(metric))
            scales.number_axis(axes, source.metrics[key].astype(float))
            for one in of_metric:
                if panel not in one.panels:
                    continue
                x, samples = samples_by(one.what, key)
                if one.is_main:
                    draw_samples(axes, source, one.label or words(metric), one.line.look, x, samples)
                else:
                    medians = quartiles_of(samples)[1]
                    axes.plot(x, medians, label=one.label, **looks[one.model])
                    style.note(axes, one.label, x, medians)
        visible, note = panels.on_scale(
            row, of_metric, lambda table: quartiles_of(samples_by(table, key)[1])[1], metric
        )
        last = [float(np.nanmedian(samples_by(one.what, key)[1][-1])) for one in visible]
        ends = [one.end(value, source.main) for one, value in zip(visible, last, strict=True)]
        lost += note
        if len(metrics) == 1:
            panels.name_values(figure, row, style.metric_label(metric))
            alike += same
            lost += notes.not_drawn(values, log)
        shown += visible
    every = [axes for row in grid for axes in row]
    panels.explain(figure, every, plan, shown, ends if len(shown) > 1 else ())
    panels.finish(figure, source, title, [_spread(source, metrics[0]), *constant, *lost, *notes.alike(alike)])
    return figure


def _spread(source: Source, metric: str) -> str:
    counts = source.rows_of_all(metric).groupby(["cell"])["replica"].nunique().tolist()
    return notes.spread(source, counts, "bar", int(source.rows_of_all(metric)["agent"].nunique()) or 1)


def _median(table: pd.DataFrame) -> np.ndarray:
    """The median of last values."""
    return quartiles_of([table["value"].to_numpy(dtype=float)])[1]


def _rows(source: Source, metrics: Sequence[str]) -> Figure:
    """A row for each value, or combination, of what no colour shows, and a panel for each metric."""
    metrics, constant = panels.changing(source, metrics)
    plan = Plan(source, panels=False)
    colour = plan.all[-1] if len(plan.all) > 1 and len(plan.all[-1]) <= 5 else None
    names: dict[str, int] = {}
    place: dict[int, tuple[int, int]] = {}
    for cell, line in plan.of_cell.items():
        parts = [dim.labels[dim.position[cell]] for dim in plan.all if dim is not colour]
        text = ", ".join(parts) or source.main
        names.setdefault(text, len(names))
        place[line.number] = (names[text], colour.position[cell] if colour else 0)
    shown_rows = list(names)[: panels.MOST_ROWS]
    figure, grid = panels.row_panels(shown_rows, len(metrics), len(colour) if colour else 1)
    shades = style.colours(len(colour), colour.numbers is not None) if colour else style.colours(1)
    count = len(colour) if colour else 1
    shown: Ends = []
    lost: list[str] = []
    for axes, metric in zip(grid, metrics, strict=True):
        of_metric, _ = ends_of(source, metric, plan)
        looks = panels.references(of_metric)
        mains = [one for one in of_metric if one.is_main] or of_metric
        values = np.concatenate([one.what["value"].to_numpy(dtype=float) for one in mains])
        if log := scales.is_log(source.log, values, is_fraction(metric)):
            axes.set_xscale("log", nonpositive="mask")
        table = finals(source, metric)
        # Equal lines have rows of their own all the same: a row that is missing would be looked for.
        for line, model, rows in parts_of(table, plan):
            row, shift = place[line.number]
            if model != "main" or row >= panels.MOST_ROWS:
                continue
            at = row + (0.0 if count == 1 else 0.66 * (shift / (count - 1) - 0.5))
            look = {"color": shades[shift], "marker": style.MARKERS[shift], "linestyle": "none"}
            name, sample = line.label or source.main, rows["value"].to_numpy(dtype=float)
            draw_samples(axes, source, name, look, np.array([at]), [sample], up=False)
        limits = axes.get_xlim()
        for one in of_metric:
            if one.is_main:
                continue
            middle = float(_median(one.what)[0])
            whole = len(one.panels) == len(plan.titles) and "," not in one.label
            at = place[one.line.number][0]
            ends = [-0.5, len(shown_rows) - 0.5] if whole else [at - 0.4, at + 0.4]
            axes.plot([middle, middle], ends, **looks[one.model])
            style.note(axes, one.label, at, middle)
        axes.set_xlim(limits)
        visible, note = panels.on_scale([axes] * len(plan.titles), of_metric, _median, metric, across=True)
        (scales.fitted_log_ticks if log else scales.few_ticks)(axes)
        size = style.characters(0.6 / min(len(metrics), style.fitting(2.4, 5)))
        axes.set_xlabel(style.in_lines(style.metric_label(metric), size))
        lost += note + (notes.not_drawn(values, log) if len(metrics) == 1 else [])
        shown += visible
    entries: list[tuple[str, object]] = [(colour.name, None)] if colour and colour.name else []
    if colour:
        entries += [
            (text, Line2D([], [], color=shades[i], marker=style.MARKERS[i], linestyle="none"))
            for i, text in enumerate(colour.texts)
        ]
    for model, look in panels.references(shown).items():
        entries.append((model.replace("-", " "), Line2D([], [], **look)))
    style.put_legend(figure, entries)
    remarks = [_spread(source, metrics[0]), *panels.left_out(len(names)), *constant, *lost]
    panels.finish(figure, source, _title(metrics), remarks)
    return figure


def draw_load(source: Source) -> dict[str, Figure]:
    """Medians at the end against a swept number of the network, a panel for each metric.

    Raises
    ------
    InputError
        If no number of the network is swept, or nothing was recorded that could be drawn.
    """
    keys = [key for key in source.swept if key.startswith("network.") and is_number(source.metrics[key])]
    if not keys:
        raise InputError("the run sweeps no number of the network, such as network.channel.airtime")
    axes, recorded = list(MEASURED_AXES.values()), source.recorded()
    last = [*(metric for metric in NETWORK_METRICS if metric not in axes), *axes]
    names = [metric for metric in recorded if metric not in last and not metric.endswith("]")]
    names += [metric for metric in last if metric in recorded]
    names = [source.metric] if source.metric else names
    if not names:
        raise InputError("the run recorded nothing to draw")
    several = len(keys) > 1
    return {
        f"load-{key.split('.')[-1]}" if several else "load": against_figure(
            source, names, key, f"the end of the run against {source.name_of(key)}"
        )
        for key in keys
    }


def draw_paired(source: Source) -> dict[str, Figure]:
    """Forest plot: a row for each cell that is not a reference, of the metric asked for or of each.

    Raises
    ------
    InputError
        If no reference is given, no cell is one, or there are too many others for a figure.
    """
    if not source.reference:
        raise InputError("give the cells to compare with: --reference KEY=VALUE, a swept key and its value")
    from p2psim.analysis.comparison import compare_within, reference_pairs

    if source.metric is not None:
        source.rows(source.metric)
    table = compare_within(source.result, source.reference, CONFIDENCE)
    table = relabelled(table, getattr(source.result, "labels", {}))
    last = source.result.last_values(["metric", "model", "cell", "replica"])
    # A metric of single agents is compared by its mean over them, and says so in its name.
    suffix = " (mean over agents)"
    table["metric"] = table["metric"].str.removesuffix(suffix)
    last = last.rename(index=lambda name: name.removesuffix(suffix), level="metric")
    base = {cell: other for other, cell in reference_pairs(source.result, source.reference)}
    names = [source.metric] if source.metric else list(dict.fromkeys(table["metric"]))
    return {
        f"paired-{metric}": _paired(source, metric, table[table["metric"] == metric], last.loc[metric], base)
        for metric in names
    }


def _paired(
    source: Source, metric: str, table: pd.DataFrame, last: "pd.Series[float]", base: Mapping[int, int]
) -> Figure:
    """A row for each of the table; ``last`` is by model, cell and replica, ``base`` the reference of each cell."""
    if len(table) > panels.MOST_ROWS:
        raise InputError(
            f"{len(table)} rows of cells and models are too many for one figure, which has up to {panels.MOST_ROWS}; "
            "p2psim compare RUN --reference KEY=VALUE prints all"
        )
    keys = [str(key) for key in source.swept]
    cells = source.metrics.drop_duplicates("cell").set_index("cell")[keys]
    plan = Plan(source, panels=False)
    by_values = {
        tuple(map(str, row)): int(cell) for cell, row in zip(cells.index, cells.to_numpy(), strict=True)
    }
    numbers = [by_values[tuple(map(str, row))] for row in table[keys].to_numpy()]
    names = [plan.of_cell[cell].label for cell in numbers]
    if table["model"].nunique() > 1:
        names = [
            f"{name}, {source.main if model == 'main' else model}"
            for name, model in zip(names, table["model"], strict=True)
        ]
    figure, (axes,) = panels.row_panels(names, 1)
    axes.axvline(0.0, color="0.25", linewidth=1.0)
    colour = style.colours(1)[0]
    few = notes.are_few(table["pairs"])
    rows = table[["model", "difference", "low", "high"]].itertuples(index=False, name=None)
    for row, (cell, (model, estimate, low, high)) in enumerate(zip(numbers, rows, strict=True)):
        face = colour if few or low > 0 or high < 0 else "white"
        if few:
            apart = (last[model, cell] - last[model, base[cell]]).to_numpy(dtype=float)
            draw_each(axes, names[row], row, apart[np.isfinite(apart)], colour, "o", up=False)
            style.note(axes, names[row], row, estimate)
        else:
            if np.isfinite([low, high]).all():
                style.bar(axes, row, low, high, colour)
            style.note(axes, names[row], row, estimate, low, high)
        style.mark(axes, [estimate], [row], "o", 7, colour, markerfacecolor=face, markeredgewidth=1.4)
    axes.set_xlabel(style.in_lines(f"difference of {style.metric_label(metric)}", style.characters(0.6)))
    pairs = notes.counted(table["pairs"].tolist(), "pair")
    shown = (
        ", each drawn; point: mean difference" if few else "; point: mean difference, bar: 95 % (Student's t)"
    )
    shown = "" if table["pairs"].max() == 1 else shown if few else f"{shown}; filled: without zero"
    remarks = [f"n = {pairs} of replicas{shown}."]
    if lost := int(table["not finite"].sum()):
        left = f"{notes.counted([lost], 'pair')} {'is' if lost == 1 else 'are'} left out"
        remarks.append(f"{left}, since one of the two ends infinite or undefined.")
    reference = ", ".join(source.said(key, value) for key, value in source.reference.items())
    panels.finish(figure, source, f"{words(metric)} at the end, less that with {reference}", remarks)
    return figure
