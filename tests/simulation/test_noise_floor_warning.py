"""``check`` and ``run`` warn where noise leaves a worse model than the one that every run starts from."""

from pathlib import Path

import pytest

import p2psim

WARNING = "the noise hides what is learned"


def star(epsilon: float, allocation: object = "horizon") -> dict[str, object]:
    return {
        "name": "floor",
        "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "request"},
        "data": {"source": {"kind": "linear-regression", "points": 500, "dimension": 2}},
        "learning": {
            "algorithm": {"kind": "async-star", "horizon": 100, "rho": {"h": 0.1}, "theta_max": 100},
            "loss": "squared",
            "regularizer": {"l2": 0.001},
        },
        "privacy": {
            "mechanism": "laplace",
            "epsilon": epsilon,
            "sensitivity": {"kind": "clip", "bound": 1.0},
            "allocation": allocation,
        },
        "record": {"metrics": ["relative_fitness"], "events": True},
    }


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 10.0, 30.0, 1000.0])
def test_a_floor_above_the_start_is_said_and_no_other(tmp_path: Path, epsilon: float) -> None:
    result = p2psim.run(p2psim.Scenario.from_dict(star(epsilon)), tmp_path, jobs=1, progress=False)
    facts = result.described.cells[0].facts
    # Every run starts at zero, so its first record is the ψ that the warning compares with.
    start = result.metrics.query("step == 0")["value"].item()
    assert facts["ψ of θ = 0"] == pytest.approx(start, rel=1e-12)
    said = any(WARNING in text for text in result.warnings)
    assert said == (facts["noise floor of ψ"] > start)
    assert result.manifest["warnings"] or not said


def test_both_verdicts_occur() -> None:
    """The floor goes with 1/ε², so that the budgets above lie on both sides of the start."""
    facts = {eps: p2psim.Scenario.from_dict(star(eps)) for eps in (0.1, 1000.0)}
    floors = [
        check(scenario)["noise floor of ψ"] - check(scenario)["ψ of θ = 0"] for scenario in facts.values()
    ]
    assert floors[0] > 0 > floors[1]


def check(scenario: p2psim.Scenario) -> dict[str, float]:
    from p2psim.runs.checking import check_scenario

    return check_scenario(scenario, "floor").facts[0].facts
