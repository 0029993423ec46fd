"""Simulations on a graph: what they depend on, what is recorded, and that all of it follows from their records."""

import itertools

import numpy as np
import pytest
from graph_cases import commits_of, graph_scenario, released

from p2psim.core.events import COMMIT, SEND, WAKE
from p2psim.learning.graph.optimum import minimise_together, propagate
from p2psim.learning.graph.problem import GraphTask
from p2psim.learning.reference import reference_replay
from p2psim.scenario.cells import cells
from p2psim.simulation import simulate as module
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.session import Session
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


def digest(outcome):
    """Everything that an outcome says, as bytes."""
    said = {"ended": outcome.ended, "problem": outcome.problem_id, "warnings": outcome.warnings}
    for name in ("events", "noise", "models"):
        array = getattr(outcome, name)
        said[name] = None if array is None else (array.shape, array.tobytes())
    for name in ("ledger", "agents"):
        said[name] = {key: column.tolist() for key, column in getattr(outcome, name).items()}
    said["series"] = [
        (one.metric, one.model, one.agent, one.step.tobytes(), one.time.tobytes(), one.value.tobytes())
        for one in outcome.series
    ]
    return said


def fresh(monkeypatch):
    """Forget all that earlier simulations left behind in this process."""
    monkeypatch.setattr(module, "SESSION", Session())


def series(outcome, metric, model="main", agent=None):
    found = [one for one in outcome.series if (one.metric, one.model, one.agent) == (metric, model, agent)]
    assert len(found) == 1, (metric, model, agent)
    return found[0]


MODES = ["push", "pull", "push-pull"]
STILL = {"data.redraw": "never"}
SIMILAR = {"network.topology": {"kind": "similarity", "gamma": 0.3, "keep_connected": 0.01, "agents": 9}}
RANDOM = {"network.topology": {"kind": "random-regular", "degree": 4, "agents": 9}}
LOSSY = {"network.channel": {"latency": {"exponential": 1.0}, "loss": 0.3}}
NOT_PRIVATE = {"privacy": {"mechanism": "none"}}
PRIVATE_START = {
    "learning.algorithm.start": {"kind": "private", "epsilon": 5.0},
}
PROPAGATE = {"kind": "model-propagation", "mu": 0.5, "commits": 60}
CELLS = [
    {},
    STILL,
    {**STILL, "data.seed": 1},
    {**STILL, **SIMILAR},
    {**STILL, **SIMILAR, "data.seed": 1},
    {**STILL, **RANDOM},
    LOSSY,
    NOT_PRIVATE,
    {"privacy.when_spent": "silent"},
    {"privacy.when_spent": "anchored", "network.exchange": {"kind": "gossip", "mode": "push-pull"}},
    {**STILL, **PRIVATE_START},
    {**STILL, "learning.baselines": ["local", "global", "local-dp"]},
    {**STILL, "learning.algorithm": PROPAGATE, **NOT_PRIVATE, "network.exchange": "gossip"},
]
# The same network and limits, but models are updated when others are heard: other events.
AVERAGE = {
    **STILL, **NOT_PRIVATE, "learning.algorithm": {"kind": "averaging", "commits": 60}, "network.exchange": "gossip",
}  # fmt: skip


def test_results_do_not_depend_on_what_was_simulated_before(tmp_path, monkeypatch):
    """Each cell alone in a fresh process and workspace, then all in every of several orders, and twice over."""
    changes = [*CELLS, AVERAGE]
    cells = [graph_scenario(one) for one in changes]
    alone = {}
    for i, replica in itertools.product(range(len(cells)), range(2)):
        fresh(monkeypatch)
        alone[i, replica] = digest(
            simulate(graph_scenario(changes[i]), replica, Workspace(tmp_path / f"{i}.{replica}"))
        )
    random = np.random.default_rng(0)
    together = Workspace(tmp_path / "together")
    for _ in range(2):
        order = list(alone)
        random.shuffle(order)
        for i, replica in [*order, order[-1]]:
            assert digest(simulate(cells[i], replica, together)) == alone[i, replica], (changes[i], replica)


