"""Forecasts of scenarios on graphs: exact where they say so, refused where there is none, and shown as they are."""

import json
from dataclasses import replace

import numpy as np
import pytest
from graph_cases import graph_scenario, problem_of, weighted
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import few

from p2psim.analysis.forecasts.graph_setting import recorded_moments
from p2psim.analysis.forecasts.study import calibrate, forecast_of, forecast_scenario
from p2psim.cli.main import main
from p2psim.core.errors import MeaningError
from p2psim.learning.graph.optimum import graph_balance, graph_expansion, minimise_together
from p2psim.learning.losses import Logistic, Squared
from p2psim.scenario.record import EveryTime
from p2psim.simulation.workspace import Workspace

DROPS = {"network.availability": {"kind": "bernoulli", "drop": 0.4}}
CLOCKS = {"network.clock": {"rate": {"0": 2.0, "1": 0.5, "2": 1.0, "3": 1.0, "4": 1.0, "5": 1.0}}}
TIMED = {
    "learning.algorithm": {"kind": "coordinate-descent", "mu": 0.5, "time": 8.0},
    "record.every": {"time": 2.0},
}
KNOWN = {"kind": "contraction", "wakes": "known", "rate": 0.95}
GAUSSIAN = {"privacy.mechanism": "gaussian", "privacy.delta": 1e-5, "privacy.accountant": "zcdp"}


def tree():
    """Six agents on a ring who learn two coefficients by descent, each with noise that counts."""
    return {
        "name": "graph",
        "seed": 3,
        "network": {"topology": {"kind": "ring", "agents": 6}, "exchange": "broadcast"},
        "data": {
            "source": {
                "kind": "linear-regression",
                "dimension": 2,
                "points": 60,
                "noise": 1.0,
                "x": "gaussian",
            },
            "redraw": "never",
        },
        "learning": {
            "algorithm": {"kind": "coordinate-descent", "mu": 0.5, "commits": 60},
            "loss": "squared",
            "regularizer": {"l2": 0.1},
        },
        "privacy": {
            "mechanism": "laplace",
            "epsilon": {"0": 5.0, "1": 8.0, "2": 20.0, "3": 10.0, "4": 6.0, "5": 9.0},
            "sensitivity": {"kind": "declared", "bound": 1.0},
            "allocation": {"kind": "cap", "releases": 30},
        },
        "record": {"metrics": ["objective_gap"], "every": 12},
    }


def gossip(mode, **more):
    """What makes the scenario one of averaging."""
    return {
        "learning.algorithm": {"kind": "averaging", "start": "local", **(more or {"commits": 24})},
        "network.exchange": {"kind": "gossip", "mode": mode},
        "privacy": None,
        "record.metrics": ["consensus_distance"],
        "record.every": 5,
    }


def of(changes):
    return graph_scenario(changes, tree())


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


def made(one, workspace):
    return forecast_of(one, workspace.case(one, 0))


@pytest.mark.parametrize(
    "changes",
    few(
        [
            {},
            {"privacy.allocation": "uniform"},
            {"privacy.allocation": KNOWN},
            {"privacy.allocation": {**KNOWN, "form": "printed"}},
            {"privacy.allocation": KNOWN, **GAUSSIAN},
            {"privacy.allocation": {"kind": "geometric", "ratio": 0.9}},
            {
                "privacy.allocation": {"kind": "list", "losses": [0.1] * 10 + [0.3] * 20},
                "privacy.epsilon": 20.0,
            },
            {**TIMED, **DROPS, **CLOCKS},
            {"learning.algorithm": {"kind": "coordinate-descent", "mu": 0.5, "updates_per_agent": 8}},
            {"privacy.mechanism": "none", "privacy.sensitivity": None, "privacy.epsilon": None},
            gossip("push"),
            gossip("pull", time=4.0) | {"network.channel": {"loss": 0.3}} | DROPS | CLOCKS,
            gossip("push-pull") | {"network.channel": {"loss": 0.3}},
            gossip("push-pull", time=4.0) | {"record.every": {"time": 1.0}},
        ],
        7,
    ),
)
def test_an_exact_forecast_is_the_mean_of_runs(changes, workspace):
    """|z| < 4.5 at up to 20 moments, through the whole simulation: odds of a false alarm 2e-4 a case; fixed seeds."""
    one = of(changes)
    found = made(one, workspace)
    assert found.approximate == ()
    measured = calibrate(one, workspace, 150, found)
    assert np.abs(measured.z).max() < 4.5
    assert (measured.error[1:] > 0).all()
    assert measured.seconds > 0


@pytest.mark.parametrize(
    ("topology", "commits", "expected"),
    [
        (
            {"kind": "star", "agents": 6},
            [1, 3, 5, 7, 9],
            [0.224712, 0.189187, 0.162222, 0.139519, 0.120053],
        ),
        ({"kind": "scale-free", "attach": 2, "agents": 7, "seed": 3}, [1], [0.246092]),
    ],
)
def test_within_an_exchange_who_woke_commits_first(topology, commits, expected, workspace):
    """Exact values of push-pull, by summing over all orders of exchanges, where degrees differ."""
    source = {"kind": "linear-regression", "dimension": 2, "points": 12, "noise": 0.5}
    changes = {"seed": 9, "network.topology": topology, "data.source": source, "record.every": 1}
    one = of(gossip("push-pull", commits=9) | {"learning.regularizer": {"l2": 0.05}} | changes)
    found = made(one, workspace)
    assert found.approximate == ()
    assert found.spread[commits] == pytest.approx(expected, abs=6e-7)


