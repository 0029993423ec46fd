"""A long run of the SimPy engine holds no more than a short one; it needs nothing but what SimPy offers to all."""

import ast
import gc
from collections import deque
from pathlib import Path

import numpy as np
import pytest
import simpy
from network_cases import (
    Broadcast,
    Channel,
    Gossip,
    Graph,
    Network,
    Poll,
    Request,
    Round,
    complete,
    ring,
    star,
)
from pairs import few

import p2psim
from p2psim.core.distributions import Distribution
from p2psim.core.events import RETRY
from p2psim.core.randomness import Streams
from p2psim.network.availability import Renewal
from p2psim.network.channels.channel import ResendFresh, ResendSame
from p2psim.network.channels.effects import GilbertElliott
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.section import RunSetup
from p2psim.network.simpy_engine.engine import SimPyRun
from p2psim.network.simulation import simulate_events
from p2psim.network.verify import verify

PACKAGE = Path(p2psim.__file__).parent

RADIOS = {
    "aloha": Channel(airtime=0.02, collision="aloha", half_duplex=True),
    "slotted": Channel(airtime=0.02, collision="slotted", shared=True, capture=0.5, latency=0.1),
    "sensing": Channel(airtime=0.02, collision="carrier-sense", shared=True),
    "apart": Channel(airtime=0.02, collision="carrier-sense", shared=False, while_sending="overlap"),
    "again": Channel(
        airtime=0.02, collision="aloha", while_sending="skip", retransmit=ResendSame(acknowledge=0.3)
    ),
    "bursts": Channel(
        loss=GilbertElliott(mean=0.3, burst=2.0), latency=0.1, retransmit=ResendSame(acknowledge=0.3)
    ),
    "fresh": Channel(airtime=0.02, collision="aloha", loss=0.3, retransmit=ResendFresh()),
}
LOSSY = Channel(latency=Distribution(exponential=0.5), loss=0.5)
CASES: dict[str, tuple[Graph, Exchange]] = {
    "request": (star(5), Request(service=0.05)),
    "request, queued": (star(2), Request(service=0.01, busy="queue")),
    "poll": (star(5), Poll(response=Distribution(exponential=3.0))),
    "round": (star(5), Round(response=Distribution(exponential=3.0), deadline=2.0)),
    "broadcast": (complete(5), Broadcast()),
    "gossip": (ring(5), Gossip()),
    "pull": (ring(5), Gossip(mode="pull", partner="weight")),
    "push-pull": (ring(5), Gossip(mode="push-pull")),
    "edge": (ring(5), Gossip(mode="edge")),
}


def run_of(case: str, channel: Channel = LOSSY, time: float = 1e9) -> SimPyRun:
    where, exchange = CASES[case]
    network, ones = Network(where, exchange, channel), np.ones(where.agents)
    return SimPyRun(RunSetup(network, ones, Streams(), None, None, time, 256))


def pass_time(run: SimPyRun, until: float) -> None:
    """Let time pass, and take the chunks away as a reader would."""
    while run.env.peek() < until:
        run.env.step()
        for _ in run.log.take():
            pass


def held(run: SimPyRun) -> int:
    """Entries of all lists, dictionaries, sets and queues that are reachable from a run, apart from code."""
    seen: set[int] = set()
    waiting: list[object] = [run]
    total = 0
    while waiting:
        one = waiting.pop()
        kind = type(one)
        if (
            id(one) in seen
            or isinstance(one, type)
            or kind.__name__ == "module"
            or "numba" in kind.__module__
        ):
            continue
        seen.add(id(one))
        if isinstance(one, list | dict | set | deque):
            total += len(one)
        # A function's globals are its module: code, not the run's state.
        code = getattr(one, "__globals__", None)
        waiting += [other for other in gc.get_referents(one) if other is not code]
    return total


