"""Last values over two swept keys, and utility against the privacy spent."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from p2psim.core.errors import InputError
from p2psim.core.figure_names import MEASURED_AXES
from p2psim.report import notes, panels, scales, style
from p2psim.report.channels import MOST_PANELS, Plan, dimensions
from p2psim.report.curves import finals, quartiles_of
from p2psim.report.source import FITNESS, Source
from p2psim.report.words import by_worth, is_fraction, number, words
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
        If fewer than two keys are swept, or there are too few values or too many panels.
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
    figure, grid = panels.new_panels(len(titles), across.name, sharey=True)
    finite = median[np.isfinite(median)]
    log = scales.is_log(source.log, finite, is_fraction(metric))
    norm = LogNorm(float(finite[finite > 0].min()), float(finite.max())) if log else None
    small = max(6.0, 0.75 * style.page().font)
    for axes, title in zip(grid, titles, strict=True):
        values = pd.DataFrame(np.nan, index=range(len(down)), columns=range(len(across)))
        for cell, value in median.items():
            if panel[int(str(cell))] == title:
                values.iloc[down.position[int(str(cell))], across.position[int(str(cell))]] = value
        written = values.map(lambda value: number(float(f"{value:.2g}")) if np.isfinite(value) else "")
        longest = max(len(text) for text in written.to_numpy().ravel())
        room = 0.55 * style.page().width * 72 / scales.columns_of(axes) / len(across)
        few = values.size <= WRITTEN and longest * 0.6 * small <= room
        limits = {"norm": norm} if norm else {"vmin": float(finite.min()), "vmax": float(finite.max())}
        sns.heatmap(
            values, ax=axes, cmap="viridis" if rises(metric) else "viridis_r", cbar=False,
            annot=written if few else None, fmt="", linewidths=0.5, xticklabels=False, yticklabels=False,
            annot_kws={"fontsize": small}, **limits,
        )  # fmt: skip
        axes.set(xlabel=across.name if axes is grid[-1] or len(grid) < 4 else "", ylabel="")
        scales.label_cells(axes, across.texts, down.texts)
        panels.name(axes, title)
        for at, text in enumerate(down.labels):
            x = across.numbers if across.numbers is not None else np.arange(len(across))
            style.note(axes, text, x, values.iloc[at])
    panels.name_values(figure, grid, down.name)
    bar = figure.colorbar(grid[0].collections[0], ax=grid)
    high = int(0.55 * figure.get_figheight() * 72 / (0.56 * style.page().font))
    bar.set_label(style.in_lines(style.metric_label(metric), min(high, 40)))
    counts = table.groupby("cell")["replica"].nunique().tolist()
    remark = f"n = {notes.replicas(counts)}; colour: median of the last record."
    remarks = [remark, *notes.not_drawn(median.to_numpy(dtype=float), log)]
    panels.finish(figure, source, f"{words(metric)} at the end", remarks)
    return {f"heatmap-{metric}": figure}


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
    scales.fit_values(axes, values, scales.is_log(source.log, values, is_share), is_share)
    points: dict[int, list[tuple[float, float]]] = {}
    thick = 0.2 * style.page().font
    for cell, sample in rows:
        line, x = plan.of_cell[int(str(cell))], along[int(str(cell))]
        low, median, high = quartiles_of([sample], source.quantile)[:, 0]
        axes.vlines(x, low, high, color=line.look["color"], alpha=0.5, linewidth=thick)
        points.setdefault(line.number, []).append((x, float(median)))
        style.note(axes, line.label, x, median, low, high)
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
    remark = f"n = {notes.replicas(counts)}; point: median, bar: {source.band_words}."
    panels.finish(figure, source, f"{words(metric)} against the privacy spent", [remark])
    return {f"front-{metric}": figure}


def pareto(points: np.ndarray, rising: bool) -> tuple[np.ndarray, np.ndarray]:
    """Points of which none is better at a price that is as low."""
    x, y = points[np.lexsort((-points[:, 1] if rising else points[:, 1], points[:, 0]))].T
    best = np.maximum.accumulate(y) if rising else np.minimum.accumulate(y)
    kept = (y == best) & np.concatenate([[True], best[1:] != best[:-1]])
    return x[kept], y[kept]
