"""A Dask cluster gives the same bytes as this process, whatever becomes of its workers and of its scheduler."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest
import small_study as small

import p2psim
from p2psim.core.errors import SimulationError
from p2psim.runs import batches, clusters, manifest, store
from p2psim.scenario.cells import cells
from p2psim.simulation.outcome import arithmetic

pytestmark = pytest.mark.verification


def cluster_of(workers: int, directory: Path) -> Any:
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        local_directory=str(directory),
    )


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a cluster of three processes on this machine; gone with the tests."""
    with cluster_of(3, tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of this process alone."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    p2psim.run(small.scenario(replicas=30), folder, progress=False)
    return folder


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.02)


def pids_of(scheduler: str) -> dict[str, int]:
    """Process of each worker, by its address."""
    with distributed.Client(scheduler) as client:
        found: dict[str, int] = client.run(os.getpid)
    return found


@pytest.mark.parametrize("redraw", ["never", "replica"])
def test_a_cluster_changes_no_byte(scheduler: str, tmp_path: Path, redraw: str) -> None:
    study = small.scenario(data=small.tree()["data"] | {"redraw": redraw})
    p2psim.run(study, tmp_path / "here", progress=False)
    p2psim.run(study, tmp_path / "there", progress=False, executor="dask", scheduler=scheduler)
    workers = set(pids_of(scheduler).values())
    assert len(workers) == 3
    assert os.getpid() not in workers
    (invocation,) = manifest.read(tmp_path / "there").invocations
    assert (invocation.executor, invocation.simulations) == ("dask", 6)
    assert 1 <= invocation.workers <= 3
    assert invocation.of_workers.user_time > 0
    assert small.digests(tmp_path / "there") == small.digests(tmp_path / "here")
    assert set(small.digests(tmp_path / "there")) == set(small.RESULTS)


def test_replicas_until_an_interval_is_narrow_are_the_same(scheduler: str, tmp_path: Path) -> None:
    until = {"metric": "relative_fitness", "width": 2.0}
    study = small.scenario(replicas={"until": until, "least": 5, "most": 12})
    p2psim.run(study, tmp_path / "here", progress=False)
    p2psim.run(study, tmp_path / "there", progress=False, executor="dask", scheduler=scheduler)
    assert small.digests(tmp_path / "there") == small.digests(tmp_path / "here")
    here, there = (manifest.read(tmp_path / name).cells for name in ("here", "there"))
    assert [cell.stopped for cell in there] == [cell.stopped for cell in here]
    assert [cell.stopped["why"] for cell in here] == ["reached", "most"]


def killing(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Kill a worker when the fourth batch is kept: one that has work, if any has at this moment."""
    known = pids_of(scheduler)
    keep, killed = store.add_part, list[int]()
    kept = 0

    def keep_and_kill(*part: Any) -> Any:
        nonlocal kept
        stored = keep(*part)
        kept += 1
        if kept == 4:
            with distributed.Client(scheduler) as client:
                busy = [address for address, tasks in client.processing().items() if tasks]
            killed.append(known[(busy or list(known))[0]])
            os.kill(killed[0], signal.SIGKILL)
        return stored

    monkeypatch.setattr(store, "add_part", keep_and_kill)
    return killed


def test_a_worker_killed_in_the_middle_changes_no_byte(
    scheduler: str,
    undisturbed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """And each simulation is counted once."""
    killed = killing(scheduler, monkeypatch)
    folder = tmp_path / "run"
    study = small.scenario(replicas=30)
    p2psim.run(study, folder, progress="json", executor="dask", scheduler=scheduler)
    assert killed
    assert killed[0] not in pids_of(scheduler).values()
    assert small.digests(folder) == small.digests(undisturbed)
    told = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    assert told[-1]["done"] == told[-1]["total"] == 60
    assert sum(told[-1]["workers"].values()) == 60
    assert len(manifest.read(folder).runs) == 60


def test_a_cluster_is_started_where_none_is_named(undisturbed: Path, tmp_path: Path) -> None:
    """By the command, whose main module the workers must not run again."""
    path = tmp_path / "study.yaml"
    path.write_text(small.scenario(replicas=30).to_yaml())
    command = [sys.executable, "-m", "p2psim", "run", str(path), "--out", str(tmp_path / "run")]
    command += ["--executor", "dask", "--jobs", "1", "--progress", "json"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert small.digests(tmp_path / "run") == small.digests(undisturbed)
    told = [line for line in map(json.loads, ran.stderr.splitlines()) if "done" in line]
    assert told[-1]["done"] == 60


#: A scheduler in a process of its own, with two workers, until it is told to end.
SCHEDULER = """
import asyncio, sys
from distributed import Scheduler, Worker

async def live():
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
        async with Worker(scheduler.address, nthreads=1, local_directory=sys.argv[1]):
            print(scheduler.address, flush=True)
            await asyncio.sleep(600)

asyncio.run(live())
"""


def test_a_scheduler_that_is_lost_loses_nothing(undisturbed: Path, scheduler: str, tmp_path: Path) -> None:
    """The run ends and says so; it goes on with another scheduler."""
    folder, study = tmp_path / "run", small.scenario(replicas=30)
    with subprocess.Popen(
        [sys.executable, "-c", SCHEDULER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        keep, kept = store.add_part, 0

        def keep_and_kill(*part: Any) -> None:
            nonlocal kept
            keep(*part)
            kept += 1
            if kept == 3:
                process.kill()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "add_part", keep_and_kill)
            began = time.monotonic()
            with pytest.raises(SimulationError, match="cluster"):
                p2psim.run(study, folder, progress=False, executor="dask", scheduler=address)
            assert time.monotonic() - began < 60
    assert 0 < len(list(folder.glob("parts/*"))) - 1 < 60
    p2psim.run(study, folder, progress=False, executor="dask", scheduler=scheduler)
    assert small.digests(folder) == small.digests(undisturbed)


def test_a_worker_of_other_versions_is_refused() -> None:
    here = clusters.versions_of(())
    assert {"p2psim", "numpy", "numba"} <= set(here)
    grid = cells(small.scenario())
    own = {0: grid[0]}
    done = clusters.work_remotely("same", own, [(0, 0)], batches.BatchOptions(), here, arithmetic())
    assert done.part is not None
    assert done.stopped is None
    refused = clusters.work_remotely(
        "other", own, [(0, 0)], batches.BatchOptions(), here | {"numpy": "1.0"}, arithmetic()
    )
    assert refused.part is None
    assert "numpy" in str(refused.stopped)
    assert "1.0 here" in str(refused.stopped)
    assert str(pickle.loads(pickle.dumps(refused)).stopped) == str(refused.stopped)


def test_simulations_of_a_worker_with_other_arithmetic_bear_a_warning() -> None:
    own, here = {0: cells(small.scenario())[0]}, clusters.versions_of(())
    for kernels, count in ((arithmetic(), 0), ({**arithmetic(), "blas": ["another"]}, 1)):
        done = clusters.work_remotely("same", own, [(0, 0)], batches.BatchOptions(), here, kernels)
        assert done.part is not None
        assert sum("other arithmetic" in message for message in done.part.warnings) == count


def test_a_worker_keeps_the_data_of_few_studies() -> None:
    directories = [clusters.workspace_of(f"study {i}").directory for i in range(6)]
    clusters.workspace_of("study 6")
    assert [directory.exists() for directory in directories[-4:]] == [False, True, True, True]
    assert clusters.workspace_of("study 5").directory == directories[5]
