"""Measure how cost grows with agents, links, records, dimension, commits, cells and replicas, and what recording costs.

    python benchmarks/scaling.py [--smoke] [--rounds 3]

Each measurement is a process of its own. It simulates one replica twice: the second time is the cost of the commits,
and what the first took more is the set-up. Before, a small relative of it has loaded the compiled kernels.
"""

import argparse
import json
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from measuring import HERE, Row, child, rounds, spread, table

#: Measurements of each size, one a round: set-up s, µs a commit, MB.
Found = dict[tuple[str, int], list[dict[str, float]]]

#: Logistic loss: a release looks at all records. (Squared loss does not: it has sums of them.)
_LOGISTIC = (
    "data.source={kind: linear-classification, agents: 3, dimension: 10, points: 100, test_points: 0}",
    "data.scale={x: {norm: l1, bound: 1.0, at: each-record}}",
    "learning.loss=logistic",
    "privacy.sensitivity=bounds",
    "record.metrics=[relative_fitness]",
    "record.every=1000",
    "sweep={privacy.epsilon: [1]}",
)
_ONE = ("sweep={privacy.epsilon: [1]}",)


def agents(n: int) -> tuple[str, tuple[str, ...]]:
    """A ring of so many agents with 2 records of 2 features each: what is measured is what an agent costs."""
    sets = (
        "network.topology={kind: ring}",
        f"data.source.agents={n}",
        "data.source.points=2",
        "data.source.dimension=2",
        f"learning.algorithm.commits={max(n, 100_000)}",
        f"record.every={max(n, 100_000)}",
    )
    return "graph.yaml", sets


def links(count: int) -> tuple[str, tuple[str, ...]]:
    """A regular graph of 4,000 agents with so many links, whose models go to all neighbours."""
    degree = count // 2000
    some = "complete" if degree == 3999 else f"random-regular, degree: {degree}"
    sets = (
        f"network.topology={{kind: {some}}}",
        "data.source.agents=4000",
        "data.source.points=2",
        "data.source.dimension=2",
        "learning.algorithm.commits=40000",
        "record.every=40000",
    )
    return "graph.yaml", sets


def commits(n: int) -> tuple[str, tuple[str, ...]]:
    """A graph of 100 agents with so many updates; each agent releases 20 times, then goes on with what it released."""
    return "graph.yaml", ("data.source.agents=100", f"learning.algorithm.commits={n}", f"record.every={n}")


def grid(cells: int) -> tuple[str, tuple[str, ...]]:
    """So many cells of ten commits each, run and written."""
    return "tiny.yaml", (f"sweep={{privacy.epsilon: {[round(1 + k / cells, 6) for k in range(cells)]}}}",)


def records(n: int) -> tuple[str, tuple[str, ...]]:
    """A star of logistic regression with so many records an owner."""
    return "star.yaml", (*_LOGISTIC, f"data.source.points={n}")


def dimension(p: int) -> tuple[str, tuple[str, ...]]:
    """A star of linear regression with so many features."""
    return "star.yaml", (*_ONE, f"data.source.dimension={p}", "data.source.points=2000")


def replicas(r: int) -> tuple[str, tuple[str, ...]]:
    """So many replicas of the star, run and written."""
    return "star.yaml", (*_ONE, "data.source.points=2000", f"replicas={r}")


#: What grows, and the sizes.
GROWING = {
    "agents": (agents, (100, 1000, 10_000, 100_000, 1_000_000)),
    "links": (links, (8000, 80_000, 800_000, 7_998_000)),
    "commits": (commits, (1000, 10_000, 100_000, 1_000_000)),
    "cells": (grid, (10, 100, 1000, 10_000)),
    "records": (records, (100, 1000, 10_000, 100_000)),
    "dimension": (dimension, (1, 3, 10, 30, 100, 300, 1000)),
    "replicas": (replicas, (10, 100, 1000, 10_000)),
}
#: What is recorded, beside a run that records at its end only.
RECORDING = {
    "a metric at each of 1,000 steps": ("record.every=1",),
    "the same, and events": ("record.every=1", "record.events=true"),
    "the same, noise and models too": (
        "record.every=1",
        "record.events=true",
        "record.noise=true",
        "record.models=true",
    ),
}


