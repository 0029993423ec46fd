"""Measure what a Dask cluster costs beside its simulations: its scheduler, its workers, and the process that writes.

    python benchmarks/clusters.py [--smoke] [--rounds 1]

A scheduler and 2, 4 or 8 workers of one thread each are started on this machine, and a sweep of stars is run on them by
the command ``p2psim run``. What counts is the CPU time of each process, which hardly depends on how many cores there
are: of the scheduler, of the workers, and of the command, which takes results and writes. The same command with local
processes is measured beside it. Start-up is left out by taking the difference between a long sweep and a short one.
"""

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from measuring import Row, print_part, rounds, spread
from sweep import command

#: Measurements by name, one a round.
Found = dict[str, list[float]]

#: Numbers of workers.
WORKERS = (2, 4, 8)
#: Replicas of each of three cells in the short and the long sweep.
REPLICAS = (1_000, 8_000)


def cpu(process: Any) -> float:
    """CPU seconds of a process and those that it has started."""
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        with contextlib.suppress(Exception):  # it has just ended
            times = one.cpu_times()
            total += times.user + times.system
    return total


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[tuple[str, Any, list[Any]]]:
    """Start a scheduler and workers; gives its address, its process and those of the workers."""
    import psutil
    from distributed import Client

    started = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "scheduler.json"

        def start(module: str, *arguments: str) -> Any:
            parts = [
                sys.executable,
                "-m",
                f"distributed.cli.{module}",
                "--scheduler-file",
                str(place),
                *arguments,
            ]
            process = subprocess.Popen(
                parts, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            started.append(process)
            return psutil.Process(process.pid)

        try:
            scheduler = start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
            while not place.exists():
                if started[0].poll() is not None:
                    raise SystemExit("the scheduler did not start")
                time.sleep(0.05)
            many = [
                start("dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")
                for _ in range(workers)
            ]
            address = json.loads(place.read_text())["address"]
            with Client(address) as client:
                client.wait_for_workers(workers, timeout=120)
            yield address, scheduler, many
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


def stars(replicas: int, *options: str) -> dict[str, float]:
    """Run the stars; CPU seconds of the command, without those of workers, and wall seconds."""
    sets = f"replicas={replicas}", "data.source.points=1000", "record.every=1000"
    return command("star.yaml", 2, *sets, options=options)


def on_cluster(workers: int, replicas: tuple[int, int]) -> dict[str, float]:
    """CPU milliseconds a simulation: of the scheduler, of all workers and of the command; and wall time."""
    with cluster(workers) as (address, scheduler, many):
        # Each worker compiles or reads its kernels, and prepares the data, before anything is measured.
        stars(replicas[0], "--executor", "dask", "--scheduler", address)
        found = []
        for number in replicas:
            before = cpu(scheduler), sum(map(cpu, many))
            took = stars(number, "--executor", "dask", "--scheduler", address)
            took |= {"scheduler": cpu(scheduler) - before[0], "workers": sum(map(cpu, many)) - before[1]}
            found.append(took)
    return slopes(found, replicas)


def slopes(found: list[dict[str, float]], replicas: tuple[int, int]) -> dict[str, float]:
    """Milliseconds a simulation, from the difference of two sweeps of three cells."""
    short, long = found
    return {key: 1e3 * (long[key] - short[key]) / (3 * (replicas[1] - replicas[0])) for key in long}


def measured(times: int, smoke: bool) -> tuple[Found, list[Row]]:
    """What is measured, small if it is only to be seen that it runs."""
    measurements: Found = defaultdict(list)
    replicas = (2, 10) if smoke else REPLICAS
    for _ in rounds(times):
        for workers in WORKERS[:1] if smoke else WORKERS:
            for key, value in on_cluster(workers, replicas).items():
                measurements[f"{workers} {key}"].append(value)
        local = [stars(number) for number in replicas]
        for key, value in slopes(local, replicas).items():
            measurements[f"local {key}"].append(value)
    return measurements, rows(measurements)


def rows(measurements: Found) -> list[Row]:
    """The measurements as rows of a table."""
    lines: list[Row] = []
    for workers in WORKERS:
        if f"{workers} cpu" not in measurements:
            continue
        of = {key: measurements[f"{workers} {key}"] for key in ("scheduler", "wall", "workers", "cpu")}
        share = [a / b for a, b in zip(of["scheduler"], of["wall"], strict=True)]
        lines += [
            (f"{workers} workers: share of a core that the scheduler takes", spread(share, 3), ""),
            (f"{workers} workers: all of them, CPU ms a simulation", spread(of["workers"], 3), ""),
            (f"{workers} workers: the command, CPU ms a simulation", spread(of["cpu"], 3), ""),
        ]
    local = spread(measurements["local cpu"], 3)
    return [*lines, ("two local processes: the command, CPU ms a simulation", local, "")]


if __name__ == "__main__":
    print_part(__doc__, measured, 1)
