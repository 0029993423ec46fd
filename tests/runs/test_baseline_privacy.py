"""What the summary says of the privacy of each model: never the run's own numbers for another one."""

from pathlib import Path

import numpy as np
import pytest

import p2psim


def graph(**privacy: object) -> p2psim.Scenario:
    return p2psim.Scenario.from_dict(
        {
            "name": "baselines",
            "network": {"topology": {"kind": "ring", "agents": 4}, "exchange": "broadcast"},
            "data": {
                "source": {
                    "kind": "linear-classification",
                    "agents": 4,
                    "dimension": 2,
                    "points": 10,
                    "test_points": 5,
                },
                "scale": {"x": {"norm": "l1", "bound": 1.0, "at": "each-record"}},
            },
            "learning": {
                "algorithm": {"kind": "coordinate-descent", "mu": 1.0, "updates_per_agent": 4},
                "loss": "logistic",
                "regularizer": {"l2": "inverse-size"},
                "baselines": ["local", "global", "local-dp"],
            },
            "privacy": {
                "mechanism": "laplace",
                "sensitivity": "bounds",
                "allocation": {"kind": "cap", "releases": 50},
                **privacy,
            },
            "record": {"metrics": ["objective_gap", "test_accuracy"]},
        }
    )


@pytest.mark.parametrize("epsilon", [5.0, {0: 1.0, 1: 2.0, 2: 3.0, 3: 7.0}, np.inf])
def test_baselines_have_their_own_epsilon(tmp_path: Path, epsilon: object) -> None:
    result = p2psim.run(graph(epsilon=epsilon), tmp_path / "run", jobs=1, progress=False)
    summary = result.summary().set_index(["model", "metric"])
    budget = max(epsilon.values()) if isinstance(epsilon, dict) else epsilon
    for metric in ("objective_gap", "test_accuracy"):
        for model in ("local", "global"):
            row = summary.loc[model, metric]
            assert (row["epsilon spent"], row["budget"], row["flags"]) == (np.inf, np.inf, "not_private")
        assert summary.loc["local-dp", metric]["epsilon spent"] == budget
        assert ("not_private" in summary.loc["local-dp", metric]["flags"]) == (budget == np.inf)
        assert summary.loc["main", metric]["epsilon spent"] == result.ledger["epsilon_basic"].max()
    # A budget of 50 releases is not used up: the run itself spends less.
    assert budget == np.inf or result.ledger["epsilon_basic"].max() < budget


def test_an_owner_alone_learns_without_noise(tmp_path: Path) -> None:
    scenario = p2psim.Scenario.from_dict(
        {
            "name": "alone",
            "network": {"topology": {"kind": "star", "agents": 3}, "exchange": "request"},
            "data": {"source": {"kind": "linear-regression", "points": 30, "dimension": 2}},
            "learning": {
                "algorithm": {"kind": "async-star", "horizon": 20, "rho": 0.1, "theta_max": 3},
                "loss": "squared",
                "regularizer": {"l2": 0.1},
            },
            "privacy": {
                "mechanism": "laplace",
                "epsilon": 10,
                "sensitivity": {"kind": "clip", "bound": 1.0},
            },
            "record": {"metrics": ["relative_fitness", "isolated_fitness"]},
        }
    )
    summary = p2psim.run(scenario, tmp_path / "run", jobs=1, progress=False).summary().set_index("metric")
    assert summary.loc["isolated_fitness (mean over agents)", "epsilon spent"] == np.inf
    assert summary.loc["isolated_fitness (mean over agents)", "flags"] == "not_private"
    assert summary.loc["relative_fitness", "epsilon spent"] < 10
