"""Say where the time of each workload goes: kernels, rooms of p2psim, and libraries.

    python benchmarks/profiles.py [--smoke]

Each workload is run by `p2psim.run` in a process of its own, one worker, and run once before, so that data sets,
kernels and imports are there. Python's profiler counts each call, which makes Python's part larger than it is without
it; compiled code and libraries are not slowed. Shares are of time in a function itself, without what it calls; waiting,
for a disk or for the thread that packs tables, is a place of its own.
"""

import argparse
import cProfile
import gc
import json
import pstats
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median

from measuring import HERE, Row, child, rounds

#: What is run: its file, changes to it, and changes that make it small.
WORKLOADS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "star, three budgets, 300 replicas, ψ at every step": ("star.yaml", ("replicas=300",), ("replicas=2",)),
    "star, the same, the end alone": ("star.yaml", ("replicas=300", "record.every=1000"), ("replicas=2",)),
    "star, 100 replicas, events written": (
        "star.yaml",
        ("replicas=100", "record.events=true"),
        ("replicas=2",),
    ),
    "graph of 1,000, 30 replicas": ("graph.yaml", ("replicas=30",), ("replicas=1",)),
    "graph of 10,000": (
        "graph.yaml",
        ("replicas=3", "data.source.agents=10000", "learning.algorithm.commits=200000", "record.every=10000"),
        ("replicas=1", "data.source.agents=100", "learning.algorithm.commits=100", "record.every=100"),
    ),
    "graph of 1,000, latency U[0, 1] and loss, 10 replicas": (
        "graph.yaml",
        ("replicas=10", "network.channel={latency: {uniform: [0, 1]}, loss: 0.1}"),
        ("replicas=1",),
    ),
    "1,000 cells of ten commits": (
        "tiny.yaml",
        ("sweep={privacy.epsilon: [" + ", ".join(f"{1 + k / 1000}" for k in range(1000)) + "]}",),
        ("sweep={privacy.epsilon: [1, 2]}",),
    ),
    "D-SGD on digits, one replica of each cell": (
        "../scenarios/decentralised_digits.yaml",
        ("replicas=1",),
        ("replicas=1", "sweep={learning.algorithm.step: [0.1]}", "learning.algorithm.commits=320"),
    ),
}
#: Shares below this are put together.
LEAST = 0.02


#: Functions of Python in which a thread waits.
WAITING = ("acquire", "fsync", "poll", "select", "sleep")


def place_of(file: str, name: str, compiled: bool) -> str:
    """Whose a function is: a kernel of a room, a room of p2psim, a library, or Python itself."""
    if file == "~" and any(word in name for word in WAITING):
        return "waiting"
    parts = Path(file).parts
    if "p2psim" in parts[:-1]:
        room = parts[len(parts) - parts[::-1].index("p2psim")].removesuffix(".py")
        return f"kernels of {room}" if compiled else room
    if "site-packages" in parts:
        return parts[parts.index("site-packages") + 1].removesuffix(".py")
    return next((library for library in ("numpy", "pyarrow", "numba") if library in name), "Python")


def work(workload: str, smoke: bool) -> None:
    """Run a workload in this process under the profiler, and print the seconds of each place."""
    import p2psim
    from p2psim.core.compiled import Kernel

    path, sets, small = WORKLOADS[workload]
    scenario = p2psim.Scenario.load(HERE / path, small if smoke else sets)
    with tempfile.TemporaryDirectory() as folder:
        first = scenario.model_copy(update={"replicas": 1})
        p2psim.run(first, Path(folder) / "first", progress=False, confirm_cells=True)
        profile = cProfile.Profile()
        profile.enable()
        p2psim.run(scenario, Path(folder) / "run", progress=False, confirm_cells=True)
        profile.disable()
    codes = (one.py_func.__code__ for one in gc.get_objects() if isinstance(one, Kernel))
    kernels = {(code.co_filename, code.co_firstlineno) for code in codes}
    spent: Counter[str] = Counter()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    for (file, line, name), (_, _, seconds, _, _) in stats.items():
        spent[place_of(file, name, (file, line) in kernels)] += seconds
    print(json.dumps(spent))


def rows(found: dict[str, list[dict[str, float]]]) -> list[Row]:
    """The largest shares of each workload, with its seconds."""
    told: list[Row] = []
    for name, times in found.items():
        whole = [sum(one.values()) for one in times]
        places = sorted({place for one in times for place in one})
        shares = {
            place: median(one.get(place, 0.0) / all_ for one, all_ in zip(times, whole, strict=True))
            for place in places
        }
        large = sorted((share, place) for place, share in shares.items() if share >= LEAST)[::-1]
        text = ", ".join(f"{place} {100 * share:.0f} %" for share, place in large)
        rest = 1 - sum(share for share, _ in large)
        told.append((name, f"{median(whole):.2f} s: {text}, others {100 * rest:.0f} %", ""))
    return told


def measured(times: int, smoke: bool) -> tuple[dict[str, list[dict[str, float]]], list[Row]]:
    """What is measured, small if it is only to be seen that it runs."""
    found: dict[str, list[dict[str, float]]] = {}
    names = list(WORKLOADS)[:2] if smoke else list(WORKLOADS)
    for _ in rounds(times):
        for name in names:
            small = ["--smoke"] if smoke else []
            found.setdefault(name, []).append(child("profiles.py", "--worker", name, *small))
    return found, rows(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only see that it runs")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        work(asked.worker, asked.smoke)
        return
    for what, spent, _ in measured(1 if asked.smoke else asked.rounds, asked.smoke)[1]:
        print(f"| {what} | {spent} |")


if __name__ == "__main__":
    sys.exit(main())
