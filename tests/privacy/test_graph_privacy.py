"""Whole runs on a graph: what is claimed, what holds, and what is flagged."""

import numpy as np
import pytest

from p2psim.core.errors import InputError
from p2psim.core.events import COMMIT
from p2psim.scenario.model import Scenario
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace


def scenario(privacy, start="zero"):
    return Scenario.from_dict(
        {
            "name": "graph",
            "network": {"topology": {"kind": "ring", "agents": 8}, "exchange": "broadcast"},
            "data": {
                "source": {"kind": "linear-classification", "agents": 8, "dimension": 3, "points": 30},
                "scale": {"x": {"norm": "l1", "bound": 1.0, "at": "each-record"}},
            },
            "learning": {
                "algorithm": {
                    "kind": "coordinate-descent",
                    "mu": 1.0,
                    "updates_per_agent": 10,
                    "start": start,
                },
                "loss": {"kind": "logistic", "intercept": False},
                "regularizer": {"l2": "inverse-size"},
            },
            "privacy": {"mechanism": "laplace", "epsilon": 4.0, "sensitivity": "bounds", **privacy},
            "record": {"metrics": ["objective_gap"], "every": 10, "events": True, "models": True},
        }
    )


def contraction(agents=8, points=30):
    """C from public numbers: ‖x‖₂ ≤ 1 (curvature ≤ ¼), λ = 1/m, D = 2, c = 1, μ = 1."""
    curvature, ridge = 0.25, 1 / points
    return 1 - 2 * 2 * ridge / (agents * 2 * (1 + curvature + 2 * ridge))


@pytest.mark.parametrize(
    ("allocation", "clairvoyant"),
    [
        ("uniform", True),
        ({"kind": "contraction", "wakes": "known"}, True),
        ("contraction", False),
        ({"kind": "contraction", "form": "printed"}, False),
    ],
)
def test_budget_is_spent_by_rule_and_flagged_where_nobody_could_know(tmp_path, allocation, clairvoyant):
    outcome = simulate(scenario({"allocation": allocation}), 0, Workspace(tmp_path), check_events=True)
    book = outcome.ledger
    assert (book["clairvoyant"] == clairvoyant).all()
    assert (book["epsilon_basic"] <= 4.0 * (1 + 1e-12)).all()
    assert not book["over_budget"].any()
    if clairvoyant:
        np.testing.assert_allclose(book["epsilon_basic"], 4.0, rtol=1e-12)
    else:
        assert book["releases"].max() == 10
        np.testing.assert_allclose(book["epsilon_basic"][book["releases"] == 10], 4.0, rtol=1e-12)


def test_corrected_shares_follow_from_public_constants(tmp_path):
    """Noise in units of its scale is that of equal parts: their quotient is that of the shares."""
    runs = {}
    for name, allocation in (("uniform", "uniform"), ("known", {"kind": "contraction", "wakes": "known"})):
        runs[name] = simulate(scenario({"allocation": allocation}), 0, Workspace(tmp_path))
    events = runs["known"].events
    who = events["agent"][events["kind"] == COMMIT]
    steps = np.arange(who.size)
    expected = np.empty(steps.size)
    for i in range(8):
        weights = contraction() ** (-steps[who == i] / 3)
        expected[who == i] = weights / weights.mean()
    by_agent = np.argsort(who, kind="stable")
    quotient = runs["uniform"].noise / runs["known"].noise
    np.testing.assert_allclose(
        quotient, np.repeat(expected[by_agent, None], quotient.shape[1], axis=1), rtol=1e-10
    )


def test_as_printed_claims_and_guarantees_nothing(tmp_path):
    """L2 clipping at .2 beside Laplace noise of scale 2·.2/(ε·m)."""
    privacy = {
        "sensitivity": {"kind": "as-printed", "bound": 0.2},
        "allocation": {"kind": "cap", "releases": 2},
    }
    outcome = simulate(scenario(privacy), 0, Workspace(tmp_path))
    book = outcome.ledger
    np.testing.assert_allclose(book["epsilon_claimed"], 2.0 * book["releases"])
    assert np.isinf(book["epsilon_basic"]).all()
    assert book["not_private"].all()
    strict = simulate(
        scenario({**privacy, "sensitivity": {"kind": "clip", "bound": 0.2}}), 0, Workspace(tmp_path)
    )
    assert outcome.noise.tobytes() == strict.noise.tobytes()
    assert np.isfinite(strict.ledger["epsilon_basic"]).all()
    # The two clip to different norms.
    assert [one.value.tolist() for one in outcome.series] != [one.value.tolist() for one in strict.series]


