"""Check, run and draw the shipped scenarios at small size, two at a time, each in a process of its own.

``python .ci/scenarios.py OUT [SCENARIO ...]`` prints how long each took of a processor. It ends with 1, after what was
said of those that failed.
"""

import itertools
import multiprocessing
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import wait
from pathlib import Path
from threading import Lock

#: Modules that each process needs and that take long to import; they are imported once.
_NEEDED = [
    "p2psim.cli.main",
    "p2psim.cli.run",
    "p2psim.runs.result",
    "p2psim.simulation.assembly",
    "numba",
    "seaborn",
]

#: What is shortened of those that would take longest; the other keys, and all cells, are as shipped.
SHORTER = {
    "b_fig2_tuned": "learning.algorithm.updates_per_agent=20",
    "b_fig2c_paper": "learning.algorithm.updates_per_agent=20",
    "b_table1_tuned": "learning.algorithm.updates_per_agent=8",
    "decentralised_digits": "learning.algorithm.updates_per_agent=75",
    "extreme_conditions": "learning.algorithm.time=60",
    "mobility": "learning.algorithm.time=8",
    "topology_budget": "learning.algorithm.updates_per_agent=10",
}


def attempt(scenario: Path, folder: Path, log: Path) -> None:
    """Do all with a scenario, as the command does it, with what it says in a file; exits with its exit code."""
    from p2psim.cli.main import main

    with log.open("w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    times, code = [], 0
    small = ["--replicas", "1", *(["--set", SHORTER[scenario.stem]] if scenario.stem in SHORTER else [])]
    for arguments in (
        ["check", str(scenario)],
        ["run", str(scenario), *small, "--jobs", "1", "--check-events", "--out", str(folder)],
        ["plot", str(folder), "--kind", "all", "--format", "png"],
    ):
        if not code:
            began = time.process_time()
            code = main(arguments)
            times.append(f"{arguments[0]} {time.process_time() - began:.1f} s")
    print(", ".join(times), flush=True)
    sys.exit(code)


def main(out: Path, scenarios: list[Path]) -> int:
    """Try all scenarios; returns how many failed."""
    out.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_NEEDED)

    polling = Lock()

    def watched(scenario: Path) -> tuple[str, int | None, str]:
        folder, log = out / scenario.stem, out / f"{scenario.stem}.log"
        process = context.Process(target=attempt, args=(scenario, folder, log))
        # Starting a process polls all others, and two threads must not poll one process at once.
        with polling:
            process.start()
        wait([process.sentinel])
        with polling:
            process.join()
        return scenario.stem, process.exitcode, log.read_text() if log.exists() else ""

    # Neighbours need the same kernels, and would compile them at the same time.
    half = -(-len(scenarios) // 2)
    mixed = [s for two in itertools.zip_longest(scenarios[:half], scenarios[half:]) for s in two if s]
    failed = []
    with ThreadPoolExecutor(2) as pool:
        for name, code, said in pool.map(watched, mixed):
            print(f"{name}: {said.splitlines()[-1] if said and not code else f'failed ({code})'}", flush=True)
            if code:
                failed.append(name)
                print(said, flush=True)
    print(f"failed: {', '.join(failed)}" if failed else f"all {len(mixed)} are well")
    return len(failed)


if __name__ == "__main__":
    sys.exit(
        main(
            Path(sys.argv[1]),
            [Path(name) for name in sys.argv[2:]] or sorted(Path("scenarios").glob("*.yaml")),
        )
    )
