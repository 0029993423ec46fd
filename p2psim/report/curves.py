"""Percentile curves over replicas (and agents), and final values, from the tidy metrics table."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from p2psim.report.source import BAND, Against, Float, Source, as_text, named, short

#: Points of the common grid of an axis on which replicas have no points in common.
POINTS, UNEVEN = 201, ("time", "epsilon")

T = TypeVar("T")

#: Label and model of a part of a table, and what is drawn of it.
LabelledPart: TypeAlias = tuple[str, str, T]


@dataclass(frozen=True)
class MetricCurve:
    """Median and band along one line.

    Attributes
    ----------
    label : str
        What distinguishes the line from the others; empty when there is only one.
    model : str
        ``main``, or the name of a baseline.
    x : ndarray, shape (m,)
        Steps or times.
    low, median, high : ndarray, shape (m,)
        Quantiles over replicas, by default 25 %, 50 % and 75 %; of a metric that only single agents have, of its
        mean over them.
    mean : ndarray, shape (m,)
        Mean over replicas.
    replicas, not_finite, held : int
        Replicas; those with an infinite or undefined value somewhere; those that ended before the last x and
        are held at their last value.
    agents : int
        Agents a replica's values are the mean of; 1 for global metrics.
    """

    label: str
    model: str
    x: Float
    low: Float
    median: Float
    high: Float
    mean: Float
    replicas: int
    not_finite: int
    held: int
    agents: int


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


def labels(keys: Sequence[str], cells: pd.DataFrame) -> dict[tuple[Any, ...], str]:
    """A short label for each distinct row (value of each key…, model) of a table."""
    table = cells[[*keys, "model"]].drop_duplicates()
    parts = values_of_rows(keys, [table[key] for key in keys], len(table))
    if table["model"].nunique() > 1:
        parts = [[*row, str(model)] for row, model in zip(parts, table["model"], strict=True)]
    return dict(zip(table.itertuples(index=False, name=None), map(", ".join, parts), strict=True))


def values_of_rows(keys: Sequence[str], columns: Sequence[Iterable[Any]], rows: int) -> list[list[str]]:
    """What legends say of each row of some columns of swept values: ``key = value`` for each key."""
    texts = [distinct([as_text(value) for value in column]) for column in columns]
    return [
        [named(name, text[row]) for name, text in zip(short_names(keys), texts, strict=True)]
        for row in range(rows)
    ]


def labelled(
    table: pd.DataFrame, keys: Sequence[str], by: Sequence[str] = ()
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Label, model and rows of each part of a table: by keys and model in their order, or sorted by other columns."""
    named = labels(keys, table)
    columns = list(by) or [*keys, "model"]
    for _, part in table.groupby(columns, sort=bool(by), observed=True, dropna=bool(by)):
        head = tuple(part[[*keys, "model"]].iloc[0])
        yield named[head], str(head[-1]), part


def once(parts: Iterable[LabelledPart[T]], what: Callable[[T], Hashable]) -> list[LabelledPart[T]]:
    """Leave out baselines of which the same is drawn as before; one that is the same everywhere has its model's name.

    Parameters
    ----------
    parts : iterable of (label, model, what is drawn)
    what : callable
        Returns what tells whether the same is drawn.
    """
    kept: list[LabelledPart[T]] = []
    known = defaultdict[str, set[Hashable]](set)
    for label, model, drawn in parts:
        if model == "main" or what(drawn) not in known[model]:
            kept.append((label, model, drawn))
        known[model].add(what(drawn))
    return [
        (model if model != "main" and len(known[model]) == 1 else label, model, drawn)
        for label, model, drawn in kept
    ]


def samples_by(table: pd.DataFrame, key: str) -> tuple[Float, list[Float]]:
    """Numbers in a column in rising order, and the values of the rows that have each."""
    parts = list(table.groupby(key, sort=True)["value"])
    return np.array([float(str(x)) for x, _ in parts]), [values.to_numpy(dtype=float) for _, values in parts]


def is_number(column: pd.Series[Any]) -> bool:
    """Whether a swept key is a number in every cell, with at least two values."""
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce")
    return bool(np.isfinite(numbers).all()) and numbers.nunique() > 1


