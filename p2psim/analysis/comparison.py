"""Differences between cells of two runs, or between the cells of one and a reference cell, with intervals.

Replicas are paired by their number: under common random numbers the two of a pair have the same clocks, channel, data
and unit noise, so what both share cancels in their difference. With other seeds nothing is shared, and the intervals
are those of independent samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
import pandas as pd

from p2psim.core.errors import InputError
from p2psim.core.intervals import Interval, mean_interval, median_interval, ratio_interval, welch_interval
from p2psim.runs.result import Result

_KEYS = ["cell", "model", "metric"]


def compare(a: Result, b: Result, confidence: float = 0.95) -> pd.DataFrame:
    """Differences b − a of the last recorded values, cell by cell.

    A cell of one run is compared with the cell of the other that has the same values of all keys that both sweep.

    Parameters
    ----------
    a, b : Result
    confidence : float
        Of each interval by itself, in (0, 1).

    Returns
    -------
    DataFrame
        One row a pair of cells, model and metric: the keys that either run sweeps, ``model``, ``metric``, ``a`` and
        ``b`` (means, of infinite values only where nothing else is left), ``difference`` with ``low`` and ``high``
        (Student's t on paired differences, Welch's on independent samples), ``median`` of the paired differences,
        infinite ones among them, with ``median low`` and ``median high`` (bootstrap),
        ``ratio`` b/a with ``ratio low`` and ``ratio high`` (geometric; where all values are positive), ``pairs``,
        ``not finite`` (pairs left out of means, since one of them diverged), ``correlation`` (of the pairs: 0 says that
        pairing gained nothing) and ``paired``.

    Raises
    ------
    InputError
        If no cells, models or metrics are common, or it cannot be told which cells belong together.
    """
    shared = [key for key in a.swept if key in b.swept]
    cells_b, cells_a = _by_values(b, shared), _by_values(a, shared)
    pairs = [(number, cells_b[values]) for values, number in cells_a.items() if values in cells_b]
    if not pairs:
        message = f"{a.path} and {b.path} have no cell in common; both sweep {', '.join(shared) or 'nothing'}"
        raise InputError(message)
    labels = [a.described.cells[i].swept | b.described.cells[j].swept for i, j in pairs]
    return _table(a, b, pairs, labels, a.described.seed == b.described.seed, confidence)


def compare_within(result: Result, reference: Mapping[str, Any], confidence: float = 0.95) -> pd.DataFrame:
    """Differences of each cell of one run from the one that has given values in place of its own.

    Parameters
    ----------
    result : Result
    reference : mapping
        Swept keys and their values in the cells to compare with; what else is swept is the same in both.
    confidence : float

    Returns
    -------
    DataFrame
        As `compare`, b being the cell of the row and a its reference.

    Raises
    ------
    InputError
        If the run does not sweep a key, or no cell has the value.
    """
    cells, pairs = result.described.cells, reference_pairs(result, reference)
    return _table(result, result, pairs, [cells[number].swept for _, number in pairs], True, confidence)


def reference_pairs(result: Result, reference: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Numbers of the reference cell and of the other of each pair of `compare_within`, which see for errors."""
    unknown = [key for key in reference if key not in result.swept]
    if unknown or not reference:
        known = ", ".join(result.swept) or "nothing"
        raise InputError(f"{result.path} does not sweep {', '.join(unknown)}; it sweeps {known}")
    for key, value in reference.items():
        values = dict.fromkeys(cell.swept[key] for cell in result.described.cells)
        if not any(_same(value, other) for other in values):
            raise InputError(f"{result.path}: {key} is never {value}; it is {', '.join(map(str, values))}")
    others = [key for key in result.swept if key not in reference]
    cells = result.described.cells
    of_reference = {
        tuple(cell.swept[key] for key in others): number
        for number, cell in enumerate(cells)
        if all(_same(value, cell.swept[key]) for key, value in reference.items())
    }
    bases = [of_reference.get(tuple(cell.swept[key] for key in others)) for cell in cells]
    pairs = [(base, number) for number, base in enumerate(bases) if base is not None and base != number]
    if not pairs:
        raise InputError(f"{result.path}: no other cell is left to compare with the reference")
    return pairs


def differing_keys(a: Result, b: Result) -> list[str]:
    """Keys that may differ within the pairs of `compare`, as far as comparability depends on them."""
    graphs = [result.scenario_tree.get("network", {}).get("topology") for result in (a, b)]
    fixed = [] if graphs[0] == graphs[1] else ["network.topology"]
    if any(key.startswith("network.topology") for key in {*a.swept} & {*b.swept}):
        fixed = []  # pairs have the same value of it
    return [*fixed, *sorted({*a.swept} ^ {*b.swept})]


def _same(given: Any, held: Any) -> bool:
    return given == held or str(given) == str(held)


def _by_values(result: Result, keys: Sequence[str]) -> dict[tuple[Any, ...], int]:
    """Number of the cell with each combination of values."""
    numbers: dict[tuple[Any, ...], int] = {}
    for number, cell in enumerate(result.described.cells):
        values = tuple(cell.swept[key] for key in keys)
        if values in numbers:
            others = [key for key in result.swept if key not in keys]
            raise InputError(
                f"{result.path}: several cells differ only in {', '.join(others)}, which the other run does not sweep; "
                "compare within the run, with --reference"
            )
        numbers[values] = number
    return numbers


