"""Measure the events of networks: both engines beside the same networks written down as plain as can be.

    python benchmarks/networks.py [--smoke] [--rounds 3]

Limits are a compiled loop (network_limit.py) and a plain SimPy model (simpy_limit.py) of gossip push-pull with latency
and losses, which record nothing. Ours hands on every event. Cost is CPU time; the graph, imports, compilation and each
process's first events are left out, but where they are what is measured. Each measurement is a process of its own.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from measuring import HERE, Row, child, kernels_in, progress, spread, table

#: Measurements by name, one a round.
Found = dict[str, list[float]]

DEGREE = 10
#: What happens to messages and agents in each network; all gossip by push-pull but for those on one medium.
LATE: dict[str, Any] = {"latency": {"uniform": (0.0, 1.0)}, "loss": 0.1}
#: One message in five finds another one on the air.
ON_AIR: dict[str, Any] = {"airtime": 1e-4, "shared": True}
CHURN: dict[str, Any] = {"up": 10.0, "down": 2.0}
NETWORKS: dict[str, tuple[str, dict[str, Any], dict[str, Any] | None]] = {
    "push-pull": ("push-pull", LATE, None),
    "ALOHA": ("push", {"collision": "aloha", **ON_AIR}, None),
    "slotted ALOHA": ("push", {"collision": "slotted", **ON_AIR}, None),
    "carrier sensing": ("push", {"collision": "carrier-sense", **ON_AIR}, None),
    "churn": ("push-pull", LATE, CHURN),
    "bursty losses": (
        "push-pull",
        LATE | {"loss": {"kind": "gilbert-elliott", "mean": 0.1, "burst": 0.5}},
        None,
    ),
    "retransmission": (
        "push-pull",
        LATE | {"retransmit": {"kind": "same", "limit": 3, "acknowledge": 0.1}},
        None,
    ),
}
#: Networks whose kernels are compiled anew.
STARTED = ("push-pull", "ALOHA")


def network(name: str, agents: int) -> Any:
    """A network of so many agents on a random regular graph."""
    import p2psim

    mode, channel, churn = NETWORKS[name]
    return p2psim.Network.of_graph(
        p2psim.RandomRegular(agents=agents, degree=DEGREE),
        p2psim.Gossip(mode=mode),
        p2psim.Channel.model_validate(channel),
        p2psim.Renewal.model_validate(churn) if churn else None,
    )


def work(name: str, engine: str, agents: int, periods: float) -> None:
    """Make the events of a network in this process, and print what that costs."""
    from p2psim.core.events import WAKE
    from p2psim.network.simulation import simulate_events

    ours = network(name, agents)
    # Compilation, or the cache, and first use.
    simulate_events(network(name, 2 * DEGREE), seed=1, time=5.0, engine=engine).read()
    wall, begun = time.perf_counter(), time.process_time()
    records = wakes = 0
    for chunk in simulate_events(ours, seed=0, time=periods, engine=engine):
        spent = time.process_time()
        records += chunk.size
        wakes += int(np.count_nonzero(chunk["kind"] == WAKE))
        begun += time.process_time() - spent  # counting is ours, not the engine's
    seconds = time.process_time() - begun
    told = {
        "us_a_wake": 1e6 * seconds / wakes,
        "us_a_record": 1e6 * seconds / records,
        "records": records,
        "wall": time.perf_counter() - wall,
        "gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2,
    }
    print(json.dumps(told))


def start(name: str) -> None:
    """Do all that a process does until it has its first events; or in place of these call one trivial kernel."""
    if name == "trivial":
        import numba

        network("push-pull", 2 * DEGREE)
        trivial = numba.njit(cache=True)(_plus_one)
        assert trivial(1) == 2
    else:
        from p2psim.network.simulation import simulate_events

        assert simulate_events(network(name, 2 * DEGREE), seed=1, time=5.0, engine="array").read().size
    spent = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"seconds": spent.ru_utime + spent.ru_stime}))


def _plus_one(number: int) -> int:
    return number + 1


def limit(script: str, agents: int, periods: float) -> float:
    """Microseconds a wake of a limit."""
    progress(f"{script} {agents} {periods:g}")
    command = [sys.executable, str(HERE / script), str(agents), str(periods)]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"([0-9.]+) us a wake", text)
    assert found is not None, text
    return float(found.group(1))


def starts(name: str) -> tuple[float, float, float]:
    """Seconds of CPU until the first events: cold, from the cache, and with a trivial kernel from the cache."""
    with tempfile.TemporaryDirectory() as folder:
        kernels = kernels_in(folder)
        cold, warm, _, trivial = (
            child("networks.py", "--start", what, environment=kernels)["seconds"]
            for what in (name, name, "trivial", "trivial")
        )
    return cold, warm, trivial


def ours(name: str, engine: str, agents: int, periods: float) -> dict[str, float]:
    """What a network costs, in a process of its own."""
    told: dict[str, float] = child("networks.py", "--worker", name, engine, agents, periods)
    return told


def measured(rounds: int, smoke: bool) -> tuple[Found, list[Row]]:
    """What is measured, with few agents if it is only to be seen that it runs."""
    found: Found = defaultdict(list)
    sizes = (50,) if smoke else (1000, 100_000)
    wakes, plain = (500, 500) if smoke else (1_000_000, 30_000)
    for _ in range(rounds):
        for n in sizes:
            found[f"limit {n}"].append(limit("network_limit.py", n, wakes / n))
            found[f"array {n}"].append(ours("push-pull", "array", n, wakes / n)["us_a_wake"])
        few = sizes[0]
        found["plain SimPy"].append(limit("simpy_limit.py", few, plain / few))
        found["simpy"].append(ours("push-pull", "simpy", few, plain / few)["us_a_wake"])
        for name in NETWORKS:
            found[name].append(ours(name, "array", few, wakes / few)["us_a_record"])
    for name in STARTED:
        cold, warm, trivial = starts(name)
        found[f"{name} compiled"] = [cold - warm]
        found[f"{name} cached"] = [warm - trivial]
    n, periods = (100, 5.0) if smoke else (1_000_000, 5.0)
    most = ours("churn", "array", n, periods)
    found["wall"], found["gb"] = [most["wall"]], [most["gb"]]
    return found, rows(found, sizes, n)


def rows(found: Found, sizes: tuple[int, ...], most: int) -> list[Row]:
    """The measurements, to be told."""

    def ratio(a: str, b: str) -> str:
        return spread([x / y for x, y in zip(found[a], found[b], strict=True)])

    few = f"{sizes[0]:,} agents"
    told: list[Row] = []
    for n in sizes:
        what = f"push-pull, {n:,} agents: array engine"
        told += [
            (f"{what} / compiled loop", ratio(f"array {n}", f"limit {n}"), "at most 3"),
            (f"{what}, µs a wake", spread(found[f"array {n}"]), ""),
        ]
    told += [
        (f"push-pull, {few}: SimPy engine / plain SimPy", ratio("simpy", "plain SimPy"), "at most 5"),
        (f"push-pull, {few}: SimPy engine, µs a wake", spread(found["simpy"], 1), ""),
    ]
    told += [(f"{name}, {few}, µs a record", spread(found[name], 3), "at most .5") for name in NETWORKS]
    for name in STARTED:
        told += [
            (f"{name}: first compilation, s", spread(found[f"{name} compiled"], 1), "at most 20"),
            (f"{name}: from the cache, s beside one kernel", spread(found[f"{name} cached"]), "at most .2"),
        ]
    return [
        *told,
        (f"{most:,} agents × 5 periods, latency and churn, s", spread(found["wall"], 1), "below 240"),
        ("the same, peak GB", spread(found["gb"]), "below 6"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only see that it runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="also write all measurements to this file")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--start", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        name, engine, agents, periods = asked.worker
        work(name, engine, int(agents), float(periods))
    elif asked.start:
        start(asked.start)
    else:
        found, told = measured(1 if asked.smoke else asked.rounds, asked.smoke)
        if asked.json:
            asked.json.write_text(json.dumps(found, indent=1) + "\n")
        print(table(told))


if __name__ == "__main__":
    main()
