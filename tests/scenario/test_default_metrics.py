"""What is recorded where nothing is said, written down in the resolved scenario."""

import pytest
from graph_cases import graph_scenario
from language import VALID

import p2psim
from p2psim.scenario.model import Scenario

SQUARED = {
    "learning.loss": "squared",
    "data.source": {"kind": "linear-regression", "dimension": 3, "points": 20},
    "data.scale": None,
    "data.groups": None,
}


@pytest.mark.parametrize(
    ("changes", "metrics"),
    [
        ({}, ["objective_gap", "test_accuracy"]),
        ({"data.source.test_points": 0}, ["objective_gap"]),
        ({**SQUARED}, ["objective_gap"]),
        ({**SQUARED, "data.test_fraction": 0.2}, ["objective_gap", "test_rmse"]),
        ({"record.metrics": []}, []),
        ({"record.metrics": ["objective"]}, ["objective"]),
    ],
)
def test_of_agents_on_a_graph(changes, metrics):
    tree = graph_scenario({"record.metrics": None, **changes}).resolved()
    assert tree["record"]["metrics"] == metrics
    assert Scenario.from_dict(tree).record.metrics == metrics


def test_of_a_star():
    text = VALID.replace("metrics: [relative_fitness], ", "")
    assert Scenario.parse(text).record.metrics == ["relative_fitness"]


def test_a_graph_runs_without_a_word_on_what_to_record(tmp_path):
    result = p2psim.run(graph_scenario({"record.metrics": None}), tmp_path / "run", progress=False)
    assert set(result.metrics["metric"]) == {"objective_gap", "test_accuracy"}
    assert "metrics: [objective_gap, test_accuracy]" in (result.path / "scenario.yaml").read_text()
