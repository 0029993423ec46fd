"""Quantiles over replicas along the run, and last values, read row group by row group: few rows are in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from p2psim.core.errors import InputError
from p2psim.core.events import number_column, numbers_of
from p2psim.runs.system import available_cores

if TYPE_CHECKING:
    import pandas as pd


def curves(path: Path, metric: str, quantiles: Sequence[float], axis: str, checked: bool) -> pd.DataFrame:
    """Table of `Result.curves` without the swept columns.

    Parameters
    ----------
    path : Path
        ``metrics.parquet``.
    metric, quantiles, axis
        As there.
    checked : bool
        Whether the checksum of each page is computed.
    """
    import pandas as pd

    if axis not in ("step", "time") or not all(0 <= level <= 1 for level in quantiles):
        given = f"{axis!r} and {list(quantiles)}"
        raise InputError(f"curves go along 'step' or 'time', with quantiles from 0 to 1; got {given}")
    names = ["median" if level == 0.5 else f"q{100 * level:g}" for level in quantiles]
    pieces = []
    for cell, rows in _by_cell(path, metric, axis, checked):
        models = sorted(pc.unique(rows["model"]).to_pylist())
        for model in models:
            mine = rows.filter(pc.equal(rows["model"], model)) if len(models) > 1 else rows
            at, counts, levels = _quantiles(_columns(mine, axis), quantiles)
            columns: dict[str, Any] = {"cell": cell, "model": model, axis: at, "replicas": counts}
            pieces.append(pd.DataFrame(columns | dict(zip(names, levels, strict=True))))
    return pd.concat(pieces, ignore_index=True)


def _by_cell(path: Path, metric: str, axis: str, checked: bool) -> Iterator[tuple[int, pa.Table]]:
    """Rows of a metric, cell by cell."""
    columns, known = ["cell", "replica", "model", "agent", "metric", axis, "value"], set[str]()
    pieces: list[pa.Table] = []
    cell = -1
    with pq.ParquetFile(path, page_checksum_verification=checked) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=columns)
            names = set(pc.unique(rows["metric"]).to_pylist())
            known |= names
            if metric not in names:
                continue
            rows = rows.filter(pc.equal(rows["metric"], metric)) if len(names) > 1 else rows
            cells = rows["cell"].to_numpy()
            for begin, end in pairwise([0, *(np.flatnonzero(np.diff(cells)) + 1).tolist(), len(cells)]):
                if pieces and cells[begin] != cell:
                    yield cell, pa.concat_tables(pieces)
                    pieces.clear()
                cell = int(cells[begin])
                pieces.append(rows.slice(begin, end - begin))
    if not pieces:
        raise InputError(f"{path}: no metric {metric!r} was recorded; known: {', '.join(sorted(known))}")
    yield cell, pa.concat_tables(pieces)


def _columns(rows: pa.Table, axis: str) -> list[np.ndarray]:
    """Replicas, moments and values, replica by replica: of all agents, or the mean over agents where there are none."""
    if 0 < rows["agent"].null_count < len(rows):
        rows = rows.filter(pc.is_null(rows["agent"]))
    if not rows["agent"].null_count:
        each = rows.select(["agent", "replica", axis, "value"]).to_pandas()
        each = each.drop_duplicates(["agent", "replica", axis], keep="last")
        means = each.groupby(["replica", axis])["value"].mean().reset_index()
        return [means[name].to_numpy() for name in ("replica", axis, "value")]
    columns = [rows[name].to_numpy() for name in ("replica", axis, "value")]
    # Of records at the same moment the last one.
    follows = (np.diff(columns[0]) == 0) & (np.diff(columns[1]) == 0)
    return [column[np.append(~follows, True)] for column in columns] if follows.any() else columns


def _quantiles(
    columns: Sequence[np.ndarray], levels: Sequence[float]
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Moments, how many values each has, and their quantiles, as pandas interpolates them; NaN is no value."""
    replica, at, value = columns
    size = int(np.argmax(replica != replica[0])) or len(at)
    rows = at.reshape(-1, size) if len(at) % size == 0 else at[None]
    if (rows == rows[0]).all() and (np.diff(rows[0]) > 0).all():  # the same moments in all replicas
        moments, starts = rows[0], np.arange(size) * len(rows)
        ordered = np.sort(np.ascontiguousarray(value.reshape(-1, size).T), axis=1).ravel()
    else:
        order = np.lexsort((value, at))
        moments, starts = np.unique(at[order], return_index=True)
        ordered = value[order]
    counts, quantiles = quantiles_of(ordered, starts, levels)
    return moments, counts, quantiles