@pytest.mark.parametrize(
    ("spent", "changes"),
    [
        ("silent", {"privacy.allocation": {"kind": "cap", "releases": 4}}),
        *(
            pytest.param(spent, changes, marks=pytest.mark.verification)
            for spent, changes in (
                ("coast", {"privacy.allocation": {"kind": "cap", "releases": 4}}),
                ("anchored", {"privacy.allocation": {"kind": "cap", "releases": 4}}),
                (
                    "anchored",
                    {
                        "privacy.allocation": {"kind": "contraction", "rate": 0.95},
                        "record.every": {"time": 2.0},
                    },
                ),
            )
        ),
        pytest.param(
            "coast",
            {"privacy.allocation": {"kind": "cap", "releases": 2}, **TIMED, **DROPS, **CLOCKS},
            marks=pytest.mark.verification,
        ),
        ("silent", {"privacy.allocation": KNOWN, **TIMED}),
    ],
)
def test_orders_are_drawn_where_releases_end_or_wakes_are_known(spent, changes, workspace):
    """|z| < 4.5 at up to 20 moments, with the orders' own error in it: odds of a false alarm 2e-4 a case."""
    one = of({**changes, "privacy.when_spent": spent})
    found = made(one, workspace)
    assert ["drawn orders" in reason for reason in found.approximate] == [True]
    assert found.orders >= 30
    assert (found.error[1:] > 0).all()
    measured = calibrate(one, workspace, 150, found)
    assert np.abs(measured.z).max() < 4.5
    assert found.expected == pytest.approx(made(one, workspace).expected, rel=0)


def test_a_private_start_is_averaged_over(workspace):
    """Each replica draws its first models: logistic loss, since bounds are wanted, near the optimum."""
    changes = {
        "data.source": {"kind": "linear-classification", "dimension": 2, "points": 200},
        "data.scale": {"x": {"at": "each-record"}},
        "learning.loss": "logistic",
        "learning.regularizer.l2": 0.5,
        "learning.algorithm": {
            "kind": "coordinate-descent",
            "mu": 0.5,
            "commits": 30,
            "start": {"kind": "private", "epsilon": 2.0},
        },
        "privacy.sensitivity": "bounds",
    }
    for propagated in (True, False):
        one = of(changes | {"learning.algorithm.start.propagate": propagated})
        found = made(one, workspace)
        assert len(found.approximate) == 1
        assert "quadratic model" in found.approximate[0]
        assert found.start[0] > 0
        measured = calibrate(one, workspace, 100, found)
        assert measured.mean == pytest.approx(found.expected, rel=0.25)
        assert abs(measured.z[0]) < 4


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"privacy.sensitivity": {"kind": "clip", "bound": 1.0}}, "clipped"),
        (
            {
                "learning.algorithm": {
                    "kind": "coordinate-descent",
                    "mu": 0.5,
                    "commits": 60,
                    "batch": {"kind": "poisson", "rate": 0.5},
                }
            },
            "batches",
        ),
    ],
)
def test_what_is_approximate_says_why(changes, reason, workspace):
    assert any(reason in text for text in made(of(changes), workspace).approximate)


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"network.channel": {"latency": 0.1}}, "network.channel", "take no time"),
        ({"network.channel": {"loss": 0.1}}, "network.channel.loss", "all arrive"),
        (
            {"network.exchange": {"kind": "gossip", "mode": "push"}},
            "network.exchange",
            "need broadcast.*got gossip",
        ),
        (
            {"network.availability": {"kind": "renewal", "up": 1.0, "down": 1.0}},
            "network.availability",
            "renewal",
        ),
        (
            {"learning.algorithm": {"kind": "model-propagation", "mu": 0.5, "commits": 9}},
            "learning.algorithm",
            "got",
        ),
        (gossip("push") | {"network.channel": {"latency": 0.1}}, "network.channel", "take no time"),
        (
            gossip("push")
            | {"network.channel": {"loss": {"kind": "gilbert-elliott", "mean": 0.1, "burst": 2.0}}},
            "network.channel",
            "independent",
        ),
        (gossip("push") | {"record.every": {"time": 1.0}}, "record.every", "need steps"),
    ],
)
def test_what_has_no_forecast_is_refused(changes, key, message, workspace):
    if changes.get("learning.algorithm", {}).get("kind") == "model-propagation":
        changes = changes | {"privacy": None, "record.metrics": ["consensus_distance"]}
    with pytest.raises(MeaningError, match=message) as caught:
        made(of(changes), workspace)
    assert [fault.key for fault in caught.value.faults] == [key]


