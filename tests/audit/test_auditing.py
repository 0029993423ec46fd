"""Audits refute what is wrong, each fault planted in the production code, and let stand what is right."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from graph_cases import graph_scenario
from pairs import all_pairs
from small_study import scenario as star_scenario
from small_study import tree as star_tree

from p2psim.audit import audit_run
from p2psim.audit.driver import Audit, audit
from p2psim.cli.audit import tree
from p2psim.core.errors import InputError
from p2psim.learning.graph.admm import AdmmReplay
from p2psim.learning.graph.problem import GraphProblem
from p2psim.learning.graph.replay import GraphReplay
from p2psim.privacy.mechanisms import Laplace
from p2psim.privacy.plan import Plan
from p2psim.scenario.model import Scenario

#: False alarms of every audit here: at most one in a million.
GAMMA = 1e-6

SAMPLES = 2000

CLIP = {"kind": "clip", "norm": "l1", "bound": 1.0}


def star(**privacy: Any) -> Scenario:
    """Three owners who answer with Laplace noise, three times each at most."""
    given = {"sensitivity": CLIP, "allocation": {"kind": "cap", "releases": 3}, **privacy}
    return star_scenario(privacy={**star_tree()["privacy"], **given}, sweep={})


def graph(mu: float = 0.5, **privacy: Any) -> Scenario:
    """Agents on a ring that publish three models touched by their data."""
    given = {"sensitivity": CLIP, "allocation": {"kind": "cap", "releases": 3}, **privacy}
    changes = {f"privacy.{key}": value for key, value in given.items()}
    return graph_scenario(changes | {"learning.algorithm.mu": mu})


def admm(mu: float = 0.5, **privacy: Any) -> Scenario:
    """Agents on a ring whose links wake; both ends make a local step that touches their data."""
    given = {"sensitivity": CLIP, "allocation": {"kind": "cap", "releases": 3}, **privacy}
    algorithm = {"kind": "gossip-admm", "mu": mu, "rho": 0.7, "inner": 1, "commits": 40}
    changes = {"learning.algorithm": algorithm, "network.exchange": {"kind": "gossip", "mode": "edge"}}
    return graph_scenario(changes | {f"privacy.{key}": value for key, value in given.items()})


def rounds(**privacy: Any) -> Scenario:
    """Three owners who answer in synchronous rounds."""
    algorithm = {"kind": "synchronous-descent", "horizon": 20, "rho": 0.1, "theta_max": 3}
    learning = {**star_tree()["learning"], "algorithm": algorithm}
    network = {"topology": {"kind": "star", "agents": 3}, "exchange": "round"}
    given = {"sensitivity": CLIP, "allocation": {"kind": "cap", "releases": 3}, **privacy}
    privacy = {**star_tree()["privacy"], **given}
    return star_scenario(privacy=privacy, learning=learning, network=network, sweep={})


def fedavg(**privacy: Any) -> Scenario:
    """Three owners who answer in rounds with what a local step makes of the learner's model."""
    scenario = rounds(**privacy).resolved()
    scenario["learning"]["algorithm"] = {"kind": "fedavg", "step": 0.1, "commits": 20}
    scenario["record"]["metrics"] = ["objective"]
    return Scenario.from_dict(scenario)


def fedasync(**privacy: Any) -> Scenario:
    """Three owners who are asked one by one, and answer with what a local step makes of the learner's model."""
    return asked("fedasync", privacy)


def fedbuff(**privacy: Any) -> Scenario:
    """The owners of `fedasync`, two of whose answers make one step."""
    return asked("fedbuff", privacy, buffer=2)


def asked(kind: str, privacy: dict[str, Any], **more: Any) -> Scenario:
    """An algorithm whose learner takes answers as they come."""
    scenario = fedavg(**privacy).resolved()
    scenario["learning"]["algorithm"] = {"kind": kind, "step": 0.1, "commits": 60, **more}
    scenario["network"]["exchange"] = "request"
    return Scenario.from_dict(scenario)


