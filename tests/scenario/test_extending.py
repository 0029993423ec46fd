"""A scenario that extends another is the other with its changes, and errors name the file that is wrong."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import InputError
from p2psim.core.nodes import placed, plain
from p2psim.scenario.extending import over

BASE = """
name: base
replicas: 3
network: {topology: {kind: star, agents: 3}, exchange: request}
data: {source: {kind: linear-regression, dimension: 3, points: 20}}
learning:
  algorithm: {kind: async-star, horizon: 20, rho: {h: .5}, theta_max: 3}
  loss: squared
  regularizer: {l2: 1.0e-3}
privacy: {mechanism: laplace, epsilon: 1, sensitivity: {kind: clip, bound: 1}}
sweep: {privacy.epsilon: [1, 2]}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("base.yaml").write_text(BASE)


def load(text: str, name: str = "child.yaml") -> p2psim.Scenario:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text(text)
    return p2psim.Scenario.load(name)


def test_what_it_says_takes_the_place_of_what_the_other_says() -> None:
    child = load(
        "extends: base.yaml\nname: child\nlearning: {algorithm: {horizon: 40}}\nsweep: {seed: [1, 2, 3]}\n"
    )
    written = BASE.replace("name: base", "name: child").replace("horizon: 20", "horizon: 40")
    whole = load(written.replace("privacy.epsilon: [1, 2]", "seed: [1, 2, 3]"), "whole.yaml")
    assert child.to_yaml() == whole.to_yaml()
    assert "extends" not in child.to_yaml()


FORMS = ("2", "{0: 1, 1: 2, 2: 3}", "{column: budget}", "{path: budgets.csv}")


@pytest.mark.parametrize("base", FORMS)
@pytest.mark.parametrize("child", FORMS)
def test_numbers_of_agents_in_another_form_take_the_place_of_the_others(base: str, child: str) -> None:
    Path("budgets.csv").write_text("agent,epsilon\n0,4\n1,5\n2,6\n")
    Path("t.csv").write_text("who,budget,a,y\nu,1,2,3\nv,2,3,4\nw,3,1,1\n")
    table = "{source: {kind: csv, path: t.csv, y: y}, per_owner: [budget], partition: {kind: column, column: who}}"
    written = BASE.replace("{source: {kind: linear-regression, dimension: 3, points: 20}}", table)
    written = written.partition("sweep:")[0]
    Path("base.yaml").write_text(written.replace("epsilon: 1", f"epsilon: {base}"))
    extending = load(f"extends: base.yaml\nname: c\nprivacy: {{epsilon: {child}}}\n")
    whole = load(written.replace("epsilon: 1", f"epsilon: {child}"), "whole.yaml")
    assert extending.privacy == whole.privacy


def test_numbers_of_agents_in_the_same_form_are_merged() -> None:
    Path("base.yaml").write_text(
        BASE.replace("epsilon: 1,", "epsilon: {0: 1, 1: 2, 2: 3},").partition("sweep:")[0]
    )
    extending = load("extends: base.yaml\nname: c\nprivacy: {epsilon: {1: 9}}\n")
    assert extending.privacy.epsilon == {"0": 1, "1": 9, "2": 3}


