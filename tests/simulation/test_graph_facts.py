"""Facts of the graph that metrics name are recorded once, with the first models."""

import numpy as np
import pytest
from graph_cases import graph_scenario

import p2psim


def test_effective_neighbours_of_a_ring_are_recorded() -> None:
    """The matrix of thirds on a ring of n has the eigenvalues (1 + 2·cos(2πk/n))/3."""
    names = ["effective_neighbours_90", "effective_neighbours_99", "lambda2"]
    scenario = graph_scenario({"network.topology": {"kind": "ring", "agents": 7}, "record.metrics": names})
    found = p2psim.simulate(scenario)
    n = 7
    values = (1 + 2 * np.cos(2 * np.pi * np.arange(n) / n)) / 3
    recorded = found.metrics.set_index("metric")["value"]
    assert found.metrics["step"].tolist() == [0, 0, 0]
    for name, gamma in (("effective_neighbours_90", 0.9), ("effective_neighbours_99", 0.99)):
        expected = (1 / (1 - gamma)) / np.mean(1 / (1 - gamma * values**2))
        assert recorded[name] == pytest.approx(expected, rel=1e-12)


def test_weights_of_the_topology_are_those_of_the_objective() -> None:
    """Normalised weights of a complete graph are 1/(n − 1), so that Q_L of the same models is so much smaller."""

    def first(**keys: object) -> float:
        topology = {"kind": "complete", "agents": 6, **keys}
        changes = {"network.topology": topology, "record.metrics": ["objective"], "privacy.mechanism": "none"}
        found = p2psim.simulate(graph_scenario(changes))
        return float(found.metrics.query("model == 'main'")["value"].iloc[0])

    assert first(normalise=True) == pytest.approx(first() / 5, rel=1e-12)
    assert first(weights="metropolis") == pytest.approx(first() / 6, rel=1e-12)
