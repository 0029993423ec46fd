"""Measure what networks cost in whole studies: an event beside the same study on an ideal network, files, memory.

    python benchmarks/studies.py [--smoke] [--rounds 3]

An event costs what a simulation takes over the number of its records, learning and the metrics of its end included;
runs are longer than in the scenarios, so that set-up is small. Each measurement is a process of its own, in which a
first simulation has loaded the kernels.
"""

import argparse
import json
import resource
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

from measuring import HERE, Row, child, rounds, spread, table
from sweep import command

#: Measurements of each name, one a round.
Found = dict[str, list[float]]

_SCENARIOS = HERE.parent / "scenarios"
_IDEAL = ("network.channel={}", "network.availability=always")
#: The scenario, what is fixed of its sweep, and what makes its network ideal.
STUDIES = {
    "dropout_topology": (
        (
            "network.topology={kind: random-regular, agents: 60, degree: 6}",
            "network.availability={kind: renewal, up: 10.0, down: 10.0}",
            "learning.algorithm.updates_per_agent=1000",
            "record.every={time: 1000}",
        ),
        _IDEAL,
    ),
    "churn": (
        (
            "network.availability={kind: renewal, up: 10.0, down: 10.0, rejoin: stale}",
            "privacy.epsilon=10",
            "learning.algorithm.time=1000",
            "record.every={time: 1000}",
        ),
        _IDEAL,
    ),
    "collisions": (
        (
            "network.channel={airtime: 0.02, collision: aloha, shared: true}",
            "learning.algorithm.horizon=20000",
            "privacy.allocation.releases=20000",
            "record.every={time: 20000}",
        ),
        ("network.channel={}",),
    ),
    "push_sum": (
        (
            "learning.algorithm={kind: averaging, updates_per_agent: 400, start: local}",
            "network.exchange={kind: gossip, mode: push-pull}",
            "network.channel={latency: {exponential: 0.1}, loss: 0.1}",
            "record.every={time: 40}",
            "record.models=false",
        ),
        ("network.channel={}",),
    ),
}
#: Averaging on a large graph by the whole command; and, with few agents, with all events written.
_LARGE = (
    "sweep={{}}",
    "network.topology={{kind: random-regular, agents: {0}, degree: 10}}",
    "network.channel={{latency: {{uniform: [0.0, 1.0]}}, loss: 0.1}}",
    "network.exchange={{kind: gossip, mode: push-pull}}",
    "data.source.agents={0}",
    "data.source.points=2",
    "data.source.dimension=1",
    "learning.algorithm={{kind: averaging, updates_per_agent: {1}, start: local}}",
    "record={{metrics: [consensus_distance], every: {{time: {1}}}, events: {2}}}",
    "replicas=1",
)


def large(agents: int, periods: int, events: bool) -> list[str]:
    """What is set to average on a large graph."""
    return [one.format(agents, periods, str(events).lower()) for one in _LARGE]


def study(name: str, ideal: bool) -> dict[str, float]:
    """CPU seconds of a simulation and microseconds of one of its records, in this process."""
    from p2psim.scenario.cells import cells
    from p2psim.scenario.model import Scenario
    from p2psim.simulation.simulate import simulate
    from p2psim.simulation.workspace import Workspace

    fixed, plain = STUDIES[name]
    scenario = Scenario.load(_SCENARIOS / f"{name}.yaml", ["sweep={}", *fixed, *(plain if ideal else ())])
    (cell,) = cells(scenario)
    record = cell.scenario.record.model_copy(update={"events": True})
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        counted = simulate(cell.scenario.model_copy(update={"record": record}), 0, workspace).events
        assert counted is not None
        simulate(cell.scenario, 1, workspace)
        times, records = [], counted.size
        for replica in range(2, 7):
            began = time.process_time()
            simulate(cell.scenario, replica, workspace)
            times.append(time.process_time() - began)
    return {"s": median(times), "us": 1e6 * median(times) / records}


