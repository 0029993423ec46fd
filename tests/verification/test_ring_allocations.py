"""B's noise allocation as printed makes things worse by four orders of magnitude; corrected, better by one."""

from pathlib import Path

import numpy as np
import pytest
from ring_cases import hessian, optimum, play

import p2psim
from p2psim.privacy.allocations import Contraction, Uniform
from p2psim.scenario.model import Scenario

pytestmark = pytest.mark.verification

RUNS = 1600

UNIFORM, EXPECTED = Uniform(), Contraction()
PRINTED, CORRECTED = Contraction(form="printed", wakes="known"), Contraction(wakes="known")


def mean_gap(allocation, mu, wakes):
    """Mean of Q − Q* over runs, and its standard error."""
    H, best = hessian(mu), optimum(mu)
    away = np.array([play(allocation, mu, wakes, replica)[0] for replica in range(RUNS)]) - best
    gaps = 0.5 * np.einsum("ri,ij,rj->r", away, H, away)
    return gaps.mean(), gaps.std() / np.sqrt(RUNS)


@pytest.mark.parametrize(
    ("allocation", "mu", "wakes", "known"),
    [
        (UNIFORM, 1.0, 200, 13.1),
        (PRINTED, 1.0, 200, 260_000),
        (CORRECTED, 1.0, 200, 0.397),
        (EXPECTED, 1.0, 200, 3.68),
        (UNIFORM, 0.2, 600, 7.8),
        (PRINTED, 0.2, 600, 116_000),
        (CORRECTED, 0.2, 600, 0.208),
    ],
)
def test_gap_is_the_known_one(allocation, mu, wakes, known):
    """Known from 20,000 other runs: its error is this one's by √(RUNS/20,000). 4.5 errors: a false alarm in 150,000."""
    mean, error = mean_gap(allocation, mu, wakes)
    assert mean == pytest.approx(known, abs=4.5 * error * np.sqrt(1 + RUNS / 20_000))


def test_the_scenario_shows_the_same(tmp_path: Path) -> None:
    """In 40 of its replicas. Within 4.5 standard errors by Student's law: of four means, a false alarm in 4,200."""
    path = Path(__file__).parents[2] / "scenarios" / "noise_allocation.yaml"
    scenario = Scenario.load(path, ["record.every=1000", "replicas=40"])
    result = p2psim.run(scenario, tmp_path / "run", jobs=1, progress="none")
    last = result.metrics.sort_values("step").groupby(["cell", "replica"])["value"].last().groupby("cell")
    for mean, error, known in zip(last.mean(), last.sem(), [13.1, 260_000, 0.397, 3.68], strict=True):
        assert mean == pytest.approx(known, abs=4.5 * error)