def test_l2_clipping_beside_laplace_noise_is_refused():
    with pytest.raises(InputError, match=r"privacy\.sensitivity\.norm: Laplace noise needs l1"):
        scenario({"sensitivity": {"kind": "clip", "norm": "l2", "bound": 1.0}})
    scenario({"mechanism": "none", "sensitivity": {"kind": "clip", "norm": "l2", "bound": 1.0}})


def test_a_private_start_is_a_part_of_the_budget(tmp_path):
    """1 for the start, 3 for the releases: 4 in all, which is the budget and not over it."""
    start = {"kind": "private", "epsilon": 1.0}
    outcome = simulate(scenario({"allocation": "uniform"}, start), 0, Workspace(tmp_path))
    np.testing.assert_allclose(outcome.ledger["epsilon_basic"], 4.0, rtol=1e-12)
    np.testing.assert_array_equal(outcome.ledger["budget"], 4.0)
    assert not outcome.ledger["over_budget"].any()


def test_a_private_start_is_charged_for_the_real_records(tmp_path):
    """As if each record stood for 5: a fifth of the noise, so five times the ε, of the start too."""
    start = {"kind": "private", "epsilon": 1.0, "propagate": False}
    runs = [
        simulate(scenario({"allocation": "uniform", "scale_records": scale}, start), 0, Workspace(tmp_path))
        for scale in (1.0, 5.0)
    ]
    np.testing.assert_allclose(runs[1].ledger["epsilon_basic"], 20.0, rtol=1e-12)
    np.testing.assert_allclose(runs[1].ledger["epsilon_claimed"], 4.0, rtol=1e-12)
    np.testing.assert_allclose(runs[0].noise / runs[1].noise, 5.0, rtol=1e-12)
    # The start's noise is a fifth as well: so is what it adds to the minimisers, which both runs share.
    first = [run.models[0] for run in runs]
    alone = simulate(scenario({"mechanism": "none"}, "local"), 0, Workspace(tmp_path)).models[0]
    np.testing.assert_allclose(first[0] - alone, 5 * (first[1] - alone), rtol=1e-9)


def test_a_declared_bound_is_checked_at_a_private_start(tmp_path):
    """Where nothing later touches the data; beside the gradients at minimisers that SciPy finds."""
    from scipy.optimize import minimize

    start = {"kind": "private", "epsilon": 1.0}
    for declared in (0.2, 0.35, 1.0):
        privacy = {
            "sensitivity": {"kind": "declared", "bound": declared},
            "allocation": {"kind": "cap", "releases": 1},
        }
        one = scenario(privacy, start)
        tree = one.resolved()
        tree["learning"]["algorithm"] = {
            "kind": "model-propagation", "mu": 1.0, "updates_per_agent": 2, "start": start,
        }  # fmt: skip
        one, workspace = Scenario.from_dict(tree), Workspace(tmp_path)
        book, data = simulate(one, 0, workspace).ledger, workspace.case(one, 0).arrays
        steepest = []
        for first, last in zip(data["offsets"][:-1], data["offsets"][1:], strict=True):
            X, y = data["X"][first:last], data["y"][first:last]

            def loss(theta, X=X, y=y):
                return np.logaddexp(0, -y * (X @ theta)).mean() + theta @ theta / len(y)

            theta = minimize(loss, np.zeros(3), tol=1e-12).x
            steepest.append((np.abs(X).sum(axis=1) / (1 + np.exp(y * (X @ theta)))).max())
        assert book["bound_violated"].tolist() == [s > declared for s in steepest]
        assert (np.isinf(book["epsilon_basic"]) == book["bound_violated"]).all()
        assert book["violation_step"].tolist() == [0 if s > declared else -1 for s in steepest]
        sizes = [s / declared if s > declared else 0.0 for s in steepest]
        np.testing.assert_allclose(book["violation_size"], sizes, rtol=1e-6)
