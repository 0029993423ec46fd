"""Every way of releasing that a scenario can name stands, and falls with half its noise."""

from typing import Any

import pytest
from graph_cases import graph_scenario
from small_study import scenario as star_scenario
from small_study import tree as star_tree

from p2psim.audit.driver import Audit, audit
from p2psim.privacy.plan import Plan
from p2psim.scenario.model import Scenario

GAMMA, SAMPLES = 1e-6, 3000

CAP = {"kind": "cap", "releases": 3}
CLIP, CLIP_L2 = ({"kind": "clip", "norm": norm, "bound": 1.0} for norm in ("l1", "l2"))
GAUSSIAN = {"mechanism": "gaussian", "delta": 1e-5, "sensitivity": CLIP_L2, "accountant": "gaussian"}
DISCRETE = {"mechanism": {"kind": "discrete-laplace", "grid": 0.01}, "sensitivity": CLIP}
ADMM = {"kind": "gossip-admm", "mu": 0.5, "rho": 0.7, "inner": 1, "commits": 40}
EDGE = {"kind": "gossip", "mode": "edge"}


def star(privacy: dict[str, Any], algorithm: dict[str, Any], loss: str, exchange: Any) -> Scenario:
    made = star_tree()
    if loss != "squared":
        made["data"]["source"] = {"kind": "linear-classification", "dimension": 3, "points": 20}
        made["data"]["scale"] = {"x": {"at": "each-record"}}
        made["learning"]["algorithm"]["rho"] = 0.1
    made["learning"]["loss"] = loss
    made["learning"]["algorithm"] |= algorithm
    made["network"] |= {"exchange": exchange}
    if exchange == "request":
        made["network"]["clock"] = {"rate": {"0": 1.0, "1": 2.0, "2": 3.0}}
    made["privacy"] = {"mechanism": "laplace", "epsilon": 10, "allocation": CAP} | privacy
    return star_scenario(**{**made, "sweep": {}})


def rounds(privacy: dict[str, Any], algorithm: dict[str, Any], loss: str, exchange: Any) -> Scenario:
    made = star_tree()
    if loss != "squared":
        made["data"]["source"] = {"kind": "linear-classification", "dimension": 3, "points": 20}
        made["data"]["scale"] = {"x": {"at": "each-record"}}
    made["learning"]["loss"] = loss
    made["learning"]["algorithm"] = {
        "kind": "synchronous-averaging",
        "horizon": 9,
        "c1": 0.1,
        "theta_max": 3,
        **algorithm,
    }
    made["network"] |= {"exchange": exchange}
    made["privacy"] = {"mechanism": "laplace", "epsilon": 10, "allocation": CAP} | privacy
    return star_scenario(**{**made, "sweep": {}})


def graph(privacy: dict[str, Any], algorithm: dict[str, Any], loss: str, exchange: Any) -> Scenario:
    changes: dict[str, Any] = {f"privacy.{key}": value for key, value in privacy.items()}
    if "kind" in algorithm:
        changes["learning.algorithm"] = algorithm
    else:
        changes |= {f"learning.algorithm.{key}": value for key, value in algorithm.items()}
    if loss == "squared":
        changes["data.source"] = {"kind": "linear-regression", "dimension": 3, "points": {"uniform": [5, 30]}}
        changes["learning.loss"] = "squared"
        changes |= {"data.scale": None, "record.metrics": ["objective"]}
    changes |= {"network.exchange": exchange, "privacy.allocation": CAP}
    return graph_scenario(changes | {f"privacy.{key}": value for key, value in privacy.items()})


