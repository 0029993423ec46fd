"""Results that somebody changed, hashes and seal too: what does not follow from events and data is found."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import small_study as small
from graph_cases import graph_scenario
from pairs import all_pairs

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import InputError
from p2psim.runs.verification import verify_result
from p2psim.scenario.model import Scenario
from p2psim.simulation.workspace import write_archive

BOUNDS = {
    "data": {
        "source": {
            "kind": "linear-classification",
            "agents": 3,
            "dimension": 3,
            "points": 20,
            "x": {"kind": "uniform"},
        },
        "redraw": "never",
    },
    "privacy": {"mechanism": "laplace", "epsilon": 10, "sensitivity": {"kind": "bounds"}, "scale_records": 3},
}
DECLARED = {
    "privacy": {"mechanism": "laplace", "epsilon": 10, "sensitivity": {"kind": "declared", "bound": 0.01}},
    "sweep": {},
}


def logistic(changes: dict[str, object]) -> Scenario:
    tree = small.tree(replicas=1, sweep={}, **changes)
    tree["learning"] |= {"loss": "logistic"}
    tree["learning"]["algorithm"] |= {"rho": 0.5}
    return Scenario.from_dict(tree)


STUDIES: dict[str, Callable[[], Scenario]] = {
    "star": lambda: small.scenario(replicas=2, record={**small.tree()["record"], "centralities": True}),
    "public bounds": lambda: logistic(BOUNDS),
    "broken bounds": lambda: small.scenario(replicas=1, **DECLARED),
    "graph": lambda: graph_scenario(
        {"learning.algorithm.start": {"kind": "private", "epsilon": 2.0}, "record.centralities": True}
    ),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found = {}
    for name, study in STUDIES.items():
        found[name] = tmp_path_factory.mktemp("forged") / "run"
        p2psim.run(study(), found[name], progress=False)
    return found


@pytest.mark.parametrize("name", STUDIES)
def test_what_was_run_is_right(runs: dict[str, Path], name: str) -> None:
    checked = verify_result(p2psim.Result.load(runs[name]))
    assert [(one.verdict, one.fault) for one in checked] == [("right", "")] * len(checked)


def test_there_are_broken_bounds_to_look_at(runs: dict[str, Path]) -> None:
    assert p2psim.Result.load(runs["broken bounds"]).ledger["bound_violated"].any()


def forged(value: object) -> object:
    if isinstance(value, bool | np.bool_):
        return not value
    if isinstance(value, str):
        return f"{value}x"
    return value + 1 if np.isfinite(value) else 0.01  # type: ignore[operator]


@pytest.mark.parametrize(("name", "table"), all_pairs(list(STUDIES), ["ledger", "agents"]))
def test_each_forged_column_is_named(
    runs: dict[str, Path], name: str, table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = pd.read_parquet(runs[name] / f"{table}.parquet")
    first = {"ledger": "agent", "agents": "index"}[table]
    columns = [
        column
        for column in whole.loc[:, first:]
        if column != first and not (whole[column].dtype.kind == "f" and whole[column].isna().all())
    ]
    assert len(columns) >= 6
    assert table == "ledger" or name not in ("star", "graph") or "betweenness_centrality" in columns
    shutil.copytree(runs[name], tmp_path / "run")
    for column in columns:
        changed = whole.astype({column: object})
        changed.loc[1, column] = forged(whole.loc[1, column])
        changed[column] = changed[column].astype(
            "str" if whole[column].dtype.name == "category" else whole[column].dtype
        )
        changed.to_parquet(tmp_path / "run" / f"{table}.parquet", index=False)
        # Without the hashes: the recount finds it as well.
        small.reseal(tmp_path / "run")
        wrong = [one for one in verify_result(p2psim.Result.load(tmp_path / "run")) if one.verdict == "wrong"]
        assert len(wrong) == 1, column
        assert f"{table}: {column} of agent 1 is " in wrong[0].fault, column
    assert main(["verify", str(tmp_path / "run")]) == 1
    assert f"{table}: {columns[-1]} of agent 1" in capsys.readouterr().out


def test_a_cheap_epsilon_is_found(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs["star"], tmp_path / "run")
    table = pd.read_parquet(tmp_path / "run/ledger.parquet")
    table["epsilon_basic"] = 0.01
    table.to_parquet(tmp_path / "run/ledger.parquet", index=False)
    assert main(["verify", str(tmp_path / "run"), "--json"]) == 1
    said = capsys.readouterr()
    assert "ledger.parquet: damaged, or changed by another program" in said.err
    tree = json.loads(said.out)
    assert tree["wrong"] == 4
    assert "epsilon_basic of agent 0 is 0.01" in tree["checked"][0]["fault"]
    # Readers do not show it.
    with pytest.raises(InputError, match=r"ledger\.parquet: damaged"):
        p2psim.Result.load(tmp_path / "run").summary()


def test_noise_that_was_not_drawn_is_found(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["star"], tmp_path / "run")
    with np.load(tmp_path / "run/noise.npz") as archive:
        noise = {name: archive[name] for name in archive.files}
    noise["0/1"] = noise["0/1"] * 0.5
    with open(tmp_path / "run/noise.npz", "wb") as stream:
        write_archive(stream, noise.items())
    small.reseal(tmp_path / "run")
    wrong = [one for one in verify_result(p2psim.Result.load(tmp_path / "run")) if one.fault]
    assert [(one.cell, one.replica) for one in wrong] == [(0, 1)]
    assert "noise: it is not what the mechanism draws" in wrong[0].fault


def test_rows_that_are_gone_are_missed(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["graph"], tmp_path / "run")
    pd.read_parquet(tmp_path / "run/ledger.parquet")[:-1].to_parquet(
        tmp_path / "run/ledger.parquet", index=False
    )
    small.reseal(tmp_path / "run")
    (one,) = verify_result(p2psim.Result.load(tmp_path / "run"))
    assert one.fault.startswith("ledger: it has ")


def test_a_run_without_events_is_hashed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    p2psim.run(
        small.scenario(replicas=1, record={"metrics": ["relative_fitness"]}), tmp_path / "run", progress=False
    )
    assert main(["verify", str(tmp_path / "run")]) == 2
    assert "its files are as they were written, but no events were recorded" in capsys.readouterr().err
    path = tmp_path / "run/agents.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["verify", str(tmp_path / "run")]) == 2
    assert "agents.parquet: damaged" in capsys.readouterr().err


def as_format_1(tree: dict[str, object]) -> None:
    tree["format"] = 1
    del tree["files"]["scenario.yaml"]  # type: ignore[attr-defined]
    tree["made_by"]["p2psim"] = "0.0.9"  # type: ignore[index]


def test_a_folder_of_before_is_read_but_neither_verified_nor_added_to(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(runs["star"], folder)
    small.reseal(folder, as_format_1)
    text = (folder / "manifest.json").read_text()
    unsealed = text.rpartition(",\n")[0]
    (folder / "manifest.json").write_text(f"{unsealed}\n}}\n")
    before = small.snapshot(folder)
    p2psim.Result.load(folder).summary()
    assert main(["verify", str(folder)]) == 2
    assert "folder format 1, written by p2psim 0.0.9" in capsys.readouterr().err
    with pytest.raises(InputError, match="only format 3 has the hashes"):
        p2psim.run(small.scenario(replicas=3), folder, progress=False)
    assert small.snapshot(folder) == before
    p2psim.run(STUDIES["star"](), folder, overwrite=True, progress=False)
    assert small.everything(folder) == small.everything(runs["star"])
