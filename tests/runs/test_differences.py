"""A run folder of another scenario: the scenario's own mistakes come first, then which keys differ."""

from pathlib import Path
from typing import Any

import pytest
import small_study as small
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import p2psim
from p2psim.core.errors import FolderError, InputError

#: Other values of keys, and how the message shows them.
CHANGES = {
    "name=other": "name: small → other",
    "seed=6": "seed: 5 → 6",
    "learning.algorithm.theta_max=4": "learning.algorithm.theta_max: 3.0 → 4.0",
    "learning.algorithm.rho.h=0.25": "learning.algorithm.rho.h: 0.5 → 0.25",
    "record.events=false": "record.events: true → false",
    "record.metrics=[relative_fitness, present]": (
        "record.metrics: [relative_fitness] → [relative_fitness, present]"
    ),
    "network.channel.loss=0.25": "network.channel.loss: 0.0 → 0.25",
}
#: What may differ.
FREE = ["replicas=4", "network.engine=simpy", "sweep.privacy.epsilon=[1, 7]", "figure=[{kind: fitness}]"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("differences")
    (folder / "study.yaml").write_text(small.scenario(replicas=1).to_yaml())
    p2psim.run(small.scenario(replicas=1), folder / "run", progress=False)
    return folder


def refusal(place: Path, overrides: list[str], kind: type[InputError]) -> str:
    before = small.snapshot(place / "run")
    with pytest.raises(kind) as caught:
        p2psim.run(p2psim.Scenario.load(place / "study.yaml", overrides), place / "run", progress=False)
    assert small.snapshot(place / "run") == before
    return str(caught.value)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(
    changed=st.sets(st.sampled_from(sorted(CHANGES)), min_size=1, max_size=4),
    free=st.sets(st.sampled_from(FREE)),
)
def test_the_keys_that_differ_are_named_with_both_values(
    place: Path, changed: set[str], free: set[str]
) -> None:
    said = refusal(place, [*sorted(changed), *sorted(free)], FolderError)
    assert len(said.splitlines()) == 1
    for change, words in CHANGES.items():
        assert (words in said) == (change in changed)
    assert said.count("→") == len(changed)


def test_more_differences_than_are_shown_are_counted(place: Path) -> None:
    said = refusal(place, list(CHANGES), FolderError)
    assert said.count("→") == 4
    assert "; and 3 more)" in said


def test_another_sweep_is_a_difference(place: Path) -> None:
    said = refusal(place, ["sweep={learning.regularizer.l2: [1, 2]}"], FolderError)
    assert "sweep: [privacy.epsilon] → [learning.regularizer.l2]" in said


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.source={kind: csv, path: study.yaml, y: y}", "data.source"),
        ("data.source={kind: csv, path: nothing.csv, y: y}", "no such file"),
    ],
)
def test_mistakes_of_the_scenario_come_first(place: Path, override: str, message: str) -> None:
    said = refusal(place, [override], InputError)
    assert message in said
    assert "another scenario" not in said


def test_a_folder_whose_scenario_cannot_be_read(place: Path, tmp_path: Path) -> None:
    p2psim.run(small.scenario(replicas=1), tmp_path / "run", progress=False)
    (tmp_path / "run" / "scenario.yaml").write_bytes(b"\xff")
    changed: Any = small.scenario(replicas=1, seed=6)
    with pytest.raises(FolderError, match=r"of another scenario \(small\); choose another --out"):
        p2psim.run(changed, tmp_path / "run", progress=False)
