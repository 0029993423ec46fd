"""The manifest says of each run on a folder how it was called, and what it took."""

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import small_study as small
from hypothesis import given
from hypothesis import strategies as st

import p2psim
from p2psim.cli.main import main
from p2psim.runs import batches, invocations, manifest, runner
from p2psim.runs.invocations import NOTHING, Invocation, InvocationRecorder, Meter, Resources

AMOUNTS = st.floats(0, 1e6).map(lambda value: round(value, 3))
RESOURCES = st.builds(Resources, AMOUNTS, AMOUNTS, AMOUNTS, st.integers(0, 10**12))
INVOCATIONS = st.builds(
    Invocation,
    began=st.text(),
    arguments=st.none() | st.lists(st.text()).map(tuple),
    p2psim=st.text(),
    executor=st.text(),
    jobs=st.none() | st.integers(1, 99),
    ended=st.text(),
    simulations=st.integers(0, 10**9),
    resources=RESOURCES,
    workers=st.integers(0, 99),
    of_workers=RESOURCES,
)


@given(INVOCATIONS)
def test_what_is_written_is_read_again(one: Invocation) -> None:
    tree = json.loads(json.dumps(invocations.to_tree(one), allow_nan=False))
    assert invocations.from_tree(tree) == one


@given(st.lists(RESOURCES))
def test_times_add_up_and_the_largest_memory_counts(each: list[Resources]) -> None:
    total = sum(each, NOTHING)
    assert total.user_time == pytest.approx(sum(one.user_time for one in each))
    assert total.max_memory == max((one.max_memory for one in each), default=0)


def test_cpu_and_memory_are_those_of_the_system() -> None:
    """The kernel's own numbers bound ours from both sides; work of .2 s and 64 MB must be seen."""
    before, meter = resource.getrusage(resource.RUSAGE_SELF), Meter()
    end = time.process_time() + 0.2
    held = bytearray(b"x") * 64_000_000
    while time.process_time() < end:
        sum(range(1000))
    used, after = meter.read(), resource.getrusage(resource.RUSAGE_SELF)
    # The kernel counts pages of a thread in the sum only now and then.
    most = 1.1 * after.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    assert len(held) <= used.max_memory <= most
    most = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    # The kernel may count in ticks of 10 ms.
    assert 0.17 <= used.user_time + used.sys_time <= most
    assert used.elapsed_time >= 0.19


def test_memory_is_not_that_of_the_program_which_started_this_one() -> None:
    """A process with 500 MB starts one that has few of its own."""
    held = bytearray(b"x") * 500_000_000
    code = "from p2psim.runs.system import peak_memory; print(peak_memory())"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert 1e6 < int(run.stdout) < len(held) / 2


def only(folder: Path) -> Invocation:
    (one,) = manifest.read(folder).invocations
    return one