def simulated(name: str, size: int) -> dict[str, float]:
    """Measure one size in this process."""
    from p2psim.scenario.cells import cells
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.simulate import simulate
    from p2psim.simulation.workspace import Workspace

    make, sizes = GROWING[name]
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        for one in (sizes[0], size):
            path, sets = make(one)
            (cell,) = cells(Scenario.load(HERE / path, sets))
            for _ in range(2):
                began = time.process_time()
                outcome = simulate(cell.scenario, 0, workspace)
                taken.append(time.process_time() - began)
    *_, first, second = taken
    commits = int(outcome.series[0].step[-1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"setup": max(first - second, 0.0), "us": second / commits * 1e6, "seconds": second, "mb": peak}


def ran(path: str, sets: Sequence[str]) -> float:
    """CPU seconds of a run into a folder in this process.

    Where replicas grow, its checks and its first simulation are left out; where cells do, they are part of it.
    """
    import p2psim

    scenario = p2psim.Scenario.load(HERE / path, sets)
    with tempfile.TemporaryDirectory() as folder:
        if scenario.replicas > 1:
            p2psim.run(scenario.model_copy(update={"replicas": 1}), Path(folder) / "run", progress=False)
        else:
            first = p2psim.Scenario.load(HERE / path, ["sweep={privacy.epsilon: [0.5, 0.7]}"])
            p2psim.run(first, Path(folder) / "first", progress=False)
        began = time.process_time()
        p2psim.run(scenario, Path(folder) / "run", progress=False, confirm_cells=True)
        return time.process_time() - began


def measure(times: int, most: int | None) -> tuple[Found, dict[str, list[float]]]:
    """Everything, round by round; only `most` sizes of as many that grow, where that is given."""
    found: Found = defaultdict(list)
    other: dict[str, list[float]] = defaultdict(list)
    for _ in rounds(times):
        for name, (_, sizes) in list(GROWING.items())[:most]:
            for size in sizes[:most]:
                found[name, size].append(child("scaling.py", "--worker", name, "--size", size))
        recorded = child("scaling.py", "--worker", "recording", "--size", 300 if most is None else 3)
        for what, seconds in recorded.items():
            other[what].append(seconds)
    return found, other


def recording(size: int) -> dict[str, float]:
    """How many times as long runs of so many replicas take that record more than the end."""
    base = (*_ONE, "data.source.points=2000", f"replicas={size}")
    least = ran("star.yaml", (*base, "record.every=1000"))
    return {what: ran("star.yaml", (*base, *sets)) / least for what, sets in RECORDING.items()}


def fitted(found: Found, name: str, key: str) -> str:
    """Exponent of a cost by size with its interval, from the medians."""
    from p2psim.theory.noise_floor import fit_power_law

    sizes = [size for other, size in found if other == name]
    costs = [median(one[key] for one in found[name, size]) for size in sizes]
    if len(sizes) < 3 or min(costs) <= 0:
        return "—"
    law = fit_power_law(sizes, costs)
    return f"{law.slope:.2f} [{law.low:.2f}, {law.high:.2f}]"


def rows(found: Found, other: dict[str, list[float]]) -> list[Row]:
    """The measurements, to be told."""
    told: list[Row] = []
    units = {
        "agents": (("us", "µs a commit"), ("setup", "set-up, s"), ("mb", "peak MB")),
        "links": (("us", "µs a commit"), ("setup", "set-up, s")),
        "commits": (("seconds", "CPU s"),),
        "cells": (("seconds", "CPU s of a run"),),
        "records": (("us", "µs a commit"), ("setup", "set-up, s")),
        "dimension": (("us", "µs a commit"),),
        "replicas": (("seconds", "CPU s of a run"),),
    }
    for name, kinds in units.items():
        if not any(other_name == name for other_name, _ in found):
            continue
        sizes = [size for other_name, size in found if other_name == name]
        for key, unit in kinds:
            digits = 0 if key == "mb" else 2
            for size in sizes:
                values = [one[key] for one in found[name, size]]
                told.append((f"{size:,} {name}: {unit}", spread(values, digits), ""))
            told.append((f"{name}: exponent of {unit} [95 %]", fitted(found, name, key), ""))
    for what in RECORDING:
        told.append((f"recording {what} / the end alone", spread(other[what]), ""))
    return told


def measured(times: int, smoke: bool) -> tuple[Found, list[Row]]:
    """What is measured, small if it is only to be seen that it runs."""
    found, other = measure(times, 1 if smoke else None)
    return found, rows(found, other)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only see that it runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker == "recording":
        print(json.dumps(recording(asked.size)))
    elif asked.worker in ("replicas", "cells"):
        print(json.dumps({"seconds": ran(*GROWING[asked.worker][0](asked.size))}))
    elif asked.worker:
        print(json.dumps(simulated(asked.worker, asked.size)))
    else:
        print(table(measured(1 if asked.smoke else asked.rounds, asked.smoke)[1]))


if __name__ == "__main__":
    main()