WAYS = {
    "star": (star, {"sensitivity": CLIP}, {}, "squared", "request"),
    "star by poll": (star, {"sensitivity": CLIP}, {}, "squared", {"kind": "poll", "interval": 1.0}),
    "star, hinge": (star, {"sensitivity": CLIP}, {}, "hinge", "request"),
    "star, logistic": (star, {"sensitivity": CLIP}, {}, "logistic", "request"),
    "star, declared": (star, {"sensitivity": {"kind": "declared", "bound": 20.0}}, {}, "squared", "request"),
    "star, Gaussian": (star, GAUSSIAN, {}, "squared", "request"),
    "star, on a grid": (star, DISCRETE, {}, "squared", "request"),
    "star, batches": (
        star,
        {"sensitivity": CLIP},
        {"batch": {"kind": "poisson", "rate": 0.3}},
        "squared",
        "request",
    ),
    "star, batches of a size": (
        star,
        {"sensitivity": CLIP},
        {"batch": {"kind": "fixed", "size": 5}},
        "squared",
        "request",
    ),
    "star, weighed by owners": (
        star,
        {"sensitivity": CLIP},
        {"reweight": "known", "reweight_at": "owner"},
        "squared",
        "request",
    ),
    "rounds": (rounds, {"sensitivity": CLIP}, {}, "squared", "round"),
    "rounds, hinge, bounds": (rounds, {"sensitivity": "bounds"}, {}, "hinge", "round"),
    "rounds, batches": (
        rounds,
        {"sensitivity": CLIP},
        {"batch": {"kind": "poisson", "rate": 0.3}},
        "squared",
        "round",
    ),
    "graph": (graph, {"sensitivity": CLIP}, {}, "logistic", "broadcast"),
    "graph, squared": (graph, {"sensitivity": CLIP}, {}, "squared", "broadcast"),
    "graph by gossip": (graph, {"sensitivity": CLIP}, {}, "logistic", {"kind": "gossip", "mode": "push"}),
    "graph, bounds": (graph, {"sensitivity": "bounds"}, {}, "logistic", "broadcast"),
    "graph, declared": (
        graph,
        {"sensitivity": {"kind": "declared", "bound": 2.0}},
        {},
        "squared",
        "broadcast",
    ),
    "graph, Gaussian": (graph, GAUSSIAN, {}, "logistic", "broadcast"),
    "graph, Gaussian against a bound in L1": (
        graph,
        GAUSSIAN | {"sensitivity": CLIP},
        {},
        "squared",
        "broadcast",
    ),
    "graph, on a grid": (graph, DISCRETE, {}, "logistic", "broadcast"),
    "graph, batches": (
        graph,
        {"sensitivity": CLIP},
        {"batch": {"kind": "poisson", "rate": 0.5}},
        "logistic",
        "broadcast",
    ),
    "links": (graph, {"sensitivity": CLIP}, ADMM, "logistic", EDGE),
    "links, squared, Gaussian": (graph, GAUSSIAN, ADMM, "squared", EDGE),
    "links, on a grid": (graph, DISCRETE, ADMM, "logistic", EDGE),
    "links, anchored, batches": (
        graph,
        {"sensitivity": CLIP, "when_spent": "anchored"},
        ADMM | {"batch": {"kind": "poisson", "rate": 0.5}},
        "logistic",
        EDGE,
    ),
    "graph, scaled records": (graph, {"sensitivity": CLIP, "scale_records": 10}, {}, "logistic", "broadcast"),
    "graph, anchored": (graph, {"sensitivity": CLIP, "when_spent": "anchored"}, {}, "logistic", "broadcast"),
    "graph, silent": (graph, {"sensitivity": CLIP, "when_spent": "silent"}, {}, "logistic", "broadcast"),
    "graph, late releases": (
        graph,
        {"sensitivity": CLIP, "allocation": {"kind": "contraction", "rate": 0.95}},
        {},
        "logistic",
        "broadcast",
    ),
}


#: Those that tests go through each day; the others are slow verification.
DAILY = {
    "star, Gaussian", "star, batches", "rounds, hinge, bounds", "graph", "links, squared, Gaussian",
    "graph, late releases",
}  # fmt: skip


@pytest.fixture(
    params=[
        pytest.param(way, id=name, marks=() if name in DAILY else pytest.mark.verification)
        for name, way in WAYS.items()
    ]
)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    make, *given = request.param
    made: Scenario = make(*given)
    return made


def run(scenario: Scenario) -> Audit:
    return audit(scenario, SAMPLES, GAMMA)


def test_it_stands(scenario: Scenario) -> None:
    # False alarms: at most one in a million audits.
    found = run(scenario)
    assert found.audited
    for one in found.audited:
        assert one.trial.faults == {}
        assert one.trial.at_least > 0


def test_it_falls_with_half_its_noise(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Plan.scales
    monkeypatch.setattr(Plan, "scales", lambda *given: 0.5 * right(*given))
    for one in run(scenario).audited:
        assert "more is shown than claimed" in one.trial.faults
        assert "the noise does not follow its law" in one.trial.faults
