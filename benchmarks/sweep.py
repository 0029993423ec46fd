"""Measure whole sweeps: what a cell costs, what two workers give, and what the F figure-5 grid takes.

    python benchmarks/sweep.py [--smoke] [--rounds 3]

Everything is done by the command ``p2psim run``, in a process of its own: start, reading, checks, workers, simulation,
writing. Wall time, unless CPU time is said.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from measuring import HERE, Row, child, progress, rounds, spread, table

#: Measurements by name, one a round.
Found = dict[str, list[float]]

#: Sweeps for one worker and for two: what they are, their file, changes to it, replicas of each of three cells, and how
#: many times as fast two are wanted to be.
SWEEPS = (
    ("stars, ψ written at every step", "star.yaml", (), 15_000, 1.7),
    ("stars, ψ written at the end", "star.yaml", ("record.every=1000",), 20_000, 1.9),
    ("graphs of 1,000 agents", "graph.yaml", ("sweep={learning.algorithm.mu: [0.5, 1, 2]}",), 60, 1.9),
)
#: D-PSGD on digits: softmax, batches of 16, 500 rounds of 32 agents, metrics every 25; 6 topologies × 5 step sizes.
DIGITS = HERE.parent / "scenarios" / "decentralised_digits.yaml"
#: Sizes of the F figure-5 grid, records of all three owners.
SIZES = (30_000, 150_000, 750_000)


def command(
    scenario: str,
    jobs: int,
    *sets: str,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Run a scenario of this folder; wall and CPU seconds of it all and of its simulations, and the peak of memory."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        arguments = ["run", str(HERE / scenario), "--out", str(out), "--jobs", str(jobs), "--confirm-cells"]
        arguments += ["--progress", "none", *options]
        for one in sets:
            arguments += ["--set", one]
        progress(f"p2psim {' '.join(arguments[:2] + arguments[4:])}"[:100])
        began = time.perf_counter()
        said = Path(folder) / "said"
        with (
            said.open("wb") as file,
            subprocess.Popen(
                [sys.executable, "-m", "p2psim", *arguments],
                stdout=subprocess.DEVNULL,
                stderr=file,
                env=environment,
            ) as process,
        ):
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = status
        wall = time.perf_counter() - began
        if status:
            raise SystemExit(f"p2psim {' '.join(arguments)[:200]} failed ({status}):\n{said.read_text()}")
        manifest = json.loads((out / "manifest.json").read_text())
        size = sum(path.stat().st_size for path in out.iterdir())
    simulating = sum(cell["seconds"] for cell in manifest["cells"])
    workers = manifest["invocations"][-1]["of_workers"]
    return {
        "wall": wall,
        "cpu": used.ru_utime + used.ru_stime,
        "of_workers": workers["user_time"] + workers["sys_time"],
        "simulating": simulating,
        "mb": used.ru_maxrss / 1024,
        "size": size / 1e6,
    }


def tiny(cells: int) -> str:
    """The sweep of so many tiny cells."""
    values = ", ".join(f"{0.1 + 10 * i / cells:.6f}" for i in range(cells))
    return f"sweep={{privacy.epsilon: [{values}]}}"


def tiny_work(cells: int) -> None:
    """Run the tiny cells with two workers and print milliseconds a cell."""
    # The command line of a process is limited: the sweep goes through a file.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tiny.yaml"
        text = (HERE / "tiny.yaml").read_text()
        path.write_text(text + "\n" + tiny(cells).replace("sweep=", "sweep: ") + "\n")
        seconds = command(str(path), 2)
    print(json.dumps({key: 1e3 * seconds[key] / cells for key in ("wall", "cpu", "simulating")}))


def figure(sizes: list[int], replicas: int) -> None:
    """Run the F figure-5 grid in this process with one worker; print CPU microseconds per commit.

    The preparation of the data, imports, compilation and each process's first simulation are left out, as they are of
    the baseline; encoding and writing are not.
    """
    import p2psim
    from p2psim.runs import batches, runner
    from p2psim.runs.work import Work
    from p2psim.simulation.workspace import Workspace

    sets = [f"replicas={replicas}"]
    sets.append(f"sweep={{data.source.points: {[n // 3 for n in sizes]}, privacy.epsilon: [0.1, 1, 10]}}")
    scenario = p2psim.Scenario.load(HERE / "star.yaml", sets)
    prepare, spent = runner.Study.prepare, [0.0]

    def prepared(study: runner.Study, workspace: Workspace, work: Work) -> object:
        before = time.process_time()
        facts = prepare(study, workspace, work)
        for cell in study.grid:
            batches.run_batch(study.grid, [(cell.index, replicas)], workspace, batches.BatchOptions())
        spent[0] += time.process_time() - before
        return facts

    with tempfile.TemporaryDirectory() as folder:
        p2psim.run(scenario.model_copy(update={"replicas": 1}), Path(folder) / "first", progress=False)
        runner.Study.prepare = prepared  # type: ignore[assignment,method-assign]
        before = time.process_time()
        p2psim.run(scenario, Path(folder) / "run", progress=False)
        seconds = time.process_time() - before - spent[0]
    commits = 1000 * replicas * 3 * len(sizes)
    print(json.dumps({"us_per_event": seconds / commits * 1e6, "commits": commits}))


def measure(most: int, cells: int, sizes: tuple[int, ...], replicas: int, smoke: bool) -> Found:
    """Everything, round by round."""
    found: Found = defaultdict(list)
    for _ in rounds(most):
        for key, value in child("sweep.py", "--worker", "tiny", "--size", cells).items():
            found[f"tiny {key}"].append(value)
        found["limit"].append(child("baselines.py", "star", "limit", replicas)["us_per_event"])
        arguments = ("--worker", "figure", "--size", replicas, "--sizes", *sizes)
        found["figure"].append(child("sweep.py", *arguments)["us_per_event"])
        for what, scenario, sets, many, _ in SWEEPS:
            number = f"replicas={2 if smoke else many}"
            for jobs in (1, 2):
                found[f"{what}, {jobs}"].append(command(scenario, jobs, number, *sets)["wall"])
        number = ("replicas=1", "learning.algorithm.updates_per_agent=5") if smoke else ("replicas=10",)
        found["digits"].append(command(str(DIGITS), 2, *number)["wall"])
    return found


def rows(found: Found, cells: int) -> list[Row]:
    """The measurements, to be told."""
    figure = [a / b for a, b in zip(found["figure"], found["limit"], strict=True)]
    told: list[Row] = [
        (f"{cells:,} tiny cells, 2 workers: ms a cell, all in all", spread(found["tiny wall"]), "at most 1"),
        ("of these: CPU of the parent, ms a cell", spread(found["tiny cpu"]), ""),
        (
            "of these: the simulations, of both workers together, ms a cell",
            spread(found["tiny simulating"]),
            "",
        ),
        ("F figure-5 grid, run with one worker / limit, CPU per commit", spread(figure), "at most 2"),
    ]
    for what, _, _, many, wanted in SWEEPS:
        one, two = found[f"{what}, 1"], found[f"{what}, 2"]
        faster = [a / b for a, b in zip(one, two, strict=True)]
        told += [
            (f"3 × {many:,} simulations of {what}: one worker / two", spread(faster), f"at least {wanted}"),
            ("that sweep with one worker, s", spread(one, 1), "at least 20"),
        ]
    told.append(
        ("D-PSGD on digits, 300 simulations with two workers, s", spread(found["digits"], 1), "below 120")
    )
    return told


def measured(most: int, smoke: bool) -> tuple[Found, list[Row]]:
    """What is measured, small if it is only to be seen that it runs."""
    cells, sizes, replicas = (20, SIZES[:1], 2) if smoke else (10_000, SIZES, 100)
    found = measure(most, cells, sizes, replicas, smoke)
    return found, rows(found, cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only see that it runs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--sizes", type=int, nargs="*", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker == "tiny":
        tiny_work(asked.size)
    elif asked.worker == "figure":
        figure(asked.sizes, asked.size)
    else:
        print(table(measured(1 if asked.smoke else asked.rounds, asked.smoke)[1]))


if __name__ == "__main__":
    main()
