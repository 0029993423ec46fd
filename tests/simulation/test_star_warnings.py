"""Warnings of a step outside the stability range speak in words, not in infinities."""

from pathlib import Path

import pytest

import p2psim
from p2psim.runs.checking import check_scenario, warnings_of

SCENARIO = Path(__file__).parents[2] / "scenarios" / "three_banks.yaml"


@pytest.mark.parametrize(
    ("rho", "smallest", "said"),
    [
        # h = 3.93, above 3.17 for three owners: unstable, so that noise has no bound.
        (
            5000,
            3000,
            [
                "equal owners are stable below 3.17",
                "at this step it would grow without bound, so ψ saturates",
            ],
        ),
        # h between 2 and 3.17 is stable for equal owners only.
        (3000, 1000, ["owners whose h differ are sure to be stable only up to h = 2"]),
        (3000, 3000, []),
        (43, 3000, []),
    ],
)
def test_steps_outside_the_stability_range(rho, smallest, said):
    overrides = ["sweep={}", "privacy.epsilon=1000", f"learning.algorithm.rho={rho}"]
    overrides.append(f"data.partition.sizes=[3000, 3000, {smallest}]")
    checked = check_scenario(p2psim.Scenario.load(SCENARIO, overrides), str(SCENARIO))
    warnings = warnings_of(checked.cells, checked.facts)
    assert not any("inf" in warning.split() for warning in warnings)
    assert all(any(text in warning for warning in warnings) for text in said)
    assert bool(warnings) == bool(said)


def test_features_that_depend_on_each_other_are_no_slow_direction(tmp_path):
    """Categories of a one-hot column add up to one: standardised they lie in a plane."""
    rows = "\n".join(f"{i % 4},{'abc'[i % 3]},{(7 * i) % 11}" for i in range(96))
    (tmp_path / "t.csv").write_text(f"owner,city,y\n{rows}\n", encoding="utf-8")
    tree = {
        "name": "flat",
        "network": {"topology": "star", "exchange": "request"},
        "data": {
            "source": {"kind": "csv", "path": str(tmp_path / "t.csv"), "y": "y", "categories": "one-hot"},
            "partition": {"kind": "column", "column": "owner"},
            "public": {"last": 30},
            "features": ["standardise"],
        },
        "learning": {
            "algorithm": {"kind": "async-star", "horizon": 500, "rho": 20.0, "theta_max": 10},
            "loss": "squared",
            "regularizer": {"l2": 0.001},
        },
        "privacy": {"mechanism": "none"},
    }
    checked = check_scenario(p2psim.Scenario.from_dict(tree), "")
    (warning,) = [one for one in warnings_of(checked.cells, checked.facts) if "λ_min" in one]
    assert "features depend on each other linearly" in warning
    assert "e-1" not in warning
