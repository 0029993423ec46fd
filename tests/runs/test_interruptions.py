"""Kills, interrupts and full disks at any moment: finished simulations are kept, and the end is the same."""

import contextlib
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import small_study as small
from pairs import few
from ruamel.yaml import YAML

import p2psim
from p2psim.runs import manifest

#: The command with batches so small that there are many of them.
COMMAND = (
    "import sys; from p2psim.runs import batches; batches.BATCH_SECONDS = 0.02; "
    "from p2psim.cli.main import main; sys.exit(main(sys.argv[1:]))"
)

#: The same, but it stops itself when it has kept some batches: it waits there, however slow the machine is.
STOPPING = """
import os, signal, sys
from p2psim.cli.main import main
from p2psim.runs import batches, store

batches.BATCH_SECONDS = 0.02
keep, left = store.add_part, int(sys.argv.pop(1))

def keep_and_stop(*part):
    global left
    kept = keep(*part)
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGSTOP)
    return kept

store.add_part = keep_and_stop
sys.exit(main(sys.argv[1:]))
"""

#: Runs a study, so that all is imported and compiled; then forks a process for the command in each line.
FORKING = """
import json, os, sys
import p2psim
from p2psim.cli.main import main
from p2psim.runs import batches

first = p2psim.Scenario.load(sys.argv[1], ["replicas=1"])
p2psim.run(first, sys.argv[2], progress=False)
batches.BATCH_SECONDS = 0.02
for line in sys.stdin:
    pid = os.fork()
    if not pid:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        os._exit(main(json.loads(line)))
    print(pid, flush=True)
    os.waitpid(pid, 0)
    print("ended", flush=True)
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A scenario of three hundred simulations, and its undisturbed results beside it."""
    place = tmp_path_factory.mktemp("study")
    with open(place / "study.yaml", "w") as stream:
        YAML(typ="safe").dump(small.tree(replicas=150), stream)
    p2psim.run(p2psim.Scenario.load(place / "study.yaml"), place / "undisturbed", progress=False)
    return place


def arguments(study: Path, folder: Path, jobs: int) -> list[str]:
    return ["run", str(study / "study.yaml"), "--out", str(folder), "--jobs", str(jobs)]


def start(*command: str, **options: Any) -> "subprocess.Popen[str]":
    """Start a command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def wait_until(condition: Callable[[], bool], has_ended: Callable[[], bool] = lambda: False) -> None:
    end = time.monotonic() + 60
    while not condition() and not has_ended() and time.monotonic() < end:
        time.sleep(0.002)


@contextlib.contextmanager
def stopped(study: Path, folder: Path, jobs: int, batches_kept: int) -> "Iterator[subprocess.Popen[str]]":
    """A run that has stopped itself in its middle, and that is ended when the test is done with it."""
    process = start(STOPPING, str(batches_kept), *arguments(study, folder, jobs))
    try:
        status = Path(f"/proc/{process.pid}/status")
        wait_until(lambda: "State:\tT" in status.read_text(), lambda: process.poll() is not None)
        assert process.poll() is None, process.communicate()[1]
        assert parts(folder) == batches_kept
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


@pytest.fixture(scope="module")
def forking(study: Path) -> "Iterator[subprocess.Popen[str]]":
    """A process that has everything imported, and forks a run for each line of arguments."""
    command = [sys.executable, "-c", FORKING, str(study / "study.yaml"), str(study / "first")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


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


@pytest.mark.verification  # test_same_bytes.py kills runs in the other suite
@pytest.mark.parametrize(("jobs", "moments"), [(2, 4), (1, 8)])
def test_killed_at_random_moments_and_resumed(
    study: Path, forking: "subprocess.Popen[str]", tmp_path: Path, jobs: int, moments: int
) -> None:
    """Moments of SIGKILL to the whole process group, from the first file on; then resumed to the end.

    A folder that gets finished before its kill is compared and begun anew.
    """
    rng = random.Random(20 * moments + jobs)
    folder = tmp_path / "run"
    reached = set()
    assert forking.stdin is not None
    assert forking.stdout is not None
    told = forking.stdout

    def has_ended() -> bool:
        return bool(select.select([told], [], [], 0)[0])

    for moment in range(moments):
        # A few in the beginning, the others between the first batch and somewhat after the last.
        early = moment % 4 == 0
        before = state(folder, early)
        print(json.dumps(arguments(study, folder, jobs)), file=forking.stdin, flush=True)
        group = int(told.readline())
        wait_until(lambda early=early, before=before: state(folder, early) != before, has_ended)
        time.sleep(rng.uniform(0, 0.4))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        assert told.readline() == "ended\n"
        reached.add(parts(folder))
        if manifest.read(folder).state == "finished" and not (folder / "parts").exists():
            finish(study, folder)
            assert_undisturbed(study, folder)
            shutil.rmtree(folder)
    finish(study, folder)
    assert_undisturbed(study, folder)
    assert len(reached) > 2


@pytest.mark.parametrize(
    ("jobs", "ending"),
    [
        (1, signal.SIGINT),
        (2, signal.SIGTERM),
        pytest.param(2, signal.SIGHUP, marks=pytest.mark.verification),
        *(
            pytest.param(jobs, ending, marks=pytest.mark.verification)
            for jobs, ending in ((2, signal.SIGINT), (1, signal.SIGTERM))
        ),
    ],
)
def test_interrupt_keeps_what_is_finished(
    study: Path, tmp_path: Path, jobs: int, ending: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, temporary = tmp_path / "run", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    with stopped(study, folder, jobs, batches_kept=2) as process:
        assert list(temporary.glob("p2psim-*"))
        began = time.monotonic()
        os.killpg(process.pid, ending)
        os.kill(process.pid, signal.SIGCONT)
        _, message = process.communicate()
    # A second, where nothing else runs; much else may run.
    assert time.monotonic() - began < 30
    assert process.returncode == 130
    assert "interrupted; finished simulations are kept" in message
    assert "Traceback" not in message
    assert not list(temporary.glob("p2psim-*"))
    assert parts(folder) >= 2
    finish(study, folder)
    assert_undisturbed(study, folder)


def workers_of(parent: int) -> list[int]:
    """Worker processes below the fork server of a run."""
    servers = [
        pid for pid in children_of(parent) if b"forkserver" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    return [pid for server in servers for pid in children_of(server)]


def children_of(parent: int) -> list[int]:
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if f"PPid:\t{parent}\n" in status.read_text():
                found.append(int(status.parent.name))
    return found


def is_running(pid: int) -> bool:
    """Whether a process is there, and not only because nobody has asked yet how it ended."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_killed_worker_is_replaced_and_its_work_done_again(study: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with stopped(study, folder, 2, batches_kept=1) as process:
        workers = workers_of(process.pid)
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        os.kill(process.pid, signal.SIGCONT)
        _, message = process.communicate()
    assert process.returncode == 0, message
    assert_undisturbed(study, folder)


