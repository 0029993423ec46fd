"""Audits of private starts by output and objective perturbation."""

from copy import deepcopy

import numpy as np
import pytest
from graph_cases import graph_scenario
from scipy.optimize import minimize_scalar

from p2psim.audit import starts
from p2psim.audit.driver import audit
from p2psim.simulation.algorithms import graph_setting

CHANGES = {
    "data.source": {
        "kind": "linear-classification", "agents": 4, "dimension": 3, "points": 20, "test_points": 5,
        "x": {"kind": "uniform", "bound": 0.5},
    },
    "data.scale": {},
    "network.topology": {"kind": "ring", "agents": 4},
    "record.metrics": ["test_accuracy"],
}  # fmt: skip


def audited(kind, samples=1000, **changes):
    start = {"kind": "private", "epsilon": 0.05, "perturbation": kind}
    named = {key.replace("__", "."): value for key, value in changes.items()}
    scenario = graph_scenario({**deepcopy(CHANGES), "learning.algorithm.start": start, **named})
    return audit(scenario, samples=samples)


def of_start(result):
    return [way for way in result.audited if isinstance(way.system, starts.StartSystem)]


@pytest.mark.parametrize("kind", ["output", "objective"])
def test_right_starts_stand_and_noise_that_is_too_small_is_found(kind, monkeypatch):
    result = audited(kind)
    (way,) = of_start(result)
    assert len(result.audited) == 2  # the releases of the descent, too
    assert way.system.mechanism == f"{kind} perturbation"
    assert (way.agents, way.trial.epsilon, way.trial.faults) == (4, 1.0, {})
    assert not any("start" in note for note in result.notes)

    def too_little(start, *rest):
        return graph_setting.perturbed_models(start.model_copy(update={"epsilon": 8.0}), *rest)

    monkeypatch.setattr(starts, "perturbed_models", too_little)
    (way,) = of_start(audited(kind))
    assert {"more is shown than claimed", "the noise does not follow its law"} <= way.trial.faults.keys()
    assert way.trial.at_least > 1


def test_the_record_moves_the_minimiser_as_it_does_by_hand():
    """J = ln(1 + e^{−θ}) + (nΛ/2)θ² for x = 1; the claim is a move by 2/(nΛ), and nΛ = 2 for λ_i = 1/m_i."""
    (way,) = of_start(audited("output", samples=100, **{"learning.regularizer": {"l2": "inverse-size"}}))
    least = minimize_scalar(
        lambda t: np.logaddexp(0, -t) + t * t, bounds=(0, 1), method="bounded", options={"xatol": 1e-12}
    )
    assert way.trial.moves == pytest.approx(2 * least.x / (2 / 2), rel=1e-6)


def test_agents_of_different_size_are_audited_at_both_ends():
    sizes = {"data__source": CHANGES["data.source"] | {"points": {"0": 10, "1": 20, "2": 30, "3": 30}}}
    ways = of_start(audited("output", samples=100, learning__regularizer={"l2": 0.01}, **sizes))
    assert sorted((way.system.agents, way.agents) for way in ways) == [((0,), 1), ((2, 3), 2)]


def test_model_propagation_releases_its_start_alone():
    algorithm = {"kind": "model-propagation", "mu": 1.0, "commits": 20}
    algorithm["start"] = {"kind": "private", "epsilon": 1.0, "perturbation": "output"}
    result = audited("output", samples=100, learning__algorithm=algorithm)
    assert [type(way.system) for way in result.audited] == [starts.StartSystem]
    assert result.notes == ()


def test_a_start_by_the_mechanism_is_named():
    scenario = graph_scenario({"learning.algorithm.start": {"kind": "private", "epsilon": 0.05}})
    result = audit(scenario, samples=100)
    assert "the start private by the mechanism, which is a release, was not audited" in result.notes
