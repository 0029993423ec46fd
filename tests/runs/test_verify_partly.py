"""Without the parts that made a run, its events are still checked as events, and the releases in its ledger counted."""

import json
from typing import Any

import numpy as np
import pytest

import p2psim
from p2psim.core.events import COMMIT, SEND
from p2psim.runs.verification import broken_invariant, by_run, miscounted, stream_of

PRIVATE = {"mechanism": "laplace", "epsilon": 50, "sensitivity": {"kind": "clip", "bound": 1.0}}
STAR = {"kind": "star", "agents": 4}
RING = {"kind": "ring", "agents": 6}
ASYNC = {"kind": "async-star", "horizon": 25, "rho": 0.1, "theta_max": 3}
DESCENT = {"kind": "coordinate-descent", "mu": 1.0, "updates_per_agent": 6}
CAP = {"kind": "cap", "releases": 4}
AWAY = {"kind": "renewal", "up": 2.0, "down": 1.0}
LOSSY = {"latency": {"uniform": [0.0, 0.5]}, "loss": 0.3}

#: Topology, exchange, channel, availability, algorithm.
NETWORKS: dict[str, tuple[Any, Any, Any, Any, Any]] = {
    "request": (STAR, {"kind": "request", "service": 0.3}, LOSSY, AWAY, ASYNC),
    "poll": (STAR, {"kind": "poll", "interval": 0.5}, LOSSY, "always", ASYNC),
    "round": (
        STAR, {"kind": "round", "deadline": 0.7}, LOSSY, AWAY,
        {"kind": "synchronous-descent", "horizon": 12, "rho": 0.1, "theta_max": 3},
    ),
    "broadcast": (RING, "broadcast", LOSSY, AWAY, DESCENT),
    "push": (RING, {"kind": "gossip", "mode": "push"}, LOSSY, AWAY, DESCENT),
    "pull": (RING, {"kind": "gossip", "mode": "pull"}, LOSSY, AWAY, DESCENT),
    "push-pull": (RING, {"kind": "gossip", "mode": "push-pull"}, LOSSY, AWAY, DESCENT),
    "resent": (
        RING, {"kind": "gossip", "mode": "push"},
        {"loss": 0.4, "retransmit": {"kind": "same", "limit": 3}}, "always", DESCENT,
    ),
    "local start": (RING, "broadcast", {}, "always", DESCENT | {"start": "local"}),
}  # fmt: skip


@pytest.fixture(scope="module", params=NETWORKS)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> p2psim.Result:
    topology, exchange, channel, availability, algorithm = NETWORKS[request.param]
    star = topology is STAR
    scenario = {
        "name": "partly",
        "network": {
            "topology": topology, "exchange": exchange, "channel": channel, "availability": availability
        },
        "data": {"source": {"kind": "linear-regression", "points": 20, "dimension": 2}},
        "learning": {"algorithm": algorithm, "loss": "squared", "regularizer": {"l2": 0.1}},
        "privacy": PRIVATE | ({} if star else {"allocation": CAP}),
        "record": {"events": True, "metrics": ["relative_fitness" if star else "objective_gap"]},
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("partly") / "run"
    return p2psim.run(p2psim.Scenario.from_dict(scenario), folder, jobs=1, progress=False)


def arguments(result: p2psim.Result) -> tuple[np.ndarray, Any, dict[str, Any], Any]:
    """The stream, the ledger, the scenario's tree and the cell."""
    stream = stream_of(by_run(result.events)[0, 0])
    tree = json.loads(json.dumps(result.scenario.resolved()))
    return stream, by_run(result.ledger)[0, 0], tree, result.described.cells[0]


def test_what_was_run_is_right(ran: p2psim.Result) -> None:
    stream, ledger, tree, cell = arguments(ran)
    assert len(stream) > 50
    assert broken_invariant(stream, len(ledger), tree, cell) == ""
    assert miscounted(stream, ledger, tree, cell) == ""


def test_a_release_more_in_the_ledger_is_seen(ran: p2psim.Result) -> None:
    stream, ledger, tree, cell = arguments(ran)
    for more in (1, -1):
        forged = ledger.assign(releases=ledger["releases"] + more * (ledger["agent"] == 2))
        assert "releases of agent 2" in miscounted(stream, forged, tree, cell)


@pytest.mark.parametrize("damage", ["time", "cause", "release", "version", "agent"])
def test_an_event_that_cannot_have_happened_is_seen(ran: p2psim.Result, damage: str) -> None:
    stream, ledger, tree, cell = arguments(ran)
    forged = stream.copy()
    made = np.flatnonzero(
        np.isin(stream["kind"], (SEND, COMMIT)) & (stream["release"] >= 0) & (stream["agent"] >= 0)
    )
    at = made[len(made) // 2]
    if damage == "time":
        forged["time"][at] -= 1000.0
    elif damage == "cause":
        forged["cause"][at] = len(stream) + 3
    elif damage == "release":
        forged["release"][at] += 2
    elif damage == "version":
        forged["version"][at] += 5
    else:
        forged["agent"][at] = 99
    assert broken_invariant(forged, len(ledger), tree, cell) != ""
