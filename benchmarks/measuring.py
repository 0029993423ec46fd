"""Processes that measure, their progress, and tables of their numbers."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent

# One thread each: otherwise BLAS's threads would count as CPU time.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

#: What, the measurement, and what was wanted.
Row = tuple[str, str, str]


#: When this process began to measure.
_BEGAN = time.monotonic()


def progress(text: str) -> None:
    """Write what is being measured to standard error, with the seconds since the start."""
    print(f"[{time.monotonic() - _BEGAN:4.0f} s] {text}", file=sys.stderr, flush=True)


def rounds(most: int, minutes: float | None = None) -> Iterator[int]:
    """Numbers of rounds: the first always, a further one only if it can be expected to end within ``minutes``."""
    slowest = 0.0
    for number in range(most):
        began = time.monotonic()
        if number and minutes is not None and began + slowest - _BEGAN > 60 * minutes:
            progress(f"no time for round {number + 1} of {most} within {minutes:g} minutes")
            return
        progress(f"round {number + 1} of {most}")
        yield number
        slowest = max(slowest, time.monotonic() - began)


def kernels_in(folder: str) -> dict[str, str]:
    """The environment of a process that keeps its kernels in this folder.

    It is handed to that process alone: parts of the benchmarks are measured in threads, which share `os.environ`.
    """
    return {**os.environ, "NUMBA_CACHE_DIR": folder}


def child(script: str, *arguments: object, environment: Mapping[str, str] | None = None) -> Any:
    """What a script of this folder prints as JSON, in a process of its own."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    progress(" ".join([script, *map(str, arguments)])[:100])
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return json.loads(output)


def spread(values: list[float], digits: int = 2) -> str:
    """Median, and the lowest and highest."""
    return f"{median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def table(rows: list[Row]) -> str:
    """Rows as a Markdown table."""
    lines = ["| what | median (lowest–highest) | wanted |", "| --- | --- | --- |"]
    return "\n".join(lines + [f"| {a} | {b} | {c} |" for a, b, c in rows])


def print_part(about: str, measured: Callable[[int, bool], tuple[Any, list[Row]]], most: int) -> None:
    """Measure one part by itself, as its script does, and print its table.

    Parameters
    ----------
    about : str
        What the script is; its first line is shown by ``--help``.
    measured : callable
        Takes a number of rounds, and whether to see only that it runs.
    most : int
        Rounds by default.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="only see that it runs")
    parser.add_argument("--rounds", type=int, default=most)
    given = parser.parse_args()
    print(table(measured(1 if given.smoke else given.rounds, given.smoke)[1]))
