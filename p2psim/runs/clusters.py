"""Batches on a Dask cluster: of other machines, or one that is started on this one.

Each batch carries all that it needs: its cells, and how to prepare their data. Nothing else lies on the cluster, so
that a worker may come, go or be replaced at any time, and a batch be done by another worker. It is written once, by
the parent, when the first of its results has come.
"""

import importlib
import platform
import shutil
import tempfile
import threading
import uuid
import weakref
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from p2psim.core import registry
from p2psim.core.errors import InputError, SimulationError, first_line, not_installed
from p2psim.runs.batches import BatchOptions, BatchResult, Item, Schedule, given_up, run_batch
from p2psim.runs.manifest import versions
from p2psim.runs.system import SAFE_PATH, environment
from p2psim.runs.work import Work
from p2psim.scenario.model import Cell
from p2psim.simulation.outcome import arithmetic, differing
from p2psim.simulation.workspace import Workspace

#: Seconds until whoever answers nothing, or has lost its scheduler, is given up.
PATIENCE = 10.0

#: Studies whose data a worker keeps.
_KEPT = 4
# A Dask worker may live for many studies, and run several threads.
_LOCK = threading.Lock()


@lru_cache(_KEPT)
def workspace_of(study: str) -> Workspace:
    """The worker's own, in a directory that goes with it, or when the worker has done other studies since."""
    directory = tempfile.mkdtemp(prefix="p2psim-")
    workspace = Workspace(Path(directory))
    weakref.finalize(workspace, shutil.rmtree, directory, ignore_errors=True)
    return workspace


@cache
def versions_of(modules: Sequence[str]) -> dict[str, str]:
    """What must be the same here and there, for the same bytes; loads the modules of parts."""
    registry.load_parts(*modules)
    made_by = versions()
    of_parts = {name: " ".join(map(str, registry.version_of(name))) for name in modules}
    return {"p2psim": made_by["p2psim"], **made_by["libraries"], **of_parts}


def work_remotely(
    study: str,
    cells: Mapping[int, Cell],
    items: Sequence[Item],
    options: BatchOptions,
    parent: Mapping[str, str],
    kernels: Mapping[str, Sequence[str]],
) -> BatchResult:
    """Do a batch on a machine that may not share a disk with the parent: the data is prepared there."""
    try:
        mine = versions_of(options.parts)
    except InputError as error:
        return BatchResult(None, stopped=SimulationError(f"worker {platform.node()}: {error}"))
    differ = [name for name in mine if parent.get(name) != mine[name]]
    if differ:
        others = ", ".join(f"{name} {mine[name]} there, {parent.get(name)} here" for name in differ)
        message = f"worker {platform.node()} has other versions: {others}; install the same ones"
        return BatchResult(None, stopped=SimulationError(message))
    if other := differing(kernels):
        message = "part of the results was made by workers with other arithmetic, and differs by rounding"
        options = replace(options, warnings=(f"{message}: {other}",))
    with _LOCK:
        workspace = workspace_of(study)
    result = run_batch(cells, items, workspace, options, prepare=True)
    return replace(result, worker=f"{platform.node()}:{result.worker}")


@contextmanager
def connect(scheduler: str | None, workers: int) -> Iterator[Any]:
    """Connect to a Dask cluster, before anything is written.

    Parameters
    ----------
    scheduler : str or None
        Address of its scheduler, ``tcp://host:8786``. Without one a cluster is started on this machine, and ended with
        the block.
    workers : int
        Processes of the cluster that is started.

    Yields
    ------
    distributed.Client

    Raises
    ------
    MissingSourceError
        If ``distributed`` is not installed.
    InputError
        If nothing answers at the address.
    """
    try:
        # Untyped, hence Any.
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise not_installed("Dask", "dask") from None
    if scheduler is None:
        with (
            environment(SAFE_PATH),
            tempfile.TemporaryDirectory(prefix="p2psim-dask-") as directory,
            distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                local_directory=directory,
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"--scheduler {scheduler}: cannot be reached ({error})") from None
    with client:
        yield client


def run_dask(client: Any, work: Work, options: BatchOptions) -> Generator[BatchResult, None, None]:
    """Do all batches on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        From `connect`.
    work : Work
    options
        As for :func:`p2psim.runs.batches.run_batch`.

    Raises
    ------
    SimulationError
        If the cluster is lost, its scheduler restarted perhaps, or if its workers cannot do the work.
    """
    distributed: Any = importlib.import_module("distributed")
    schedule = Schedule(work.items, max(1, sum(client.nthreads().values())), work.more)
    # By this name workers know their data of this run.
    study = uuid.uuid4().hex
    futures = distributed.as_completed()
    waiting: dict[Any, Sequence[Item]] = {}
    here = versions_of(options.parts)
    try:
        while True:
            while len(waiting) <= 2 * schedule.workers and (batch := schedule.take()):
                needed = {position: work.grid[position] for position, _ in batch}
                arguments = study, needed, batch, options, here, arithmetic()
                future = client.submit(work_remotely, *arguments, pure=False)
                waiting[future] = batch
                futures.add(future)
            if not waiting:
                if schedule.refill():
                    continue
                return
            future = next(futures)
            batch = waiting.pop(future)
            try:
                result = future.result()
            except distributed.KilledWorker:
                # The cluster has tried it on several workers, and each has died.
                if schedule.lose(batch):
                    yield given_up(work.grid, batch[0], "was ended on each of several computers", "dask")
                continue
            except (OSError, distributed.CancelledError) as error:
                raise SimulationError(
                    f"the cluster has lost a batch ({first_line(error)}); finished simulations are kept, "
                    "run again to go on"
                ) from None
            except Exception as error:
                message = f"the cluster cannot do a batch ({first_line(error)}); is p2psim installed there?"
                raise SimulationError(message) from None
            schedule.learn(result)
            yield result
    finally:
        client.cancel(list(waiting))
