"""One simulation that cannot be: the rest is done, and the end says how to see it alone."""

import contextlib
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_study as small
from ruamel.yaml import YAML

import p2psim
from p2psim.core.errors import FolderError, InputError, SimulationError
from p2psim.runs import manifest, pool
from p2psim.runs.batches import BatchResult, Schedule
from p2psim.scenario.cells import cells
from p2psim.simulation import simulate

GRID = cells(small.scenario())

#: Workers import it as their main module, and so get the poison too.
SCRIPT = """
import os, signal, sys
import numpy as np
from p2psim.runs import batches, parts
from p2psim.simulation import simulate

batches.BATCH_SECONDS = 0.02
whole, how, put = simulate.simulate, os.environ["POISON"], parts.EncodedPart.put

def poisoned(scenario, replica, *rest):
    if (replica, scenario.privacy.epsilon) == (7, 100):
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "memory":
            np.empty(2**50)
    return whole(scenario, replica, *rest)

def put_and_die(part, path):
    stored = put(part, path)
    if how == "untold" and any(replica == 7 and content == os.environ["CELL"] for content, replica in part.runs):
        os.kill(os.getpid(), signal.SIGKILL)
    return stored

parts.EncodedPart.put = put_and_die
simulate.simulate, simulate.simulated_at_once = poisoned, lambda *given: 1
if __name__ == "__main__":
    from p2psim.cli.main import main

    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("killed", "its worker process was ended by signal 9, twice, perhaps for lack of memory"),
        ("memory", "Unable to allocate"),
        # After it has written what it has to tell: nobody heard of that, so it does not count.
        ("untold", "its worker process was ended by signal 9, twice, perhaps for lack of memory"),
    ],
)
def test_the_rest_is_done_and_the_poison_is_named(tmp_path: Path, how: str, said: str) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    with open(tmp_path / "study.yaml", "w") as stream:
        YAML(typ="safe").dump(small.tree(replicas=20), stream)
    folder = tmp_path / "run"
    command = [sys.executable, "script.py", "run", "study.yaml", "--out", "run", "--jobs", "2"]
    poison = {"POISON": how, "CELL": GRID[1].content}
    ran = subprocess.run(command, cwd=tmp_path, env=os.environ | poison, capture_output=True, text=True)
    assert ran.returncode == 1
    assert "1 of the simulations failed; the others are kept in run" in ran.stderr
    assert said in ran.stderr
    alone = "p2psim run run/scenario.yaml --out run --cell 1 --replica 7"
    assert alone in ran.stderr
    described = manifest.read(folder)
    assert described.state == "failed"
    assert len(described.runs) == 39
    assert [replica for _, replica in described.failed] == [7]
    # Without the poison the command that was told completes the folder, and all is as if nothing had been.
    p2psim.run(p2psim.Scenario.load(folder / "scenario.yaml"), folder, only=(1, 7), progress=False)
    p2psim.run(small.scenario(replicas=20), tmp_path / "whole", progress=False)
    assert small.digests(folder) == small.digests(tmp_path / "whole")


def test_what_cannot_be_prepared_is_refused_with_its_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = simulate.check

    def unprepared(scenario, workspace, *more):
        if scenario.privacy.epsilon == 100:
            raise np.linalg.LinAlgError("Eigenvalues did not converge")
        return whole(scenario, workspace, *more)

    monkeypatch.setattr(simulate, "check", unprepared)
    with pytest.raises(InputError) as raised:
        p2psim.run(small.scenario(), tmp_path / "run", progress=False)
    said = "cell 1 (privacy.epsilon = 100.0) cannot be prepared (Eigenvalues did not converge)"
    assert said in str(raised.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "error", [MemoryError(), np.linalg.LinAlgError("singular"), FloatingPointError("not a number")]
)
def test_what_is_raised_in_this_process_is_a_failure_of_one_replica(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    whole = simulate.simulate

    def failing(scenario, replica, *rest):
        if replica == 1:
            raise error
        return whole(scenario, replica, *rest)

    monkeypatch.setattr(simulate, "simulate", failing)
    monkeypatch.setattr(simulate, "simulated_at_once", lambda *given: 1)
    with pytest.raises(SimulationError, match="2 of the simulations failed") as raised:
        p2psim.run(small.scenario(), tmp_path / "run", progress=False)
    assert type(error).__name__ in str(raised.value)
    assert str(error) in str(raised.value)
    assert len(manifest.read(tmp_path / "run").runs) == 4


def start(target: Any) -> pool.Worker:
    """A worker that was forked, so that it can be given any life."""
    mine, theirs = multiprocessing.get_context("fork").Pipe()

    def live() -> None:
        mine.close()
        target(theirs)

    process = multiprocessing.get_context("fork").Process(target=live, daemon=True)
    process.start()
    theirs.close()
    return pool.Worker(process, mine)


def exchanged(life: Any, items: int, workers: int = 2) -> list[BatchResult]:
    schedule = Schedule([(i % 2, i // 2) for i in range(items)], workers)
    return list(pool.exchange(GRID, schedule, lambda: start(life), workers))


@pytest.mark.parametrize("written", [b"", struct.pack("!i", 1000) + b"the beginning of a result"])
@pytest.mark.parametrize("poison", [{(0, 0)}, {(1, 3), (0, 2)}, {(1, 9)}])
def test_each_is_done_once_or_given_up_once(written: bytes, poison: set[tuple[int, int]]) -> None:
    """Workers that die in the middle of writing; each result tells what it is of by its failures."""

    def life(connection: Any) -> None:
        connection.send(None)
        while True:
            items, _ = connection.recv()
            if poison & set(items):
                os.write(connection.fileno(), written)
                os.kill(os.getpid(), signal.SIGKILL)
            done = {(GRID[cell].content, replica): "done" for cell, replica in items}
            connection.send(BatchResult(None, done, len(items), 0.25 * len(items)))

    told: Counter[tuple[str, int]] = Counter()
    lost = set()
    for result in exchanged(life, 20):
        told.update(result.failed.keys())
        lost |= {key for key, text in result.failed.items() if "twice" in text}
    assert told == Counter((cell.content, replica) for cell in GRID for replica in range(10))
    assert lost == {(GRID[cell].content, replica) for cell, replica in poison}


def test_how_a_worker_ended_is_told() -> None:
    def life(connection: Any) -> None:
        connection.send(None)
        connection.recv()
        os._exit(3)

    (failed, *_) = (result.failed for result in exchanged(life, 1, workers=1))
    assert set(failed.values()) == {
        "its worker process ended with exit code 3, twice, perhaps for lack of memory"
    }


def test_workers_that_never_live_end_the_run() -> None:
    with pytest.raises(SimulationError, match="3 worker processes ended before their first batch"):
        exchanged(lambda connection: connection.close(), 4)


def test_a_clock_that_goes_back_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock on the wall is an hour before the one before."""
    import time

    p2psim.run(small.scenario(), tmp_path / "forth", progress=False)
    hours = iter(np.arange(2e9, 0, -3600.0))
    monkeypatch.setattr(time, "time", lambda: float(next(hours)))
    p2psim.run(small.scenario(replicas=2), tmp_path / "back", progress=False)
    p2psim.run(small.scenario(), tmp_path / "back", progress=False)
    assert small.digests(tmp_path / "back") == small.digests(tmp_path / "forth")
    assert all(run.seconds >= 0 for run in manifest.read(tmp_path / "back").runs.values())


