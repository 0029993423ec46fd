"""Who does the batches on this machine: this process, or a pool of processes. See `clusters` for more machines.

All of them return encoded parts, which the parent writes: a worker needs no access to the run folder, and
there is one place that can fail for want of disk.
"""

import os
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from p2psim.study.batches import BatchOptions, BatchResult, Item, Schedule, run_batch
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
