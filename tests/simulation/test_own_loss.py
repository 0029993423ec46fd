"""A loss of one's own in a whole scenario: simulated, recomputed, and refused where nothing is known of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graph_cases import graph_scenario
from own_losses import Huber
from star_cases import scenario

from p2psim.audit.canaries import GradientLimits, pairs
from p2psim.core.errors import MeaningError, SimulationError
from p2psim.learning.star.problem import LOWEST
from p2psim.scenario.model import Scenario
from p2psim.simulation.check import TOLERANCE, verify_replica
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

ROUNDS: dict[str, Any] = {
    "network.exchange": {"kind": "round", "deadline": 1.0},
    "learning.algorithm": {"kind": "synchronous-descent", "horizon": 60, "rho": 1e-4, "theta_max": 3.0},
    "privacy.allocation": "horizon",
}
GRAPH: dict[str, Any] = {
    "data.source": {"kind": "linear-regression", "dimension": 3, "points": {"uniform": [5, 30]}},
    "data.scale": None,
    "privacy.sensitivity": {"kind": "clip", "bound": 1.0},
    "record.metrics": ["objective", "objective_gap"],
}


def with_huber(made: Scenario) -> Scenario:
    learning = made.learning.model_copy(update={"loss": Huber(delta=0.3)})
    return made.model_copy(update={"learning": learning})


@pytest.mark.parametrize(
    "made", [scenario(), scenario(ROUNDS), graph_scenario(GRAPH)], ids=["star", "rounds", "graph"]
)
def test_simulated_and_recomputed(made: Scenario, tmp_path: Path) -> None:
    study, workspace = with_huber(made), Workspace(tmp_path)
    workspace.case(study, 0)
    outcome, case = simulate(study, 0, workspace), workspace.case(study, 0)
    measured = [one for one in outcome.series if one.metric in ("relative_fitness", "objective_gap")]
    assert measured
    assert all((one.value >= -LOWEST).all() for one in measured)
    assert outcome.events is not None
    assert outcome.noise is not None
    again = (outcome.events, outcome.noise, outcome.series, outcome.models)
    assert verify_replica(study, case, 0, *again).largest <= TOLERANCE
    if "optimum" in case.arrays:
        # An optimum that is none, with the ψ that follows from it, or without.
        for changed in ({"optimum": 0 * case.arrays["optimum"]}, {"minimum": 2 * case.arrays["minimum"]}):
            wrong = replace(case, arrays={**case.arrays, **changed})
            with pytest.raises(SimulationError, match=r"not optimal|f\(θ\*\) is"):
                verify_replica(study, wrong, 0, *again)


def test_audits_refuse_a_loss_whose_worst_records_are_unknown() -> None:
    with pytest.raises(MeaningError, match=r"learning\.loss: worst records are known for .* not for huber"):
        pairs(GradientLimits(Huber(), np.inf, 1.0, 1), 3)
