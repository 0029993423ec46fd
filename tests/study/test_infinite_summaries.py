"""Summaries over replicas of which some are infinite: infinite where the values around are, never undefined."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import small_study as small
from hypothesis import given
from hypothesis import strategies as st

import p2psim
from p2psim.core.intervals import median_interval
from p2psim.report.curves import quartiles
from p2psim.runs.work import order_interval

values = st.lists(st.one_of(st.just(np.inf), st.floats(-1e9, 1e9)), min_size=1, max_size=9)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    folder: Path = tmp_path_factory.mktemp("infinite") / "run"
    return p2psim.run(p2psim.Scenario.from_dict(small.tree()), folder, progress=False)


@given(values)
def test_quantiles_of_a_summary(result: p2psim.Result, sample: list[float]) -> None:
    """Order statistics at (n − 1)·q, and what lies between them: infinite as soon as it is beyond a finite one."""
    model = str(result.metrics["model"].iloc[0])
    index = pd.MultiIndex.from_tuples(
        [(0, model, "epsilon_spent", replica) for replica in range(len(sample))],
        names=["cell", "model", "metric", "replica"],
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(p2psim.Result, "last_values", lambda self, keys: pd.Series(sample, index, name="value"))
        (row,) = result.summary().to_dict("records")
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
