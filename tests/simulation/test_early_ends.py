"""Runs that end before their time since budgets are spent: both `check` and a run say so, with the cure."""

import numpy as np
import pytest
from graph_cases import graph_scenario
from star_cases import scenario as star_scenario

from p2psim.simulation import simulate as module
from p2psim.simulation.workspace import Workspace

CAP = {"kind": "cap", "releases": 10}
TIMED = {"kind": "coordinate-descent", "mu": 0.5, "updates_per_agent": 40}


def told(one, workspace):
    """What check says of an early end, and what a run says and when it ended."""
    before = [w for w in module.check(one, workspace).warnings if "expected to end" in w]
    outcome = module.simulate(one, 0, workspace)
    return before, [w for w in outcome.warnings if "the run ended" in w], outcome


def test_a_run_by_time_that_is_silent_half_way(tmp_path):
    """E[max of n Gamma(10)]: by the mean of 20,000 draws; a run is within five standard deviations of it."""
    one = graph_scenario(
        {"learning.algorithm": TIMED, "privacy.allocation": CAP, "privacy.when_spent": "silent"}
    )
    before, after, outcome = told(one, Workspace(tmp_path))
    n = outcome.ledger["agent"].size
    ends = np.random.default_rng(0).gamma(10.0, size=(20_000, n)).max(axis=1)
    assert len(before) == len(after) == 1
    expected = float(before[0].split("time ")[1].split(" of 40")[0])
    assert expected == pytest.approx(ends.mean(), rel=0.02)
    ended = float(after[0].split("time ")[1].split(" of 40")[0])
    assert abs(ended - ends.mean()) < 5 * ends.std()
    assert "privacy.allocation" in before[0]
    assert "privacy.when_spent" in after[0]


@pytest.mark.parametrize(
    "changes", [{"privacy.when_spent": "coast"}, {"privacy.allocation": {**CAP, "releases": 400}}]
)
def test_the_cure_cures(changes, tmp_path):
    base = {"learning.algorithm": TIMED, "privacy.allocation": CAP, "privacy.when_spent": "silent"}
    before, after, outcome = told(graph_scenario({**base, **changes}), Workspace(tmp_path))
    assert (before, after, outcome.ended) == ([], [], "time")


def test_a_star_that_has_fewer_releases_than_its_horizon(tmp_path):
    one = star_scenario({"privacy.allocation": {"kind": "cap", "releases": 4}})
    before, after, outcome = told(one, Workspace(tmp_path))
    assert outcome.ended == "exhausted"
    assert "commit 12 of 60" in before[0]
    assert "commit 12 of 60" in after[0]
