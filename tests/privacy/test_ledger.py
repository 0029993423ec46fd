"""The ledger of whole runs against an independent count of their events."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from star_cases import replay_compiled, scenario

from p2psim.core.events import COMMIT, DROP, LEARNER, SEND
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return Workspace(tmp_path_factory.mktemp("workspace"))


POLL = {"kind": "poll", "interval": 1.0, "response": {"exponential": 0.4}}


def recount(events, owners):
    """Releases and lost ones, from a loop in Python over what was sent and what was dropped; each is sent once."""
    made, lost = [0] * owners, [0] * owners
    for event in events:
        if event["kind"] == SEND and event["agent"] != LEARNER:
            assert event["release"] == made[event["agent"]]
            made[event["agent"]] += 1
        if event["kind"] == DROP and event["agent"] == LEARNER:
            lost[event["peer"]] += 1
    return made, lost


@settings(max_examples=15)
@given(
    exchange=st.sampled_from(
        [{"kind": "request"}, {"kind": "request", "service": 0.3, "busy": "queue"}, POLL]
    ),
    loss=st.sampled_from([0.0, 0.4]),
    allocation=st.sampled_from(
        [{"kind": "horizon"}, {"kind": "cap", "releases": 9}, {"kind": "geometric", "ratio": 0.9}]
    ),
    seed=st.integers(0, 1000),
)
def test_releases_and_losses_are_those_of_the_events(workspace, exchange, loss, allocation, seed):
    one = scenario(
        {
            "seed": seed,
            "network.exchange": exchange,
            "network.channel": {"loss": loss, "latency": 0.05},
            "privacy.allocation": allocation,
            "privacy.epsilon": {0: 1.0, 1: 20.0, 2: 400.0},
        }
    )
    outcome = simulate(one, 0, workspace, check_events=True)
    book, (made, lost) = outcome.ledger, recount(outcome.events, 3)
    assert book["releases"].tolist() == made
    assert book["lost"].tolist() == book["deliveries_lost"].tolist() == lost
    assert book["agent"].tolist() == [0, 1, 2]
    assert book["budget"].tolist() == [1.0, 20.0, 400.0]
    assert len(outcome.noise) == sum(made)
    spent = {
        "horizon": lambda budget, j: budget * j / 60,
        "cap": lambda budget, j: budget * j / 9,
        "geometric": lambda budget, j: budget * (1 - 0.9**j),
    }[allocation["kind"]]
    expected = [spent(budget, j) for budget, j in zip(book["budget"], made, strict=True)]
    np.testing.assert_allclose(book["epsilon_claimed"], expected, rtol=1e-12)
    np.testing.assert_array_equal(book["epsilon_basic"], book["epsilon_claimed"])
    assert not book["delta_basic"].any()
    for flag in (
        "over_budget",
        "not_private",
        "bound_violated",
        "scaled_records",
        "clairvoyant",
        "public_graph_assumed",
    ):
        assert not book[flag].any()
    assert book["data_dependent_step"].all()  # ρ is chosen from h
    if allocation["kind"] == "cap":
        assert max(made) <= 9


def test_answers_that_never_arrive_are_charged(workspace):
    """Half of all messages are lost; each owner goes on until it has made four releases, lost or not."""
    one = scenario(
        {
            "network.exchange": POLL,
            "network.channel": {"loss": 0.5},
            "privacy.allocation": {"kind": "cap", "releases": 4},
            "learning.algorithm.horizon": 500,
        }
    )
    outcome = simulate(one, 0, workspace)
    assert outcome.ended == "exhausted"
    assert outcome.ledger["releases"].tolist() == [4, 4, 4]
    commits = np.bincount(outcome.events["peer"][outcome.events["kind"] == COMMIT], minlength=3)
    assert (outcome.ledger["lost"] + commits).tolist() == [4, 4, 4]
    assert outcome.ledger["lost"].sum() > 0
    np.testing.assert_allclose(outcome.ledger["epsilon_basic"], 500.0, rtol=1e-15)


@pytest.mark.parametrize("scale", [1.0, 25.0, 0.5])
def test_epsilon_is_that_of_the_real_records(workspace, scale):
    """Noise as if each record stood for k: ε of the real ones is k times the claim, over budget where k > 1."""
    one = scenario({"privacy.scale_records": scale, "privacy.allocation": {"kind": "cap", "releases": 5}})
    book = simulate(one, 0, workspace).ledger
    np.testing.assert_allclose(book["epsilon_claimed"], 500.0, rtol=1e-14)
    np.testing.assert_allclose(book["epsilon_basic"], scale * book["epsilon_claimed"], rtol=1e-14)
    assert (book["over_budget"] == (scale > 1)).all()
    assert (book["scaled_records"] == (scale != 1)).all()
    assert not book["not_private"].any()


def test_spending_exactly_the_budget_is_not_over_it(workspace):
    for m in (3, 7, 11):
        book = simulate(scenario({"privacy.allocation": {"kind": "cap", "releases": m}}), 0, workspace).ledger
        assert book["releases"].tolist() == [m] * 3
        assert not book["over_budget"].any()


@pytest.mark.parametrize(
    ("changes", "claimed"),
    [
        ({"privacy": {"mechanism": "none"}}, math.inf),
        ({"privacy.epsilon": math.inf}, math.inf),
        ({"privacy.sensitivity": {"kind": "empirical"}}, None),
    ],
    ids=["none", "infinite", "empirical"],
)
def test_epsilon_is_infinite_where_nothing_is_guaranteed(workspace, changes, claimed):
    book = simulate(scenario(changes), 0, workspace).ledger
    assert book["releases"].min() > 0
    assert np.isinf(book["epsilon_basic"]).all()
    assert book["not_private"].all()
    assert (np.isinf(book["epsilon_claimed"]) == (claimed is not None)).all()
    assert not book["bound_violated"].any()
    assert (book["violation_step"] == -1).all()
    assert not book["violation_size"].any()


def violating_releases(problem, events, noise, method, bound):
    """Releases whose owner holds a record with a gradient above the bound, by a plain replay of an ideal star.

    Returns their number, the step of the first and the largest size over the bound of each owner, and the longest
    gradient of all.
    """
    theta_L, theta = np.zeros(problem.dimension), np.zeros((problem.owners, problem.dimension))
    count = np.zeros(problem.owners, np.int64)
    made = np.bincount(events["peer"][events["kind"] == COMMIT], minlength=problem.owners)
    row = np.cumsum(made) - made
    steps, sizes, largest = np.full(problem.owners, -1), np.zeros(problem.owners), 0.0
    for step, i in enumerate(events["peer"][events["kind"] == COMMIT]):
        X, y = (a[problem.offsets[i] : problem.offsets[i + 1]] for a in (problem.X, problem.y))
        bar = (theta_L + theta[i]) / 2
        gradients = problem.loss.slopes(X @ bar, y)[:, None] * X
        norms = np.abs(gradients).sum(axis=1)
        largest = max(largest, norms.max())
        if norms.max() > bound * (1 + 1e-12):
            steps[i] = step if count[i] == 0 else steps[i]
            count[i], sizes[i] = count[i] + 1, max(sizes[i], norms.max() / bound)
        Q = gradients.mean(axis=0) + noise[row[i]]
        row[i] += 1
        dg, box = 2 * problem.l2 * bar, problem.theta_max
        theta[i] = np.clip(
            bar - problem.owners * method.step * (dg / (2 * problem.owners) + problem.shares[i] * Q),
            -box,
            box,
        )
        theta_L = np.clip(bar - method.learner_weight * method.step * dg, -box, box)
    return count, steps, sizes, largest


@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic"])
def test_violations_are_found_at_the_releases_where_they_happen(workspace, loss):
    from star_cases import LOSSES, random_problem, star_events

    from p2psim.learning.star.algorithms import StarMethod

    problem = random_problem(LOSSES[loss](), [30, 40, 20], 3, seed=8, theta_max=1.0)
    events = star_events(3, 80, 2)
    noise = np.random.default_rng(1).laplace(scale=0.5, size=(80, problem.dimension))
    method = StarMethod(0.1, 0.5, False)
    *_, largest = violating_releases(problem, events, noise, method, np.inf)
    seen = set()
    for fraction in (0.3, 0.6, 0.8, 0.95, 1.0):
        bound = fraction * largest
        expected, steps, sizes, _ = violating_releases(problem, events, noise, method, bound)
        replayed = replay_compiled(problem, method, events, noise, bound=bound, chunk=100)
        found = replayed.violations
        assert found.tolist() == expected.tolist()
        assert replayed.violation_steps.tolist() == steps.tolist()
        np.testing.assert_allclose(replayed.violation_sizes, sizes, rtol=1e-9)
        seen.add(tuple(found))
    # The largest gradient that occurs, declared as the bound, is met exactly: no violation.
    assert found.tolist() == [0, 0, 0]
    assert len(seen) > (1 if loss == "hinge" else 2)


def test_a_bound_that_public_numbers_guarantee_is_never_violated(workspace):
    """x in the L1 ball, y clipped: ``bounds`` is 2(θ_max·B + y_max)·B = 2(3·1 + 1)·1 = 8."""
    changes = {
        "data.public": {"last": 100},
        "data.scale": {"x": {"at": 0.2}, "y": {"center": True}},
        "privacy.sensitivity": "bounds",
        "privacy.epsilon": 5.0,
    }
    one = scenario(changes)
    outcome = simulate(one, 0, workspace)
    assert not outcome.ledger["bound_violated"].any()
    assert np.isfinite(outcome.ledger["epsilon_basic"]).all()
    # The same noise as with the number declared.
    declared = simulate(
        scenario({**changes, "privacy.sensitivity": {"kind": "declared", "bound": 8.0}}), 0, workspace
    )
    assert declared.noise.tobytes() == outcome.noise.tobytes()
    assert not declared.ledger["bound_violated"].any()


def test_a_broken_declaration_voids_the_guarantee(workspace):
    book = simulate(
        scenario({"privacy.sensitivity": {"kind": "declared", "bound": 1e-3}}), 0, workspace
    ).ledger
    assert book["bound_violated"].all()
    assert np.isinf(book["epsilon_basic"]).all()
    assert book["not_private"].all()
    assert book["over_budget"].all()
    assert np.isfinite(book["epsilon_claimed"]).all()
    assert (book["violation_step"] >= 0).all()
    assert (book["violation_size"] > 1).all()


@pytest.mark.parametrize(
    "allocation", [{"kind": "horizon"}, {"kind": "cap", "releases": 5}, {"kind": "geometric"}]
)
def test_no_noise_and_infinite_budget_are_the_same_run(workspace, allocation):
    changes = {"privacy.allocation": allocation}
    none = simulate(scenario({**changes, "privacy.mechanism": "none", "privacy.epsilon": None}), 0, workspace)
    infinite = simulate(scenario({**changes, "privacy.epsilon": math.inf}), 0, workspace)
    assert none.models.tobytes() == infinite.models.tobytes()
    assert none.events.tobytes() == infinite.events.tobytes()
    assert [one.value.tobytes() for one in none.series] == [one.value.tobytes() for one in infinite.series]
    np.testing.assert_array_equal(infinite.noise, 0.0)
    for column in none.ledger:
        np.testing.assert_array_equal(none.ledger[column], infinite.ledger[column])
    # And a noiseless one: what no section on privacy gives, with the clipping left in.
    plain = simulate(
        scenario({"privacy": {"mechanism": "none", "sensitivity": {"kind": "clip", "bound": 1.0}}}),
        0,
        workspace,
    )
    assert plain.models.tobytes() == none.models.tobytes()
