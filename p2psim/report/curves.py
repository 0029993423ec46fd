"""Quantiles over replicas along the run, and final values, from the tidy metrics table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from p2psim.report import style
from p2psim.report.channels import Line, Plan
from p2psim.report.notes import FEW
from p2psim.report.source import BAND, Against, Float, Source
from p2psim.report.words import numbers_of

#: Points of the common grid of an axis on which replicas have no points in common.
POINTS, UNEVEN = 201, ("time", "epsilon")

T = TypeVar("T")

#: Labels that are not drawn, each with that of the same curve.
Alike = list[tuple[str, str]]


@dataclass(frozen=True)
class Drawn(Generic[T]):
    """Something drawn of a line of a plan, or of a baseline.

    Attributes
    ----------
    line : Line
        Of a baseline, the line of the same cells.
    model : str
        ``main``, or the name of a baseline.
    label : str
        What tells it from the others.
    panels : tuple of int
        In which it is drawn: a baseline that is the same everywhere in all of them.
    what : object
    """

    line: Line
    model: str
    label: str
    panels: tuple[int, ...]
    what: T

    @property
    def is_main(self) -> bool:
        """Whether it is the run's own model."""
        return self.model == "main"

    def end(self, value: float, main: str) -> tuple[float, str, Any]:
        """Where its line ends, its name there (``main`` where nothing else tells it), and its colour."""
        if self.is_main:
            return value, self.line.short or main, self.line.look["color"]
        return value, self.label, style.REFERENCE


def parts_of(table: pd.DataFrame, plan: Plan) -> Iterator[tuple[Line, str, pd.DataFrame]]:
    """Line, model and rows of each part of a table with a column ``cell``, in the order of the plan."""
    lines = table["cell"].map({cell: line.number for cell, line in plan.of_cell.items()})
    for (number, model), rows in table.groupby([lines, table["model"].astype(str)], sort=True):
        yield plan.lines[int(str(number))], str(model), rows


def drawn(plan: Plan, parts: Iterable[tuple[Line, str, T, Hashable]]) -> tuple[list[Drawn[T]], Alike]:
    """What is to be drawn, each once, and which labels are left out since others are the same.

    Parameters
    ----------
    plan : Plan
    parts : iterable of (line, model, what is drawn, what tells whether the same is drawn)
    """
    kept: dict[tuple[Any, ...], Drawn[T]] = {}
    alike: Alike = []
    everywhere = tuple(range(len(plan.titles)))
    listed = list(parts)
    models = {model for _, model, *_ in listed}
    for line, model, what, same in listed:
        if model == "main":
            label = line.label or (plan.source.main if len(models) > 1 else "")
            key: tuple[Any, ...] = (model, line.panel, same)
            if key in kept:
                alike.append((kept[key].line.short, line.short))
                continue
            kept[key] = Drawn(line, model, label, (line.panel,), what)
            continue
        known = {other for _, name, _, other in listed if name == model}
        name = model.replace("-", " ")
        if len(known) == 1:
            kept.setdefault((model,), Drawn(line, model, name, everywhere, what))
        else:
            label = f"{name}, {line.label}" if line.label else name
            kept.setdefault((model, line.panel, same), Drawn(line, model, label, (line.panel,), what))
    return list(kept.values()), list(dict.fromkeys(alike))


@dataclass(frozen=True)
class MetricCurve:
    """Median and band along one line.

    Attributes
    ----------
    x : ndarray, shape (m,)
        Steps or times, as far as half of the replicas got.
    low, median, high : ndarray, shape (m,)
        Quantiles over replicas, by default 25 %, 50 % and 75 %; of a metric that only single agents have, of its
        mean over them. NaN where the metric is undefined in all.
    each : ndarray, shape (m, replicas)
    held : int
        Replicas that ended before the last x and are held at their last value.
    agents : int
        Agents a replica's values are the mean of; 1 for global metrics.
    """

    x: Float
    low: Float
    median: Float
    high: Float
    each: Float
    held: int
    agents: int

    @property
    def replicas(self) -> int:
        """How many replicas there are."""
        return self.each.shape[1]

    @property
    def values(self) -> Float:
        """Finite values that are drawn."""
        few = self.replicas < FEW
        shown = self.each.ravel() if few else np.concatenate([self.low, self.median, self.high])
        return shown[np.isfinite(shown)]


def quartiles(values: Float, band: tuple[float, float] = BAND) -> Float:
    """Lower edge, median and upper edge of each row, by default 25 %, 50 % and 75 %: shape (m, r) to (3, m).

    Undefined values count as +infinity (diverged). Where a row has an infinite value the quantile is one
    of its values, since there is nothing between a number and infinity.
    """
    levels = (band[0], 0.5, band[1])
    clean = np.where(np.isnan(values), np.inf, values)
    plain = np.all(np.isfinite(clean), axis=1)
    out = np.empty((3, len(clean)))
    out[:, plain] = np.quantile(clean[plain], levels, axis=1)
    out[:, ~plain] = np.quantile(clean[~plain], levels, axis=1, method="inverted_cdf")
    return out


def quartiles_of(samples: Sequence[Float], band: tuple[float, float] = BAND) -> Float:
    """The same of samples that may differ in size, shape (3, samples)."""
    each = [quartiles(np.asarray(sample, dtype=float)[None, :], band)[:, 0] for sample in samples]
    return np.array(each).reshape(-1, 3).T


