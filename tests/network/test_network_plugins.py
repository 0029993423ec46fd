"""An exchange, a channel effect and an availability from outside p2psim, used from a scenario file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_parts import let_in
from plugin_cases import PARTS, run_alone, started, within
from plugin_cases import p2psim as command
from registered import PLUGINS

import p2psim.scenario.model  # noqa: F401  knows parts that are let in
from p2psim.analysis.forecasts.star_setting import refuse_unknown
from p2psim.core.errors import MeaningError
from p2psim.network.channels.effects import Delivery
from p2psim.network.section import NetworkSection

JAMMING = {"kind": "jamming", "period": 2.0, "length": 0.5}
PARETO = {"kind": "pareto", "up": 4.0, "down": 1.0}
SCENARIO = str(PLUGINS / "jammed.yaml")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_alone(SCENARIO, tmp_path_factory)


@pytest.fixture(scope="module")
def finished(alone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("jammed") / "run"
    done = command("run", SCENARIO, "--out", str(out), "--jobs", "2", "--check-events", *PARTS)
    assert done.returncode == 0, done.stderr
    return out


def test_a_study_of_such_a_network(finished: Path) -> None:
    assert within("verify", str(finished), *PARTS).returncode == 0
    (origin,) = json.loads((finished / "manifest.json").read_text())["made_by"]["parts"].values()
    assert [name.partition(":")[2] for name in origin["used"]] == ["Jamming", "Pareto", "RoundRobin"]


def test_the_same_bytes_with_one_worker(finished: Path, alone: Path) -> None:
    for name in ("metrics.parquet", "ledger.parquet", "events.parquet", "scenario.yaml"):
        assert (alone / name).read_bytes() == (finished / name).read_bytes()


def test_a_reader_without_the_parts_checks_what_holds_always(finished: Path) -> None:
    done = within("verify", str(finished))
    assert done.returncode == 1
    assert "invariants of the events and releases in the ledger of 4 simulations" in done.stderr
    assert "--parts p2psim_example_parts" in done.stderr


def test_their_names_are_unknown_without_the_package() -> None:
    done = within("check", SCENARIO)
    assert done.returncode == 2
    for key, kind in (
        ("exchange", "round-robin"),
        ("channel.effects.0", "jamming"),
        ("availability", "pareto"),
    ):
        assert f"network.{key}: unknown kind '{kind}'" in done.stderr


def test_check_says_which_engine_and_why() -> None:
    done = within("check", SCENARIO, "--no-pilot", *PARTS)
    said = next(line for line in done.stdout.splitlines() if line.startswith("engine: "))
    assert said.startswith("engine: simpy, because of network.exchange, ")
    assert "network.availability" in said
    assert "network.channel.effects" in said


def test_the_array_engine_is_refused() -> None:
    done = within("check", SCENARIO, "--no-pilot", "--set", "network.engine=array", *PARTS)
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if "network.engine: " in line]
    assert said  # the sweep has cells with a jamming channel and without
    for line in said:
        assert "no compiled form of parts of your own; given by network.exchange, " in line
        assert line.endswith("; auto takes it where it can")


def test_list_and_schema_know_them() -> None:
    listed = within("list", "--json", *PARTS)
    named = {(one["key"], one["name"]) for one in json.loads(listed.stdout)}
    assert {
        ("network.exchange", "round-robin"),
        ("network.channel.effects", "jamming"),
        ("network.availability", "pareto"),
    } <= named
    defined = json.loads(within("schema", *PARTS).stdout)["$defs"]
    assert {"RoundRobin", "Jamming", "Pareto"} <= set(defined)


@pytest.mark.parametrize(
    ("exchange", "effects", "availability", "said"),
    [
        (None, JAMMING, "always", "channel effect jamming"),
        (None, {"kind": "blackout", "begin": 1.0, "end": 2.0}, "always", "channel effect blackout"),
        ("round-robin", None, "always", "exchange round-robin"),
        (None, None, PARETO, "availability pareto"),
        (
            None,
            None,
            {"kind": "all-of", "parts": [{"kind": "bernoulli", "drop": 0.1}, PARETO]},
            "availability pareto",
        ),
    ],
)
@pytest.mark.parametrize("known", ["request", "broadcast", "gossip"])
def test_forecasts_refuse_what_they_do_not_know(
    known: str, exchange: str | None, effects: dict[str, Any] | None, availability: Any, said: str
) -> None:
    topology = {"kind": "ring", "agents": 5}
    with let_in("p2psim_example_parts"):
        refuse_unknown(NetworkSection.model_validate({"topology": topology, "exchange": known}))
        network = {
            "topology": topology,
            "exchange": exchange or known,
            "channel": {"effects": effects},
            "availability": availability,
        }
        with pytest.raises(MeaningError, match=f"forecasts do not cover the {said}"):
            refuse_unknown(NetworkSection.model_validate(network))


@pytest.mark.parametrize("star", [True, False], ids=["star", "graph"])
def test_the_command_refuses_the_jamming_channel(star: bool, tmp_path: Path) -> None:
    algorithm = (
        "{kind: async-star, horizon: 20, rho: 0.1, theta_max: 3}"
        if star
        else "{kind: coordinate-descent, mu: 1.0, updates_per_agent: 5}"
    )
    (tmp_path / "s.yaml").write_text(
        f"""