class TestMemory:
    @pytest.mark.parametrize("case", CASES)
    def test_half_of_the_messages_lost_leave_nothing_behind(self, case: str) -> None:
        """After 30 times as long, containers hold what they held, up to the messages now under way."""
        short, long = run_of(case), run_of(case)
        if case == "request, queued":
            # Loss and latency would make the desk slower than the clocks, and a queue that grows is right then.
            short, long = (run_of(case, Channel(loss=0.5)) for _ in range(2))
        pass_time(short, 100.0)
        pass_time(long, 3000.0)
        assert long.log.seq > 25 * short.log.seq
        assert held(long) < 2 * held(short) + 200
        assert len(long.env._queue) < 2 * len(short.env._queue) + 60

    @pytest.mark.parametrize(
        ("case", "radio"),
        few(
            (
                (case, radio)
                for case in ("request", "poll", "broadcast", "push-pull")
                for radio in RADIOS
                if CASES[case][0].star or radio != "fresh"
            ),
            9,
        ),
    )
    def test_shared_media_forget_what_is_over(self, case: str, radio: str) -> None:
        short, long = run_of(case, RADIOS[radio]), run_of(case, RADIOS[radio])
        pass_time(short, 60.0)
        pass_time(long, 900.0)
        assert long.log.seq > 10 * short.log.seq
        assert held(long) < 2 * held(short) + 200
        assert len(long.env._queue) < 2 * len(short.env._queue) + 60

    @pytest.mark.parametrize("case", CASES)
    def test_messages_that_count_as_under_way_have_a_timer(self, case: str) -> None:
        run = run_of(case)
        pass_time(run, 500.0)
        assert 0 <= run._under_way <= len(run.env._queue)

    def test_chunks_are_handed_over(self) -> None:
        run = run_of("gossip")
        chunks = run.run()
        for _ in range(20):
            assert next(chunks).size == 256
            assert len(run.log.full) == 0


class TestPublicInterface:
    """Whoever knows SimPy's documentation can read the engine: it uses nothing that is not in there."""

    FILES = (
        *sorted((PACKAGE / "network" / "simpy_engine").glob("*.py")),
        *sorted((PACKAGE / "network" / "exchanges").glob("*.py")),
        *sorted((PACKAGE / "network" / "channels").glob("*.py")),
        *sorted((PACKAGE / "network" / "availability").glob("*.py")),
    )

    @pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
    def test_no_private_attribute_of_anything_else(self, file: Path) -> None:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found = [
            ast.unparse(node)
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
            and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
            and node.attr not in ("_replace", "_fields")  # of named tuples, and public
        ]
        assert not found

    @pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
    def test_no_event_of_its_own_and_no_callbacks(self, file: Path) -> None:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not names & {"callbacks", "callback", "schedule", "step"}
        bases = {
            ast.unparse(base)
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for base in node.bases
        }
        assert not any(base.startswith("simpy") for base in bases)
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not any(module and module.split(".")[0] == "simpy" for module in modules)

    @pytest.mark.parametrize(
        ("case", "radio"),
        [(case, radio) for case in CASES for radio in RADIOS if CASES[case][0].star or radio != "fresh"],
    )
    def test_events_do_not_depend_on_who_drives_simpy(self, case: str, radio: str) -> None:
        """Event by event with ``env.step``, or with ``env.run`` as the engine does, in chunks or not."""
        where, exchange = CASES[case]
        network = Network(where, exchange, RADIOS[radio], Renewal(up=3.0, down=1.0))
        ours = simulate_events(network, Streams(), time=30.0, engine="simpy", chunk=7).read()
        run = SimPyRun(RunSetup(network, np.ones(where.agents), Streams(), None, None, 30.0, 1 << 15))
        assert type(run.env) is simpy.Environment
        while not run.ended:
            run.env.step()
        assert run.log.rest().tobytes() == ours.tobytes()
        assert ours.size > 50


@pytest.mark.parametrize("case", ["poll", "push-pull", "broadcast"])
def test_a_hundred_tries_at_one_instant_need_no_deep_stack(case: str) -> None:
    where, exchange = CASES[case]
    again = Channel(loss=0.99, retransmit=ResendSame(limit=100, backoff=0.0))
    events = simulate_events(Network(where, exchange, again), Streams(), time=30.0, engine="simpy").read()
    tries = np.unique(events["cause"][events["kind"] == RETRY], return_counts=True)[1]
    assert tries.max() >= 100
    verify([events], where, resending=again.resending)