def samples_by(table: pd.DataFrame, key: str) -> tuple[Float, list[Float]]:
    """Numbers in a column in rising order, and the values of the rows that have each."""
    parts = list(table.groupby(key, sort=True)["value"])
    return np.array([float(str(x)) for x, _ in parts]), [values.to_numpy(dtype=float) for _, values in parts]


def is_number(column: pd.Series[Any]) -> bool:
    """Whether a swept key is a number in every cell, with at least two values."""
    numbers = numbers_of(column.tolist())
    return numbers is not None and bool(np.isfinite(numbers).all()) and np.unique(numbers).size > 1


def curves(source: Source, metric: str, plan: Plan | None = None) -> list[Drawn[MetricCurve]]:
    """One curve for each line and model of a metric; equal ones only once."""
    return all_curves(source, metric, plan or Plan(source))[0]


def all_curves(source: Source, metric: str, plan: Plan) -> tuple[list[Drawn[MetricCurve]], Alike]:
    """The same, and which lines are the same as others."""
    parts = []
    for line, model, group in parts_of(source.placed_rows(metric), plan):
        x, values, held = _on_one_grid(group, source.against)
        low, median, high = _defined(values, source.quantile)
        agents = int(group["agent"].nunique(dropna=False))
        curve = MetricCurve(x, low, median, high, values, held, agents)
        # What a baseline keeps for ever is the same, however far the run went.
        constant = model != "main" and bool((median == median[-1]).all())
        ends = tuple(np.round([low[-1], median[-1], high[-1]], 12))
        parts.append((line, model, curve, ends if constant else (x.tobytes(), values.tobytes())))
    return drawn(plan, parts)


def _defined(values: Float, band: tuple[float, float]) -> Float:
    """Quantiles of each row over what is defined in it; NaN where nothing is."""
    defined = ~np.isnan(values)
    out = np.full((3, len(values)), np.nan)
    whole = defined.all(axis=1)
    out[:, whole] = quartiles(values[whole], band)
    for row in np.flatnonzero(~whole & defined.any(axis=1)):
        out[:, row] = quartiles(values[row, defined[row]][None, :], band)[:, 0]
    return out


def _on_one_grid(group: pd.DataFrame, against: Against) -> tuple[Float, Float, int]:
    """Values (grid, replica), means over agents, between records interpolated, and how many replicas end early."""
    parts = [
        (replica, part.sort_values(["step", "time"], kind="stable").drop_duplicates("x", keep="last"))
        for (replica, _), part in group.groupby(["replica", "agent"], sort=True, dropna=False)
    ]
    xs = [part["x"].to_numpy(dtype=float) for _, part in parts]
    of = np.array([replica for replica, _ in parts])
    ends = np.sort(
        [max(x[-1] for x, other in zip(xs, of, strict=True) if other == one) for one in np.unique(of)]
    )
    # As far as half of the replicas go: what is held beyond would be no result.
    end = ends[len(ends) // 2]
    grid = np.unique(np.concatenate(xs))
    if against in UNEVEN and len(grid) > max(map(len, xs)) + len(xs):
        grid = np.linspace(0.0 if against == "epsilon" else grid[0], end, POINTS)
    grid = grid[grid <= end]
    at = _held if against == "epsilon" else _between
    samples = [part["value"].to_numpy(dtype=float) for _, part in parts]
    stacked = np.stack([at(x, sample, grid) for x, sample in zip(xs, samples, strict=True)])
    means = [stacked[of == replica].mean(axis=0) for replica in np.unique(of)]
    early = {replica for x, replica in zip(xs, of, strict=True) if x[-1] < grid[-1]}
    return grid, np.stack(means, axis=1), len(early)


def _held(x: Float, y: Float, grid: Float) -> Float:
    """Each value until the next: privacy is spent at once."""
    return y[np.maximum(np.searchsorted(x, grid, side="right") - 1, 0)]


def _between(x: Float, y: Float, grid: Float) -> Float:
    """Values between records, on straight lines; NaN before the first that is defined.

    Undefined afterwards, a model has diverged: infinite.
    """
    defined = np.flatnonzero(~np.isnan(y))
    if not defined.size:
        return np.full(grid.size, np.nan)
    start = defined[0]
    x, y = x[start:], np.where(np.isnan(y), np.inf, y)[start:]
    finite = np.isfinite(y)
    out = np.interp(grid, x, np.where(finite, y, 0.0))
    if not finite.all():
        out[np.interp(grid, x, (~finite).astype(float)) > 0] = np.inf
    if start:
        out[grid < x[0]] = np.nan
    return out


def finals(source: Source, metric: str) -> pd.DataFrame:
    """The last value of each (cell, model, replica): that of all agents, or the mean over single ones.

    Columns: cell, model, replica, value, and the swept ones. Undefined values stay, and so do averages
    that have one.
    """
    rows = source.rows_of_all(metric)
    by = ["cell", "model", "replica"]
    # One step may be recorded more than once, at different times: the last counts.
    ordered = rows.sort_values(["step", "time"], kind="stable")
    kept = ordered.drop_duplicates([*by, "agent"], keep="last")
    aggregated = kept.groupby(by, sort=True, observed=True)["value"].agg(lambda v: v.mean(skipna=False))
    head = kept.drop_duplicates("cell").set_index("cell")[source.swept]
    return aggregated.reset_index().join(head, on="cell")
