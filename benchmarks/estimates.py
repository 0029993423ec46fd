"""Compare what `p2psim check` foretells with what `p2psim run` takes.

    python benchmarks/estimates.py [--smoke] [--rounds 3] [--only WORD]

Every pair is a check and a run of the same study, one after the other, each by the whole command in a process of its
own, kernels cached. The foretold time is that at the pace of the whole pilot. The ratio is that of CPU times, which
other work on the machine moves less: the check counts by a clock of CPU time for one process, and of the run the CPU
time of all processes is taken. Of two jobs the wall time is compared too, which means something where nothing else
runs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from measuring import HERE, Row, progress, rounds, spread, table
from sweep import command, tiny

_SCENARIOS = HERE.parent / "scenarios"
_MU = "sweep={learning.algorithm.mu: [0.5, 1, 2]}"
_ONE = "sweep={privacy.epsilon: [1]}"
_LATE = "network.channel={latency: {exponential: 0.1}}"
_EVENTS = "record={{metrics: [{}], every: {}, events: true{}}}"
_GOSSIP = str(_SCENARIOS / "push_sum.yaml")
_LARGE = ("data.source.agents=10000", "record.every=20000")
#: Studies of 5 to 60 seconds: what they are, the file, jobs, what is set, and replicas.
STUDIES: tuple[tuple[str, str, int, tuple[str, ...], int], ...] = (
    ("stars, three budgets, the last ψ", "star.yaml", 1, ("record.every=1000",), 6000),
    ("the same", "star.yaml", 2, ("record.every=1000",), 12_000),
    ("stars, one budget, ψ at every step", "star.yaml", 1, (_ONE,), 10_000),
    ("the same", "star.yaml", 2, (_ONE,), 12_000),
    ("stars whose answers take time", "star.yaml", 1, (_ONE, "record.every=100", _LATE), 4000),
    (
        "stars, events and noise written",
        "star.yaml",
        1,
        (_EVENTS.format("relative_fitness", 10, ", noise: true"),),
        500,
    ),
    ("graphs of 1,000 agents", "graph.yaml", 1, (_MU,), 25),
    ("the same", "graph.yaml", 2, (_MU,), 50),
    ("graph of 10,000 agents", "graph.yaml", 1, (*_LARGE, "learning.algorithm.commits=200000"), 6),
    ("graph of 10,000 agents, one run", "graph.yaml", 1, (*_LARGE, "learning.algorithm.commits=2000000"), 1),
    ("many tiny cells", "TINY", 1, (), 4000),
    ("the same", "TINY", 2, (), 4000),
    (
        "averaging, events written",
        _GOSSIP,
        1,
        (_EVENTS.format("consensus_distance, delivery", "{time: 4}", ""),),
        20,
    ),
    ("averaging", _GOSSIP, 2, (), 150),
    ("stars by the SimPy engine", "star.yaml", 1, (_ONE, "network.engine=simpy", "record.every=100"), 200),
)


def foretold(scenario: str, jobs: int, *sets: str) -> dict[str, float]:
    """What a check says of a study."""
    arguments = [sys.executable, str(HERE / "estimates.py"), "--worker"]
    arguments += ["check", str(HERE / scenario), "--jobs", str(jobs), "--json", "--confirm-cells"]
    arguments += [part for text in sets for part in ("--set", text)]
    progress(" ".join(arguments[3:7:2]))
    said = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)[0][
        "pilot"
    ]
    least, longest, pace = said["least_seconds"], said["most_seconds"], said["events_per_second"]
    fast, slow = pace / said["fastest"], pace / said["slowest"]
    return {
        **said,
        "seconds": least + (longest - least) * (1 - fast) / (slow - fast) if slow > fast else least,
    }


def measure(most: int, word: str, smoke: bool) -> dict[str, list[float]]:
    """Everything, round by round."""
    found = defaultdict[str, list[float]](list)
    with tempfile.TemporaryDirectory() as folder:
        path, name = Path(folder) / "tiny.yaml", ""
        for turn in rounds(most):
            for what, file, jobs, sets, replicas in STUDIES:
                name = name if what == "the same" else what
                if word not in name:
                    continue
                number = [f"replicas={2 if smoke else replicas}", *sets]
                if file == "TINY":
                    text = (HERE / "tiny.yaml").read_text()
                    path.write_text(text + tiny(3 if smoke else replicas).replace("sweep=", "sweep: ") + "\n")
                    file, number = str(path), []
                if not turn and jobs == 1:  # compiles
                    command(file, 1, *number[1:])
                key = name if jobs == 1 else f"{name}, {jobs} jobs"
                said, took = foretold(file, 1, *number), command(file, jobs, *number)
                cpu = took["cpu"] + took["of_workers"]
                found[key].append(said["seconds"] / cpu)
                for of, value in (("s", cpu), ("memory", said["memory"] / 1e6 / took["mb"])):
                    found[f"{key}: {of}"].append(value)
                if said["size"]:
                    found[f"{key}: size"].append(said["size"] / 1e6 / took["size"])
                text = f"{key}: foretold {said['seconds']:.1f} s, took {cpu:.1f}"
                if jobs > 1:
                    several = foretold(file, jobs, *number)["seconds"]
                    found[f"{key}: wall"].append(several / took["wall"])
                    text += f"; wall time {several:.1f} s, took {took['wall']:.1f}, {cpu / took['wall']:.2f} processors"
                progress(f"{text}; {said['memory'] / 1e6:.0f} MB, {took['mb']:.0f}")
    return found


def rows(found: dict[str, list[float]]) -> list[Row]:
    """The measurements, to be told."""
    told: list[Row] = []
    for name in (name for name in found if ":" not in name):
        told.append((f"{name} ({spread(found[f'{name}: s'], 1)} s)", spread(found[name]), "0.77 to 1.3"))
        for of in ("wall", "memory", "size"):
            if f"{name}: {of}" in found:
                told.append((f"{name}: {of}", spread(found[f"{name}: {of}"]), ""))
    return told


def measured(times: int, smoke: bool, word: str = "") -> tuple[dict[str, list[float]], list[Row]]:
    """What is measured, small if it is only to be seen that it runs."""
    found = measure(times, word, smoke)
    return found, rows(found)


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        from p2psim.cli.main import main

        time.perf_counter = time.process_time
        raise SystemExit(main(sys.argv[2:]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only see that it runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="studies whose name has this word")
    asked = parser.parse_args()
    print(table(measured(1 if asked.smoke else asked.rounds, asked.smoke, asked.only)[1]))


if __name__ == "__main__":
    main()
