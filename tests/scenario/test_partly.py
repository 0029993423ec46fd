"""All faults of a scenario are reported together, whatever kind they are and wherever they stand."""

import itertools
from pathlib import Path
from string import Template

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.core.errors import InputError
from p2psim.scenario.model import Scenario

STAR = Template("""\
name: star
seed: $seed
network:
  topology: {kind: star, agents: $agents}
  exchange: request
  availability: {kind: renewal, up: 5, down: $down}
data:
  source: {kind: csv, path: $path, y: y}
  partition: equal
learning:
  algorithm: {kind: async-star, horizon: $horizon, rho: 1, theta_max: 3}
  loss: squared
  regularizer: {l2: $l2}
privacy:
  mechanism: laplace
  epsilon: $epsilon
  sensitivity: {kind: clip, norm: $norm, bound: 1}
record: {metrics: [$metric]}
figure: {kind: curves, against: $against}
sweep: $sweep
""")
GOOD = {
    "seed": "1",
    "agents": "3",
    "down": "5",
    "path": "here.csv",
    "horizon": "20",
    "l2": ".1",
    "epsilon": "1",
    "norm": "l1",
    "metric": "delivery",
    "against": "time",
    "sweep": "{}",
}
#: What is written, and what is said: of reading, of structure, of meaning, of a file, of a figure, of the sweep.
BAD = {
    "seed": ("1e999", ""),
    "agents": ("three", "network.topology.agents: "),
    "down": ("-1", "network.availability.down: "),
    "path": ("missing.csv", "data.source.path: "),
    "horizon": ("1.5", "learning.algorithm.horizon: "),
    "l2": ("0", "learning.regularizer.l2: "),
    "epsilon": (
        "eps.csv",
        "privacy.epsilon: must be a positive number or a mapping from names to a positive ",
    ),
    "norm": ("l2", "privacy.sensitivity.norm: "),
    "metric": ("nope", "record.metrics.0: "),
    "against": ("weather", "figure.0.against: "),
    "sweep": ("{privacy.epsilon: 3}", "sweep.privacy.epsilon: "),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of records."""
    made = tmp_path_factory.mktemp("partly")
    rows = "\n".join(f"{i % 7 / 7},{i % 5 / 5}" for i in range(30))
    (made / "here.csv").write_text(f"x,y\n{rows}\n")
    return made


def faults(folder: Path, wrong: list[str]) -> tuple[list[str], list[str]]:
    """What is said of a scenario that is wrong in some places, and how each of that must begin."""
    expected = []
    for number, line in enumerate(STAR.template.splitlines(), 1):
        for key in wrong:
            if f"${key}" in line:
                column = line.index(f"${key}") + 1 + (len("{privacy.epsilon: ") if key == "sweep" else 0)
                expected.append(f"{number}:{column}: {BAD[key][1]}")
    text = STAR.substitute({key: BAD[key][0] if key in wrong else value for key, value in GOOD.items()})
    with pytest.raises(InputError) as caught:
        Scenario.parse(text, str(folder / "f.yaml"))
    prefix = f"{folder / 'f.yaml'}:"
    return [str(fault).removeprefix(prefix) for fault in caught.value.faults], expected


# What depends on a part that is wrong itself cannot be judged: the number of agents decides how records are divided,
# and the sweep replaces what is written.
INDEPENDENT = [list(pair) for pair in itertools.combinations(BAD, 2) if set(pair) != {"epsilon", "sweep"}]


@pytest.mark.parametrize("wrong", INDEPENDENT, ids="-".join)
def test_two_faults_are_reported_together(folder: Path, wrong: list[str]) -> None:
    told, expected = faults(folder, wrong)
    assert len(told) == len(expected) == 2
    assert all(one.startswith(start) for one, start in zip(told, expected, strict=True)), (told, expected)


@settings(max_examples=20, deadline=None)
@given(st.sets(st.sampled_from(sorted(set(BAD) - {"sweep"})), min_size=3))
def test_any_number_of_faults_is_reported_together(folder: Path, wrong: set[str]) -> None:
    told, expected = faults(folder, sorted(wrong))
    assert len(told) == len(expected) == len(wrong)
    assert all(one.startswith(start) for one, start in zip(told, expected, strict=True)), (told, expected)


@pytest.mark.parametrize("value", ["eps.csv", "true"])
def test_what_a_budget_may_be(folder: Path, value: str) -> None:
    text = STAR.substitute(GOOD | {"epsilon": value})
    with pytest.raises(
        InputError, match="must be a positive number or a mapping from names to a positive number"
    ):
        Scenario.parse(text, str(folder / "f.yaml"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", "1e2"),
        ("agents", "3.0"),
        ("horizon", "2e1"),
        ("horizon", "+20."),
        ("sweep", "{seed: [1e0, 2]}"),
    ],
)
def test_a_whole_number_may_be_written_as_a_float(folder: Path, key: str, value: str) -> None:
    scenario = Scenario.parse(STAR.substitute(GOOD | {key: value}), str(folder / "f.yaml"))
    assert isinstance(scenario.seed, int)
    assert isinstance(scenario.network.topology.agents, int)
    assert Scenario.parse(scenario.to_yaml()) == scenario