def gossip_learning(**privacy: Any) -> Scenario:
    """Agents on a ring whose models walk and learn where they come."""
    given = {"sensitivity": CLIP, "allocation": {"kind": "cap", "releases": 3}, **privacy}
    algorithm = {"kind": "gossip-learning", "step": 0.1, "commits": 40}
    changes = {
        "learning.algorithm": algorithm,
        "learning.regularizer.l2": 0.01,
        "network.exchange": {"kind": "gossip", "mode": "push"},
        "record.metrics": ["objective"],
    }
    return graph_scenario(changes | {f"privacy.{key}": value for key, value in given.items()})


def sampled(**privacy: Any) -> Scenario:
    """The owners of `fedavg`, of whom two are drawn for each round."""
    scenario = fedavg(**privacy).resolved()
    scenario["network"]["exchange"] = {"kind": "round", "participants": 2}
    return Scenario.from_dict(scenario)


def decentralised(exchange: Any, **privacy: Any) -> Scenario:
    """Agents on a ring who mix their models and step down."""
    scenario = gossip_learning(**privacy).resolved()
    scenario["learning"]["algorithm"] = {"kind": "decentralised-sgd", "step": 0.1, "commits": 40}
    scenario["network"]["exchange"] = exchange
    return Scenario.from_dict(scenario)


def in_rounds(**privacy: Any) -> Scenario:
    """In rounds of agents."""
    return decentralised("synchronous", **privacy)


def in_pairs(**privacy: Any) -> Scenario:
    """In pairs, of which the one that wakes touches its data."""
    return decentralised({"kind": "gossip", "mode": "push-pull"}, **privacy)


MADE = [star, rounds, graph, admm, fedavg, fedasync, fedbuff, gossip_learning, sampled, in_rounds, in_pairs]
EVERY = pytest.mark.parametrize("made", MADE)


def run(scenario: Scenario, samples: int = SAMPLES) -> Audit:
    return audit(scenario, samples, GAMMA)


def faults(found: Audit) -> set[str]:
    return {fault for one in found.audited for fault in one.trial.faults}


@pytest.mark.parametrize(
    ("made", "allocation"),
    all_pairs(
        MADE,
        [
            {"kind": "cap", "releases": 1},
            {"kind": "cap", "releases": 3},
            {"kind": "geometric", "ratio": 0.8},
            "uniform",
        ],
    ),
    ids=lambda case: case.__name__ if callable(case) else str(case),
)
def test_the_right_mechanism_stands(made: Any, allocation: Any) -> None:
    found = run(made(allocation=allocation))
    assert found.stands
    assert found.audited
    for one in found.audited:
        assert 0 < one.trial.at_least <= one.trial.epsilon
        assert one.trial.audited <= one.trial.made <= one.trial.limit
        assert 0.95 < one.trial.moves <= 1 + 1e-9  # the records in hand are the worst


