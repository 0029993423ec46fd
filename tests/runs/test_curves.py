"""Curves of a study against pandas on the whole table."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_study as small

import p2psim
from p2psim.core.errors import InputError
from p2psim.runs.curves import curves

LEVELS = (0.1, 0.5, 1.0)


def table(path: Path, group: int) -> pd.DataFrame:
    """Three cells: replicas with the same moments, with different ones, and with values that are no numbers."""
    rng = np.random.default_rng(0)
    rows = [
        (cell, replica, model, None, "a", step, step / 10, rng.normal())
        for cell in range(3)
        for replica in range(4)
        for model in ("main", "global")[: 2 - (cell == 1)]
        for step in range(0, 30 if cell != 1 else 20 + replica, 5 if cell != 1 else 1 + replica)
    ]
    rows[-1] = (*rows[-1][:-1], np.nan)
    rows[-8] = (*rows[-8][:-1], np.inf)
    # What another metric, of two agents, says at each moment.
    every = [
        one
        for row in rows
        for one in (row, *((*row[:3], agent, "b", *row[5:7], row[7] + agent) for agent in (0, 1)))
    ]
    every.sort(key=lambda row: (row[0], row[1], row[4], row[2], row[3] or 0, row[5]))
    columns = ["cell", "replica", "model", "agent", "metric", "step", "time", "value"]
    frame = pd.DataFrame(every, columns=columns).astype(
        {"agent": "Int32", "cell": "int32", "replica": "int32"}
    )
    made = pa.Table.from_pandas(frame, preserve_index=False)
    for name in ("model", "metric"):
        place = made.column_names.index(name)
        made = made.set_column(place, name, made[name].cast(pa.string()).dictionary_encode())
    pq.write_table(made, path, row_group_size=group)
    return frame


@pytest.mark.parametrize("group", [7, 100, 10_000])
@pytest.mark.parametrize("metric", ["a", "b"])
@pytest.mark.parametrize("axis", ["step", "time"])
def test_they_are_those_of_pandas(tmp_path: Path, group: int, metric: str, axis: str) -> None:
    frame = table(tmp_path / "metrics.parquet", group)
    found = curves(tmp_path / "metrics.parquet", metric, LEVELS, axis, False)
    rows = frame[frame["metric"] == metric]
    if metric == "b":
        rows = rows.groupby(["cell", "model", "replica", axis])["value"].mean().reset_index()
    groups = rows.groupby(["cell", "model", axis])["value"]
    with np.errstate(invalid="ignore"):
        expected = groups.quantile(list(LEVELS)).unstack()
    given = found.set_index(["cell", "model", axis])
    assert list(given.columns) == ["replicas", "q10", "median", "q100"]
    assert given.index.sort_values().equals(expected.index)
    given = given.loc[expected.index]
    assert given["replicas"].tolist() == groups.count().tolist()
    finite = np.isfinite(expected.to_numpy())
    assert np.array_equal(given[["q10", "median", "q100"]].to_numpy()[finite], expected.to_numpy()[finite])
    assert (given.loc[given["replicas"] == 0, "median"].isna()).all()


def test_of_records_at_the_same_moment_the_last_one_counts(tmp_path: Path) -> None:
    frame = table(tmp_path / "metrics.parquet", 100)
    first = frame[(frame["cell"] == 0) & (frame["metric"] == "a")].copy()
    again = first.assign(value=first["value"] + 1.0)
    twice = pd.concat([first, again]).sort_values(["replica", "model", "step"], kind="stable")
    twice.to_parquet(tmp_path / "twice.parquet", index=False)
    first.assign(value=again["value"]).to_parquet(tmp_path / "once.parquet", index=False)
    one, other = (
        curves(tmp_path / f"{name}.parquet", "a", LEVELS, "step", False) for name in ("once", "twice")
    )
    pd.testing.assert_frame_equal(one, other)


def test_what_was_not_recorded_is_refused(tmp_path: Path) -> None:
    table(tmp_path / "metrics.parquet", 100)
    with pytest.raises(InputError, match="no metric 'c' was recorded; known: a, b"):
        curves(tmp_path / "metrics.parquet", "c", LEVELS, "step", False)
    for levels, axis in (((0.5, 1.5), "step"), ((0.5,), "agent")):
        with pytest.raises(InputError, match="from 0 to 1; got"):
            curves(tmp_path / "metrics.parquet", "a", levels, axis, False)


def test_swept_keys_stand_first(tmp_path: Path) -> None:
    result = p2psim.run(small.scenario(), tmp_path / "run", progress=False)
    found = result.curves("relative_fitness")
    assert list(found)[: len(result.swept) + 3] == [*result.swept, "cell", "model", "step"]
    assert list(found)[-3:] == ["q25", "median", "q75"]
