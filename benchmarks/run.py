"""Measure p2psim beside two baselines, in one run: ratios mean something, seconds depend on the machine.

    python benchmarks/run.py [--smoke] [--rounds 5] [--minutes 4.5] [--json FILE]
                             [--part baselines|start|networks|studies|sweeps|scaling|large|reading|models|page|
                              forecasts|clusters|estimates|profiles|all ...]

By default the baselines are measured, in as many of five rounds as end within five minutes; ``--part all`` measures
everything. What is being measured is written to standard error.

Each round of the baselines times, one after the other: the arithmetic alone, compiled (``limit`` of baselines.py), a
simulation as one would write it by hand (``naive``), and p2psim with its array engine and with SimPy, on the star
figure workload (star.yaml) and on the graph (graph.yaml). Cost is CPU time per commit, set-up and compilation
excluded; p2psim's includes events, noise, objective and ledger. Then: memory at 750,000 records, and start-up. The
other parts: the events of networks alone, beside limits of their own (networks.py); networks in whole studies
(studies.py); whole sweeps (sweep.py); how cost grows (scaling.py); graphs of up to ten million agents
(large_graphs.py); how fast results are read (reading.py); gradients of models beside a plain loop and bare PyTorch
(models.py); frames of a run's page in Chromium (page.py); forecasts beside replicas (forecast.py); what a process
costs beside its simulation (starts.py); a Dask cluster (clusters.py); what a check foretells beside what a run takes
(estimates.py); and where the time of each workload goes (profiles.py).
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import clusters
import estimates
import forecast
import large_graphs
import models
import networks
import page
import profiles
import reading
import scaling
import starts
import studies
import sweep
from measuring import HERE, Row, child, progress, rounds, spread, table

#: Measurements by name, one a round.
Found = dict[str, list[float]]

#: What measures each part but the first.
MODULES: Mapping[str, Any] = {
    "start": starts,
    "networks": networks,
    "studies": studies,
    "sweeps": sweep,
    "scaling": scaling,
    "large": large_graphs,
    "reading": reading,
    "models": models,
    "page": page,
    "forecasts": forecast,
    "clusters": clusters,
    "estimates": estimates,
    "profiles": profiles,
}
PARTS = ("baselines", *MODULES)

#: The SimPy engine is not measured with more agents than these: it would take hours.
SIMPY_AGENTS = 10_000


def baseline(what: str, mode: str, size: int) -> float:
    """Microseconds per commit of a baseline: of a star with so many replicas, or a graph with so many agents."""
    return float(child("baselines.py", what, mode, size)["us_per_event"])


def ours(engine: str, replicas: int, single_budget: bool) -> float:
    """Microseconds per commit of p2psim; as a process of its own, like the baselines."""
    single = ["--single-budget"] if single_budget else []
    return float(child("run.py", "--worker", engine, "--replicas", replicas, *single)["us_per_event"])


def graph(engine: str, agents: int) -> float:
    """Microseconds per update of p2psim on a graph of so many agents."""
    return float(child("run.py", "--worker", f"graph-{engine}", "--replicas", agents)["us_per_event"])


def graph_work(engine: str, agents: int) -> None:
    """Simulate 20 updates of each agent in this process and print the cost."""
    from p2psim.scenario.cells import cells
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.simulate import simulate
    from p2psim.simulation.workspace import Workspace

    sets = [
        f"network.engine={engine}",
        f"data.source.agents={agents}",
        f"learning.algorithm.commits={20 * agents}",
        f"record.every={agents}",
        "network.topology.seed=0",
    ]
    (cell,) = cells(Scenario.load(HERE / "graph.yaml", sets))
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), alone=True)
        simulate(cell.scenario, 1, workspace)  # data, graph, compilation, first use
        start = time.process_time()
        outcome = simulate(cell.scenario, 0, workspace)
        seconds, commits = time.process_time() - start, int(outcome.series[0].step[-1])
    print(json.dumps({"us_per_event": seconds / commits * 1e6, "commits": commits}))


def work(engine: str, replicas: int, single_budget: bool) -> None:
    """Simulate the workload in this process, as a worker of a run does, and print its cost."""
    from p2psim.runs.batches import BatchOptions, played, turns_of
    from p2psim.scenario.cells import cells
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.workspace import Workspace

    sets = [f"network.engine={engine}"] + (["sweep={privacy.epsilon: [1]}"] if single_budget else [])
    grid, options = cells(Scenario.load(HERE / "star.yaml", sets)), BatchOptions()
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder), alone=True)

        def commits_of(numbers: range) -> int:
            items = [(cell.index, replica) for replica in numbers for cell in grid]
            commits = 0
            for turn in turns_of(grid, items, workspace, options):
                chosen = [replica for _, replica in turn]
                outcomes = played(grid[turn[0][0]], chosen, workspace, options)
                commits += sum(int(outcome.series[0].step[-1]) for outcome in outcomes)
            return commits

        commits_of(range(replicas, replicas + 30))  # data, compilation, first use
        start = time.process_time()
        commits = commits_of(range(replicas))
        seconds = time.process_time() - start
    print(json.dumps({"us_per_event": seconds / commits * 1e6, "commits": commits}))


def large(records: int) -> None:
    """Simulate a star with so many records in all, and print the peak of this process's memory."""
    from p2psim.scenario.cells import cells
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.simulate import simulate
    from p2psim.simulation.workspace import Workspace

    sets = [f"data.source.points={records // 3}", "data.redraw=replica", "sweep={privacy.epsilon: [1]}"]
    (cell,) = cells(Scenario.load(HERE / "star.yaml", sets))
    with tempfile.TemporaryDirectory() as folder:
        simulate(cell.scenario, 0, Workspace(Path(folder)))
    print(json.dumps({"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def seconds_of(arguments: list[str], times: int) -> list[float]:
    """Wall seconds of a command, repeated; the first, which warms the file cache, is left out."""
    taken = []
    progress(f"python {' '.join(arguments)}, {times + 1} times")
    for _ in range(times + 1):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return taken[1:]


def measure(
    most: int,
    minutes: float | None,
    replicas: int,
    naive_replicas: int,
    records: int,
    agents: tuple[int, ...],
) -> Found:
    """Everything, round by round."""
    found: Found = defaultdict(list)
    for _ in rounds(most, minutes):
        found["limit"].append(baseline("star", "limit", replicas))
        found["array"].append(ours("array", replicas, False))
        found["simpy"].append(ours("simpy", replicas, False))
        found["array1"].append(ours("array", replicas, True))
        found["simpy1"].append(ours("simpy", replicas, True))
        found["naive"].append(baseline("star", "naive", naive_replicas))
        for n in agents:
            found[f"graph limit {n}"].append(baseline("graph", "limit", n))
            found[f"graph array {n}"].append(graph("array", n))
            if n <= SIMPY_AGENTS:
                found[f"graph simpy {n}"].append(graph("simpy", n))
        found[f"graph naive {agents[0]}"].append(baseline("graph", "naive", agents[0]))
    found["peak_mb"] = [float(child("run.py", "--worker", "large", "--replicas", records)["peak_mb"])]
    found["python_s"] = seconds_of(["-c", "pass"], most)
    found["import_s"] = seconds_of(["-c", "import p2psim"], most)
    found["help_s"] = seconds_of(["-m", "p2psim", "--help"], most)
    return found


def rows(found: Found, records: int, agents: tuple[int, ...]) -> list[Row]:
    """The measurements, to be told."""

    def ratio(a: str, b: str) -> list[float]:
        return [x / y for x, y in zip(found[a], found[b], strict=True)]

    extra = [a - b for a, b in zip(found["simpy1"], found["array1"], strict=True)]
    return [
        ("array engine / limit", spread(ratio("array", "limit")), "at most 1.5"),
        ("naive / array engine", spread(ratio("naive", "array"), 0), "at least 20"),
        (
            "array engine / limit, a single budget: nothing is shared",
            spread(ratio("array1", "limit")),
            "at most 1.8",
        ),
        ("SimPy engine more than array engine, a single budget, µs a commit", spread(extra), ""),
        *graph_rows(found, agents),
        ("limit, µs a commit", spread(found["limit"], 3), ""),
        ("array engine, µs a commit", spread(found["array"], 3), ""),
        ("SimPy engine, µs a commit", spread(found["simpy"], 3), ""),
        ("naive, µs a commit", spread(found["naive"], 1), ""),
        (f"peak memory, {records:,} records × 10, MB", spread(found["peak_mb"], 0), "below 1,000"),
        ("python -c pass, s", spread(found["python_s"], 3), ""),
        ("python -c 'import p2psim', s", spread(found["import_s"], 3), "below .3"),
        ("p2psim --help, s", spread(found["help_s"], 3), "below .7"),
    ]


def graph_rows(found: Found, agents: tuple[int, ...]) -> list[Row]:
    """Rows of the graph workload."""
    rows: list[Row] = []
    for n in agents:
        limit, array, simpy = (found[f"graph {mode} {n}"] for mode in ("limit", "array", "simpy"))
        over = [a / b for a, b in zip(array, limit, strict=True)]
        rows.append((f"graph of {n:,}: array engine / limit", spread(over), "at most 1.3"))
        if simpy:
            extra = spread([a - b for a, b in zip(simpy, array, strict=True)])
            rows.append((f"graph of {n:,}: SimPy engine more than array engine, µs a commit", extra, ""))
        rows.append((f"graph of {n:,}: array engine, µs a commit", spread(array), ""))
    naive = found[f"graph naive {agents[0]}"]
    faster = [a / b for a, b in zip(naive, found[f"graph array {agents[0]}"], strict=True)]
    return [*rows, (f"graph of {agents[0]:,}: naive / array engine", spread(faster, 1), "at least 6")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only see that it runs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write all measurements to this file")
    parser.add_argument(
        "--minutes", type=float, default=4.5, help="begin no further round of baselines past this"
    )
    parser.add_argument(
        "--part", choices=(*PARTS, "all"), nargs="+", default=["baselines"], help="what to measure"
    )
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--replicas", type=int, default=100, help=argparse.SUPPRESS)
    parser.add_argument("--single-budget", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if (asked.worker or "").startswith("graph-"):
        graph_work(asked.worker.removeprefix("graph-"), asked.replicas)
    elif asked.worker == "large":
        large(asked.replicas)
    elif asked.worker:
        work(asked.worker, asked.replicas, asked.single_budget)
    else:
        parts = PARTS if "all" in asked.part else asked.part
        everything(parts, asked.rounds, asked.minutes, asked.smoke, asked.json)


def baselines(most: int, minutes: float, smoke: bool) -> tuple[Found, list[Row]]:
    """The baselines beside p2psim, memory and start-up."""
    replicas, naive, records = (3, 1, 30_000) if smoke else (100, 10, 750_000)
    agents = (50,) if smoke else (1000, 10_000, 100_000)
    found = measure(most, minutes, replicas, naive, records, agents)
    return found, rows(found, records, agents)


def everything(parts: Sequence[str], most: int, minutes: float, smoke: bool, path: Path | None) -> None:
    """Measure the parts, and print their rows as one table."""
    told: list[Row] = []
    kept: dict[str, object] = {}

    def measured(part: str) -> tuple[Mapping[Any, object], list[Row]]:
        if part in MODULES:
            return MODULES[part].measured(1 if smoke else min(most, 3), smoke)
        return baselines(1 if smoke else most, minutes, smoke)

    # To see that all of it runs, two at a time will do; what is measured must be alone.
    with ThreadPoolExecutor(2 if smoke else 1) as pool:
        for values, more in pool.map(measured, [part for part in PARTS if part in parts]):
            told += more
            kept |= {str(key): value for key, value in values.items()}
    if path:
        path.write_text(json.dumps(kept, indent=1) + "\n")
    print(table(told))


if __name__ == "__main__":
    main()