def quantiles_of(
    ordered: np.ndarray, starts: np.ndarray, levels: Sequence[float]
) -> tuple[np.ndarray, list[np.ndarray]]:
    """How many values each group has, and their quantiles, as pandas interpolates them; NaN is no value.

    Parameters
    ----------
    ordered : ndarray, shape (n,)
        Values, group by group, ascending in each; NaN last.
    starts : ndarray of int
        Where each group begins.
    levels : sequence of float
    """
    counts = np.add.reduceat(~np.isnan(ordered), starts, dtype=np.int64)
    quantiles = []
    for level in levels:
        place = level * np.maximum(counts - 1, 0)
        low, high = (ordered[starts + side(place).astype(np.int64)] for side in (np.floor, np.ceil))
        with np.errstate(invalid="ignore"):
            between = low + (high - low) * (place % 1)
        # Between two infinities interpolation gives no number: the lower of them.
        quantiles.append(np.where(np.isnan(between) | (low == high), low, between))
    return counts, quantiles


def ends(path: Path, keys: Sequence[str], checked: bool) -> pa.Table:
    """Rows of the metrics that are the last of a stretch of equal keys and agent: keys, ``agent`` and ``value``.

    Rows of a series follow each other: of millions of rows, thousands are left.

    Parameters
    ----------
    path, checked
        As for `curves`.
    keys : sequence of str
        Columns of words, or of numbers that are not negative.
    """
    keys = list(dict.fromkeys([*keys, "agent"]))
    with pq.ParquetFile(path) as file:
        groups = np.arange(file.num_row_groups)
    shares = np.array_split(groups, min(len(groups), available_cores()))
    # Each thread has a file of its own.
    with ThreadPoolExecutor(len(shares)) as several:
        return pa.concat_tables(several.map(partial(_ends_of, path, keys, checked), shares))


def _ends_of(path: Path, keys: Sequence[str], checked: bool, groups: Sequence[int]) -> pa.Table:
    """Table of `ends`, of some row groups: the last rows of stretches and of groups."""
    with pq.ParquetFile(path, page_checksum_verification=checked) as file:
        pieces = []
        for group in groups:
            rows = file.read_row_group(group, columns=[*keys, "value"])
            last = np.arange(rows.num_rows) == rows.num_rows - 1
            for key in keys:
                column = rows[key].unify_dictionaries().combine_chunks()
                if column.null_count == len(column):
                    continue
                codes = numbers_of(column.indices if pa.types.is_dictionary(column.type) else column)
                if column.null_count:
                    codes = np.nan_to_num(codes, nan=-1)
                last[:-1] |= codes[1:] != codes[:-1]
            pieces.append(rows.filter(number_column(last)))
        return pa.concat_tables(pieces)


def last_values(metrics: pa.Table, keys: Sequence[str]) -> list[np.ndarray]:
    """Columns of `Result.last_values`: keys, by which rows are sorted, and values; last come means over agents."""
    codes, known = zip(*(_coded(metrics[key]) for key in (*keys, "agent")), strict=True)
    of_all, value = numbers_of(metrics["agent"].is_null()), numbers_of(metrics["value"])
    metric, code = codes[keys.index("metric")], codes[0]
    for more, words in zip(codes[1:-1], known[1:], strict=False):
        code = code * len(words) + more
    single, agents = ~of_all & ~np.isin(metric, metric[of_all]), len(known[-1])
    groups, ends = _last_of_each(code[of_all])
    of_agents, last = _last_of_each(code[single] * agents + codes[-1][single])
    each, starts = np.unique(of_agents // max(agents, 1), return_index=True)
    columns = _columns_of(np.append(groups, each), known[:-1])
    names = columns[keys.index("metric")]
    names[groups.size :] += " (mean over agents)"
    return [*columns, np.append(value[of_all][ends], _means(value[single][last], starts))]


def _coded(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Place of each entry among the sorted values, and these."""
    if not pa.types.is_dictionary(column.type):
        values, codes = np.unique(numbers_of(column), return_inverse=True)
        return codes, values
    whole = column.unify_dictionaries().combine_chunks()
    words, places = np.unique(np.array(whole.dictionary.to_pylist(), object), return_inverse=True)
    return places[numbers_of(whole.indices)], words


def _columns_of(code: np.ndarray, known: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Values of which a code was put together."""
    columns = []
    for values in reversed(known):
        columns.append(values[code % max(len(values), 1)])
        code = code // max(len(values), 1)
    return columns[::-1]


def _last_of_each(code: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted codes, and the place at which each stands last."""
    found, back = np.unique(code[::-1], return_index=True)
    return found, code.size - 1 - back


def _means(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Mean of each stretch of values; NaN is no value."""
    known = ~np.isnan(values)
    sums, counts = (
        np.add.reduceat(np.where(known, values, 0.0), starts),
        np.add.reduceat(known, starts, dtype=int),
    )
    with np.errstate(invalid="ignore"):
        return sums / counts
