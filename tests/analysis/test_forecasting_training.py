"""Forecasts of decentralised SGD in rounds: the mean of runs, every possible batch, and refused where there is none."""

import json
import re
from copy import deepcopy
from itertools import product

import numpy as np
import pytest
import yaml
from graph_cases import graph_scenario
from pairs import few

from p2psim.analysis.forecasts.study import calibrate, forecast_of
from p2psim.cli.main import main
from p2psim.core.errors import MeaningError
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace


def tree():
    """Six agents on a ring who learn two coefficients together, in rounds."""
    source = {"kind": "linear-regression", "dimension": 2, "points": 10, "noise": 1.0, "x": "gaussian"}
    return {
        "name": "training",
        "seed": 3,
        "network": {"topology": {"kind": "ring", "agents": 6}, "exchange": "synchronous"},
        "data": {"source": source, "redraw": "never"},
        "learning": {
            "algorithm": {
                "kind": "decentralised-sgd",
                "step": 0.1,
                "batch": {"kind": "fixed", "size": 2},
                "updates_per_agent": 12,
            },
            "loss": "squared",
            "regularizer": {"l2": 0.1},
        },
        "record": {"metrics": ["objective_gap"], "every": 18},
    }


NOISE = {
    "privacy": {
        "mechanism": "laplace",
        "epsilon": {"0": 500.0, "1": 800.0, "2": 2000.0, "3": 1000.0, "4": 600.0, "5": 900.0},
        "sensitivity": {"kind": "clip", "norm": "l1", "bound": 100.0},
        "allocation": {"kind": "geometric", "ratio": 0.95},
    }
}
FALLING = {"kind": "inverse", "first": 0.2, "decay": 0.1}


def of(changes):
    return graph_scenario(deepcopy(changes), tree())


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


@pytest.mark.parametrize(
    "changes",
    few(
        [
            {},
            {"learning.algorithm.order": "gradient-then-gossip", "learning.algorithm.weight_decay": 0.3},
            {"learning.algorithm.order": "together", "learning.algorithm.step": FALLING},
            {
                "learning.algorithm.batch": {"kind": "poisson", "rate": 0.3},
                "record.every": {"time": 0.25},
                "network.exchange": {"kind": "synchronous", "interval": 0.1},
                "learning.algorithm.updates_per_agent": None,
                "learning.algorithm.time": 0.9,
            },
            {
                "network.topology": {"kind": "star-of-agents", "agents": 6},
                "learning.algorithm.mixing": "uniform",
            },
            {
                "network.topology": {"kind": "one-peer-exponential", "agents": 8, "interval": 1.0},
                "network.engine": "simpy",
                "record.every": 8,
            },
            NOISE | {"learning.algorithm.batch": "whole"},
            NOISE | {"privacy.allocation": {"kind": "contraction", "rate": 0.97, "wakes": "known"}},
            NOISE | {"learning.algorithm.order": "gradient-then-gossip", "data.redraw": "replica"},
        ],
        5,
    ),
)
def test_a_forecast_is_the_mean_of_runs(changes, workspace):
    """|z| < 4.5 at up to 10 moments, through the whole simulation: odds of a false alarm 7e-5 a case; fixed seeds."""
    one = of(changes)
    found = forecast_of(one, workspace.case(one, 0))
    assert (found.approximate == ()) == ("privacy" not in changes)
    measured = calibrate(one, workspace, 150, found)
    assert np.abs(measured.z).max() < 4.5
    assert (measured.error[1:] > 0).all()
    assert (found.noise[1:] > 0).all() == ("privacy" in changes)


def test_agents_are_as_far_apart_as_in_runs(workspace):
    """|z| < 4.5 at 4 moments: odds of a false alarm 3e-5; fixed seeds."""
    one = of(NOISE | {"record.metrics": ["consensus_distance"]})
    found, replicas = forecast_of(one, workspace.case(one, 0)), range(100)
    runs = np.array([found.held(simulate(one, replica, workspace).series[0]) for replica in replicas])
    error = runs[:, 1:].std(axis=0, ddof=1) / np.sqrt(len(replicas))
    assert found.spread[0] == 0
    assert (np.abs(runs.mean(axis=0) - found.spread)[1:] < 4.5 * error).all()


