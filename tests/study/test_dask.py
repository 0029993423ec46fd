"""The workers of a Dask cluster give the same bytes as this process."""

import os
from collections.abc import Iterator
from pathlib import Path

import distributed
import pytest
import small_study as small

import p2psim
from p2psim.study import batches

pytestmark = pytest.mark.verification


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a cluster of two processes on this machine; gone with the tests."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        local_directory=str(tmp_path_factory.mktemp("dask")),
    ) as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("redraw", ["never", "replica"])
def test_a_cluster_changes_no_byte(
    scheduler: str, tmp_path: Path, redraw: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_SECONDS", 0.001)
    study = small.scenario(data=small.tree()["data"] | {"redraw": redraw})
    p2psim.run(study, tmp_path / "here", progress=False)
    p2psim.run(study, tmp_path / "there", progress=False, executor="dask", scheduler=scheduler)
    with distributed.Client(scheduler) as client:
        workers = set(client.run(os.getpid).values())
    assert len(workers) == 2
    assert os.getpid() not in workers
    assert small.digests(tmp_path / "there") == small.digests(tmp_path / "here")
    assert set(small.digests(tmp_path / "there")) == set(small.RESULTS)
