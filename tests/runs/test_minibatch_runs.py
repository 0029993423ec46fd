"""Runs whose releases are of batches: recomputed, the same however they are made, and moving nothing else."""

import numpy as np
import pytest
from graph_cases import graph_scenario
from star_cases import scenario

import p2psim
from p2psim.core.errors import MeaningError
from p2psim.runs.verification import verify_result
from p2psim.scenario.model import Scenario
from p2psim.simulation.check import verify_replica
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

BATCHES = [{"kind": "poisson", "rate": 0.3}, {"kind": "fixed", "size": 4}]
ADMM = {"kind": "gossip-admm", "mu": 0.5, "rho": 1.0, "inner": 1, "commits": 40}
CASES = {
    "star": (scenario, {}),
    "hinge star": (scenario, {"learning.loss": "hinge", "learning.algorithm.rho": 1e-3, **{
        "data.source": {"kind": "linear-classification", "dimension": 3, "points": 30},
    }}),
    "graph": (graph_scenario, {"data.source.points": {"uniform": [5, 30]}}),
    "admm": (graph_scenario, {
        "learning.algorithm": ADMM, "network.exchange": {"kind": "gossip", "mode": "edge"},
    }),
}  # fmt: skip


def made(case: str, batch: dict) -> Scenario:
    build, changes = CASES[case]
    one = build(changes)
    tree = one.resolved()
    tree["learning"]["algorithm"]["batch"] = batch
    return Scenario.from_dict(tree)


@pytest.mark.parametrize("batch", BATCHES, ids=lambda b: b["kind"])
@pytest.mark.parametrize("case", CASES)
def test_recomputed_to_rounding(case, batch, tmp_path):
    result = p2psim.run(made(case, batch), tmp_path / "run", progress=False)
    checked = verify_result(result)
    assert checked
    assert not any(one.fault for one in checked)
    assert max(one.largest for one in checked) < 1e-10


@pytest.mark.parametrize("case", ["star", "graph"])
def test_other_batches_are_found(case, tmp_path):
    """The run recomputed as if each record had taken part a little more often."""
    one, other = (made(case, {"kind": "poisson", "rate": rate}) for rate in (0.3, 0.31))
    workspace = Workspace(tmp_path)
    run, data = simulate(one, 0, workspace), workspace.case(one, 0)
    same, apart = (
        verify_replica(each, data, 0, run.events, run.noise, run.series, run.models) for each in (one, other)
    )
    assert same.largest < 1e-10
    assert apart.largest > 1e-3
    assert apart.drift < 1e-9


@pytest.mark.parametrize("case", CASES)
def test_batches_move_no_other_draw(case, tmp_path):
    """Events are the same, and noise but for its scale."""
    whole, batch = (
        simulate(made(case, part), 0, Workspace(tmp_path)) for part in ({"kind": "whole"}, BATCHES[0])
    )
    assert whole.events.tobytes() == batch.events.tobytes()
    ratio = batch.noise / whole.noise
    np.testing.assert_allclose(ratio, np.repeat(ratio[:, :1], ratio.shape[1], axis=1), rtol=1e-9)
    assert np.abs(whole.models[-1] - batch.models[-1]).max() > 0


def test_cells_whose_batches_are_independent_draw_others(tmp_path):
    tree = made("star", BATCHES[0]).resolved()
    tree["privacy"] = {"mechanism": {"kind": "none"}}
    together, apart = (
        simulate(Scenario.from_dict({**tree, "independent": names}), 0, Workspace(tmp_path))
        for names in ([], ["batches"])
    )
    assert together.events.tobytes() == apart.events.tobytes()
    assert np.abs(together.models[-1] - apart.models[-1]).max() > 0


def test_an_agent_with_too_few_records_is_named(tmp_path):
    one = made("star", {"kind": "fixed", "size": 41})
    with pytest.raises(MeaningError, match="40 records for agent 0, got 41") as caught:
        simulate(one, 0, Workspace(tmp_path))
    assert caught.value.faults[0].key == "learning.algorithm.batch.size"