@contextlib.contextmanager
def no_rights() -> Any:
    """As a user who may not write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_cannot_be_written_is_refused_and_stays(tmp_path: Path) -> None:
    for place in (tmp_path, *tmp_path.parents[:3]):
        if place.stat().st_uid == os.geteuid():
            place.chmod(place.stat().st_mode | 0o055)
    folder = tmp_path / "run"
    p2psim.run(small.scenario(), folder, progress=False)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o555)
    before = small.snapshot(folder)
    try:
        for out, said in ((folder, "cannot be written to"), (folder / "new", "cannot be created")):
            with no_rights(), pytest.raises(FolderError, match=said):
                p2psim.run(small.scenario(replicas=4), out, progress=False)
    finally:
        folder.chmod(0o755)
    assert small.snapshot(folder) == before


def test_workers_take_the_code_of_this_process_and_not_that_of_the_current_folder(tmp_path: Path) -> None:
    """A folder that is called as the package is, in the folder that a study is started from."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    (here / "p2psim").mkdir(parents=True)
    (here / "p2psim" / "__init__.py").write_text("raise SystemExit('the wrong package')\n")
    with open(here / "study.yaml", "w") as stream:
        YAML(typ="safe").dump(small.tree(replicas=4), stream)
    elsewhere.mkdir()
    command = "import sys\nfrom p2psim.cli.main import main\nif __name__ == '__main__':\n"
    command += "    sys.exit(main(sys.argv[1:]))\n"
    (elsewhere / "command.py").write_text(command)
    asked = ["run", "study.yaml", "--out", "run", "--jobs", "2", "--quiet"]
    ran = subprocess.run(
        [sys.executable, elsewhere / "command.py", *asked], cwd=here, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert len(manifest.read(here / "run").runs) == 8
