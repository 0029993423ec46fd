"""Who does the batches: this process, a pool of local processes, or the workers of a Dask cluster.

All of them return encoded parts, which the parent writes: a worker needs no access to the run folder, and
there is one place that can fail for want of disk.
"""

import atexit
import importlib
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2psim.errors import InputError, MissingSourceError, SimulationError
from p2psim.study.batches import BatchOptions, BatchResult, Item, Schedule, given_up, run_batch
from p2psim.study.pool import run_pool

if TYPE_CHECKING:
    from p2psim.study.cells import Cell
    from p2psim.study.workspace import Workspace

EXECUTORS = ("local", "dask")
#: A study that one process finishes sooner than this is not worth a pool.
_WORTH_A_POOL = 3.0


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_here(
    cells: "Sequence[Cell]", schedule: Schedule, workspace: "Workspace", options: BatchOptions
) -> Generator[BatchResult, None, None]:
    """Do all batches in this process."""
    while schedule.refill():
        result = run_batch(cells, schedule.take(), workspace, options)
        schedule.learn(result)
        yield result


def run_local(
    cells: "Sequence[Cell]",
    items: Sequence[Item],
    workspace: "Workspace",
    options: BatchOptions,
    jobs: int | None,
    more: Callable[[], Sequence[Item]] | None = None,
) -> Generator[BatchResult, None, None]:
    """Do all batches on this machine.

    Parameters
    ----------
    cells, items, workspace, options
        As for :func:`p2psim.study.batches.run_batch`.
    jobs : int or None
        Number of processes; 1 is this one alone. None begins in this process and starts one process a core
        when what is left is worth it.
    more
        As for :class:`p2psim.study.batches.Schedule`.
    """
    workers = available_cores() if jobs is None else jobs
    if more is None:
        workers = max(1, min(workers, len(items)))
    schedule = Schedule(items, workers, more)
    here = run_here(cells, schedule, workspace, options)
    if workers == 1:
        yield from here
        return
    if jobs is None:
        # From the second on: the first batch may have compiled, and does not tell how long the rest takes.
        for number, result in enumerate(here, 1):
            yield result
            if number > 1 and schedule.left() >= _WORTH_A_POOL:
                break
        else:
            return
    yield from run_pool(cells, schedule, workspace.directory, options, workers)


# Of a Dask worker: workspace of each study.
_OWN_WORKSPACES: "dict[str, Workspace]" = {}


def _work_remotely(
    study: str, cells: "Mapping[int, Cell]", items: Sequence[Item], options: BatchOptions
) -> BatchResult:
    """Do a batch on a machine that may not share a disk with the parent: the data is prepared there."""
    from p2psim.study.workspace import Workspace

    if study not in _OWN_WORKSPACES:
        directory = tempfile.mkdtemp(prefix="p2psim-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        _OWN_WORKSPACES[study] = Workspace(Path(directory))
    result = run_batch(cells, items, _OWN_WORKSPACES[study], options, prepare=True)
    return replace(result, worker=f"{platform.node()}:{result.worker}")


def connect(scheduler: str | None) -> Any:
    """Connect to a Dask cluster, before anything is written.

    Parameters
    ----------
    scheduler : str
        Address of its scheduler, ``tcp://host:8786``.

    Returns
    -------
    distributed.Client

    Raises
    ------
    MissingSourceError
        If ``distributed`` is not installed.
    InputError
        If there is no address, or nothing answers there.
    """
    try:
        # Untyped, hence Any.
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise MissingSourceError('pip install "p2psim[dask]"') from None
    if not scheduler:
        raise InputError("--executor dask needs --scheduler ADDRESS, such as tcp://localhost:8786")
    try:
        return distributed.Client(scheduler, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"--scheduler {scheduler}: cannot be reached ({error})") from None


def run_dask(
    client: Any,
    cells: "Sequence[Cell]",
    items: Sequence[Item],
    options: BatchOptions,
    study: str,
    more: Callable[[], Sequence[Item]] | None = None,
) -> Generator[BatchResult, None, None]:
    """Do all batches on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        From `connect`.
    cells, items, options
        As for :func:`p2psim.study.batches.run_batch`.
    study : str
        A name for this run, so that workers know their data of it.
    more
        As for :class:`p2psim.study.batches.Schedule`.
    """
    distributed: Any = importlib.import_module("distributed")
    schedule = Schedule(items, max(1, sum(client.nthreads().values())), more)
    futures = distributed.as_completed()
    waiting: dict[Any, Sequence[Item]] = {}
    try:
        while True:
            while len(waiting) <= 2 * schedule.workers and (batch := schedule.take()):
                # With its cells: what lies elsewhere on the cluster can be lost with a worker.
                own = {position: cells[position] for position, _ in batch}
                future = client.submit(_work_remotely, study, own, batch, options, pure=False)
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
                    yield given_up(cells, batch[0], "was ended on each of several computers", "dask")
                continue
            except (OSError, distributed.CancelledError) as error:
                raise SimulationError(
                    f"the cluster has lost a batch ({type(error).__name__}: {error}); what was finished is kept, "
                    "run again to go on"
                ) from None
            schedule.learn(result)
            yield result
    finally:
        client.cancel(list(waiting))
