"""Batches at equal ε: what the shipped study says of them."""

from pathlib import Path

import numpy as np
import pytest

from p2psim.scenario.cells import cells
from p2psim.scenario.model import Scenario
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

pytestmark = pytest.mark.verification

STUDY = Path(__file__).parents[2] / "scenarios" / "minibatches.yaml"


def test_batches_save_work_and_no_noise(tmp_path):
    """Medians of ψ over 10 replicas whose events and unit noise all cells share, at the study's seed."""
    workspace = Workspace(tmp_path)
    study = {
        (one.privacy.epsilon, getattr(one.learning.algorithm.batch, "rate", 1.0)): one
        for one in (cell.scenario for cell in cells(Scenario.load(STUDY)))
    }
    median = {
        key: np.median(
            [simulate(study[key], replica, workspace).series[0].value[-1] for replica in range(10)]
        )
        for key in [(1, 1.0), (1, 0.1), (100, 1.0), (100, 0.1)]
    }
    # A tenth of the work costs next to nothing at a small budget. At a large one the noise has 3.4 times the variance,
    # to which ψ is proportional, beside what the batches themselves add.
    assert 1 < median[1, 0.1] / median[1, 1.0] < 1.15
    assert median[100, 0.1] / median[100, 1.0] > 2.5