def test_from_python_there_is_no_command_line(tmp_path: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    began = time.monotonic()
    p2psim.run(small.scenario(), tmp_path / "run", progress=False)
    seconds = time.monotonic() - began
    one = only(tmp_path / "run")
    assert one.arguments is None
    assert (one.executor, one.jobs, one.ended, one.simulations) == ("local", 1, "finished", 6)
    assert one.p2psim == p2psim.__version__
    assert (
        before <= datetime.strptime(one.began, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) <= datetime.now(UTC)
    )
    assert 0 < one.resources.elapsed_time <= seconds
    assert one.resources.user_time > 0
    assert one.resources.max_memory > 1e6
    # This process did the work and has measured itself: nothing is counted twice.
    assert (one.workers, one.of_workers) == (0, NOTHING)


def test_the_command_line_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(small.scenario().to_yaml())
    arguments = ["run", "study.yaml", "--out", "run", "--quiet", "--replicas", "1", "--jobs", "1"]
    assert main(arguments) == 0
    capsys.readouterr()
    assert only(tmp_path / "run").arguments == tuple(arguments)
    # More replicas: an invocation more. The same again does nothing, and leaves no trace.
    for _ in range(2):
        assert main([*arguments[:-4], "--jobs", "1"]) == 0
    kept = manifest.read(tmp_path / "run").invocations
    assert [one.arguments for one in kept] == [tuple(arguments), (*arguments[:-4], "--jobs", "1")]
    assert [one.simulations for one in kept] == [2, 4]


def test_the_command_line_of_the_process_is_kept(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(small.scenario(replicas=1).to_yaml())
    arguments = ["run", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "run"), "--quiet"]
    subprocess.run([sys.executable, "-m", "p2psim", *arguments], check=True, capture_output=True)
    one = only(tmp_path / "run")
    assert one.arguments == tuple(arguments)
    assert one.jobs is None


def test_workers_measure_what_their_batches_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.001)
    p2psim.run(small.scenario(), tmp_path / "one", progress=False)
    p2psim.run(small.scenario(), tmp_path / "two", jobs=2, progress=False)
    one = only(tmp_path / "two")
    assert (one.jobs, one.simulations) == (2, 6)
    assert 1 <= one.workers <= 2
    assert 0 < one.of_workers.elapsed_time <= 2 * one.resources.elapsed_time
    assert one.of_workers.user_time > 0
    assert one.of_workers.max_memory > 1e6
    assert small.digests(tmp_path / "one") == small.digests(tmp_path / "two")


def test_each_attempt_is_kept_with_how_it_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted, then killed, then finished; nothing of it is in the tables."""
    folder, kept = tmp_path / "run", runner.store.add_part
    left = [2]

    def keep(*part: object) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        kept(*part)  # type: ignore[arg-type]

    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(runner.store, "add_part", keep)
        with pytest.raises(KeyboardInterrupt):
            p2psim.run(small.scenario(), folder, progress=False)
    first = only(folder)
    # The batch that was done and not kept was tried too.
    assert (first.ended, first.resources.user_time > 0) == ("interrupted", True)
    if not os.fork():
        # Ended within its first batch, so that nobody writes how.
        try:
            runner.store.add_part = lambda *part: os._exit(9)
            p2psim.run(small.scenario(), folder, progress=False, arguments=["run", "killed"])
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 9
    assert manifest.read(folder).invocations[-1].ended == "running"
    p2psim.run(small.scenario(), folder, progress=False)
    found = manifest.read(folder).invocations
    assert found[0] == first
    assert [one.ended for one in found] == ["interrupted", "killed", "finished"]
    assert found[1].arguments == ("run", "killed")
    assert found[2].simulations == 4
    p2psim.run(small.scenario(), tmp_path / "undisturbed", progress=False)
    assert small.digests(folder) == small.digests(tmp_path / "undisturbed")
    p2psim.run(small.scenario(), folder, overwrite=True, progress=False)
    assert only(folder).simulations == 6


def test_a_folder_of_before_has_no_invocations(tmp_path: Path) -> None:
    p2psim.run(small.scenario(replicas=1), tmp_path / "run", progress=False)
    small.reseal(tmp_path / "run", lambda tree: tree.pop("invocations"))
    assert manifest.read(tmp_path / "run").invocations == ()
    p2psim.run(small.scenario(replicas=2), tmp_path / "run", progress=False)
    assert only(tmp_path / "run").simulations == 2


def test_only_other_processes_are_workers() -> None:
    record, used = InvocationRecorder(None, "local", None), Resources(1.0, 2.0, 3.0, 4)
    record.take_in(str(os.getpid()), 5, used)
    for worker in ("a", "b", "a"):
        record.take_in(worker, 1, replace(used, max_memory=7 if worker == "b" else 4))
    one = record.so_far("finished")
    assert (one.simulations, one.workers, one.of_workers) == (8, 2, Resources(3.0, 6.0, 9.0, 7))