@pytest.mark.parametrize("changes", CELLS)
def test_cells_that_differ_in_budgets_are_what_each_is_alone(tmp_path, monkeypatch, changes):
    fresh(monkeypatch)
    budgets, together, replicas = [30.0, 40.0, 20.0], Workspace(tmp_path), range(2)
    grid = cells(graph_scenario({**changes, "sweep": {"privacy.epsilon": budgets}}))
    shared = [[digest(simulate(one.scenario, replica, together)) for one in grid] for replica in replicas]
    for i, budget in enumerate(budgets):
        alone = graph_scenario({**changes, "privacy.epsilon": budget})
        for replica in replicas:
            fresh(monkeypatch)
            assert digest(simulate(alone, replica, Workspace(None))) == shared[replica][i]


def test_data_of_earlier_replicas_are_let_go(workspace, monkeypatch):
    fresh(monkeypatch)
    cells = [graph_scenario({"privacy.epsilon": epsilon}) for epsilon in (5.0, 20.0)]
    for replica in range(4):
        for one in cells:
            simulate(one, replica, workspace)
        assert len(module.SESSION.cells) == 2
    still = graph_scenario(STILL)
    for replica in range(4):
        simulate(still, replica, workspace)
    assert len(module.SESSION.cells) == 3


def test_replicas_have_their_own_starts_and_baselines(workspace):
    one = graph_scenario({**STILL, **PRIVATE_START, "learning.baselines": ["local-dp", "local"]})
    first, second = (simulate(one, replica, workspace) for replica in range(2))
    assert first.problem_id == second.problem_id
    assert not np.isin(first.models[0], second.models[0]).any()
    name = "objective"
    assert series(first, name, "local-dp").value[0] != series(second, name, "local-dp").value[0]
    assert series(first, name, "local").value[0] == series(second, name, "local").value[0]


@pytest.mark.parametrize("exchange", ["broadcast", *({"kind": "gossip", "mode": mode} for mode in MODES)])
@pytest.mark.parametrize("when_spent", ["silent", "coast", "anchored"])
def test_both_engines_give_all_the_same(workspace, exchange, when_spent):
    changes = {
        "network.exchange": exchange,
        "privacy.when_spent": when_spent,
        "learning.baselines": ["local"],
    }
    outcomes = [
        digest(
            simulate(graph_scenario({**changes, "network.engine": engine}), 2, workspace, check_events=True)
        )
        for engine in ("simpy", "array", "auto")
    ]
    assert outcomes[0] == outcomes[1] == outcomes[2]


METRICS = [
    "objective", "objective_gap", "test_accuracy", "worst_decile_accuracy", "consensus_distance", "vectors_sent",
]  # fmt: skip


@pytest.mark.parametrize(
    "record",
    [
        {"metrics": METRICS, "per_agent": ["test_accuracy"], "by": "group", "every": 7, "events": True},
        {"metrics": ["test_accuracy", "objective"], "every": 7, "noise": True, "data": True},
        {"metrics": ["objective"], "every": 1},
        {"metrics": ["test_accuracy"], "every": {"time": 0.5}, "events": True},
        {"metrics": [], "events": True},
    ],
)
@pytest.mark.parametrize("network", [{}, LOSSY], ids=["ideal", "lossy"])
def test_what_is_recorded_changes_nothing_else(workspace, record, network):
    base = simulate(graph_scenario(network), 0, workspace)
    other = simulate(graph_scenario({**network, "record": record}), 0, workspace)
    for name in ("events", "noise"):
        if getattr(other, name) is not None:
            assert getattr(other, name).tobytes() == getattr(base, name).tobytes()
    assert digest(other)["ledger"] == digest(base)["ledger"]
    assert other.ended == base.ended
    for one in other.series:
        known = [same for same in base.series if (same.metric, same.agent) == (one.metric, one.agent)]
        if known and record["every"] in (1, 7):
            shared = np.isin(one.step, known[0].step)
            assert one.value[shared].tobytes() == known[0].value[np.isin(known[0].step, one.step)].tobytes()


