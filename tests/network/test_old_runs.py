"""Events of networks in which nothing is due at the same instant: the same bytes as before the two engines of today.

``old_runs.json`` holds hashes of the events of `numbered_network`, from the engine before the order of simultaneous
events was a rule (version 0.1 of p2psim with SimPy 4.1). It had another order where several things were due at one
instant, and added up airtime and latency before the time: networks with either are left out.
"""

import hashlib
import json
from pathlib import Path

import pytest
from drawn_networks import numbered_network

from p2psim.network.compiled_engine import run

OLD = json.loads((Path(__file__).parent / "old_runs.json").read_text())


def numbers(part: int, parts: int = 8) -> list[int]:
    """A part of all runs."""
    return [int(number) for number in OLD][part::parts]


@pytest.mark.parametrize("part", range(8))
@pytest.mark.parametrize("engine", ["simpy", "array"])
def test_events_are_those_of_before(engine: str, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "ALL_PARTS", True)  # three kernels for all
    changed = []
    for number in numbers(part):
        events, _ = numbered_network(number).play(engine)
        if hashlib.sha256(events.tobytes()).hexdigest()[:32] != OLD[str(number)]:
            changed.append(number)
    assert changed == []


def test_there_are_some_hundred_of_all_kinds() -> None:
    drawn = [numbered_network(int(number)).network for number in OLD]
    assert len(drawn) > 300
    assert {network.exchange.kind for network in drawn} == {"request", "poll", "round", "gossip", "broadcast"}
    kinds = {network.availability.kind for network in drawn}
    assert kinds >= {"always", "bernoulli", "renewal", "outage", "learner", "diurnal", "scripted", "all-of"}
    assert {network.channel.collision for network in drawn} == {"none", "aloha", "slotted", "carrier-sense"}
    assert {network.channel.retransmit.kind for network in drawn} == {"none", "same", "fresh"}
