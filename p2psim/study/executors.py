"""Who does the batches: this process, a pool of local processes, or the workers of a Dask cluster.

All of them return encoded parts, which the parent writes: a worker needs no access to the run folder, and
there is one place that can fail for want of disk.
"""

import atexit
import contextlib
import importlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from p2psim.errors import InputError, MissingSourceError, SimulationError
from p2psim.study.batches import BatchOptions, BatchResult, Item, Schedule, run_batch

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

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
    yield from _run_pool(cells, schedule, workspace.directory, options, workers)


def _serve(connection: "Connection", cells: "Sequence[Cell]", directory: Path, options: BatchOptions) -> None:
    """Life of a worker: batches come as lists of pairs of numbers, until the other end is closed."""
    # Ctrl-C reaches the whole process group; the parent alone decides what becomes of the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_die_with, args=(parent.sentinel,), daemon=True).start()
    from p2psim.study.workspace import Workspace

    workspace = Workspace(directory)
    with contextlib.suppress(EOFError):
        while True:
            connection.send(run_batch(cells, connection.recv(), workspace, options))


def _die_with(sentinel: int) -> None:
    """End this process when its parent is gone, killed perhaps: nobody would take its results."""
    wait([sentinel])
    os._exit(1)


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
    """Do batches on worker processes, each on a pipe of its own.

    Not a ``ProcessPoolExecutor``: its workers share one pipe for results, and when one is killed in the middle
    of writing, the parent waits for the rest of the message for ever.
    """
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context: Any = multiprocessing.get_context(method)
    # Imported once, in the server, and not again in each worker.
    context.set_forkserver_preload(["__main__", "p2psim.study.simulate", "p2psim.study.workspace"])
    processes: list[BaseProcess] = []
    connections: list[Connection] = []
    try:
        with _environment(_ONE_THREAD):
            for _ in range(workers):
                mine, theirs = context.Pipe()
                process = context.Process(
                    target=_serve, args=(theirs, cells, directory, options), daemon=True
                )
                process.start()
                processes.append(process)
                connections.append(mine)
                # The worker's end must be open nowhere else, so that its death is seen.
                theirs.close()
        yield from _exchange(schedule, connections)
    finally:
        # Idle after an orderly end; after an interrupt nobody waits for a batch to finish.
        for process in processes:
            process.kill()
        for process, connection in zip(processes, connections, strict=False):
            process.join()
            process.close()
            connection.close()


def _exchange(schedule: Schedule, connections: "Sequence[Connection]") -> Generator[BatchResult, None, None]:
    """Hand out batches and take in results until nothing is left."""
    busy: list[Any] = []

    def hand_out(connection: Any) -> None:
        if items := schedule.take():
            connection.send(items)
            busy.append(connection)

    try:
        while schedule.refill():
            for connection in connections:
                hand_out(connection)
            while busy:
                for ready in wait(busy):
                    busy.remove(ready)
                    result = cast(Any, ready).recv()
                    schedule.learn(result)
                    # Before the result is written, so that the worker need not wait for the disk.
                    hand_out(ready)
                    yield result
    except (EOFError, OSError):
        # The pipe has ended, between messages or in the middle of one.
        raise SimulationError(
            "a worker process ended without a result (killed, or out of memory); "
            "what was finished is kept, run again to go on, perhaps with fewer --jobs"
        ) from None


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
                if schedule.refill():
                    continue
                return
            future = next(futures)
            waiting.remove(future)
            result = future.result()
            schedule.learn(result)
            yield result
    finally:
        client.cancel(list(waiting))
