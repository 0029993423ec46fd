"""Processes that measure, and how their numbers are told."""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent

# One thread each: otherwise BLAS's threads would count as CPU time.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")

#: What, the measurement, and what was wanted.
Row = tuple[str, str, str]


def child(script: str, *arguments: object) -> Any:
    """What a script of this folder prints as JSON, in a process of its own."""
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def spread(values: list[float], digits: int = 2) -> str:
    """Median, and the lowest and highest."""
    return f"{median(values):,.{digits}f} ({min(values):,.{digits}f}–{max(values):,.{digits}f})"


def table(rows: list[Row]) -> str:
    """Rows as a Markdown table."""
    lines = ["| what | median (lowest–highest) | wanted |", "| --- | --- | --- |"]
    return "\n".join(lines + [f"| {a} | {b} | {c} |" for a, b, c in rows])
