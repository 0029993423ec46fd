"""The compiled engine makes a kernel for each set of parts that a network has: absences, a medium, acknowledgements.

Other tests share the kernels that have all parts. Here are those that have few, against SimPy.
"""

from functools import partial

import numpy as np
import pytest
from drawn_networks import Drawn, numbered_network, numbered_network_with_compute

from p2psim.network.compiled_engine import run
from p2psim.network.compiled_engine.run import MachineRun
from p2psim.network.simulation import simulate_events

PARTS = ("presence", "acknowledged", "radio", "gossip", "request", "queries", "synchronous", "compute")
#: Sets of parts. Each has a kernel of its own to be compiled; some are left to the slow verification.
SETS = [
    {"gossip"},
    *(
        pytest.param(parts, marks=pytest.mark.verification)
        for parts in (
            {"synchronous"},
            {"request", "presence"},
            {"queries", "acknowledged"},
            {"gossip", "radio"},
            {"gossip", "compute"},
            {"queries", "presence", "compute"},
        )
    ),
]


def parts_of(drawn: Drawn) -> set[str]:
    """Parts that the kernel of a network has; none where no message takes time."""
    stream = simulate_events(drawn.network, seed=drawn.seed, time=drawn.time, engine="array")
    made = stream._run
    return (
        {part for part in PARTS if getattr(made._m, part) is not None}
        if isinstance(made, MachineRun)
        else set()
    )


@pytest.mark.parametrize("parts", SETS, ids=lambda parts: " ".join(sorted(parts)))
def test_events_are_those_of_simpy(parts: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "ALL_PARTS", False)
    monkeypatch.setattr(MachineRun, "_begin", lambda _: None)
    network = numbered_network_with_compute if "compute" in parts else numbered_network
    if "synchronous" in parts:
        network = partial(numbered_network, newer=True)
    chosen = [drawn for drawn in map(network, range(400)) if parts_of(drawn) == parts]
    monkeypatch.undo()
    monkeypatch.setattr(run, "ALL_PARTS", False)
    assert len(chosen) > 1
    for drawn in chosen:
        (events, ended), (others, ended_too) = drawn.play("simpy"), drawn.play("array")
        assert np.array_equal(events, others)
        assert events.tobytes() == others.tobytes()
        assert ended == ended_too
