"""Numbers of cells, replicas and agents that there are not: every door says what was given and what is allowed."""

from pathlib import Path

import pytest
import small_study as small

import p2psim
from p2psim.cli.main import main
from p2psim.core.errors import InputError
from p2psim.core.options import INT32

#: Of the study below: two cells of three owners.
CELLS, OWNERS, REPLICAS = 2, 3, INT32
DOORS = {
    "run --cell": (["run", "STUDY", "--out", "NEW", "--replica", "0", "--cell"], "cell", CELLS),
    "run --replica": (["run", "STUDY", "--out", "NEW", "--cell", "0", "--replica"], "replica", REPLICAS),
    "account run": (["account", "run", "RUN", "--delta", "1e-5", "--cell"], "cell", CELLS),
    "audit": (["audit", "STUDY", "--samples", "100", "--replica"], "replica", REPLICAS),
    "plot": (
        ["plot", "RUN", "--kind", "collaboration", "--against", "privacy.epsilon", "--agent"],
        "agent",
        OWNERS,
    ),
    "colluders": (
        [
            "account",
            "network",
            "--topology",
            "ring4",
            "--steps",
            "2",
            "--sigma",
            "1",
            "--delta",
            "1e-5",
            "--colluders",
        ],
        "--colluders",
        4,
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("places")
    study = small.scenario(
        replicas=1, record={"metrics": ["relative_fitness", "isolated_fitness"], "every": 10}
    )
    (folder / "study.yaml").write_text(study.to_yaml())
    p2psim.run(study, folder / "run", progress=False)
    return folder


@pytest.mark.parametrize("beyond", [lambda count: count, lambda count: 10**30, lambda count: -1])
@pytest.mark.parametrize("door", DOORS)
def test_what_is_not_there(place: Path, door: str, beyond, capsys: pytest.CaptureFixture[str]) -> None:
    words, what, count = DOORS[door]
    names = {
        "ring4": "{kind: ring, agents: 4}",
        "STUDY": str(place / "study.yaml"),
        "RUN": str(place / "run"),
        "NEW": str(place / "new"),
    }
    number = beyond(count)
    *arguments, last = [names.get(word, word) for word in words]
    before = small.snapshot(place / "run")
    assert main([*arguments, f"{last}={number}"]) == 2
    said = capsys.readouterr().err
    assert said.rstrip().endswith(f"{what}: must be from 0 to {count - 1}, got {number}")
    assert len(said.splitlines()) == 1
    assert small.snapshot(place / "run") == before
    assert not (place / "new").exists()


@pytest.mark.parametrize("only", [(-1, 0), (CELLS, 0), (0, -1), (0, REPLICAS)])
def test_from_python(place: Path, only: tuple[int, int]) -> None:
    study = p2psim.Scenario.load(place / "study.yaml")
    with pytest.raises(InputError, match=r"^(cell|replica): must be from 0 to \d+, got -?\d+$"):
        p2psim.run(study, place / "new", only=only)


@pytest.mark.parametrize("kinds", [[], ["--kind", "all"], ["--kind", "fitness", "--kind", "curves"]])
@pytest.mark.parametrize("words", [["--facet", "nope"], ["--facet", "privacy"], ["--against", "nope"]])
def test_what_no_kind_of_figure_can_use_is_said_once(
    place: Path, kinds: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plot", str(place / "run"), *kinds, *words]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].count(repr(words[1])) == 1
