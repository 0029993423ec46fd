"""Runs that are started together on one folder: one does the work, the others refuse, and nothing is damaged."""

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import small_study as small

import p2psim
from p2psim.core.errors import FolderError
from p2psim.runs import manifest, runner, store
from p2psim.runs.store import is_running
from p2psim.scenario.cells import cells

#: What may be said to those that come second.
REFUSALS = ("another run is writing into it", "another run has just begun in it")


def tiny() -> p2psim.Scenario:
    return small.scenario(replicas=1, sweep={})


def forked(task: Callable[[], int], count: int) -> list[int]:
    """Exit codes of processes that all begin at the same moment."""
    reader, writer = os.pipe()
    pids = []
    for _ in range(count):
        pid = os.fork()
        if not pid:
            code = 99
            try:
                os.close(writer)
                os.read(reader, 1)  # until the parent closes its end
                code = task()
            finally:
                os._exit(code)
        pids.append(pid)
    os.close(reader)
    os.close(writer)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def attempt(folder: Path) -> int:
    """0 for results, 2 for a refusal of the right kind."""
    try:
        p2psim.run(tiny(), folder, progress=False)
    except FolderError as error:
        return 2 if any(refusal in str(error) for refusal in REFUSALS) else 3
    return 0


def test_runs_at_the_same_moment(tmp_path: Path) -> None:
    p2psim.run(tiny(), tmp_path / "alone", progress=False)
    alone = small.snapshot(tmp_path / "alone")
    for turn in range(10):
        folder = tmp_path / f"run-{turn}"
        codes = forked(lambda folder=folder: attempt(folder), 2 + turn % 2)
        assert set(codes) <= {0, 2}
        assert 0 in codes
        left = small.snapshot(folder)
        for files in (left, alone):
            files.pop("manifest.json", None)
        assert left == alone
        assert manifest.read(folder).state == "finished"
        assert len(manifest.read(folder).invocations) == 1


class Turns:
    """Lets threads take steps in a random order: only one moves at a time, up to its next call that is watched."""

    def __init__(self, rng: random.Random, count: int):
        self._rng, self._left = rng, count
        self._condition = threading.Condition()
        self._waiting: set[int] = set()
        self._turn: int | None = None

    def wait(self) -> None:
        """Wait until it is this thread's turn."""
        own = threading.get_ident()
        with self._condition:
            self._waiting.add(own)
            if self._turn == own:
                self._turn = None
            self._choose()
            self._condition.wait_for(lambda: self._turn == own, timeout=30)
            self._waiting.discard(own)

    def end(self) -> None:
        """The thread takes no more turns."""
        with self._condition:
            self._left -= 1
            self._turn = None
            self._choose()

    def _choose(self) -> None:
        if self._turn is None and len(self._waiting) == self._left and self._waiting:
            self._turn = self._rng.choice(sorted(self._waiting))
            self._condition.notify_all()


@pytest.mark.parametrize("existing", [False, True])
def test_any_interleaving_lets_one_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    """Steps of two starts in 25 random orders; whoever gets to the work has the folder for itself."""
    scenario = tiny()
    (grid,) = cells(scenario)
    within: list[int] = []
    most = 0

    def work(*_: object) -> dict[object, str]:
        nonlocal most
        within.append(threading.get_ident())
        most = max(most, len(within))
        turns.wait()
        within.remove(threading.get_ident())
        raise KeyboardInterrupt

    def watched(original: Callable[..., object]) -> Callable[..., object]:
        def step(*args: object, **kwargs: object) -> object:
            turns.wait()
            return original(*args, **kwargs)

        return step

    monkeypatch.setattr(runner.Study, "execute", work)
    monkeypatch.setattr(runner.Study, "prepare", lambda *_: ({grid.content: {}}, {}))
    for module, name in (
        (store, "inspect"),
        (store, "lock"),
        (store, "begin"),
        (runner.Study, "_create"),
        (Path, "exists"),
    ):
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    entered, refused = 0, 0
    for turn in range(25):
        folder = tmp_path / str(turn)
        if existing:
            folder.mkdir()
        turns = Turns(random.Random(turn), 2)

        def start(folder: Path = folder, turns: Turns = turns) -> None:
            nonlocal entered, refused
            try:
                options = runner.RunOptions(progress="none")
                runner.Study(folder, scenario, [grid], options, lambda warning: None).complete()
            except KeyboardInterrupt:
                entered += 1
            except FolderError as error:
                refused += any(refusal in str(error) for refusal in REFUSALS)
            finally:
                turns.end()

        threads = [threading.Thread(target=start) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert most == 1
    assert entered + refused == 50
    assert refused > 0


def test_a_reader_of_a_run_that_goes_on_is_told_to_wait(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert not is_running(tmp_path / "run")
    with store.lock(tmp_path / "run"):
        assert is_running(tmp_path / "run")
    assert not is_running(tmp_path / "run")
