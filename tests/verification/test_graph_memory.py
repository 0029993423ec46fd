"""With half of the messages lost, and others late, a run three times as long needs no more memory."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from graph_cases import graph_scenario

from p2psim.simulation import session
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

pytestmark = pytest.mark.verification

EDGE = {"kind": "gossip", "mode": "edge"}
#: Algorithm, exchange, and commits of the shorter run: enough for all buffers to have their size.
CASES = {
    "descent, broadcast": ({"kind": "coordinate-descent"}, "broadcast", 16_000),
    "descent, push-pull": ({"kind": "coordinate-descent"}, {"kind": "gossip", "mode": "push-pull"}, 16_000),
    "propagation, pull": ({"kind": "model-propagation"}, {"kind": "gossip", "mode": "pull"}, 7_000),
    "admm": ({"kind": "gossip-admm", "inner": 1}, EDGE, 6_000),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("engine", "latency"), [("array", 0.0), ("simpy", {"exponential": 2.0})])
def test_memory_does_not_grow(
    case: str, engine: str, latency: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is allocated is measured but what is kept on purpose: releases, so three each, and shared events."""
    monkeypatch.setattr(session, "KEEP_BYTES", 0)
    algorithm, exchange, commits = CASES[case]
    workspace, peaks = Workspace(tmp_path), []
    for length in (100, commits, 3 * commits):  # the first compiles
        scenario = graph_scenario(
            {
                "learning.algorithm": {**algorithm, "mu": 1.0, "commits": length},
                "learning.baselines": [],
                "network.exchange": exchange,
                "network.channel": {"loss": 0.5, "latency": latency},
                "network.engine": engine,
                "privacy.allocation": {"kind": "cap", "releases": 3},
                "privacy.when_spent": "anchored",
                "record": {"metrics": ["objective", "vectors_sent"], "every": length},
            }
        )
        tracemalloc.start()
        try:
            simulate(scenario, 0, workspace)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[2] < 1.02 * peaks[1] + 50_000
