"""Final values against a positive quantity, log-log, with fitted slope and the fitted shape of F (11).

`draw_epsilon` draws ψ against ε (F figure 4), and `draw_size` ψ against the number of records n (F figure 5). Flat ends
of a log-log curve are left out of the fit. The interval of the slope of medians is a bootstrap over replicas.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from p2psim.core.errors import InputError
from p2psim.report import notes, panels, scales, style
from p2psim.report.channels import Line, Plan
from p2psim.report.curves import finals, parts_of, quartiles_of
from p2psim.report.source import FITNESS, Float, Source
from p2psim.report.words import words
from p2psim.theory.bounds.shape import ShapeBound, fit_shape, inverse_square_sum
from p2psim.theory.noise_floor import PowerLaw, fit_power_law

BOUND_DASHES: tuple[int, tuple[float, ...]] = (0, (1, 1.6))
LIMIT_DASHES: tuple[int, tuple[float, ...]] = (0, (6, 2, 1, 2))

#: F (11) has local slopes between −1 and −2 in ε and in n. Where ψ is flatter than half the smaller one at an
#: end of the range, noise fills Θ (left) or something other than noise is left (right): no slope is taken
#: there.
FLAT = 0.5


def straight_part(x: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
    """Which points, ordered by x, lie outside flat ends of a log-log curve.

    Two neighbours at an end whose local slope is below `FLAT` in size are both left out, and so on inwards.
    """
    slopes = np.abs(np.diff(np.log(np.asarray(y, dtype=float))) / np.diff(np.log(np.asarray(x, dtype=float))))
    keep = np.ones(len(slopes) + 1, dtype=bool)
    for order in (range(len(slopes)), range(len(slopes) - 1, -1, -1)):
        for i in order:
            if slopes[i] >= FLAT:
                break
            keep[i] = keep[i + 1] = False
    return keep


@dataclass(frozen=True)
class Points:
    """One line of the figure: quartiles over replicas at each x, and what was fitted.

    Attributes
    ----------
    line : Line
    x, low, median, high : ndarray, shape (m,)
        Finite x in ascending order, and quartiles of the replicas' final values.
    used : ndarray of bool, shape (m,)
        Points that the fits use.
    records, inverse_squares : ndarray, shape (m,)
        n and Σ1/ε_i² of the cell of each point.
    limit : float or None
        Median where x is infinite.
    counts : tuple of int
        Replicas of each cell of the line, that of the limit included.
    interval : (low, high) or None
        95 % interval of the slope; None where there is none.
    samples : list of ndarray
        Final values at each x.
    """

    line: Line
    x: Float
    low: Float
    median: Float
    high: Float
    used: NDArray[np.bool_]
    records: Float
    inverse_squares: Float
    limit: float | None
    counts: tuple[int, ...]
    interval: tuple[float, float] | None
    samples: list[Float]

    @property
    def label(self) -> str:
        """What tells it from others."""
        return self.line.label

    @property
    def known(self) -> NDArray[np.bool_]:
        """Points whose budgets and records say something, shape (m,)."""
        return np.isfinite(self.inverse_squares) & (self.inverse_squares > 0) & (self.records > 0)

    def slope(self) -> PowerLaw | None:
        """The fitted power law; None if fewer than two points can be used."""
        return fit_power_law(self.x[self.used], self.median[self.used]) if self.used.sum() >= 2 else None

    def bound(self) -> ShapeBound | None:
        """The fitted F (11); None where budgets or records say nothing, or fewer than two points remain."""
        fitted = self.used & self.known
        if fitted.sum() < 2:
            return None
        return fit_shape(self.records[fitted], self.inverse_squares[fitted], self.median[fitted])


def records_of_cells(source: Source) -> "pd.Series[float]":
    """n, the records of all owners, by cell."""
    return _owners(source.agents, "index")["records"].sum().astype(float)


def budgets_of_cells(source: Source) -> "pd.Series[float]":
    """Σ1/ε_i² over the owners, by cell, from the budgets in the ledger; NaN where one is unknown."""
    budgets = _owners(source.ledger, "agent")["budget"]
    return budgets.agg(lambda of_cell: inverse_square_sum(of_cell.to_numpy(dtype=float, na_value=np.nan)))


def _owners(table: pd.DataFrame, agent: str) -> Any:
    """Rows of the owners, by cell, in its first replica."""
    first = table["replica"] == table.groupby("cell")["replica"].transform("min")
    return table[first & (table[agent] >= 0)].groupby("cell", sort=True)


def points(source: Source, metric: str, x_of_cell: "pd.Series[float]", hide: Sequence[str]) -> list[Points]:
    """Collect lines of final values: cells that agree in all swept keys but those hidden, which the axis stands for.

    An infinite x is a limit. Keys that advance together with x (``zip``) would leave one point a line; then all cells
    form one line.
    """
    table = finals(source, metric)
    of_cells = {"x": x_of_cell, "n": records_of_cells(source), "squares": budgets_of_cells(source)}
    table = table.assign(**{name: table["cell"].map(known) for name, known in of_cells.items()})
    table = table.dropna(subset="x")
    along = {int(cell): float(x) for cell, x in x_of_cell.items()}  # type: ignore[call-overload]
    plan = Plan(source, without=hide, along=along, panels=False)
    panels.too_many(plan)
    out = []
    for line, model, group in parts_of(table, plan):
        if model != "main":
            continue
        counts = tuple(map(int, group.groupby(["x", "cell"], sort=True).size()))
        limits = group.loc[np.isposinf(group["x"]), "value"].to_numpy(dtype=float)
        limit = float(quartiles_of([limits])[1, 0]) if len(limits) else None
        cells = group[np.isfinite(group["x"])].groupby(["x", "cell"], sort=True)
        samples = [values.to_numpy(dtype=float) for _, values in cells["value"]]
        x, n, squares = cells[["x", "n", "squares"]].first().to_numpy(dtype=float, na_value=np.nan).T
        low, median, high = quartiles_of(samples, source.quantile)
        used = np.isfinite(median) & (median > 0)
        if len(np.unique(x[used])) == used.sum():
            used[used] = straight_part(x[used], median[used])
        interval = None
        if len(np.unique(x[used])) > 1:
            replicas = [of_cell.to_numpy(dtype=np.int64) for _, of_cell in cells["replica"]]
            interval = slope_interval(x[used], list(compress(samples, used)), list(compress(replicas, used)))
        out.append(Points(line, x, low, median, high, used, n, squares, limit, counts, interval, samples))
    return out


#: Resamples: ends of a 95 % interval then move by about 3 % of its width from seed to seed.
RESAMPLES = 2000

#: The interval of a median lies between the extremes of its sample, which miss it with probability 2^(1−n): for
#: fewer replicas it cannot reach 90 %.
FEWEST = 5


def slope_interval(
    x: ArrayLike, values: Sequence[Float], replicas: Sequence[NDArray[np.int64]], seed: int = 0
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of the log-log slope of medians over replicas, 95 %.

    A replica is drawn as a whole, for all x at once: cells share random numbers, so that its values go up and down
    together. Where they are independent, the interval is as right.

    Parameters
    ----------
    x : array_like, shape (m,)
        Positive; at least two differ.
    values : sequence of m ndarrays
        Final values at each x.
    replicas : sequence of m ndarrays of int
        Whose they are.
    seed : int
        Of the resampling, so that a figure is the same each time that it is drawn.

    Returns
    -------
    (low, high), or None
        None where a point has fewer than `FEWEST` replicas, or resamples have medians without a logarithm.

    Notes
    -----
    Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), section 13.3. Which points the fit uses is
    taken as given.
    """
    if min(v.size for v in values) < FEWEST:
        return None
    names = np.unique(np.concatenate(replicas))
    held = np.full((len(values), names.size), np.nan)
    for row, (sample, which) in enumerate(zip(values, replicas, strict=True)):
        # Undefined values count as +∞; NaN now marks a replica that the point has not.
        held[row, np.searchsorted(names, which)] = np.where(np.isnan(sample), np.inf, sample)
    draws = np.random.default_rng(seed).integers(0, names.size, (RESAMPLES, names.size))
    medians = np.stack([_medians(row[draws]) for row in held])
    if not (np.isfinite(medians).all() and (medians > 0).all()):
        return None
    logs = np.log(np.asarray(x, dtype=float))
    centred = logs - logs.mean()
    slopes = centred @ np.log(medians) / (centred @ centred)
    low, high = np.quantile(slopes, [0.025, 0.975])
    return float(low), float(high)


