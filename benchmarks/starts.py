"""Measure what a process costs beside its simulation: its start, its memory, and the first compilation of kernels.

    python benchmarks/starts.py [--smoke] [--rounds 3]

A whole `p2psim run` of ten commits (tiny.yaml), bytecode and kernels cached, is measured beside a process that imports
NumPy, Numba, pandas and pyarrow and loads one trivial kernel from Numba's cache (trivial.py); the two alternate. The
first run ever of `three_banks`, one replica, has an empty cache of kernels; the second, which it is compared with, the
cache of the first. CPU time, so that other processes disturb little.
"""

import os
import subprocess
import sys
import tempfile
from collections import defaultdict

from measuring import HERE, Row, kernels_in, print_part, progress, rounds, spread
from sweep import command

#: Measurements by name, one a round.
Found = dict[str, list[float]]

BANKS = str(HERE.parent / "scenarios" / "three_banks.yaml")


def imports() -> dict[str, float]:
    """CPU seconds and peak memory of a process that does no more than that."""
    with subprocess.Popen([sys.executable, str(HERE / "trivial.py")]) as process:
        _, process.returncode, used = os.wait4(process.pid, 0)
    return {"cpu": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}


def first_and_second() -> tuple[float, float]:
    """CPU seconds of the first run ever of `three_banks`, and of the second."""
    with tempfile.TemporaryDirectory() as folder:
        kernels = kernels_in(folder)
        first, second = (command(BANKS, 1, "replicas=1", environment=kernels)["cpu"] for _ in range(2))
    return first, second


def measured(most: int, smoke: bool) -> tuple[Found, list[Row]]:
    """What is measured; nothing is compiled anew if it is only to be seen that it runs."""
    measurements: Found = defaultdict(list)
    progress("imports and a trivial kernel, and a run of ten commits, once before they are measured")
    imports(), command("tiny.yaml", 1)
    for _ in rounds(most):
        small, whole = imports(), command("tiny.yaml", 1)
        measurements["start"].append(whole["cpu"] / small["cpu"])
        measurements["start mb"].append(whole["mb"] - small["mb"])
        if not smoke:
            first, second = first_and_second()
            measurements["compilation"].append(first - second)
    table_rows = [
        (
            "a whole run of ten commits / imports and a trivial kernel",
            spread(measurements["start"]),
            "at most 1.2",
        ),
        ("its peak memory beyond these, MB", spread(measurements["start mb"], 0), "at most 40"),
    ]
    if not smoke:
        what = "the first run ever of three_banks, s more than the second"
        table_rows.append((what, spread(measurements["compilation"], 1), "at most 8"))
    return measurements, table_rows


if __name__ == "__main__":
    print_part(__doc__, measured, 3)