def files(agents: int, periods: int) -> dict[str, float]:
    """CPU seconds of a run without events, with all of them in a table, and of pyarrow to write that table.

    By its defaults with zstd, as who has the table in memory would; and with the encodings that the run folder has.
    """
    import pyarrow.parquet as pq

    import p2psim
    from p2psim.runs.parquet import packing
    from p2psim.runs.tables import ALIKE

    took = {}
    with tempfile.TemporaryDirectory() as folder:
        for key, events in (("first", False), ("without", False), ("with", True)):
            scenario = p2psim.Scenario.load(_SCENARIOS / "push_sum.yaml", large(agents, periods, events))
            began = time.process_time()
            p2psim.run(scenario, Path(folder) / key, progress=False)
            took[key] = time.process_time() - began
        read = pq.read_table(Path(folder) / "with" / "events.parquet")
        for key, packed in (("pyarrow", {}), ("encoded", packing(read.schema, ("cell", "replica", *ALIKE)))):
            began = time.process_time()
            pq.write_table(read, Path(folder) / "plain.parquet", **{"compression": "zstd"} | packed)
            took[key] = time.process_time() - began
    return took


def libraries() -> float:
    """Peak of memory in MB of a process that has loaded what a command loads, and done nothing."""
    import networkx  # noqa: F401
    import numba  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import scipy.linalg  # noqa: F401

    import p2psim.simulation.simulate  # noqa: F401

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def memory(agents: int, periods: int) -> float:
    """MB of a whole command above that of its libraries."""
    used = command("../scenarios/push_sum.yaml", 1, *large(agents, periods, False))
    return used["mb"] - float(child("studies.py", "--worker", "libraries"))


def measured(times: int, smoke: bool) -> tuple[Found, list[Row]]:
    """What is measured, small if it is only to be seen that it runs."""
    measurements: Found = defaultdict(list)
    agents, periods = (100, 5) if smoke else (100_000, 20)
    for _ in rounds(times):
        for name in list(STUDIES)[:1] if smoke else STUDIES:
            for ideal in (False, True):
                costs = child("studies.py", "--worker", name, *(["ideal"] if ideal else []))
                for key, value in costs.items():
                    measurements[f"{name} {ideal} {key}"].append(value)
        took = child("studies.py", "--worker", "files", 100 if smoke else 1000, 5 if smoke else 300)
        for key, seconds in took.items():
            measurements[key].append(seconds)
    measurements["mb"] = [memory(agents, periods)]
    return measurements, rows(measurements)


def rows(measurements: Found) -> list[Row]:
    """The measurements as rows of a table."""
    lines: list[Row] = []
    for name in STUDIES:
        if f"{name} True s" not in measurements:
            continue
        what, most = ("averaging (push_sum)", "5") if name == "push_sum" else (name, "1.5")
        for key, unit in (("s", "a simulation"), ("us", "a record")):
            ratio = [
                a / b
                for a, b in zip(
                    measurements[f"{name} False {key}"], measurements[f"{name} True {key}"], strict=True
                )
            ]
            wanted = f"at most {most}" if key == "s" else ""
            lines.append((f"{what}: {unit} / the same on an ideal network", spread(ratio), wanted))
        lines.append((f"{what}: µs a record", spread(measurements[f"{name} False us"]), ""))
    for key, how, most in (("pyarrow", "", "at most 1.2"), ("encoded", " with the same encodings", "")):
        found = zip(measurements["with"], measurements["without"], measurements[key], strict=True)
        ratio = [(a - b) / c for a, b, c in found]
        lines.append((f"all events written / pyarrow writes the same table{how}", spread(ratio), most))
    return [
        *lines,
        (
            "averaging, 100,000 agents × 20 periods: MB above the libraries",
            spread(measurements["mb"], 0),
            "below 300",
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only see that it runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker == ["libraries"]:
        print(json.dumps(libraries()))
    elif arguments.worker and arguments.worker[0] == "files":
        print(json.dumps(files(int(arguments.worker[1]), int(arguments.worker[2]))))
    elif arguments.worker:
        print(json.dumps(study(arguments.worker[0], "ideal" in arguments.worker)))
    else:
        print(table(measured(1 if arguments.smoke else arguments.rounds, arguments.smoke)[1]))


if __name__ == "__main__":
    main()
