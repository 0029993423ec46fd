"""Kills, interrupts and full disks at any moment: what was finished is kept, and the end is the same."""

import contextlib
import multiprocessing
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import small_study as small
from ruamel.yaml import YAML

import p2psim
from p2psim.errors import SimulationError
from p2psim.study import batches, executors, manifest

#: The command with batches so small that there are many of them.
COMMAND = (
    "import sys; from p2psim.study import batches; batches.BATCH_SECONDS = 0.02; "
    "from p2psim.cli import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scenario of three hundred simulations, and its undisturbed results beside it."""
    place = tmp_path_factory.mktemp("study")
    with open(place / "study.yaml", "w") as stream:
        YAML(typ="safe").dump(small.tree(replicas=150), stream)
    p2psim.run(p2psim.Scenario.load(place / "study.yaml"), place / "undisturbed", progress=False)
    return place


def start(study: Path, folder: Path, jobs: int, **options):  # type: ignore[no-untyped-def]
    """Start the command in a process group of its own."""
    arguments = ["run", str(study / "study.yaml"), "--out", str(folder), "--jobs", str(jobs)]
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def wait_until(condition, process: "subprocess.Popen[str]", seconds: float = 60) -> None:  # type: ignore[no-untyped-def]
    end = time.monotonic() + seconds
    while not condition() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)


def parts(folder: Path) -> int:
    return len([path for path in folder.glob("parts/*") if path.name[0] != "." and path.name != "data"])


def state(folder: Path, early: bool) -> tuple[int, int]:
    """Something that changes with the first file of a run, or with its first batch."""
    described = folder / "manifest.json"
    written = described.stat().st_mtime_ns if early and described.exists() else 0
    return written, 0 if early else parts(folder)


def finish(study: Path, folder: Path) -> None:
    p2psim.run(p2psim.Scenario.load(study / "study.yaml"), folder, progress=False)


def assert_undisturbed(study: Path, folder: Path) -> None:
    assert small.digests(folder) == small.digests(study / "undisturbed")
    assert not (folder / "parts").exists()
    assert manifest.read(folder).state == "finished"


@pytest.mark.parametrize(("jobs", "moments"), [(1, 13), (2, 7)])
def test_killed_at_random_moments_and_resumed(study: Path, tmp_path: Path, jobs: int, moments: int) -> None:
    """20 moments of SIGKILL to the whole process group, from the first file on; then resumed to the end.

    A folder that gets finished before its kill is compared and begun anew.
    """
    rng = random.Random(20 + jobs)
    folder = tmp_path / "run"
    reached = set()
    for moment in range(moments):
        process = start(study, folder, jobs)
        # A few in the beginning, the others between the first batch and somewhat after the last.
        before = state(folder, moment % 4 == 0)
        wait_until(lambda before=before, moment=moment: state(folder, moment % 4 == 0) != before, process)
        time.sleep(rng.uniform(0, 0.4))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        reached.add(parts(folder))
        if manifest.read(folder).state == "finished" and not (folder / "parts").exists():
            finish(study, folder)
            assert_undisturbed(study, folder)
            shutil.rmtree(folder)
    finish(study, folder)
    assert_undisturbed(study, folder)
    assert len(reached) > 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupt_keeps_what_is_finished(study: Path, tmp_path: Path, jobs: int) -> None:
    folder = tmp_path / "run"
    process = start(study, folder, jobs)
    wait_until(lambda: parts(folder) >= 2, process)
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, message = process.communicate()
    assert time.monotonic() - began < 5
    assert process.returncode == 130
    assert "interrupted; what was finished is kept" in message
    assert "Traceback" not in message
    assert parts(folder) >= 2
    finish(study, folder)
    assert_undisturbed(study, folder)


def workers_of(parent: int) -> list[int]:
    """Worker processes below the fork server of a run."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()[1:]]
    servers = [row[0] for row in rows if row[1] == str(parent) and "forkserver" in row[2]]
    return [int(row[0]) for row in rows if row[1] in servers]


def test_killed_worker_ends_the_run_in_1(study: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(study, folder, 2)
    wait_until(lambda: parts(folder) >= 1, process)
    workers = workers_of(process.pid)
    assert workers
    os.kill(workers[0], signal.SIGKILL)
    _, message = process.communicate()
    assert process.returncode == 1
    assert "a worker process ended without a result" in message
    finish(study, folder)
    assert_undisturbed(study, folder)


@pytest.mark.parametrize("written", [b"", struct.pack("!i", 1000) + b"the beginning of a result"])
def test_worker_killed_while_it_writes_is_noticed(written: bytes) -> None:
    mine, theirs = multiprocessing.Pipe()

    def worker() -> None:
        with theirs:
            theirs.recv()
            os.write(theirs.fileno(), written)

    thread = threading.Thread(target=worker)
    thread.start()
    with mine, pytest.raises(SimulationError, match="ended without a result"):
        list(executors._exchange(batches.Schedule([(0, 0)], 1), [mine]))
    thread.join()


def test_workers_die_with_their_parent(study: Path, tmp_path: Path) -> None:
    process = start(study, tmp_path / "run", 2)
    wait_until(lambda: parts(tmp_path / "run") >= 1, process)
    workers = workers_of(process.pid)
    assert workers
    process.kill()
    process.communicate()
    end = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < end:
        time.sleep(0.01)
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


@pytest.mark.parametrize("limit", [4_000, 60_000])
def test_full_disk_keeps_what_is_finished(study: Path, tmp_path: Path, limit: int) -> None:
    """A limit on the size of a file stands for a full disk: in the preparation, or in the middle."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    folder = tmp_path / "run"
    process = start(study, folder, 1, preexec_fn=limited)
    _, message = process.communicate()
    assert process.returncode == 1
    assert "File too large" in message
    assert "Traceback" not in message
    assert "what was finished is kept" in message
    if limit > 10_000:
        assert parts(folder) > 0
        assert not (folder / "metrics.parquet").exists()
    finish(study, folder)
    assert_undisturbed(study, folder)