@EVERY
def test_half_the_noise_is_found(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Plan.scales
    monkeypatch.setattr(Plan, "scales", lambda *given: 0.5 * right(*given))
    assert faults(run(made())) >= {"more is shown than claimed", "the noise does not follow its law"}


def test_an_l2_bound_taken_for_an_l1_bound_is_found_by_the_dense_canary() -> None:
    found = run(graph(sensitivity={"kind": "as-printed", "norm": "l2", "bound": 1.0}), samples=10_000)
    assert faults(found) == {"more is shown than claimed", "a record moves more than claimed"}
    canaries = {one.canary for one in found.audited[0].trial.findings if one.rejects}
    assert canaries
    assert all(name.startswith("dense") for name in canaries)


def test_clipping_in_another_norm_than_asked_for_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = GraphProblem.norms
    monkeypatch.setattr(GraphProblem, "norms", lambda problem, _: right(problem, 2))
    scenario = graph_scenario({"privacy.sensitivity": CLIP, "data.source.dimension": 20})
    assert faults(run(scenario)) == {"a record moves more than claimed", "the noise does not follow its law"}


@pytest.mark.parametrize(("made", "shared"), all_pairs(MADE, ["steps", "agents", "coordinates", "samples"]))
def test_noise_that_is_used_twice_is_found(made: Any, shared: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Laplace.fill_unit

    def wrong(
        self: Laplace, key: np.ndarray, agents: np.ndarray, numbers: np.ndarray, out: np.ndarray
    ) -> None:
        if shared == "samples":
            key = np.zeros(2, np.uint64)
        right(self, key, agents * (shared != "agents"), numbers * (shared != "steps"), out)
        if shared == "coordinates":
            out[:] = out[:, :1]

    monkeypatch.setattr(Laplace, "fill_unit", wrong)
    assert "noise is used twice" in faults(run(made()))


@pytest.mark.parametrize(("made", "replay"), [(graph, GraphReplay), (admm, AdmmReplay)])
@pytest.mark.parametrize("mu", [0.2, 5.0])
def test_noise_added_without_the_factor_of_the_gradient_is_found(
    made: Any, replay: Any, mu: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = replay.feed

    def wrong(self: Any, events: np.ndarray, noise: np.ndarray) -> None:
        right(self, events, noise / (self._problem.mu * self._problem.confidence[0]))

    monkeypatch.setattr(replay, "feed", wrong)
    found = faults(run(made(mu)))
    assert "the noise does not follow its law" in found
    assert ("more is shown than claimed" in found) == (mu > 1)


@pytest.mark.parametrize(("made", "releases"), all_pairs(MADE, [1, 3, 100]))
def test_one_release_more_than_claimed_is_found(
    made: Any, releases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plan, "limits", property(lambda plan: plan.releases + 1))
    found = run(
        made(allocation={"kind": "cap", "releases": releases}), samples=10_000 if releases == 1 else 100
    )
    assert "more releases than claimed" in faults(found)
    if releases == 1:  # seen in the outputs too
        assert "more is shown than claimed" in faults(found)


def test_releases_that_a_network_lets_through_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    right = audit_run.simulate_events

    def wrong(*given: Any, limits: np.ndarray, **more: Any) -> Any:
        return right(*given, limits=limits + 1, **more)

    monkeypatch.setattr(audit_run, "simulate_events", wrong)
    assert "more releases than claimed" in faults(run(star()))


def test_a_sensitivity_that_forgets_a_factor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = audit_run.prepare_run

    def wrong(system: Any, plan: Plan, *given: Any) -> Any:
        return right(system, replace(plan, moved=plan.moved / 2), *given)

    monkeypatch.setattr(audit_run, "prepare_run", wrong)
    for made in (star, rounds, graph, admm):
        assert faults(run(made())) == {"more is shown than claimed", "a record moves more than claimed"}


def test_ways_that_differ_by_a_factor_of_the_budget_are_audited_once() -> None:
    scenario = star_scenario(sweep={"privacy.epsilon": [1, 100]})
    found = run(scenario)
    assert [one.cells for one in found.audited] == [(0, 1)]


def test_batches_of_different_rates_are_audited_each() -> None:
    rates = [{"kind": "poisson", "rate": rate} for rate in (0.2, 0.5)]
    found = run(star_scenario(sweep={"learning.algorithm.batch": rates}), samples=100)
    assert [one.cells for one in found.audited] == [(0,), (1,)]


def test_what_claims_nothing_is_not_audited() -> None:
    found = run(star_scenario(privacy={"mechanism": "none"}, sweep={}))
    assert found.stands
    assert not found.audited
    assert found.notes == ("cells without noise claim nothing",)


def test_an_audit_is_a_function_of_its_seed() -> None:
    assert tree(run(star())) == tree(run(star()))


@pytest.mark.parametrize(("samples", "gamma"), [(10, 1e-6), (1000, 0.0), (1000, 1.0)])
def test_numbers_out_of_range_are_refused(samples: int, gamma: float) -> None:
    with pytest.raises(InputError):
        audit(star(), samples, gamma)