def _table(
    a: Result,
    b: Result,
    pairs: Sequence[tuple[int, int]],
    labels: Sequence[Mapping[str, Any]],
    paired: bool,
    confidence: float,
) -> pd.DataFrame:
    if not 0 < confidence < 1:
        raise InputError(f"a confidence lies between 0 and 1, got {confidence}")
    of_a = _by_cell(a)
    of_b = of_a if b is a else _by_cell(b)
    rows = [
        {**label, "model": model, "metric": metric, **compared(values, other, paired, confidence)}
        for (cell_a, cell_b), label in zip(pairs, labels, strict=True)
        for (model, metric), values in of_a.get(cell_a, {}).items()
        if (other := of_b.get(cell_b, {}).get((model, metric))) is not None
    ]
    if not rows:
        raise InputError("the runs have no metric of the same model in common")
    return pd.DataFrame(rows)


def _by_cell(result: Result) -> dict[int, dict[tuple[str, str], pd.Series[float]]]:
    """The last values of each cell by model and metric."""
    groups: Any = result.last_values([*_KEYS, "replica"]).groupby(level=_KEYS, observed=True, sort=True)
    cells: dict[int, dict[tuple[str, str], pd.Series[float]]] = {}
    for (cell, model, metric), values in groups:
        cells.setdefault(int(cell), {})[str(model), str(metric)] = values.droplevel(_KEYS)
    return cells


def compared(
    of_a: pd.Series[float], of_b: pd.Series[float], paired: bool, confidence: float
) -> dict[str, Any]:
    """Numbers of two sides of a comparison, by replica: both means, and how they differ, with intervals."""
    if paired:
        both = of_a.index.intersection(of_b.index)
        of_a, of_b = of_a.loc[both], of_b.loc[both]
    every_a, every_b = (values.to_numpy(dtype=float) for values in (of_a, of_b))
    finite_a, finite_b = np.isfinite(every_a), np.isfinite(every_b)
    if paired:
        finite_a = finite_b = finite_a & finite_b
    a, b = every_a[finite_a], every_b[finite_b]
    lost = int((~finite_a).sum() if paired else (~finite_a).sum() + (~finite_b).sum())
    median = ratio = Interval(np.nan, np.nan, np.nan)
    correlation = np.nan
    with np.errstate(invalid="ignore"):  # ∞ − ∞ is undefined
        mean_a, mean_b = (float(np.mean(every)) if every.size else np.nan for every in (every_a, every_b))
        mean = Interval(mean_b - mean_a, np.nan, np.nan)
        apart = every_b - every_a if paired else np.empty(0)
    apart = apart[~np.isnan(apart)]
    if apart.size:
        median = median_interval(apart, confidence)
    if a.size and b.size:
        mean_a, mean_b = float(a.mean()), float(b.mean())
        mean = mean_interval(b - a, confidence) if paired else welch_interval(a, b, confidence)
        if paired and min(a.min(), b.min()) > 0:
            ratio = ratio_interval(a, b, confidence)
        if paired and a.size > 2 and np.ptp(a) > 0 and np.ptp(b) > 0:
            correlation = float(np.corrcoef(a, b)[0, 1])
    return {
        "a": mean_a,
        "b": mean_b,
        **dict(zip(("difference", "low", "high"), astuple(mean), strict=True)),
        **dict(zip(("median", "median low", "median high"), astuple(median), strict=True)),
        **dict(zip(("ratio", "ratio low", "ratio high"), astuple(ratio), strict=True)),
        "pairs": int(a.size if paired else min(a.size, b.size)),
        "not finite": lost,
        "correlation": correlation,
        "paired": paired,
    }


def short(table: pd.DataFrame) -> pd.DataFrame:
    """What a person is shown of a comparison: estimates with their intervals as text, and what they say."""
    shown = table.loc[:, :"b"].copy()
    for name, low, high in (("difference", "low", "high"), ("ratio", "ratio low", "ratio high")):
        texts = [_with_ends(*row) for row in table[[name, low, high]].itertuples(index=False, name=None)]
        shown[name] = pd.Series(texts, index=table.index, dtype=object)
    ends = ["a", "b", "low", "high", "ratio low", "ratio high", "pairs", "not finite"]
    shown["says"] = [_says(*row) for row in table[ends].itertuples(index=False, name=None)]
    return shown.join(table[["pairs", "not finite", "correlation"]])


def _with_ends(estimate: float, low: float, high: float) -> str:
    if np.isnan(estimate):
        return ""
    return f"{estimate:.3g}" if np.isnan(low) else f"{estimate:.3g} [{low:.3g}, {high:.3g}]"


def _verdict(low: float, high: float, equal: float) -> str:
    return "b is higher" if low > equal else "b is lower" if high < equal else "no difference shown"


def _says(
    a: float, b: float, low: float, high: float, ratio_low: float, ratio_high: float, pairs: int, lost: int
) -> str:
    """What both intervals say, or what each says where they differ: single pairs move a mean more than a ratio."""
    if not np.isnan(low):
        of_means = _verdict(low, high, 0.0)
        of_ratio = of_means if np.isnan(ratio_low) else _verdict(ratio_low, ratio_high, 1.0)
        return of_means if of_means == of_ratio else f"by ratio {of_ratio}; by means {of_means}"
    if pairs or not lost:
        return "too few replicas"
    if np.isnan([a, b]).any():
        return "undefined"
    if np.isinf([a, b]).all():
        return "both are infinite"
    return f"{'a' if np.isinf(a) else 'b'} is infinite"