def _medians(drawn: Float) -> Float:
    """Median of each row of what it holds; infinite where that decides, NaN where it holds nothing."""
    ordered = np.sort(drawn, axis=1)  # NaN last
    count = drawn.shape[1] - np.isnan(drawn).sum(axis=1)
    rows = np.arange(len(drawn))
    return np.where(count, (ordered[rows, (count - 1) // 2] + ordered[rows, count // 2]) / 2, np.nan)


def _draw(
    source: Source, metric: str, x_of_cell: "pd.Series[float]", hide: Sequence[str], name: str, symbol: str
) -> dict[str, Figure]:
    """Draw lines of points with bars, slopes and fitted bounds, against a quantity with a name and a symbol."""
    lines = points(source, metric, x_of_cell, hide)
    figure, axes = style.new_axes()
    axes.set_xscale("log")
    few = min(count for line in lines for count in line.counts) < notes.FEW
    values = np.concatenate(
        [v for line in lines for v in (line.samples if few else (line.low, line.median, line.high))]
    )
    limits = [line.limit for line in lines if line.limit is not None]
    scales.fit_values(axes, np.concatenate([values, limits]), bool(np.any(values > 0)))
    for line in lines:
        _draw_points(axes, line, line.line.look, few)
    scales.number_axis(axes, np.concatenate([line.x for line in lines]))
    bounds = [line.bound() if metric == FITNESS else None for line in lines]
    for line, bound in zip(lines, bounds, strict=True):
        _draw_fits(axes, line, bound, line.line.look["color"])
    # One entry for all lines of a sort, in grey: colour and marker already tell the lines apart.
    if any(bound is not None for bound in bounds):
        axes.plot([], [], color="0.3", linestyle=BOUND_DASHES, label="fitted F (11)")
    if limits:
        label = "no noise" if symbol == "ε" else f"{symbol} = ∞"
        axes.plot([], [], color="0.3", linestyle=LIMIT_DASHES, label=label)
    axes.set(xlabel=style.AXIS_LABELS[name], ylabel=style.in_lines(f"final {style.metric_label(metric)}", 44))
    style.add_legend(figure, axes)
    fitted = any(line.slope() is not None for line in lines)
    remarks = [notes.spread(source, [count for line in lines for count in line.counts], "bar")]
    known = any(line.interval is not None for line in lines)
    remarks[0] += f" Slopes: least squares{', 95 % by the bootstrap' * known}." if fitted else ""
    if any((np.isfinite(line.median) & (line.median > 0) & ~line.used).any() for line in lines):
        remarks.append("Hollow points lie on a flat end and are in no fit.")
    # Undefined at the end, a model has diverged.
    last = np.concatenate([sample for line in lines for sample in line.samples])
    remarks += notes.not_drawn(np.where(np.isnan(last), np.inf, last), log=True)
    panels.finish(figure, source, f"final {words(metric)} against {symbol}", remarks)
    stem = "size" if name == "records" else name
    return {stem if metric == FITNESS else f"{stem}-{metric}": figure}


def _draw_points(axes: Axes, line: Points, look: dict[str, Any], few: bool) -> None:
    # Masked where a log axis has no place for them; the footnote counts them.
    quartiles = (line.low, line.median, line.high)
    low, median, high = (np.where(np.isfinite(v) & (v > 0), v, np.nan) for v in quartiles)
    colour = look["color"]
    drawn = np.isfinite(median)
    if few:
        for x, sample in zip(line.x, line.samples, strict=True):
            at = np.full(sample.size, x)
            style.mark(axes, at, sample, look["marker"], 3, colour, alpha=0.5, markeredgewidth=0)
            style.note(axes, f"{line.label or 'median'}, replicas", at, sample)
        style.note(axes, line.label or "median", line.x, line.median)
    else:
        axes.vlines(
            line.x[drawn], low[drawn], high[drawn], color=colour, linewidth=0.2 * style.page().font, alpha=0.6
        )
        style.note(axes, line.label or "median", line.x, line.median, line.low, line.high)
    for used, face in ((line.used, colour), (~line.used, "white")):
        edge = {"markerfacecolor": face, "markeredgecolor": colour, "markeredgewidth": 1.4, "zorder": 3}
        style.mark(axes, line.x[used], median[used], look["marker"], 7, colour, **edge)
    if line.limit is not None and np.isfinite(line.limit) and line.limit > 0:
        axes.axhline(line.limit, color=colour, linestyle=LIMIT_DASHES)
    label, slope = line.label or "median", line.slope()
    if slope is not None:
        label += f": slope {_number(slope.slope)}"
        if line.interval is not None:
            label += f" [{_number(line.interval[0])}, {_number(line.interval[1])}]"
    dashes = "-" if slope is not None else "none"
    axes.plot([], [], color=colour, marker=look["marker"], linestyle=dashes, label=label)


def _draw_fits(axes: Axes, line: Points, bound: ShapeBound | None, colour: Any) -> None:
    slope, known = line.slope(), line.known
    if slope is not None:
        ends = line.x[line.used][[0, -1]]
        axes.plot(ends, slope(ends), color=colour, linestyle="-")
    if bound is None:
        return
    # Between the first and last point; log-log interpolation is exact for powers of x.
    x = np.geomspace(line.x[known][0], line.x[known][-1], 60)
    at = np.log(line.x[known])
    columns = (line.records[known], line.inverse_squares[known])
    n, total = (np.exp(np.interp(np.log(x), at, np.log(column))) for column in columns)
    axes.plot(x, bound(n, total), color=colour, linestyle=BOUND_DASHES)


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


KEY = "privacy.epsilon"


def draw_epsilon(source: Source) -> dict[str, Figure]:
    """Medians with 25 to 75 % bars, slope with its interval, and the fitted F (11), log-log.

    Raises
    ------
    InputError
        If the run does not sweep ``privacy.epsilon`` over at least two numbers.
    """
    metric = source.metric or FITNESS
    rows = source.rows(metric)
    if KEY not in source.swept:
        swept = ", ".join(source.swept) or "nothing"
        message = f"the run has no sweep over {KEY} (it sweeps {swept}); add `sweep: {{{KEY}: [1, 10, 100]}}`"
        raise InputError(message)
    cells = rows.drop_duplicates("cell").set_index("cell")[KEY]
    values = pd.to_numeric(cells, errors="coerce").astype(float)
    if (other := cells[values.isna()]).size:
        raise InputError(f"{KEY} must be one number for all owners in every cell, got {other.iloc[0]}")
    if values[np.isfinite(values)].nunique() < 2:
        raise InputError(f"{KEY} must take at least two finite values, got {sorted(values.unique())}")
    return _draw(source, metric, values, [KEY], "epsilon", "ε")


def draw_size(source: Source) -> dict[str, Figure]:
    """Medians with 25 to 75 % bars, slope with its interval, and the fitted F (11), log-log.

    n counts the records of all owners, from the agents' table, whichever key of the data is swept.

    Raises
    ------
    InputError
        If all cells have the same number of records.
    """
    metric = source.metric or FITNESS
    rows = source.rows(metric)
    records = records_of_cells(source)
    records = records[records > 0]
    sizes = np.unique(records[records.index.isin(rows["cell"])])
    if len(sizes) < 2:
        given = f"every cell has n = {sizes[0]:g}" if sizes.size else "the agents' table has none"
        cure = "sweep a key of data.partition, for instance its sizes"
        raise InputError(f"the run has no sweep over the number of records ({given}); {cure}")
    # The keys that set n are those whose value says which n a cell has, and that alone.
    heads = rows.drop_duplicates("cell")
    n = heads["cell"].map(records)
    of_data = [key for key in source.swept if key.startswith("data.")]
    setters = [key for key in of_data if n.groupby(heads[key]).nunique().max() == 1]
    return _draw(source, metric, records, setters, "records", "n")
