"""Too little memory for a process or its workers: one message, and nothing hangs."""

import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import pytest
import small_study as small
from ruamel.yaml import YAML

from p2psim.core.errors import SimulationError
from p2psim.runs import pool
from p2psim.runs.batches import BATCH_BYTES, BATCH_SECONDS, BatchResult, Schedule

#: Limits the address space of the process that it then becomes, or of itself once a study is read.
LIMITED = """
import resource, sys
limit = int(sys.argv.pop(1)) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
from p2psim.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("megabytes", "jobs"), [(600, 1), (700, 2), (800, 2), (900, 3)])
def test_a_limit_that_libraries_cannot_bear_is_refused(tmp_path: Path, megabytes: int, jobs: int) -> None:
    path, out = tmp_path / "s.yaml", tmp_path / "out"
    with open(path, "w") as stream:
        YAML(typ="safe").dump(small.tree(replicas=20), stream)
    command = [sys.executable, "-c", LIMITED, str(megabytes), "run", str(path), "--out", str(out), "--quiet"]
    done = subprocess.run([*command, "--jobs", str(jobs)], capture_output=True, text=True, timeout=60)
    (said,) = done.stderr.splitlines()
    assert done.returncode == 2, said
    assert said.startswith("p2psim: too little memory" + (f" for {jobs} workers" if jobs > 1 else ""))
    assert ("use --jobs 1 or raise the limit" in said) == (jobs > 1)
    assert not out.exists()


def _wait_for_ever() -> None:
    time.sleep(1000)


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_that_are_never_ready_are_given_up(monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(pool, "START_SECONDS", 0.3)
    started = []

    def start() -> pool.Worker:
        mine, _theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=_wait_for_ever, daemon=True)
        process.start()
        started.append((process, _theirs))
        return pool.Worker(process, mine)

    with pytest.raises(SimulationError, match=r"no worker process was ready within 0\.3 s.*--jobs"):
        list(pool.exchange([], Schedule([(0, 0), (0, 1)], workers), start, workers))
    assert len(started) == workers


def test_a_batch_is_as_long_as_its_seconds_and_its_bytes_allow():
    """Of ten simulations that took so much, as many as fit are done next."""
    for seconds, size, expected in (
        (BATCH_SECONDS / 4, 0, 40),
        (BATCH_SECONDS / 4, BATCH_BYTES, 10),
        (BATCH_SECONDS, BATCH_BYTES // 4, 10),
        (BATCH_SECONDS / 4, 40 * BATCH_BYTES, 1),
    ):
        schedule = Schedule([(0, replica) for replica in range(100)], workers=1)
        schedule.learn(BatchResult(None, done=10, seconds=seconds, size=size))
        assert len(schedule.take()) == expected
