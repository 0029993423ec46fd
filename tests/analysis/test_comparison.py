"""Comparing runs: what is paired with what, and what is refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pandas as pd
import pytest
import small_study as small
from scipy import stats

import p2psim
from p2psim.analysis.comparison import compare, compare_within, differing_keys, short
from p2psim.cli.main import main
from p2psim.core.errors import InputError


def run(folder: Path, **changes: object) -> p2psim.Result:
    return p2psim.run(small.scenario(replicas=6, **changes), folder, progress=False)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[p2psim.Result, p2psim.Result]:
    """The small study at two steps, with the same seed."""
    folder = tmp_path_factory.mktemp("compare")
    slow = small.tree()["learning"] | {
        "algorithm": {"kind": "async-star", "horizon": 40, "rho": {"h": 0.1}, "theta_max": 3}
    }
    return run(folder / "a"), run(folder / "b", learning=slow)


def finals(result: p2psim.Result, cell: int) -> np.ndarray:
    rows = result.metrics[(result.metrics["cell"] == cell) & (result.metrics["step"] == 40)]
    return rows.sort_values("replica")["value"].to_numpy()


def test_differences_are_those_of_replicas_of_the_same_number(
    results: tuple[p2psim.Result, p2psim.Result],
) -> None:
    a, b = results
    table = compare(a, b)
    assert list(table["privacy.epsilon"]) == [1, 100]
    for cell, row in enumerate(table.to_dict("records")):
        x, y = finals(a, cell), finals(b, cell)
        ends = stats.ttest_rel(y, x).confidence_interval(0.95)
        assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high), rel=1e-10)
        assert row["difference"] == pytest.approx((y - x).mean())
        assert row["pairs"] == 6
        assert row["paired"]


def test_a_run_differs_in_nothing_from_itself(results: tuple[p2psim.Result, p2psim.Result]) -> None:
    table = compare(results[0], results[0])
    assert (table[["difference", "low", "high"]].to_numpy() == 0).all()
    assert table["ratio"].to_numpy() == pytest.approx(1)


def test_keys_that_only_one_run_sweeps_come_in_alphabetical_order() -> None:
    def swept(*keys: str) -> p2psim.Result:
        return cast("p2psim.Result", SimpleNamespace(scenario_tree={}, swept=list(keys)))

    a, b = swept("privacy.epsilon", "seed", "record.every"), swept("seed", "network.channel.loss")
    assert differing_keys(a, b) == ["network.channel.loss", "privacy.epsilon", "record.every"]


def test_other_seeds_are_not_paired(results: tuple[p2psim.Result, p2psim.Result], tmp_path: Path) -> None:
    other = run(tmp_path / "other", seed=6)
    row = compare(results[0], other).to_dict("records")[1]
    x, y = finals(results[0], 1), finals(other, 1)
    ends = stats.ttest_ind(y, x, equal_var=False).confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high), rel=1e-10)
    assert not row["paired"]
    assert np.isnan(row["correlation"])


def test_cells_are_compared_with_a_reference_cell(results: tuple[p2psim.Result, p2psim.Result]) -> None:
    table = compare_within(results[0], {"privacy.epsilon": 1})
    assert list(table["privacy.epsilon"]) == [100]
    assert table["difference"].iloc[0] == pytest.approx(
        (finals(results[0], 1) - finals(results[0], 0)).mean()
    )


def test_what_has_nothing_in_common_is_refused(
    results: tuple[p2psim.Result, p2psim.Result], tmp_path: Path
) -> None:
    other = run(tmp_path / "other", sweep={"privacy.epsilon": [7]})
    with pytest.raises(InputError, match="no cell in common"):
        compare(results[0], other)
    single = run(tmp_path / "single", sweep={"learning.regularizer.l2": [1e-3]})
    with pytest.raises(InputError, match="--reference"):
        compare(results[0], single)
    with pytest.raises(InputError, match="never 5"):
        compare_within(results[0], {"privacy.epsilon": 5})
    with pytest.raises(InputError, match="does not sweep seed"):
        compare_within(results[0], {"seed": 5})


def test_the_command_shows_intervals(
    results: tuple[p2psim.Result, p2psim.Result], capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = (str(result.path) for result in results)
    assert main(["compare", a, b]) == 0
    shown = capsys.readouterr().out
    assert "relative_fitness" in shown
    assert "b is higher" in shown
    assert "paired by replica" in shown
    assert main(["compare", a, "--reference", "privacy.epsilon=1", "--json"]) == 0
    assert main(["compare", a]) == 2
    assert main(["compare", a, b, "--metric", "objective"]) == 2
    assert "relative_fitness" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("difference", "ratio", "says"),
    [
        ((-2, 1), (0.4, 0.6), "by ratio b is lower; by means no difference shown"),
        ((-2, -1), (0.4, 0.6), "b is lower"),
        ((-1, 1), (0.9, 1.1), "no difference shown"),
        ((1, 2), (np.nan, np.nan), "b is higher"),
    ],
)
def test_the_conclusion_agrees_with_both_intervals(
    difference: tuple[float, float], ratio: tuple[float, float], says: str
) -> None:
    low, high = difference
    table = pd.DataFrame(
        {
            "model": ["main"], "metric": "loss", "a": 2.0, "b": 1.0,
            "difference": (low + high) / 2, "low": low, "high": high,
            "ratio": sum(ratio) / 2, "ratio low": ratio[0], "ratio high": ratio[1],
            "pairs": 6, "not finite": 0, "correlation": 0.5,
        }
    )  # fmt: skip
    assert short(table)["says"].tolist() == [says]