def test_parts_add_up_and_gains_are_comparisons(workspace):
    found = made(of({}), workspace)
    assert found.expected == pytest.approx(
        found.bias + found.optimisation + found.order + found.noise.sum(axis=1)
    )
    assert found.bias == 0
    assert (found.noise[1:] > 0).all()
    assert (found.gains == (found.apart < found.apart_alone)).all()


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 50), clip=st.sampled_from([0.2, 1.0, 1e6]), logistic=st.booleans())
def test_models_at_which_clipped_updates_rest(seed, clip, logistic):
    """Jacobians are those of finite differences; at the balance the clipped gradient of Q_L is zero."""
    import networkx as nx

    where = weighted(nx.cycle_graph(4), seed)
    loss = Logistic() if logistic else Squared()
    problem = problem_of(loss, where, [8, 5, 12, 0], 2, 0.5, seed)
    optimum = minimise_together(problem)
    gradients, jacobians = graph_expansion(problem, optimum, clip)
    nudge = 1e-7
    for a in range(optimum.shape[1]):
        moved = optimum.copy()
        moved[:, a] += nudge
        slope = (graph_expansion(problem, moved, clip)[0] - gradients) / nudge
        assert jacobians[:, :, a] == pytest.approx(slope, abs=1e-4)
    rest = graph_balance(problem, optimum, clip)
    slope = problem.degrees[:, None] * (rest - problem.neighbour_means(rest))
    slope += problem.pull[:, None] * graph_expansion(problem, rest, clip)[0]
    assert slope == pytest.approx(np.zeros_like(slope), abs=1e-6)
    if clip == 1e6:
        assert rest == pytest.approx(optimum, abs=1e-6)


def test_records_without_error_have_no_slope():
    """0 times an infinite clip is no number."""
    import networkx as nx

    problem = problem_of(Squared(), weighted(nx.cycle_graph(3)), [2, 3, 4], 2, 0.5)
    theta = np.ones((3, 2))
    exact = replace(problem, y=problem.scores(theta))
    gradients, jacobians = graph_expansion(exact, theta)
    assert gradients == pytest.approx(2 * problem.ridge[:, None] * theta)
    assert jacobians == pytest.approx(graph_expansion(problem, theta)[1])


def test_of_many_agents_orders_are_drawn(workspace, monkeypatch):
    """|z| < 4.5 at 5 moments: odds of a false alarm 4e-5; fixed seeds."""
    from p2psim.analysis.forecasts import graph_descent, graph_setting

    one = of({})
    exact = made(one, workspace)
    monkeypatch.setattr(graph_setting, "MOST_NUMBERS", 11)
    drawn = made(one, workspace)
    assert exact.orders == 0 < drawn.orders
    assert (np.abs(drawn.expected - exact.expected)[1:] < 4.5 * drawn.error[1:]).all()
    monkeypatch.setattr(graph_descent, "LONGEST", 0.0)
    with pytest.raises(MeaningError, match="would take some"):
        made(one, workspace)


def test_moments_are_where_runs_are_recorded():
    at, steps = recorded_moments(10, 25, None, 6.0)
    assert at.points.tolist() == [0, 10, 20, 25]
    assert at.chances.argmax(axis=1).tolist() == [0, 10, 20, 25]
    assert steps == 25
    at, steps = recorded_moments(EveryTime(time=1.0), None, 2.5, 6.0)
    assert at.points.tolist() == [0, 1, 2, 2.5]
    assert at.chances @ np.arange(at.most + 1) == pytest.approx([0, 6, 12, 15])
    assert steps == 15
    at, _ = recorded_moments(EveryTime(time=1.0), 12, None, 6.0)
    assert at.points.tolist() == [0, 1, 2]
    assert at.most == 12
    assert at.chances.sum(axis=1) == pytest.approx(np.ones(3))
    assert at.chances[-1, 12] == 1


def test_the_command_shows_tables_json_and_figures(tmp_path, capsys):
    import yaml

    file = tmp_path / "graph.yaml"
    file.write_text(yaml.safe_dump(tree()))
    assert main(["forecast", str(file), "--figures", str(tmp_path / "figures")]) == 0
    shown = capsys.readouterr().out
    assert "expected objective_gap at the end" in shown
    assert "exact" in shown
    assert {path.stem for path in (tmp_path / "figures").iterdir()} == {
        "forecast-objective_gap",
        "forecast-agents",
    }
    assert main(["forecast", str(file), "--json", "--calibrate", "3"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert cell["exact"]
    assert cell["objective_gap"] == cell["run"]["objective_gap"][-1]
    assert sum(agent["share"] for agent in cell["agents"]) == pytest.approx(1)
    assert cell["calibration"]["seconds"]["forecast"] > 0
    assert main(["forecast", str(file), "--best"]) == 2
    assert "not for graphs" in capsys.readouterr().err


def test_averaging_tells_its_rates():
    (cell,) = forecast_scenario(
        of(gossip("push-pull") | {"network.topology": {"kind": "complete", "agents": 6}})
    )
    tree_of = cell.as_tree()
    assert tree_of["rates"]["r"] == pytest.approx(1 - 1 / 5)
    assert cell.row()["exact"]
    assert cell.agents() == []
