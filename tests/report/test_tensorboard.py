"""What p2psim export writes is read again by TensorBoard's own reader.

These tests are skipped without TensorBoard, unless P2PSIM_TEST_TENSORBOARD=required.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import small_study as small

import p2psim
from p2psim.cli.main import main
from p2psim.report.tensorboard import points_of

if os.environ.get("P2PSIM_TEST_TENSORBOARD") != "required":
    pytest.importorskip("tensorboard", reason='without TensorBoard: pip install "p2psim[tensorboard]"')


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two budgets, of which one is infinite, and two replicas; a metric of single agents among others."""
    folder = tmp_path_factory.mktemp("tracked") / "run"
    tree = small.tree(replicas=2, sweep={"privacy.epsilon": [10, float("inf")]})
    tree["record"] = {"metrics": ["relative_fitness", "isolated_fitness"], "every": 10}
    p2psim.run(small.Scenario.from_dict(tree), folder, jobs=1)
    return folder


@pytest.fixture(scope="module")
def exported(run: Path) -> Path:
    assert main(["export", str(run)]) == 0
    return run / "tensorboard"


def read(folder: Path) -> Any:
    accumulator = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    reader = accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    return reader.Reload()


def test_each_cell_and_replica_is_a_run_with_all_metrics(run: Path, exported: Path) -> None:
    table = pd.read_parquet(run / "metrics.parquet")
    found = sorted(str(file.parent.relative_to(exported)) for file in exported.rglob("*tfevents*"))
    assert found == [f"{cell}_epsilon={eps}/{r}" for cell, eps in ((0, "10.0"), (1, "inf")) for r in (0, 1)]
    for place in found:
        rows = table[(table["cell"] == int(place[0])) & (table["replica"] == int(place[-1]))]
        reader = read(exported / place)
        expected = {
            f"{metric}{'' if agent else ' (mean over agents)'}/{model}"
            for metric, model, agent in zip(rows["metric"], rows["model"], rows["agent"].isna(), strict=True)
        }
        assert set(reader.Tags()["scalars"]) == expected
        for tag in expected:
            metric, _, model = tag.rpartition("/")
            of_tag = rows[
                (rows["metric"] == metric.removesuffix(" (mean over agents)")) & (rows["model"] == model)
            ]
            by = of_tag.groupby(["step", "time"])["value"].mean()
            points = reader.Scalars(tag)
            assert [(point.step, point.wall_time) for point in points] == list(by.index)
            np.testing.assert_allclose([point.value for point in points], by, rtol=1e-6)


@pytest.mark.parametrize("place", ["link", "link/inside", "file/inside"])
def test_a_place_that_cannot_be_written_is_bad_input(
    run: Path, tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "else")
    (tmp_path / "file").write_text("")
    assert main(["export", str(run), "--out", str(tmp_path / place)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--out" in line
    assert str(tmp_path / place) in line


def test_what_is_undefined_has_no_point() -> None:
    rows = [("delivery", 0, 0.0, 0.0, None), ("delivery", 5, 1.0, 0.5, None), ("messages", 0, 0.0, 0.0, None),
            ("test_rmse", 5, 1.0, np.nan, 0), ("test_rmse", 5, 1.0, 4.0, 1), ("a_loss", 5, 1.0, np.nan, 0)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["metric", "step", "time", "value", "agent"])
    points = points_of(table.assign(cell=0, replica=0, model="main"))
    assert {(step, tag): value for (*_, step, _, tag), value in points.items()} == {
        (5, "delivery/main"): 0.5,
        (0, "messages/main"): 0.0,
        (5, "test_rmse (mean over agents)/main"): 4.0,
    }


def test_swept_values_are_hyperparameters_and_replicas_a_group(exported: Path) -> None:
    data = importlib.import_module("tensorboard.plugins.hparams.plugin_data_pb2").HParamsPluginData
    for place, value in (("0_epsilon=10.0", 10.0), ("1_epsilon=inf", "inf")):
        groups = set()
        for replica in "01":
            content = read(exported / place / replica).PluginTagToContent("hparams")
            start = data.FromString(content["_hparams_/session_start_info"]).session_start_info
            groups.add(start.group_name)
            (name,) = start.hparams
            assert name == "epsilon"
            shown = start.hparams[name]
            assert (shown.number_value or shown.string_value) == value
        assert groups == {place}


def test_what_releases_cost_comes_along(exported: Path) -> None:
    (text,) = read(exported / "1_epsilon=inf" / "0").Tensors("privacy")
    (shown,) = text.tensor_proto.string_val
    assert "not_private" in shown.decode()


def test_a_folder_with_something_in_it_stays_as_it_is(
    run: Path, exported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = small.snapshot(exported)
    assert main(["export", str(run)]) == 2
    assert "is not an empty folder" in capsys.readouterr().err
    assert small.snapshot(exported) == before
    # The same run gives the same bytes.
    assert main(["export", str(run), "--out", str(run.parent / "again")]) == 0
    assert small.snapshot(run.parent / "again") == before


def test_without_tensorboard_the_message_is_the_command_that_installs_it(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    assert main(["export", str(run), "--out", str(run.parent / "none")]) == 2
    assert "TensorBoard is not installed" in (said := capsys.readouterr().err)
    assert "run pip install 'p2psim[tensorboard]'" in said