def test_moments_of_records(workspace):
    """By step: 0, each 7th, and the last. By time: what the models were then, and the last."""
    every = simulate(graph_scenario({"record.every": 1}), 0, workspace)
    assert every.models.shape == (len(commits_of(every.events)) + 1, 9, 3)
    sevens = simulate(graph_scenario(), 0, workspace)
    last = len(commits_of(every.events))
    steps = series(sevens, "objective").step
    assert steps.tolist() == [*range(0, last, 7), last]
    assert (sevens.models == every.models[steps]).all()
    times = np.concatenate([[0.0], commits_of(every.events)["time"]])
    assert series(sevens, "objective").time.tolist()[:-1] == times[steps].tolist()[:-1]
    timed = simulate(graph_scenario({"record.every": {"time": 0.5}}), 0, workspace)
    one = series(timed, "objective")
    assert one.time[:-1].tolist() == [0.5 * k for k in range(len(one.time) - 1)]
    assert one.step.tolist() == [np.searchsorted(times[1:], t, side="right") for t in one.time]
    assert (timed.models == every.models[one.step]).all()


@pytest.mark.parametrize("changes", CELLS, ids=str)
def test_simulation_is_what_the_reference_makes_of_its_records(workspace, changes):
    one = graph_scenario(changes)
    outcome = simulate(one, 1, workspace, check_events=True)
    state = GraphCell.cell(one, workspace.case(one, 1), 1)
    plain = list(
        reference_replay(
            GraphTask(state.problem, state.rule, state.first.models, state.first.anchor),
            outcome.events,
            outcome.noise,
        )
    )
    steps = series(outcome, "objective").step
    expected = np.array([plain[step] for step in steps])
    np.testing.assert_allclose(outcome.models, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    values = [state.problem.objective(theta) for theta in expected]
    np.testing.assert_allclose(series(outcome, "objective").value, values, rtol=1e-12)
    best = state.problem.objective(minimise_together(state.problem))
    gaps = series(outcome, "objective_gap").value
    np.testing.assert_allclose(gaps, np.array(values) - best, rtol=0, atol=1e-12 * max(values))
    accuracy = [accuracies(state.problem, theta).mean() for theta in expected]
    np.testing.assert_allclose(series(outcome, "test_accuracy").value, accuracy, rtol=1e-14)
    apart = [((theta - theta.mean(axis=0)) ** 2).sum(axis=1).mean() for theta in expected]
    np.testing.assert_allclose(series(outcome, "consensus_distance").value, apart, rtol=1e-9, atol=1e-15)
    sends = (outcome.events["kind"] == SEND) & (outcome.events["version"] >= 0)
    commits = np.flatnonzero(outcome.events["kind"] == COMMIT)
    ends = [commits[step - 1] + 1 if step else 0 for step in steps]
    sent = [np.count_nonzero(sends[:end]) for end in ends]
    # After the last commit models may still be sent.
    assert series(outcome, "vectors_sent").value.tolist()[:-1] == sent[:-1]


def accuracies(problem, theta):
    """A class without a sign counts as half right."""
    found = []
    for i, (a, b) in enumerate(itertools.pairwise(problem.test_offsets)):
        told = np.sign(problem.test_X[a:b] @ theta[i])
        found.append(np.mean(told == problem.test_y[a:b]) + np.mean(told == 0) / 2)
    return np.array(found)


def test_a_model_that_tells_nothing_is_right_half_of_the_time(workspace):
    one = graph_scenario({"learning.algorithm.start": "zero", "record.metrics": ["test_accuracy"]})
    outcome = simulate(one, 0, workspace)
    assert series(outcome, "test_accuracy").value[0] == 0.5


def test_metrics_by_agent_and_group_and_of_the_worst(workspace):
    one = graph_scenario(
        {
            **RANDOM,
            "network.topology.agents": 30,
            "record.metrics": ["test_accuracy", "worst_decile_accuracy"],
            "record.per_agent": ["test_accuracy"],
            "record.by": "group",
        }
    )
    outcome = simulate(one, 0, workspace)
    problem = GraphCell.cell(one, workspace.case(one, 0), 0).problem
    for row, theta in enumerate(outcome.models):
        values = accuracies(problem, theta)
        for i in range(30):
            assert series(outcome, "test_accuracy", agent=i).value[row] == pytest.approx(values[i], rel=1e-15)
        small = np.diff(problem.offsets) < 15
        assert 0 < small.sum() < 30
        for group, members in (("small", small), ("large", ~small)):
            mean = series(outcome, f"test_accuracy[{group}]").value[row]
            assert mean == pytest.approx(values[members].mean(), rel=1e-14)
        worst = series(outcome, "worst_decile_accuracy").value[row]
        assert worst == pytest.approx(np.sort(values)[:3].mean(), rel=1e-14)
    assert outcome.agents["group"].tolist() == ["small" if is_small else "large" for is_small in small]


def test_errors_of_regressions(workspace):
    """Root of the mean squared error of each agent; the worst tenth is the one with the highest."""
    one = graph_scenario(
        {
            "data": {
                "source": {"kind": "linear-regression", "dimension": 3, "points": 20},
                "test_fraction": 0.3,
            },
            "learning.loss": "squared",
            "privacy": {"mechanism": "none"},
            "record.metrics": ["objective", "test_rmse", "worst_decile_rmse"],
            "record.per_agent": ["test_rmse"],
        }
    )
    outcome = simulate(one, 0, workspace)
    problem = GraphCell.cell(one, workspace.case(one, 0), 0).problem
    assert np.diff(problem.test_offsets).tolist() == [6] * 9
    for row, theta in enumerate(outcome.models):
        values = [
            np.sqrt(
                np.mean(
                    (problem.test_X[6 * i : 6 * i + 6] @ theta[i] - problem.test_y[6 * i : 6 * i + 6]) ** 2
                )
            )
            for i in range(9)
        ]
        assert series(outcome, "test_rmse").value[row] == pytest.approx(np.mean(values), rel=1e-13)
        assert series(outcome, "worst_decile_rmse").value[row] == pytest.approx(max(values), rel=1e-13)
        assert series(outcome, "test_rmse", agent=4).value[row] == pytest.approx(values[4], rel=1e-13)


def test_baselines_are_recorded_first_and_last_with_their_own_metrics(workspace):
    one = graph_scenario(
        {"learning.baselines": ["local", "global", "local-dp"], "record.per_agent": ["test_accuracy"]}
    )
    outcome = simulate(one, 0, workspace)
    problem = GraphCell.cell(one, workspace.case(one, 0), 0).problem
    last = series(outcome, "objective").step[-1]
    from p2psim.learning.graph.optimum import global_model, minimise_alone

    for name, theta in (("local", minimise_alone(problem)), ("global", global_model(problem))):
        assert series(outcome, "objective", name).step.tolist() == [0, last]
        assert series(outcome, "objective", name).value == pytest.approx(problem.objective(theta), rel=1e-13)
        values = accuracies(problem, theta)
        assert series(outcome, "test_accuracy", name).value == pytest.approx(values.mean(), rel=1e-14)
        assert series(outcome, "test_accuracy", name, 3).value == pytest.approx(values[3], rel=1e-14)
        assert (series(outcome, "objective_gap", name).value > 0).all()
    assert {one.model for one in outcome.series if one.metric == "vectors_sent"} == {"main"}
    # Half of ε for x with ‖x‖₁ ≤ 1, half for the label, on as many draws as there are records.
    generous = simulate(
        graph_scenario({"learning.baselines": ["local-dp"], "privacy.epsilon": 1e9}), 0, workspace
    )
    assert series(generous, "objective_gap", "local-dp").value[0] == pytest.approx(0, abs=1e-6)
    assert series(outcome, "objective_gap", "local-dp").value[0] > 1e-3


def test_noise_enters_as_mu_times_confidence_times_gradient_and_noise(workspace):
    """The first update of each agent from zero, by hand: α_i(−μc_i(∇L_i + η)) beside what neighbours sent before.

    Fails if η is not scaled by μc_i, or if it is added to a gradient that is summed over records.
    """
    one = graph_scenario({"record.every": 1, "learning.algorithm.mu": 0.3})
    outcome = simulate(one, 0, workspace)
    problem = GraphCell.cell(one, workspace.case(one, 0), 0).problem
    ends = np.cumsum(outcome.ledger["releases"])
    seen, theta = set(), np.zeros((9, 3))
    for step, event in enumerate(commits_of(outcome.events), start=1):
        i = int(event["agent"])
        after = outcome.models[step]
        if event["release"] >= 0:
            rows = slice(problem.offsets[i], problem.offsets[i + 1])
            X, y, m = problem.X[rows], problem.y[rows], np.diff(problem.offsets)[i]
            gradient = -(y / (1 + np.exp(y * (X @ theta[i])))) @ X / m + 2 / m * theta[i]
            c = m / np.diff(problem.offsets).max()
            # ‖x‖₂ ≤ ‖x‖₁ ≤ 1, so that the loss has curvature at most 1/4.
            alpha = 1 / (1 + 0.3 * c * (1 / 4 + 2 / m))
            near = (theta[i - 1] + theta[(i + 1) % 9]) / 2
            eta = outcome.noise[ends[i] - outcome.ledger["releases"][i] + event["release"]]
            expected = (1 - alpha) * theta[i] + alpha * (near - 0.3 * c * (gradient + eta))
            np.testing.assert_allclose(after[i], expected, rtol=1e-11, atol=1e-14)
            # 2Ξ/(m·ε/4): the scale that the noise has.
            assert np.abs(eta).max() < 40 * 2 * 1.0 * 4 / (m * 20.0)
            seen.add(i)
        theta = after
    assert len(seen) == 9


@pytest.mark.parametrize("exchange", ["broadcast", {"kind": "gossip", "mode": "push-pull"}])
def test_when_the_budget_is_spent(workspace, exchange):
    """Silent agents stop, and the run with them; the others go on, without releases."""
    changes = {"network.exchange": exchange, "learning.algorithm.updates_per_agent": 30}
    outcomes = {
        rule: simulate(graph_scenario({**changes, "privacy.when_spent": rule}), 0, workspace)
        for rule in ("silent", "coast", "anchored")
    }
    silent, coast, anchored = (commits_of(outcomes[rule].events) for rule in outcomes)
    assert outcomes["silent"].ended == "exhausted"
    assert np.bincount(silent["agent"]).tolist() == [4] * 9
    assert outcomes["coast"].ended == outcomes["anchored"].ended == "time"
    assert outcomes["coast"].events.tobytes() == outcomes["anchored"].events.tobytes()
    assert len(coast) == len(anchored)
    for commits in (silent, coast):
        assert np.bincount(released_of(commits)["agent"]).tolist() == [4] * 9
    assert len(coast) > 200
    for outcome in outcomes.values():
        assert (outcome.ledger["releases"] == 4).all()
        assert outcome.ledger["epsilon_basic"].tolist() == [20.0] * 9
        assert not outcome.ledger["over_budget"].any()
    assert outcomes["coast"].models[-1].tolist() != outcomes["anchored"].models[-1].tolist()
    apart = {rule: series(outcomes[rule], "consensus_distance").value[-1] for rule in ("coast", "anchored")}
    assert apart["coast"] < 0.3 * apart["anchored"]


def released_of(commits):
    return commits[commits["release"] >= 0]


def test_anchored_agents_end_where_their_last_noisy_models_propagate(workspace):
    changes = {"learning.algorithm.updates_per_agent": 400, "record.every": 1}
    one = graph_scenario({**changes, "privacy.when_spent": "anchored"})
    outcome = simulate(one, 0, workspace)
    problem = GraphCell.cell(one, workspace.case(one, 0), 0).problem
    last = {}
    for step, event in enumerate(commits_of(outcome.events), start=1):
        if event["release"] >= 0:
            last[int(event["agent"])] = outcome.models[step][event["agent"]]
    anchors = np.array([last[i] for i in range(9)])
    tolerance = 1e-9 * np.abs(anchors).max()
    np.testing.assert_allclose(outcome.models[-1], propagate(problem, anchors), rtol=0, atol=tolerance)


def test_ends_of_runs(workspace):
    """updates_per_agent: K ends at time K/rate, whoever woke how often; time and commits are as they say."""
    rates = {"network.clock": {"rate": {i: 1.0 + i % 3 for i in range(9)}}}
    for end, until in (({"updates_per_agent": 6.0}, 3.0), ({"time": 2.5}, 2.5)):
        algorithm = {"kind": "coordinate-descent", "mu": 0.5, **end}
        outcome = simulate(graph_scenario({**rates, "learning.algorithm": algorithm}), 0, workspace)
        assert outcome.ended == "time"
        times = outcome.events["time"][outcome.events["kind"] == WAKE]
        assert until - 0.5 < times[-1] < until
        long = graph_scenario(
            {**rates, "learning.algorithm": {**algorithm, **{key: 10 * v for key, v in end.items()}}}
        )
        longer = simulate(long, 0, workspace).events
        assert longer[: len(outcome.events)].tobytes() == outcome.events.tobytes()
        assert longer["time"][len(outcome.events)] >= until
    counted = simulate(
        graph_scenario({"learning.algorithm": {"kind": "coordinate-descent", "mu": 0.5, "commits": 77}}),
        0,
        workspace,
    )
    assert counted.ended == "commits"
    assert len(commits_of(counted.events)) == 77 == series(counted, "objective").step[-1]


def test_a_run_in_which_nobody_woke_has_its_start(workspace):
    one = graph_scenario({"learning.algorithm": {"kind": "coordinate-descent", "mu": 0.5, "time": 1e-9}})
    outcome = simulate(one, 0, workspace)
    assert len(outcome.events) == 0
    assert series(outcome, "objective").step.tolist() == [0]
    assert (outcome.ledger["releases"] == 0).all()
    assert (outcome.ledger["epsilon_basic"] == 0).all()


def test_a_graph_of_data_is_that_of_its_own_data(workspace):
    """Two data sets, one topology of likeness: each run is on the graph of its own."""
    for seed in (0, 1, 2):
        one = graph_scenario({**STILL, **SIMILAR, "data.seed": seed})
        outcome = simulate(one, 0, workspace, check_events=True)
        links = GraphCell.cell(one, workspace.case(one, 0), 0).links
        sends = outcome.events[outcome.events["kind"] == SEND]
        heard = np.bincount(
            outcome.events["cause"][outcome.events["kind"] == 2], minlength=outcome.events.size
        )
        full = sends[sends["seq"] < outcome.events["seq"][-1] - 20]
        assert heard[full["seq"]].tolist() == np.diff(links.indptr)[full["agent"]].tolist()


def test_models_of_agents_others_see_do_not_depend_on_spent_data(workspace):
    """After its last release an agent's records can be anything: with the same noise and what it sent until then,
    nothing that it sends later, nor its own model, changes."""
    from dataclasses import replace

    from graph_cases import in_order_of_events

    from p2psim.learning.graph.replay import GraphReplay

    for rule in ("coast", "anchored"):
        one = graph_scenario({"privacy.when_spent": rule, "learning.algorithm.updates_per_agent": 25})
        outcome = simulate(one, 0, workspace)
        state = GraphCell.cell(one, workspace.case(one, 0), 0)
        events, noise = outcome.events, in_order_of_events(outcome.events, outcome.noise, 9)
        spent = np.flatnonzero((events["kind"] == COMMIT) & (events["release"] == 3))
        assert spent.size == 9
        end = int(spent.max()) + 1
        ends = []
        for other in (False, True):
            X, y = state.problem.X.copy(), state.problem.y.copy()
            replay = GraphReplay(
                GraphTask(
                    replace(state.problem, X=X, y=y), state.rule, state.first.models, state.first.anchor
                )
            )
            replay.feed(events[:end], noise)
            if other:
                X[:], y[:] = -7.0, -y
            replay.feed(events[end:], np.empty((0, 3)))
            ends.append(replay.theta.tobytes())
        assert ends[0] == ends[1]
        assert ends[0] == outcome.models[-1].tobytes()
        # One agent's alone, from the moment at which it is spent.
        first = int(spent.min()) + 1
        agent = int(events[first - 1]["agent"])
        X, y = state.problem.X.copy(), state.problem.y.copy()
        replay = GraphReplay(
            GraphTask(replace(state.problem, X=X, y=y), state.rule, state.first.models, state.first.anchor)
        )
        releases = released(events[:first]).size
        replay.feed(events[:first], noise[:releases])
        X[state.problem.offsets[agent] : state.problem.offsets[agent + 1]] = 1e3
        replay.feed(events[first:], noise[releases:])
        assert replay.theta.tobytes() == ends[0]


def test_an_algorithm_that_touches_no_data_may_release_nothing(workspace):
    """No budget is divided by no releases, whatever the privacy section says."""
    one = graph_scenario(
        {
            "learning.algorithm": {"kind": "model-propagation", "mu": 1.0, "updates_per_agent": 3.0},
            "privacy.allocation": {"kind": "cap", "releases": 3},
        }
    )
    facts = module.check(one, workspace)
    assert {(agent.releases, agent.loss, agent.scale) for agent in facts.privacy} == {(0, 0.0, 0.0)}
