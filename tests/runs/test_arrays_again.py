"""Run folders of arrays given in Python: continued and verified from there with the same arrays, and with no others."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import small_study as small

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import FolderError
from p2psim.learning.losses import Squared
from p2psim.learning.star.algorithms import AsyncStar
from p2psim.privacy.mechanisms import Laplace
from p2psim.privacy.section import Clip, PrivacySection
from p2psim.runs.verification import verify_result


def study(replicas: int, shift: float = 0.0) -> p2psim.Scenario:
    random = np.random.default_rng(0)
    X = [random.uniform(-0.25, 0.25, (n, 3)) for n in (20, 30, 40)]
    y = [x @ np.array([0.5, -0.3, 0.2]) + shift for x in X]
    return p2psim.assemble(
        nx.star_graph([-1, 0, 1, 2]),
        list(zip(X, y, strict=True)),
        AsyncStar(horizon=30, rho=10.0, theta_max=1.0),
        Squared(),
        l2=1e-3,
        privacy=PrivacySection(mechanism=Laplace(), epsilon=20.0, sensitivity=Clip(bound=1.0)),
        name="arrays",
        replicas=replicas,
        record={"metrics": ["relative_fitness"], "every": 10, "events": True},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("arrays")
    p2psim.run(study(1), place / "run", progress=False)
    p2psim.run(study(3), place / "run", progress=False)
    p2psim.run(study(3), place / "at once", progress=False)
    return place


def test_a_run_is_continued_with_the_same_arrays(folder: Path) -> None:
    assert small.digests(folder / "run") == small.digests(folder / "at once")


def test_and_verified(folder: Path) -> None:
    checked = verify_result(p2psim.Result.load(folder / "run"), study(3))
    assert [(one.replica, one.verdict, one.fault) for one in checked] == [(r, "right", "") for r in range(3)]


def test_other_arrays_are_refused(folder: Path) -> None:
    before = small.snapshot(folder / "run")
    with pytest.raises(FolderError, match=r"another scenario \(arrays; data\.source\.records: "):
        p2psim.run(study(3, shift=0.1), folder / "run", progress=False)
    with pytest.raises(FolderError, match=r"not results of the scenario given \(data\.source\.records: "):
        verify_result(p2psim.Result.load(folder / "run"), study(3, shift=0.1))
    assert small.snapshot(folder / "run") == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "RUN/scenario.yaml", "--out", "RUN"],
        ["verify", "RUN"],
        ["account", "run", "RUN", "--delta", "1e-5"],
        ["check", "RUN/scenario.yaml"],
    ],
)
def test_commands_say_what_to_do_in_python(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.replace("RUN", str(folder / "run")) for word in arguments]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    for words in (
        "scenario.yaml:",
        "data.source.records: ",
        "with the same arrays, in Python",
        "p2psim.run(scenario, folder)",
        "verify_result(result, scenario)",
    ):
        assert words in said


def test_figures_need_no_arrays(folder: Path) -> None:
    assert main(["plot", str(folder / "run"), "--kind", "fitness", "--json"]) == 0