def short_names(keys: Sequence[str]) -> list[str]:
    """Last words of dotted keys, where they tell the keys apart."""
    # A bare "kind" says nothing.
    names = [".".join(key.split(".")[-2:]) if key.endswith(".kind") else short(key) for key in keys]
    return names if len(set(names)) == len(names) else list(keys)


def distinct(texts: Sequence[str]) -> list[str]:
    """Leave out of parts such as ``cap(releases=3)`` the keys that are the same wherever there are any."""
    split = [_split(text) for text in texts]
    with_keys = [keys for _, keys in split if keys]
    shared = set.intersection(*map(set, with_keys)) if len(set(map(tuple, with_keys))) > 1 else set()
    out = []
    for kind, keys in split:
        left = [key for key in keys if key not in shared]
        out.append(f"{kind}({', '.join(left)})" if left else kind)
    return out


def _split(text: str) -> tuple[str, list[str]]:
    """Kind and keys of a part as it is displayed; other text has no keys."""
    match = re.fullmatch(r"([\w-]+)\((.*)\)", text)
    if match is None:
        return text, []
    keys, depth, start = [], 0, 0
    inside = match[2]
    for i, letter in enumerate(inside):
        depth += (letter in "({[") - (letter in ")}]")
        if letter == "," and not depth:
            keys.append(inside[start:i].strip())
            start = i + 1
    return match[1], [*keys, inside[start:].strip()]


def curves(source: Source, metric: str) -> list[MetricCurve]:
    """One curve for each cell and model of a metric, in the order of the cells; equal baselines of cells only once."""
    rows = source.placed_rows(metric)
    out = []
    # Baselines and numbers of one cell; a step may be recorded twice when nothing was committed between.
    for label, model, group in labelled(rows, source.swept, ["cell", "model"]):
        x, values, held = _on_one_grid(group, source.against)
        low, median, high = quartiles(values, source.quantile)
        replicas, agents = group["replica"].nunique(), group["agent"].nunique(dropna=False)
        bad = group.loc[~np.isfinite(group["value"].to_numpy(dtype=float)), "replica"].nunique()
        mean = values.mean(axis=1)
        out.append(MetricCurve(label, model, x, low, median, high, mean, replicas, bad, held, agents))
    return _once(out)


def _once(drawn: list[MetricCurve]) -> list[MetricCurve]:
    """Draw a baseline that is the same in all cells only once, and name it by its model."""
    out = []
    for model in dict.fromkeys(curve.model for curve in drawn):
        same = [curve for curve in drawn if curve.model == model]
        ends = {(curve.low[-1], curve.median[-1], curve.high[-1]) for curve in same}
        if model != "main" and len(same) > 1 and len(ends) == 1:
            out.append(replace(max(same, key=lambda curve: curve.x[-1]), label=model))
        else:
            out += same
    return out


def _on_one_grid(group: pd.DataFrame, against: Against) -> tuple[Float, Float, int]:
    """Values (grid, replica), means over agents, each held at its last record, and how many replicas end early."""
    parts = [
        (replica, part.sort_values(["step", "time"], kind="stable"))
        for (replica, _), part in group.groupby(["replica", "agent"], sort=True, dropna=False)
    ]
    xs = [part["x"].to_numpy(dtype=float) for _, part in parts]
    end = max(x[-1] for x in xs)
    grid = np.linspace(0.0, end, POINTS) if against in UNEVEN else np.unique(np.concatenate(xs))
    # Before its first record a replica has nothing but that record.
    values = [
        part["value"].to_numpy(dtype=float)[np.maximum(np.searchsorted(x, grid, side="right") - 1, 0)]
        for x, (_, part) in zip(xs, parts, strict=True)
    ]
    of = np.array([replica for replica, _ in parts])
    means = [np.stack(values)[of == replica].mean(axis=0) for replica in np.unique(of)]
    early = {replica for x, (replica, _) in zip(xs, parts, strict=True) if x[-1] < end}
    return grid, np.stack(means, axis=1), len(early)


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
