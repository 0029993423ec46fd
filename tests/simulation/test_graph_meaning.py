"""What means nothing on a graph, each with one clear message, before anything runs."""

import re

import pytest
from graph_cases import graph_scenario, graph_tree
from star_cases import small_tree

from p2psim.core.errors import InputError
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.workspace import Workspace

ADMM = {"kind": "gossip-admm", "mu": 1.0, "rho": 1.0, "commits": 20}
CLIP = {"privacy.sensitivity": {"kind": "clip", "bound": 1.0}}
GOSSIP = {"kind": "gossip", "mode": "push"}
FREE = {"kind": "linear-classification", "dimension": 3, "points": 20, "x": "gaussian", "test_points": 5}

NUMBERS = {"kind": "linear-regression", "dimension": 3, "points": 20, "x": "gaussian"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"record.metrics": ["relative_fitness"]},
            "record.metrics.0: relative_fitness is of other algorithms than coordinate-descent; known: obj",
        ),
        ({"record.metrics": ["objectve"]}, "did you mean objective?"),
        ({"record.per_agent": ["objective"]}, "record.per_agent.0: objective is one number for all agents; record it"),
        ({"record.per_agent": ["accuracy"]}, "record.per_agent.0: unknown metric 'accuracy'"),
        ({"record.per_agent": ["test_rmse"] * 2}, "record.per_agent.1: test_rmse is named twice"),
        ({"record.by": "group", "data.groups": None}, "record.by: group needs groups of agents: give data.groups"),
        ({"record.by": "label"}, "record.by: "),
        (
            {"record.by": "degree", "record.metrics": ["objective_gap"], "record.per_agent": ["test_accuracy"]},
            "record.by: has no effect: record.metrics has no metric that single agents have; such are test_accuracy",
        ),
        ({"learning.loss": "hinge"}, "learning.loss: coordinate-descent needs a smooth loss, such as squared or"),
        ({"network.exchange": "request"}, "network.exchange: coordinate-descent needs broadcast or gossip, got req"),
        (
            {"network.exchange": "synchronous"},
            "network.exchange: coordinate-descent is for agents that act each for itself: it takes broadcast or gossip",
        ),
        ({"network.exchange": "poll"}, "network.exchange: coordinate-descent needs broadcast or gossip, got poll"),
        ({"network.exchange": {**GOSSIP, "mode": "edge"}}, "network.exchange.mode: links that wake are for"),
        (
            {"network.exchange": {**GOSSIP, "mode": "edge"}, "learning.algorithm": ADMM},
            "learning.algorithm.inner: must be 1 with noise: each of 10 inner steps takes the gradient anew",
        ),
        ({"privacy.allocation": "horizon"}, "privacy.allocation: horizon is for a star"),
        ({"privacy.allocation": {"kind": "cap", "tail": 0.1}}, "privacy.allocation.tail: needs exchange: request"),
        ({"privacy.sensitivity": {"kind": "clip", "norm": "l2", "bound": 1.0}}, "privacy.sensitivity.norm: Laplace"),
        ({"learning.baselines": ["local", {"kind": "local", "reduction": "sum"}]}, "learning.baselines.1: local is"),
        ({"learning.regularizer.l2": 0, "learning.baselines": ["local"]}, "learning.baselines.0: local needs"),
        (
            {"learning.regularizer.l2": 0, "learning.baselines": [{"kind": "local-dp", "learns": "alone"}]},
            "learning.baselines.0: local-dp needs a positive learning.regularizer.l2",
        ),
        ({"learning.regularizer.l2": 0, "learning.algorithm.start": "local"}, "learning.algorithm.start: local needs"),
        ({"learning.algorithm.time": 3.0}, "give exactly one of updates_per_agent, time and commits"),
        ({"learning.algorithm.updates_per_agent": None}, "give exactly one of updates_per_agent, time and commits"),
        ({"learning.algorithm.mu": 0}, "learning.algorithm.mu: "),
    ],
    ids=str,
)  # fmt: skip
def test_what_contradicts_itself(changes, said):
    with pytest.raises(InputError, match=re.escape(said)) as error:
        graph_scenario(changes)
    assert len(error.value.faults) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"learning.regularizer.l2": "inverse-size"},
            "learning.regularizer.l2: inverse-size is for agents on a graph",
        ),
        (
            {"record.metrics": ["objective_gap"]},
            "record.metrics.0: objective_gap is of other algorithms than async-star",
        ),
        (
            {"record.per_agent": ["worst_decile_rmse"]},
            "record.per_agent.0: worst_decile_rmse is of other algorithms than async-star",
        ),
        ({"record.by": "degree"}, "record.by: degree is for agents on a graph"),
        ({"record.by": "cluster"}, "record.by: cluster is for agents on a graph"),
        ({"learning.baselines": ["local"]}, "learning.baselines: are for agents on a graph"),
        ({"privacy.when_spent": "coast"}, "privacy.when_spent: an owner of a star sends nothing"),
        (
            {"network.exchange": "broadcast"},
            "network.exchange: async-star needs request or poll, got broadcast",
        ),
    ],
    ids=str,
)
def test_what_is_for_graphs_is_refused_on_a_star(changes, said):
    with pytest.raises(InputError, match=re.escape(said)):
        graph_scenario(changes, small_tree())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"data.source.test_points": 0}, "record.metrics.0: test_accuracy needs records held out"),
        (
            {"data.source.test_points": 0, "record.metrics": ["objective"], "record.per_agent": ["test_accuracy"]},
            "record.per_agent.0: test_accuracy needs records held out",
        ),
        ({"data.source": FREE, "data.scale": {}}, "privacy.sensitivity: bounds needs a public bound on x"),
        (
            {"data.source": FREE, "data.scale": {}, "learning.baselines": ["local", "local-dp"], **CLIP},
            "learning.baselines.1: local-dp needs public bounds: give data.scale",
        ),
        ({"learning.baselines": ["local-dp"], "privacy": {"mechanism": "none"}}, "learning.baselines.0: local-dp"),
        ({"learning.loss": "squared", "data.scale": {}}, "privacy.sensitivity: bounds needs a bound on θ"),
        (
            {"learning.loss": "squared", "data.source": NUMBERS, "data.test_fraction": 0.2, "data.scale": {}, **CLIP},
            "record.metrics.0: test_accuracy is of labels that are classes; these are numbers: record test_rmse",
        ),
        ({"network.topology.agents": 5, "data.source.agents": 6}, "agents"),
        ({"network.topology": {"kind": "knn", "neighbours": 2, "agents": 9}}, "network.topology: knn needs profiles"),
        ({"privacy.epsilon": {0: 1.0}}, "privacy.epsilon: agent 1 has no value"),
        (
            {"learning.algorithm.start": {"kind": "private", "epsilon": 20.0}},
            "learning.algorithm.start.epsilon: must be less than privacy.epsilon, 20 for agent 0",
        ),
        (
            {"learning.algorithm.start": {"kind": "private", "epsilon": 1.0}, **CLIP},
            "learning.algorithm.start: a private warm start needs a bound on gradients that holds without clipping",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_what_the_data_does_not_allow_is_named_before_a_run(changes, said, tmp_path):
    tree = graph_tree()
    tree["record"]["metrics"] = ["test_accuracy"]

    def prepare():
        one = graph_scenario(changes, tree)
        GraphCell.cell(one, Workspace(tmp_path).case(one, 0), 0)

    with pytest.raises(InputError, match=re.escape(said)):
        prepare()
