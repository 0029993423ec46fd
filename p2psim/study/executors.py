"""Who does the batches: this process, a pool of local processes, or the workers of a Dask cluster.

All of them return encoded parts, which the parent writes: a worker needs no access to the run folder, and
there is one place that can fail for want of disk.
"""

import atexit
import importlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2psim.errors import InputError, MissingSourceError, SimulationError
from p2psim.study.batches import BatchOptions, BatchResult, Item, Schedule, run_batch

if TYPE_CHECKING:
    from p2psim.study.cells import Cell
    from p2psim.study.workspace import Workspace

EXECUTORS = ("local", "dask")
#: A study that one process finishes sooner than this is not worth a pool.
_WORTH_A_POOL = 3.0
_ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMBA_NUM_THREADS",
    ),
    "1",
)


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_here(
    cells: "Sequence[Cell]", schedule: Schedule, workspace: "Workspace", options: BatchOptions
) -> Generator[BatchResult, None, None]:
    """Do all batches in this process."""
    while items := schedule.take():
        result = run_batch(cells, items, workspace, options)
        schedule.learn(result)
        yield result


def run_local(
    cells: "Sequence[Cell]",
    items: Sequence[Item],
    workspace: "Workspace",
    options: BatchOptions,
    jobs: int | None,
) -> Generator[BatchResult, None, None]:
    """Do all batches on this machine.

    Parameters
    ----------
    cells, items, workspace, options
        As for :func:`p2psim.study.batches.run_batch`.
    jobs : int or None
        Number of processes; 1 is this one alone. None begins in this process and starts one process a core
        when what is left is worth it.
    """
    workers = available_cores() if jobs is None else jobs
    workers = max(1, min(workers, len(items)))
    schedule = Schedule(items, workers)
    if workers == 1:
        yield from run_here(cells, schedule, workspace, options)
        return
    if jobs is None:
        # Twice: the first batch may have compiled, so that only the second tells how long the rest takes.
        for _ in range(2):
            if batch := schedule.take():
                result = run_batch(cells, batch, workspace, options)
                schedule.learn(result)
                yield result
        if schedule.left() < _WORTH_A_POOL:
            yield from run_here(cells, schedule, workspace, options)
            return
    yield from _run_pool(cells, schedule, workspace.directory, options, workers)


# Of a worker process: set once, so that a batch is sent as a list of pairs of numbers.
_WORKER: "tuple[Sequence[Cell], Workspace, BatchOptions] | None" = None


def _start_worker(cells: "Sequence[Cell]", directory: Path, options: BatchOptions) -> None:
    global _WORKER
    # Ctrl-C reaches the whole process group; the parent alone decides what becomes of the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_die_with, args=(parent.sentinel,), daemon=True).start()
    from p2psim.study.workspace import Workspace

    _WORKER = (cells, Workspace(directory), options)


def _die_with(sentinel: int) -> None:
    """End this process when its parent is gone, killed perhaps: nobody would take its results."""
    from multiprocessing.connection import wait as wait_for

    wait_for([sentinel])
    os._exit(1)


def _work(items: Sequence[Item]) -> BatchResult:
    if _WORKER is None:
        raise RuntimeError("the worker was not started")
    cells, workspace, options = _WORKER
    return run_batch(cells, items, workspace, options)


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _run_pool(
    cells: "Sequence[Cell]", schedule: Schedule, directory: Path, options: BatchOptions, workers: int
) -> Generator[BatchResult, None, None]:
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    # Imported once, in the server, and not again in each worker.
    context.set_forkserver_preload(["__main__", "p2psim.study.simulate", "p2psim.study.workspace"])
    strangers = set(multiprocessing.active_children())
    with _environment(_ONE_THREAD):
        pool = ProcessPoolExecutor(workers, context, _start_worker, (cells, directory, options))
        pending: set[Future[BatchResult]] = set()
        try:
            while True:
                # One more than there are workers, so that none waits while a result is written.
                while len(pending) <= workers and (items := schedule.take()):
                    pending.add(pool.submit(_work, items))
                if not pending:
                    break
                done, pending = wait(pending, return_when=FIRST_COMPLETED)
                for future in done:
                    result = future.result()
                    schedule.learn(result)
                    yield result
            pool.shutdown()
        except BrokenProcessPool:
            raise SimulationError(
                "a worker process ended without a result (killed, or out of memory); "
                "what was finished is kept, run again to go on, perhaps with fewer --jobs"
            ) from None
        finally:
            # Nothing to do after an orderly end; after an interrupt nobody waits for a batch to finish.
            for child in set(multiprocessing.active_children()) - strangers:
                child.kill()
            pool.shutdown(wait=False, cancel_futures=True)


# Of a Dask worker: workspace of each study.
_OWN_WORKSPACES: "dict[str, Workspace]" = {}


def _work_remotely(
    study: str, cells: "Sequence[Cell]", items: Sequence[Item], options: BatchOptions
) -> BatchResult:
    """Do a batch on a machine that may not share a disk with the parent: the data is prepared there."""
    from p2psim.study.workspace import Workspace

    if study not in _OWN_WORKSPACES:
        directory = tempfile.mkdtemp(prefix="p2psim-")
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
        _OWN_WORKSPACES[study] = Workspace(Path(directory))
    return run_batch(cells, items, _OWN_WORKSPACES[study], options, prepare=True)


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
    client: Any, cells: "Sequence[Cell]", items: Sequence[Item], options: BatchOptions, study: str
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
    """
    distributed: Any = importlib.import_module("distributed")
    schedule = Schedule(items, max(1, sum(client.nthreads().values())))
    grid = client.scatter([list(cells)], broadcast=True)[0]
    futures = distributed.as_completed()
    waiting: set[Any] = set()
    try:
        while True:
            while len(waiting) <= 2 * schedule.workers and (batch := schedule.take()):
                future = client.submit(_work_remotely, study, grid, batch, options, pure=False)
                waiting.add(future)
                futures.add(future)
            if not waiting:
                return
            future = next(futures)
            waiting.remove(future)
            result = future.result()
            schedule.learn(result)
            yield result
    finally:
        client.cancel(list(waiting))
