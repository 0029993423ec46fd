"""A tuned key: chosen by validation problems or records, recorded, verified, and what it costs said plainly."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import InputError, SimulationError
from p2psim.data.prepare import prepare
from p2psim.runs.result import Result
from p2psim.runs.tuning import choices, fault_of_choice
from p2psim.runs.verdict import kept
from p2psim.runs.verification import verify_result
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Scenario
from p2psim.scenario.tuning import notes_on_tuning

TREE = {
    "name": "tuned",
    "seed": 3,
    "network": {"topology": {"kind": "star", "agents": 2}, "exchange": "round"},
    "data": {"source": {"kind": "linear-regression", "dimension": 2, "points": 30}},
    "learning": {
        "algorithm": {"kind": "synchronous-averaging", "horizon": 20, "c1": 1.0, "theta_max": 3.0},
        "loss": "squared",
        "regularizer": {"l2": 0.01},
    },
    "privacy": {"mechanism": "laplace", "epsilon": 1, "sensitivity": {"kind": "clip", "bound": 1.0}},
    "record": {"metrics": ["relative_fitness"], "every": 20, "events": True},
    "sweep": {"privacy.epsilon": [0.001, float("inf")]},
    "tune": {
        "key": "learning.algorithm.c1",
        "values": [1e-9, 1.0],
        "metric": "relative_fitness",
        "validation": "problems",
        "replicas": 2,
    },
}
SPLIT = TREE | {
    "data": TREE["data"] | {"redraw": "never", "test_fraction": 0.2},
    "tune": TREE["tune"] | {"validation": "split", "fraction": 0.25, "metric": "test_loss", "replicas": 1},
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scenario, Path]:
    scenario, folder = Scenario.from_dict(TREE), tmp_path_factory.mktemp("tuned") / "run"
    p2psim.run(scenario, folder, progress=False)
    return scenario, folder


def test_a_verdict_holds_for_the_validation_study_too(ran: tuple[Scenario, Path], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(ran[1], folder)
    assert main(["verify", str(folder)]) == 0
    verdict = kept(Result.load(folder))
    assert verdict is not None
    assert "stale" not in verdict
    table = folder / "tuning" / "metrics.parquet"
    changed = bytearray(table.read_bytes())
    changed[len(changed) // 2] ^= 1
    for damage in (
        lambda: table.write_bytes(changed),
        lambda: (folder / "tuning" / "manifest.json").write_text("{}"),
        lambda: shutil.rmtree(folder / "tuning"),
    ):
        damage()
        assert (kept(Result.load(folder)) or {}).get("stale")


def test_each_cell_chooses_its_own(ran: tuple[Scenario, Path]) -> None:
    """Under much noise the model had better stay at zero, without any it had better move."""
    result = Result.load(ran[1])
    assert result.scenario.tune is not None
    assert result.scenario.tune.chosen == [1e-9, 1.0]
    assert [cell.scenario.learning.algorithm.c1 for cell in cells(result.scenario)] == [1e-9, 1.0]
    flags = result.summary()["flags"].tolist()
    assert [flag.count("tuned: learning.algorithm.c1 = ") for flag in flags] == [1, 1]


def test_the_choice_is_that_of_the_least_mean(ran: tuple[Scenario, Path]) -> None:
    """Each validation run is made again by itself, of a scenario that is written down here."""
    scenario, folder = ran
    study = Scenario.load(folder / "tuning" / "scenario.yaml")
    assert study.seed != scenario.seed
    for cell, epsilon in enumerate((0.001, float("inf"))):
        means = []
        for c1 in (1e-9, 1.0):
            tree = {key: entry for key, entry in TREE.items() if key not in ("tune", "sweep")}
            tree["seed"] = study.seed
            tree["privacy"] = TREE["privacy"] | {"epsilon": epsilon}
            algorithm = TREE["learning"]["algorithm"] | {"c1": c1}
            tree["learning"] = TREE["learning"] | {"algorithm": algorithm}
            alone = Scenario.from_dict(tree)
            last = [p2psim.simulate(alone, replica).metrics["value"].iloc[-1] for replica in range(2)]
            means.append(np.mean(last))
        assert Result.load(folder).scenario.tune.chosen[cell] == (1e-9, 1.0)[int(np.argmin(means))]


def test_problems_cost_nothing_and_a_split_voids(ran: tuple[Scenario, Path], tmp_path: Path) -> None:
    assert np.isfinite(Result.load(ran[1]).ledger["epsilon_basic"].to_numpy()[:2]).all()
    assert "costs no privacy" in notes_on_tuning(Scenario.from_dict(TREE).resolved())[0]
    split = p2psim.run(Scenario.from_dict(SPLIT), tmp_path / "split", progress=False)
    assert np.isinf(split.ledger["epsilon_basic"]).all()
    assert split.ledger["not_private"].all()
    assert "ε = ∞" in notes_on_tuning(split.scenario_tree)[0]
    assert {check.verdict for check in verify_result(split)} == {"right"}


def test_a_split_never_sees_test_records() -> None:
    """Training and validation records together are the training records of the study."""
    scenario = Scenario.from_dict(SPLIT)
    study = scenario.validation_study()
    whole = prepare(scenario.data, scenario.seed, 0, agents=2)
    parted = prepare(study.data, study.seed, 0, agents=2)
    assert study.seed != scenario.seed
    assert (np.diff(whole.offsets) == 24).all()
    assert (np.diff(parted.offsets) == 18).all()
    assert (np.diff(parted.test_offsets) == 6).all()
    seen = np.concatenate([parted.X, parted.test_X])
    assert {tuple(x) for x in seen} == {tuple(x) for x in whole.X}


def test_running_again_repeats_nothing(ran: tuple[Scenario, Path]) -> None:
    scenario, folder = ran
    before = [(folder / name).stat().st_mtime_ns for name in ("manifest.json", "tuning/manifest.json")]
    p2psim.run(scenario, folder, progress=False)
    p2psim.run(Result.load(folder).scenario, folder, progress=False)
    assert before == [
        (folder / name).stat().st_mtime_ns for name in ("manifest.json", "tuning/manifest.json")
    ]


def test_verify_recomputes_the_choice(ran: tuple[Scenario, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    result = Result.load(ran[1])
    assert {check.verdict for check in verify_result(result)} == {"right"}
    other = result.scenario.with_chosen([1.0, 1.0])
    vars(result)["scenario"] = other
    assert "gives other values than tune.chosen" in fault_of_choice(result, Result.load(ran[1] / "tuning"))
    vars(result)["scenario"] = Scenario.from_dict(TREE | {"seed": 4}).with_chosen([1e-9, 1.0])
    assert "not the validation study" in fault_of_choice(result, Result.load(ran[1] / "tuning"))
    monkeypatch.setattr("p2psim.runs.tuning.choices", lambda *_: [1.0, 1.0])
    with pytest.raises(SimulationError, match=r"tuning: it gives other values"):
        verify_result(Result.load(ran[1]))


def test_a_value_that_fails_is_not_chosen(
    ran: tuple[Scenario, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = Scenario.from_dict(TREE)
    study, tuning = scenario.validation_study(), Result.load(ran[1] / "tuning")
    ends = tuning.last_values(["cell", "model", "metric", "replica"])
    for lost, chosen in (([0], [1.0, 1.0]), ([3], [1e-9, 1e-9])):
        kept = ends[
            ~(ends.index.get_level_values("cell").isin(lost) & (ends.index.get_level_values("replica") == 1))
        ]
        monkeypatch.setattr(Result, "last_values", lambda self, keys, kept=kept: kept)
        assert choices(scenario, study, tuning) == chosen
    monkeypatch.setattr(Result, "last_values", lambda self, keys: ends.iloc[:0])
    with pytest.raises(SimulationError, match="every value failed in cell 0"):
        choices(scenario, study, tuning)


def test_nothing_else_runs_before_the_choice() -> None:
    scenario = Scenario.from_dict(TREE)
    with pytest.raises(InputError, match="chosen by p2psim run"):
        p2psim.simulate(scenario)
    assert p2psim.simulate(scenario.with_chosen([1e-9, 1.0]), cell=1).scenario.learning.algorithm.c1 == 1.0


def test_hashes_of_the_study_do_not_move() -> None:
    """Neither with the choice, nor, of scenarios that tune nothing, since there is something to tune."""
    scenario = Scenario.from_dict(TREE)
    assert scenario.identity() == scenario.with_chosen([1e-9, 1.0]).identity()
    bare = Scenario.from_dict({key: entry for key, entry in TREE.items() if key != "tune"})
    assert "tune" not in bare.resolved()
    assert "validation_fraction" not in bare.resolved()["data"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": "privacy.epsilon"}, "tune.key: privacy.epsilon is swept"),
        ({"key": "data.seed", "values": [1, 2]}, "tune.key: data.seed belongs to the whole study"),
        ({"metric": "relative_fit"}, "tune.metric: unknown metric 'relative_fit'"),
        ({"values": [1.0, "much"]}, "learning.algorithm.c1"),
        ({"values": [1.0, 1.0]}, "is the same as cell"),
        ({"key": "learning.algorithm.c9"}, "learning.algorithm.c9: unknown key"),
        ({"validation": "split"}, "data.redraw: other replicas"),
        ({"chosen": [1.0]}, "tune.chosen: has 1 values for 2 cells"),
    ],
)
def test_what_cannot_be_tuned_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        Scenario.from_dict(TREE | {"tune": TREE["tune"] | changes})
    assert message in str(error.value)


def test_real_records_have_no_other_problems() -> None:
    data = {"source": "digits", "partition": {"kind": "equal", "agents": 2}, "seed": 1}
    with pytest.raises(InputError) as error:
        Scenario.from_dict(TREE | {"data": data})
    assert "tune.validation: problems are for generated sources; digits has one set" in str(error.value)
    assert "data.seed: fixes the records" in str(error.value)


def test_a_tuned_key_is_not_set_in_vain() -> None:
    text = Scenario.from_dict(TREE).to_yaml()
    with pytest.raises(InputError, match="is tuned, so this value would be used in no cell"):
        Scenario.parse(text, overrides=["learning.algorithm.c1=3"])
    fixed = Scenario.parse(text, overrides=["tune=null", "learning.algorithm.c1=3"])
    assert cells(fixed)[0].scenario.learning.algorithm.c1 == 3