def test_workers_die_with_their_parent(study: Path, tmp_path: Path) -> None:
    with stopped(study, tmp_path / "run", 2, batches_kept=1) as process:
        workers = workers_of(process.pid)
        assert len(workers) == 2
        process.kill()
        process.wait()
        wait_until(lambda: not any(map(is_running, workers)))
        assert not any(map(is_running, workers))


@pytest.mark.parametrize(("limit", "jobs"), few([(60_000, 2), (4_000, 1), (60_000, 1)], 2))
def test_full_disk_keeps_what_is_finished(study: Path, tmp_path: Path, limit: int, jobs: int) -> None:
    """A limit on the size of a file stands for a full disk: in the preparation, or in the middle."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    folder = tmp_path / "run"
    process = start(COMMAND, *arguments(study, folder, jobs), preexec_fn=limited)
    _, message = process.communicate()
    assert process.returncode == 1
    assert "File too large" in message
    assert "Traceback" not in message
    assert "finished simulations are kept" in message
    if limit > 10_000:
        assert parts(folder) > 0
        assert not (folder / "metrics.parquet").exists()
        assert not list((folder / "parts").glob(".*")), "what could not be written whole is gone"
    finish(study, folder)
    assert_undisturbed(study, folder)


def test_the_server_of_workers_does_not_hear_an_interrupt_amid_its_imports():
    """It is started while data are prepared, when Ctrl-C is as likely as ever. When it is asked, it serves."""
    script = """
import os, signal, time
from p2psim.runs import system
if __name__ == "__main__":
    system.warm_up()
    try:
        time.sleep(0.2)
        os.killpg(0, signal.SIGINT)
        time.sleep(5)
    except KeyboardInterrupt:
        worker = system.worker_context().Process(target=int)
        worker.start()
        worker.join()
        print("heard", worker.exitcode)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=60,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == ("heard 0\n", "")


def test_too_little_memory_for_a_worker_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not that something is damaged; and finished simulations are kept."""
    import errno
    from multiprocessing import process

    from p2psim.cli.main import main
    from p2psim.runs import runner

    def refuse(_: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    (tmp_path / "study.yaml").write_text(small.scenario(replicas=1).to_yaml())
    arguments = ["run", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "run"), "--quiet"]
    with monkeypatch.context() as patch:
        patch.setattr(process.BaseProcess, "start", refuse)
        patch.setattr(runner, "warm_up", lambda: None)
        assert main([*arguments, "--jobs", "2"]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert "a worker process could not be started (Cannot allocate memory)" in said
    assert "fewer --jobs" in said
    assert "damaged" not in said
    assert main(arguments) == 0
