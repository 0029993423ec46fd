"""What one record can do to a release on a graph, tried out; and what the ledger flags."""

from dataclasses import replace

import numpy as np
import pytest
from graph_cases import graph_events, graph_scenario, problem_of, random_links, replayed
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.core.events import COMMIT
from p2psim.learning.graph.problem import GraphRule
from p2psim.learning.losses import Logistic, Squared
from p2psim.simulation.algorithms.graph import GraphCell
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace


def gradients_apart(problem, rule, theta, row, x, y):
    """Difference of an agent's released gradients, in L1, when one record is replaced by another: from its updates."""
    agent = int(np.searchsorted(problem.offsets, row, side="right")) - 1
    where = random_links(problem.agents, 0)
    events = next(
        events
        for seed in range(1000)
        if (events := graph_events(where, 1, seed))["agent"][events["kind"] == COMMIT][0] == agent
    )
    X, Y = problem.X.copy(), problem.y.copy()
    X[row], Y[row] = x, y
    moved = [
        replayed(one, rule, theta, events, np.zeros((1, problem.dimension))).theta[agent]
        for one in (problem, replace(problem, X=X, y=Y))
    ]
    step = problem.alpha[agent] * problem.mu * problem.confidence[agent]
    return np.abs(moved[0] - moved[1]).sum() / step, problem.records[agent]


@st.composite
def replacements(draw, loss, bound):
    """A problem with ‖x‖₁ ≤ bound where there is one, any models, and a record that takes another's place."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=2, max_size=4))
    seed = draw(st.integers(0, 10_000))
    random = np.random.default_rng(seed)
    problem = problem_of(loss, random_links(len(sizes), 0), sizes, 3, 1.0, seed)
    X = np.vstack([problem.X[:, :3], random.standard_normal(3) * 10 ** random.uniform(-2, 3)])
    if draw(st.booleans()):  # as far apart as can be
        X[:] = 0
        X[:, 0] = 1.0
        X[-1] *= -1
    if bound is not None:
        X *= bound / np.maximum(np.abs(X).sum(axis=1), 1e-9)[:, None]
    if loss.intercept:
        X = np.column_stack([X, np.ones(len(X))])
    theta = random.standard_normal((len(sizes), X.shape[1])) * 10 ** draw(st.floats(-2, 3))
    y = problem.y[0] * draw(st.sampled_from([-1.0, 1.0])) * (1 if loss.needs_classes else 10.0)
    row = draw(st.integers(0, sum(sizes) - 1))
    return replace(problem, X=np.ascontiguousarray(X[:-1])), theta, row, X[-1], y


@settings(max_examples=150)
@given(data=st.data(), intercept=st.booleans(), bound=st.sampled_from([0.5, 1.0, 20.0]))
def test_bounds_hold_for_any_record_and_any_models(data, intercept, bound):
    """Logistic loss, ‖x‖₁ ≤ B: Ξ = B, one more with an intercept."""
    problem, theta, row, x, y = data.draw(replacements(Logistic(intercept=intercept), bound))
    apart, records = gradients_apart(problem, GraphRule(), theta, row, x, y)
    # Models of size up to 1e3 leave rounding of that size.
    assert apart <= 2 * (bound + intercept) / records + 1e-9 * np.abs(theta).max()


@settings(max_examples=150)
@given(data=st.data(), kind=st.sampled_from([Squared, Logistic]), clip=st.sampled_from([0.01, 1.0, 50.0]))
def test_clipping_in_l1_holds_for_any_record_and_any_models(data, kind, clip):
    problem, theta, row, x, y = data.draw(replacements(kind(), None))
    apart, records = gradients_apart(problem, GraphRule(clip, 1), theta, row, x, y)
    assert apart <= 2 * clip / records + 1e-9 * np.abs(theta).max()


def test_bounds_are_reached_and_clipping_in_l2_breaks_them():
    """A lone record with all of θᵀx against its label has a gradient of the bound's length; by L2 it is √p as long."""
    problem = problem_of(Logistic(), random_links(2, 0), [1, 1], 3, 1.0)
    x = np.full(3, 1 / 3)
    X = np.array([x, x])
    problem = replace(problem, X=X, y=np.array([1.0, 1.0]))
    theta = np.full((2, 3), -100.0)
    apart, _ = gradients_apart(problem, GraphRule(), theta, 0, x, -1.0)
    assert apart == pytest.approx(1.0, rel=1e-9)  # the other label's gradient vanishes
    opposite, _ = gradients_apart(problem, GraphRule(), theta, 0, -x, -1.0)
    assert opposite == pytest.approx(0.0, abs=1e-9)
    squared = replace(problem, loss=Squared(), X=100 * X)
    for order, factor in ((1, 1.0), (2, np.sqrt(3))):
        # 2(θᵀx − y)x: labels of either side of the score point gradients either way.
        apart, _ = gradients_apart(squared, GraphRule(0.5, order), theta, 0, 100 * x, -1e6)
        assert apart == pytest.approx(2 * 0.5 * factor, rel=1e-9)


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path)