def test_another_kind_takes_none_of_the_keys() -> None:
    child = load("extends: base.yaml\nname: c\nprivacy: {mechanism: none, sensitivity: null}\nsweep: {}\n")
    assert child.privacy.sensitivity is None
    child = load("extends: base.yaml\nname: c\nlearning: {loss: {intercept: true}}\n")
    assert child.learning.loss.kind == "squared"
    assert child.learning.loss.intercept
    topology = load("extends: base.yaml\nname: c\nnetwork: {topology: {kind: star}}\n").network.topology
    assert topology.agents == 3
    with pytest.raises(InputError, match=r"child.yaml:3:28: network.topology"):
        load("extends: base.yaml\nname: c\nnetwork: {topology: {kind: hexagon}}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: base.yaml\n", r"child.yaml:1:1: name: is missing"),
        (
            "extends: other.yaml\nname: c\n",
            r"child.yaml:1:10: extends: other.yaml cannot be read: No such file",
        ),
        ("extends: 3\nname: c\n", r"child.yaml:1:10: extends: must be the path of a scenario file, got 3"),
        (
            "extends: child.yaml\nname: c\n",
            r"child.yaml:1:10: extends: child.yaml is this file, or extends it",
        ),
        ("extends: base.yaml\nname: c\nprivacy: {epsilom: 1}\n", r"child.yaml:3:11: privacy.epsilom"),
        ("extends: broken.yaml\nname: c\n", r"broken.yaml:3:11: replicas: "),
        (
            "extends: there.yaml\nname: c\n",
            r"back.yaml:1:10: extends: there.yaml is this file, or extends it",
        ),
    ],
)
def test_errors_name_the_right_file(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.yaml").write_text(BASE.replace("replicas: 3", "replicas: many"))
    Path("there.yaml").write_text("extends: back.yaml\nname: there\n")
    Path("back.yaml").write_text("extends: there.yaml\nname: back\n")
    with pytest.raises(InputError, match=message):
        load(text)
    assert main(["run", "child.yaml"]) == 2
    assert not Path("runs").exists()


def test_overrides_come_last() -> None:
    Path("child.yaml").write_text("extends: base.yaml\nname: child\nreplicas: 7\n")
    assert p2psim.Scenario.load("child.yaml", ["replicas=9", "sweep={}"]).replicas == 9


def test_paths_start_from_the_folder_of_their_own_file() -> None:
    table = "a,b\n" + "\n".join(f"{i / 7},{i % 5}" for i in range(60))
    Path("loans.csv").write_text(table)
    source = "{kind: csv, path: loans.csv, y: b}"
    Path("base.yaml").write_text(
        BASE.replace("{kind: linear-regression, dimension: 3, points: 20}", f"{source}, partition: equal")
    )
    child = load("extends: ../base.yaml\nname: child\nreplicas: 1\nsweep: {}\n", "inner/child.yaml")
    assert p2psim.run(child, "out", jobs=1, progress=False).metrics["value"].notna().all()


def test_names_of_columns_are_no_paths_and_test_files_are(tmp_path: Path) -> None:
    table = "path,b\n" + "\n".join(f"{'xy'[i % 2]},{i % 5}" for i in range(60))
    Path("loans.csv").write_text(table)
    Path("tests.csv").write_text(table)
    source = "{kind: csv, path: loans.csv, test_path: tests.csv, y: b, categories: {path: one-hot}}, partition: equal"
    Path("base.yaml").write_text(BASE.replace("{kind: linear-regression, dimension: 3, points: 20}", source))
    child = load("extends: ../base.yaml\nname: child\nsweep: {}\n", "inner/child.yaml")
    given = child.resolved()["data"]["source"]
    assert {Path(given[key]).resolve() for key in ("path", "test_path")} == {
        tmp_path / "loans.csv", tmp_path / "tests.csv",
    }  # fmt: skip
    assert given["categories"] == {"path": "one-hot"}


@pytest.mark.parametrize("name", ['"a\\0b"', "x" * 5000, "[a, b]"])
def test_what_names_no_file_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(InputError, match=r"child.yaml:1:10: extends: "):
        load(f"extends: {name}\nname: c\n")


TREES = st.recursive(
    st.integers(0, 3), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8
)


@given(TREES, TREES)
def test_merging_is_that_of_nested_dictionaries(base: Any, new: Any) -> None:
    def merged(a: Any, b: Any) -> Any:
        if not (isinstance(a, dict) and isinstance(b, dict)):
            return b
        return {
            key: merged(a[key], b[key]) if key in a and key in b else {**a, **b}[key] for key in {**a, **b}
        }

    assert plain(over(placed(base), placed(new))) == merged(base, new)


def test_only_the_outermost_file_needs_a_name() -> None:
    Path("base.yaml").write_text(BASE.replace("name: base\n", ""))
    Path("middle.yaml").write_text("extends: base.yaml\nreplicas: 2\n")
    child = load("extends: middle.yaml\nname: child\n")
    assert (child.name, child.replicas) == ("child", 2)
    with pytest.raises(InputError, match="name: is missing: it is not taken from extends"):
        load("extends: middle.yaml\n")