@pytest.mark.parametrize("order", ["gossip-then-gradient", "gradient-then-gossip", "together"])
def test_two_agents_whose_every_batch_is_listed(order, workspace):
    """Three rounds of two agents that draw one of three records: all 729 choices, in plain numbers."""
    algorithm = {"kind": "decentralised-sgd", "step": 0.1, "order": order, "commits": 6}
    changes = {
        "network.topology": {"kind": "complete", "agents": 2},
        "data.source": {"kind": "linear-regression", "dimension": 1, "points": 3, "noise": 1.0},
        "learning.algorithm": algorithm | {"batch": {"kind": "fixed", "size": 1}, "mixing": "uniform"},
        "record.every": 2,
    }
    one = of(changes)
    case = workspace.case(one, 0)
    found = forecast_of(one, case)
    x, y = case.arrays["X"][:, 0].reshape(2, 3), case.arrays["y"].reshape(2, 3)
    best = (x * y).mean() / ((x**2).mean() + 0.1)

    def f(theta):
        return ((x * theta - y) ** 2).mean() + 0.1 * theta**2

    def after(models, rows):
        a, b = models
        mean = (a + b) / 2
        at = (mean, mean) if order == "gossip-then-gradient" else models
        steps = [
            0.1 * (2 * (x[i, row] * at[i] - y[i, row]) * x[i, row] + 2 * 0.1 * at[i])
            for i, row in enumerate(rows)
        ]
        if order == "gradient-then-gossip":
            both = (a - steps[0] + b - steps[1]) / 2
            return both, both
        return mean - steps[0], mean - steps[1]

    states, pairs = [(0.0, 0.0)], list(product(range(3), repeat=2))
    for k in range(4):
        gaps = [f((a + b) / 2) - f(best) for a, b in states]
        assert found.expected[k] == pytest.approx(np.mean(gaps), rel=1e-9)
        spread = np.mean([(a - b) ** 2 / 4 for a, b in states])
        assert found.spread[k] == pytest.approx(spread, rel=1e-9, abs=1e-14)
        states = [after(models, rows) for models in states for rows in pairs]


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"network.exchange": "broadcast"}, "network.exchange", "need rounds.*got broadcast"),
        (
            {"network.topology": {"kind": "random-matching", "agents": 6, "interval": 1.0}},
            "network.topology",
            "a graph that stays, or",
        ),
        ({"network.channel": {"latency": 0.1}}, "network.channel", "take no time"),
        ({"network.channel": {"loss": 0.1}}, "network.channel.loss", "all arrive"),
        (
            {"network.availability": {"kind": "bernoulli", "drop": 0.2}},
            "network.availability",
            "availability: always",
        ),
        ({"network.compute": {"time": 0.1}}, "network.compute", "time that agents take"),
        ({"learning.algorithm.momentum": 0.5}, "learning.algorithm.momentum", "no momentum"),
        ({"learning.algorithm.batch": {"kind": "epochs", "size": 2}}, "learning.algorithm.batch", "whole, p"),
        (
            {"learning.loss": "logistic", "data.source": {"kind": "linear-classification", "points": 60}},
            "learning.loss",
            "the squared loss",
        ),
        (
            {
                "learning.loss": None,
                "learning.model": "softmax",
                "data.source": "digits",
                "data.partition": "equal",
            },
            "learning.model",
            "a linear model",
        ),
        ({"record.every": 4}, "record.every", "whole ones, of 6 commits each; got 4"),
        (
            {"learning.algorithm.updates_per_agent": None, "learning.algorithm.commits": 20},
            "learning.algorithm.commits",
            "got 20",
        ),
        (NOISE | {"privacy.allocation": {"kind": "cap", "releases": 5}}, "privacy", "0 may make 5"),
        (
            NOISE | {"privacy.sensitivity": {"kind": "clip", "norm": "l1", "bound": 1.0}},
            "privacy.sensitivity",
            "after 0 rounds those of agent .* are clipped to 1",
        ),
    ],
)
def test_what_has_no_forecast_is_refused(changes, key, message, workspace):
    one = of(changes)
    with pytest.raises(MeaningError, match=message) as caught:
        forecast_of(one, workspace.case(one, 0))
    assert [fault.key for fault in caught.value.faults] == [key]


def test_the_command_shows_tables_and_json(tmp_path, capsys):
    file = tmp_path / "training.yaml"
    file.write_text(yaml.safe_dump(tree()))
    assert main(["forecast", str(file), "--figures", str(tmp_path / "figures")]) == 0
    assert re.search(r"consensus\s.*distance", capsys.readouterr().out, re.S)
    assert list((tmp_path / "figures").glob("forecast-objective_gap*"))
    assert main(["forecast", str(file), "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    run = cell["run"]
    assert cell["exact"]
    assert run["commits"] == [0, 18, 36, 54, 72]
    parts = np.sum([run[name] for name in ("expected_models", "batches", "noise")], axis=0)
    assert run["objective_gap"] == pytest.approx(parts)
    assert run["objective_gap"][-1] == cell["objective_gap"]