name: jammed
network:
  topology: {{kind: {"star" if star else "ring"}, agents: 5}}
  exchange: {"request" if star else "broadcast"}
  channel: {{effects: {{kind: jamming, period: 2.0, length: 0.5}}}}
data: {{source: {{kind: linear-regression, points: 12, dimension: 2}}}}
learning:
  algorithm: {algorithm}
  loss: squared
  regularizer: {{l2: 0.1}}
"""
    )
    done = within("forecast", str(tmp_path / "s.yaml"), *PARTS)
    assert done.returncode == 2
    assert "network.channel.effects: forecasts do not cover the channel effect jamming" in done.stderr


@given(
    period=st.floats(0.5, 5),
    share=st.floats(0.05, 0.95),
    phase=st.floats(0, 3),
    begin=st.floats(0, 20),
    lasts=st.floats(0, 4),
)
@settings(max_examples=200, deadline=None)
def test_what_overlaps_a_window_is_jammed(
    period: float, share: float, phase: float, begin: float, lasts: float
) -> None:
    """By the windows, one by one; moments within rounding of an edge tell nothing."""
    from p2psim_example_parts.jamming import Jamming

    length, end = share * period, begin + lasts
    windows = [(phase + k * period, phase + k * period + length) for k in range(60)]
    edges = np.array(windows).ravel()
    if min(np.abs(edges - begin).min(), np.abs(edges - end).min()) < 1e-9:
        return
    part = Jamming(period=period, length=length, phase=phase)
    hit = any(begin < last and end > first for first, last in windows)
    assert part.is_lost(Delivery(0, 1, begin, end), np.random.default_rng(0)) == hit


def test_pareto_absences_are_stationary() -> None:
    """At every time the share of 4,000 agents that are online is up/(up + down) = 0.8, up to 4.5 standard errors."""
    from p2psim_example_parts.pareto import Pareto

    from p2psim.core.randomness import Streams

    part, agents, times = Pareto(up=4.0, down=1.0, shape=1.7), 4000, np.array([0.0, 0.5, 3.0, 30.0])
    online = np.zeros(times.size)

    class World:
        links = type("Graph", (), {"agents": agents})
        presence: Any

    class Presence:
        @staticmethod
        def alternate(_: tuple[int, ...], begins: bool, turns: Any) -> None:
            past = []
            for turn in turns:
                past.append(turn)
                if turn > times[-1]:
                    break
            count = np.searchsorted(past, times, side="right")
            online[:] += (count % 2 == 0) == begins

    World.presence = Presence
    part.start(World(), Streams(3))  # type: ignore[arg-type]
    assert np.abs(online / agents - 0.8).max() < 4.5 * np.sqrt(0.16 / agents)


@pytest.mark.verification
def test_workers_of_dask_give_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = started("run", SCENARIO, "--out", str(out), "--executor", "dask", "--jobs", "2", *PARTS)
    assert done.returncode == 0, done.stderr
    for name in ("metrics.parquet", "ledger.parquet", "events.parquet"):
        assert (out / name).read_bytes() == (finished / name).read_bytes()
