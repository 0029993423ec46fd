"""Last values over two swept keys, and utility against the privacy spent."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.core.figures import MEASURED_AXES
from p2psim.report import notes, panels, scales, style
from p2psim.report.channels import MOST_PANELS, Dimension, Plan, dimensions
from p2psim.report.curves import finals, quartiles_of
from p2psim.report.figures.finals import draw_spread
from p2psim.report.source import FITNESS, Float, Source
from p2psim.report.words import SUPERSCRIPTS, by_worth, is_fraction, number, words
from p2psim.runs.summary import rises

#: Cells of a heat map that have their number written in them.
WRITTEN = 60

BUDGET = "privacy.epsilon"


def metric_of(source: Source) -> str:
    """The metric asked for, ψ, or the first that says how good models are."""
    recorded = [name for name in source.recorded() if name not in MEASURED_AXES.values()]
    return source.metric or by_worth(recorded or [FITNESS])[0]


def draw_heatmap(source: Source) -> dict[str, Figure]:
    """Medians of last values, a colour for each combination of two swept keys, and a panel for each of the others.

    Raises
    ------
    InputError
        If fewer than two keys are swept, there are too few values or too many panels, or no value is finite.
    """
    dims = sorted(dimensions(source), key=lambda dim: dim.numbers is None)
    if len(dims) < 2 or len(dims[0]) * len(dims[1]) < 6:
        raise InputError("a heat map needs two swept keys, with at least six combinations")
    metric, (across, down, *others) = metric_of(source), dims
    table = finals(source, metric)
    table = table[table["model"] == "main"]
    median = table.groupby("cell")["value"].median()
    panel = {cell: ", ".join(dim.labels[dim.position[cell]] for dim in others) for cell in across.position}
    titles = list(dict.fromkeys(panel.values()))
    if len(titles) > MOST_PANELS // 2:
        raise InputError(f"{len(titles)} panels are too many for one figure; --facet KEY draws several")
    if not np.isfinite(median).any():
        raise InputError(
            f"{metric} ends undefined or infinite in every cell, so that there is nothing to colour"
        )
    maps = {
        title: pd.DataFrame(np.nan, index=range(len(down)), columns=range(len(across))) for title in titles
    }
    for cell, value in median.items():
        at = int(str(cell))
        maps[panel[at]].iloc[down.position[at], across.position[at]] = value
    log = scales.is_log(source.log, median[np.isfinite(median)], is_fraction(metric))
    figure = draw_maps(maps, across, down, metric, log)[0]
    counts = table.groupby("cell")["replica"].nunique().tolist()
    remark = f"n = {notes.replicas(counts)}; colour: median of the last record."
    remarks = [remark, *notes.not_drawn(median.to_numpy(dtype=float), log)]
    panels.finish(figure, source, f"{words(metric)} at the end", remarks)
    return {f"heatmap-{metric}": figure}


def draw_maps(
    maps: Mapping[str, pd.DataFrame], across: Dimension, down: Dimension, metric: str, log: bool
) -> tuple[Figure, list[Axes]]:
    """Draw a panel for each map by its title, with one colour bar; numbers ascend upwards.

    Where numbers are written in cells, a power of ten that makes them shorter stands at the colour bar.

    Parameters
    ----------
    maps : mapping
        Values by title of the panel: a row for each value of ``down``, a column for each of ``across``.
    across, down : Dimension
    metric : str
    log : bool
        Whether colours are.
    """
    figure, grid = panels.new_panels(len(maps), across.name, sharey=True)
    every = np.concatenate([values.to_numpy(dtype=float).ravel() for values in maps.values()])
    finite = every[np.isfinite(every)]
    power = _power(finite)
    limits: dict[str, Any] = {"vmin": float(finite.min()), "vmax": float(finite.max())}
    limits = {name: end / 10**power for name, end in limits.items()}
    if log:
        limits = {"norm": LogNorm(float(finite[finite > 0].min()) / 10**power, limits["vmax"])}
    small = max(6.0, 0.75 * style.page().font)
    for axes, (title, values) in zip(grid, maps.items(), strict=True):
        scaled = values / 10**power
        written = scaled.map(_in_a_cell)
        longest = max(len(text) for text in written.to_numpy().ravel())
        room = 0.55 * style.page().width * 72 / scales.columns_of(axes) / len(across)
        few = values.size <= WRITTEN and longest * 0.6 * small <= room
        sns.heatmap(
            scaled, ax=axes, cmap="viridis" if rises(metric) else "viridis_r", cbar=False,
            annot=written if few else None, fmt="", linewidths=0.5, xticklabels=False, yticklabels=False,
            annot_kws={"fontsize": small}, **limits,
        )  # fmt: skip
        if down.numbers is not None:
            axes.set_ylim(0, len(down))
        axes.set(xlabel=across.name if axes is grid[-1] or len(grid) < 4 else "", ylabel="")
        scales.label_cells(axes, across.texts, down.texts)
        panels.name(axes, title)
        for at, text in enumerate(down.labels):
            x = across.numbers if across.numbers is not None else np.arange(len(across))
            style.note(axes, text, x, values.iloc[at])
    panels.name_values(figure, grid, down.name)
    bar = figure.colorbar(grid[0].collections[0], ax=grid)
    high = int(0.55 * figure.get_figheight() * 72 / (0.56 * style.page().font))
    label = style.metric_label(metric)
    if power:
        name, comma, rest = label.partition(",")
        label = f"{name} in units of 10{str(power).translate(SUPERSCRIPTS)}{comma}{rest}"
    bar.set_label(style.in_lines(label, min(high, 40)))
    return figure, grid


def _in_a_cell(value: float) -> str:
    """Two digits that count: ``0.90``, ``5.8``, ``94``, ``9.4·10⁻⁵``; empty for what is not finite."""
    if not np.isfinite(value):
        return ""
    rounded = float(f"{value:.2g}")
    if not 1e-4 <= abs(rounded) < 1000:
        return number(rounded)
    return f"{rounded:.{max(0, 1 - math.floor(math.log10(abs(rounded))))}f}".replace("-", "−")


def _power(values: Float) -> int:
    """Which power of ten, a multiple of 3, makes all values short numbers; 0 where none is needed, or none does."""
    sizes = np.abs(values[values != 0])
    if not sizes.size or (sizes.min() >= 1e-3 and sizes.max() < 1e4):
        return 0
    power = 3 * math.floor(math.log10(sizes.max()) / 3)
    return power if sizes.min() >= 1e-3 * 10.0**power else 0


def draw_front(source: Source) -> dict[str, Figure]:
    """How good models are against the ε that they cost; black: nothing else is better and cheaper.

    Raises
    ------
    InputError
        If cells did not spend at least two different finite ε.
    """
    metric = metric_of(source)
    columns = [
        name for name in source.ledger if str(name).startswith("epsilon_") and name != "epsilon_claimed"
    ]
    if not columns:
        raise InputError("the ledger has no ε, so there is no front to draw")
    spent = source.ledger.groupby("cell")[columns].max().max(axis=1)  # as tables show it
    spent = spent[np.isfinite(spent) & (spent > 0)]
    if spent.round(9).nunique() < 2:
        message = "a front needs cells that spend at least two different finite ε; sweep privacy.epsilon"
        raise InputError(message)
    along = {int(str(cell)): float(x) for cell, x in spent.items()}
    plan = Plan(source, without=[key for key in source.swept if key.startswith(BUDGET)], panels=False)
    panels.too_many(plan)
    table = finals(source, metric).query("model == 'main'")
    figure, axes = style.new_axes()
    samples = ((cell, rows["value"].to_numpy(dtype=float)) for cell, rows in table.groupby("cell"))
    rows = [(cell, sample) for cell, sample in samples if cell in along]
    values = np.concatenate([sample for _, sample in rows])
    is_share = is_fraction(metric)
    is_log = scales.is_log(source.log, values, is_share)
    scales.fit_values(axes, values, is_log, is_share)
    points: dict[int, list[tuple[float, float]]] = {}
    few = notes.are_few(sample.size for _, sample in rows)
    for cell, sample in rows:
        line, x = plan.of_cell[int(str(cell))], along[int(str(cell))]
        draw_spread(axes, source, line.label, line.look, np.array([x]), [sample], few)
        median = quartiles_of([sample])[1, 0]
        points.setdefault(line.number, []).append((x, float(median)))
    for number_of_line, pairs in sorted(points.items()):
        line = plan.lines[number_of_line]
        xs, ys = np.array(sorted(pairs)).T
        axes.plot(xs, ys, label=line.label or plan.source.main, **line.look)
    if len(points) > 1:
        xs, ys = pareto(np.array([pair for pairs in points.values() for pair in pairs]), rises(metric))
        thin = 0.09 * style.page().font
        axes.step(xs, ys, where="post", color="black", linewidth=thin, label="best of all", zorder=1)
        style.note(axes, "best of all", xs, ys)
    scales.number_axis(axes, list(along.values()), swept=False)
    axes.set(
        xlabel="privacy spent ε (largest of all agents and replicas), lower is better",
        ylabel=style.in_lines(style.metric_label(metric), 44),
    )
    if len(points) > 1:
        style.add_legend(figure, axes)
    counts = table.groupby("cell")["replica"].nunique().tolist()
    remarks = [notes.spread(source, counts, "bar"), *notes.not_drawn(values, is_log)]
    panels.finish(figure, source, f"{words(metric)} against the privacy spent", remarks)
    return {f"front-{metric}": figure}


def pareto(points: np.ndarray, rising: bool) -> tuple[np.ndarray, np.ndarray]:
    """Points of which none is better at a price that is as low."""
    x, y = points[np.lexsort((-points[:, 1] if rising else points[:, 1], points[:, 0]))].T
    best = np.maximum.accumulate(y) if rising else np.minimum.accumulate(y)
    kept = (y == best) & np.concatenate([[True], best[1:] != best[:-1]])
    return x[kept], y[kept]