GAUSSIAN = {"kind": "linear-classification", "dimension": 3, "points": 20, "x": "gaussian"}
FREE = {"data.source": GAUSSIAN, "data.scale": {}}
CLIP = {"privacy.sensitivity": {"kind": "clip", "bound": 1.0}}
QUIET = {"record.metrics": ["objective"], "data.groups": None}


def flags(workspace, changes):
    ledger = simulate(graph_scenario({**QUIET, **changes}), 0, workspace).ledger
    names = ("public_graph_assumed", "data_dependent_step", "not_private", "bound_violated", "scaled_records")
    for name in names:
        assert len(set(ledger[name].tolist())) == 1, name
    return {name for name in names if ledger[name][0]}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, set()),
        ({"network.topology": {"kind": "similarity", "agents": 9}}, {"public_graph_assumed"}),
        ({**FREE, **CLIP}, {"data_dependent_step"}),
        ({"learning.algorithm.smoothness": "data"}, {"data_dependent_step"}),
        ({"learning.algorithm.start": "local"}, {"not_private"}),
        ({"privacy.sensitivity": "empirical"}, {"not_private"}),
        ({"privacy.epsilon": np.inf}, {"not_private"}),
        ({"privacy.sensitivity": {"kind": "declared", "bound": 0.01}}, {"not_private", "bound_violated"}),
        ({"privacy.sensitivity": {"kind": "declared", "bound": 1.0}}, set()),
        ({"privacy.scale_records": 3.0}, {"scaled_records"}),
    ],
    ids=lambda part: str(sorted(part) if isinstance(part, set) else part),  # a set has no order of its own
)
def test_flags(workspace, changes, expected):
    assert flags(workspace, changes) == expected


def test_no_agent_releases_more_than_its_cap(workspace):
    """Loss and delay, any exchange: releases are charged though they arrive nowhere."""
    for exchange in ("broadcast", {"kind": "gossip", "mode": "push-pull"}):
        for rule in ("silent", "coast", "anchored"):
            changes = {
                "network.channel": {"latency": {"exponential": 1.0}, "loss": 0.5},
                "privacy.when_spent": rule,
            }
            changes |= {"network.exchange": exchange, "learning.algorithm.updates_per_agent": 20}
            ledger = simulate(graph_scenario(changes), 0, workspace).ledger
            assert ledger["releases"].max() == 4
            np.testing.assert_allclose(ledger["epsilon_basic"], 5.0 * ledger["releases"], rtol=1e-14)
            assert not ledger["over_budget"].any()
            if exchange == "broadcast":
                assert ledger["lost"].sum() > 0


def test_step_sizes_follow_from_public_bounds(workspace):
    """L_i = ‖x‖₂²/4 + 2λ_i: by ‖x‖₁ ≤ 1, or by |x_j| ≤ 1 alone √3; the same for any records of the same number."""
    sizes = {"data.source.points": {str(i): 5 + i for i in range(9)}, "data.groups": None}
    intercept = {"learning.loss": {"kind": "logistic", "intercept": True}}
    for changes, square in (({}, 1.0), ({"data.scale": {}}, 3.0), (intercept, 2.0)):
        made = [
            GraphCell.cell(one, workspace.case(one, 0), 0)
            for seed in (1, 2)
            for one in [graph_scenario({**sizes, **changes, "seed": seed})]
        ]
        records = 5 + np.arange(9)
        for state in made:
            np.testing.assert_allclose(state.problem.smoothness, square / 4 + 2 / records, rtol=1e-14)
        assert not np.array_equal(made[0].problem.X, made[1].problem.X)
