"""Summaries over replicas of which some are infinite: infinite where the values around are, never undefined."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import small_study as small
from hypothesis import given, settings
from hypothesis import strategies as st

import p2psim
from p2psim.analysis import comparison
from p2psim.cli.main import main
from p2psim.core.intervals import median_interval
from p2psim.report.curves import quartiles
from p2psim.runs.summary import summary_of
from p2psim.runs.work import order_interval

values = st.lists(st.one_of(st.just(np.inf), st.floats(-1e9, 1e9)), min_size=1, max_size=9)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    folder: Path = tmp_path_factory.mktemp("infinite") / "run"
    return p2psim.run(p2psim.Scenario.from_dict(small.tree()), folder, progress=False)


@given(values)
def test_quantiles_of_a_summary(result: p2psim.Result, sample: list[float]) -> None:
    """Order statistics at (n − 1)·q, and what lies between them: infinite as soon as it is beyond a finite one."""
    columns = {
        "cell": 0, "replica": range(len(sample)), "model": "main", "metric": "epsilon_spent",
        "agent": pd.array([None] * len(sample), "Int32"), "value": sample,
    }  # fmt: skip
    frame = pd.DataFrame(columns).astype({"model": "category", "metric": "category"})
    notes = [cell.notes for cell in result.described.cells]
    (row,) = summary_of(pa.Table.from_pandas(frame), result.table("ledger"), notes)
    ordered = np.sort(sample)
    for name, level in (("q25", 0.25), ("median", 0.5), ("q75", 0.75)):
        place = (len(sample) - 1) * level
        low, high = ordered[int(np.floor(place))], ordered[int(np.ceil(place))]
        if np.isinf(high):
            assert row[name] == np.inf
        else:
            assert row[name] == pytest.approx(low + (high - low) * (place % 1), rel=1e-9, abs=1e-6)


@given(values)
def test_medians_and_their_intervals(sample: list[float]) -> None:
    found = np.array(sample)
    assert not np.isnan(quartiles(found[None, :])).any()
    for interval in (median_interval(found), order_interval(found, 0.9)):
        assert not np.isnan(interval.estimate)
        assert np.isnan(interval.low) == np.isnan(interval.high)
        if np.isinf(found).all():
            assert interval.estimate == np.inf


@settings(max_examples=30)
@given(values, values, st.booleans())
def test_sides_of_a_comparison(a: list[float], b: list[float], paired: bool) -> None:
    """A side is undefined only if it holds nothing; that nothing finite is left to compare is said as it is."""
    row = comparison.compared(pd.Series(a), pd.Series(b), paired, 0.95)
    sides = [a[: len(b)], b[: len(a)]] if paired else [a, b]
    finite = np.isfinite(sides).all(axis=0) if paired else None
    for name, side in zip("ab", sides, strict=True):
        kept = np.array(side)[finite if paired else np.isfinite(side)]
        lost_all = not (finite.any() if finite is not None else all(np.isfinite(one).any() for one in sides))
        expected = np.mean(side) if lost_all else kept.mean()
        assert row[name] == expected or row[name] == pytest.approx(expected)
    if paired:
        with np.errstate(invalid="ignore"):
            apart = np.subtract(sides[1], sides[0])
            known = apart[~np.isnan(apart)]
            expected = np.median(known) if known.size else np.nan
        assert row["median"] == pytest.approx(expected, nan_ok=True)
    (said,) = comparison.short(pd.DataFrame([{"model": "main", "metric": "loss", **row}]))["says"]
    infinite = [name for name in "ab" if np.isinf(row[name])]
    assert ("infinite" in said) == bool(infinite)
    if len(infinite) == 1:
        assert said == f"{infinite[0]} is infinite"


def test_a_side_without_privacy_is_said_to_be_infinite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = small.tree(
        sweep={"privacy.epsilon": [1, np.inf]}, record={"metrics": ["epsilon_spent"], "every": 10}
    )
    result = p2psim.run(p2psim.Scenario.from_dict(tree), tmp_path / "run", progress=False)
    assert main(["compare", str(tmp_path / "run"), "--reference", "privacy.epsilon=1"]) == 0
    shown = capsys.readouterr().out
    assert "b is infinite" in shown
    assert "nan" not in shown.splitlines()[2].split()[:6]
    (row,) = comparison.compare_within(result, {"privacy.epsilon": 1}).to_dict("records")
    assert np.isfinite(row["a"])
    assert row["b"] == row["difference"] == row["median"] == np.inf
    assert result.plot("paired", reference={"privacy.epsilon": 1})
