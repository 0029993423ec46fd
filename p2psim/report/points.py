"""Final values against a positive quantity: quartiles over replicas, and the slope of a power law with its interval.

Flat ends of a log-log curve are left out of the fit. The interval of the slope of medians is a bootstrap over replicas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from p2psim.report.curves import finals, labels, quartiles
from p2psim.report.source import Source
from p2psim.theory.bounds.shape import ShapeBound, fit_shape, inverse_square_sum
from p2psim.theory.noise_floor import PowerLaw, fit_power_law

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.float64]

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
    label : str
        What distinguishes it from others.
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
    not_finite : int
        Replicas with an infinite or undefined final value.
    interval : (low, high) or None
        95 % interval of the slope; None where there is none.
    """

    label: str
    x: Float
    low: Float
    median: Float
    high: Float
    used: NDArray[np.bool_]
    records: Float
    inverse_squares: Float
    limit: float | None
    counts: tuple[int, ...]
    not_finite: int
    interval: tuple[float, float] | None

    def slope(self) -> PowerLaw | None:
        """The fitted power law; None if fewer than two points can be used."""
        return fit_power_law(self.x[self.used], self.median[self.used]) if self.used.sum() >= 2 else None

    def bound(self) -> ShapeBound | None:
        """The fitted F (11); None where budgets or records say nothing, or fewer than two points remain."""
        known = (
            self.used & np.isfinite(self.inverse_squares) & (self.inverse_squares > 0) & (self.records > 0)
        )
        if known.sum() < 2:
            return None
        return fit_shape(self.records[known], self.inverse_squares[known], self.median[known])


def records_of_cells(source: Source) -> dict[int, float]:
    """n, the records of all owners, of each cell."""
    agents = source.agents
    first = agents[agents["replica"] == agents.groupby("cell")["replica"].transform("min")]
    owners = first[first["index"] >= 0]
    sums = owners.groupby("cell", sort=True)["records"].sum()
    return dict(zip(map(int, sums.index.to_numpy()), map(float, sums.to_numpy(dtype=float)), strict=True))


def budgets_of_cells(source: Source) -> dict[int, float]:
    """Σ1/ε_i² over the owners of each cell, from the budgets in the ledger; NaN where one is unknown."""
    ledger = source.ledger
    first = ledger[ledger["replica"] == ledger.groupby("cell")["replica"].transform("min")]
    owners = first[first["agent"] >= 0]
    return {
        int(owned["cell"].iloc[0]): inverse_square_sum(owned["budget"].to_numpy(dtype=float, na_value=np.nan))
        for _, owned in owners.groupby("cell", sort=True)
    }


def points(
    source: Source, metric: str, x_of_cell: Mapping[int, float], hide: Sequence[str] = ()
) -> list[Points]:
    """Collect lines: cells that agree in all swept keys but the one on the axis.

    Keys that advance together with x (``zip``) would leave one point a line; then all cells form one line.

    Parameters
    ----------
    source : Source
        The run.
    metric : str
        Whose final values.
    x_of_cell : mapping
        x of each cell; infinite for a limit.
    hide : sequence of str
        The swept keys that the axis stands for.
    """
    table = finals(source, metric)
    table = table.assign(x=table["cell"].map(dict(x_of_cell))).dropna(subset="x")
    others = [key for key in source.swept if key not in hide]
    grouped = _lines(table, others)
    records, budgets = records_of_cells(source), budgets_of_cells(source)
    out = []
    for label, group in grouped:
        counts = group.groupby(["x", "cell"], sort=True).size()
        bad = int((~np.isfinite(group["value"].to_numpy(dtype=float))).sum())
        finite = group[np.isfinite(group["x"])]
        limits = group.loc[np.isposinf(group["x"]), "value"].to_numpy(dtype=float)
        limit = float(quartiles(limits[None, :])[1, 0]) if len(limits) else None
        parts = [part for _, part in finite.groupby(["x", "cell"], sort=True)]
        q = np.array(
            [quartiles(part["value"].to_numpy(dtype=float)[None, :], source.band)[:, 0] for part in parts]
        )
        q = q.reshape(len(parts), 3)
        cells = [int(part["cell"].iloc[0]) for part in parts]
        x = np.array([float(part["x"].iloc[0]) for part in parts])
        used = np.isfinite(q[:, 1]) & (q[:, 1] > 0)
        if len(np.unique(x[used])) == used.sum():
            used[used] = straight_part(x[used], q[used, 1])
        kept = [part for part, is_used in zip(parts, used, strict=True) if is_used]
        out.append(
            Points(
                label=label, x=x, low=q[:, 0], median=q[:, 1], high=q[:, 2], used=used,
                records=np.array([records.get(c, np.nan) for c in cells]),
                inverse_squares=np.array([budgets.get(c, np.nan) for c in cells]),
                limit=limit, counts=tuple(map(int, counts)), not_finite=bad, interval=_interval(x[used], kept),
            )
        )  # fmt: skip
    return out


def _interval(x: Float, parts: "Sequence[pd.DataFrame]") -> tuple[float, float] | None:
    """Interval of the slope over these points, where two of them differ in x."""
    if len(np.unique(x)) < 2:
        return None
    values = [part["value"].to_numpy(dtype=float) for part in parts]
    return slope_interval(x, values, [part["replica"].to_numpy(dtype=np.int64) for part in parts])


def _lines(table: "pd.DataFrame", others: list[str]) -> "list[tuple[str, pd.DataFrame]]":
    keys = [*others, "model"]
    groups = [group for _, group in table.groupby(keys, sort=False, observed=True, dropna=False)]
    if all(group["x"].nunique() < 2 for group in groups) and table["x"].nunique() > 1:
        keys = ["model"]
        groups = [group for _, group in table.groupby(keys, sort=False, observed=True)]
    named = labels(keys[:-1], table)
    return [(named[tuple(group[keys].iloc[0])], group) for group in groups]


#: Resamples: ends of a 95 % interval then move by about 3 % of its width from seed to seed.
RESAMPLES = 2000

#: The interval of a median lies between the extremes of its sample, which miss it with probability 2^(1−n): for
#: fewer replicas it cannot reach 90 %.
FEWEST = 5


def slope_interval(
    x: ArrayLike,
    values: Sequence[Float],
    replicas: Sequence[NDArray[np.int64]],
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Percentile bootstrap interval of the log-log slope of medians over replicas.

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
    level : float
        Confidence in (0, 1).
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
    for row, (own, which) in enumerate(zip(values, replicas, strict=True)):
        # Undefined values count as +∞; NaN now marks a replica that the point has not.
        held[row, np.searchsorted(names, which)] = np.where(np.isnan(own), np.inf, own)
    draws = np.random.default_rng(seed).integers(0, names.size, (RESAMPLES, names.size))
    medians = np.stack([_medians(row[draws]) for row in held])
    if not (np.isfinite(medians).all() and (medians > 0).all()):
        return None
    logs = np.log(np.asarray(x, dtype=float))
    centred = logs - logs.mean()
    slopes = centred @ np.log(medians) / (centred @ centred)
    low, high = np.quantile(slopes, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _medians(drawn: Float) -> Float:
    """Median of each row of what it holds; infinite where that decides, NaN where it holds nothing."""
    ordered = np.sort(drawn, axis=1)  # NaN last
    count = drawn.shape[1] - np.isnan(drawn).sum(axis=1)
    rows = np.arange(len(drawn))
    return np.where(count, (ordered[rows, (count - 1) // 2] + ordered[rows, count // 2]) / 2, np.nan)
