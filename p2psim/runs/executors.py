"""Local executors: this process, or a pool of processes; `clusters` has the one for other machines.

All executors return encoded parts, which the parent writes: a worker needs no access to the run folder, and only one
process can fail for want of disk. Before workers start, a script without a guarded main part is refused.
"""

import ast
import multiprocessing
import os
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from traceback import walk_stack
from typing import TYPE_CHECKING

from p2psim.core.errors import InputError
from p2psim.runs.batches import BatchOptions, BatchResult, Item, Schedule, run_batch
from p2psim.runs.pilot import has_room_for_workers
from p2psim.runs.pool import run_pool

if TYPE_CHECKING:
    from p2psim.scenario.model import Cell
    from p2psim.simulation.workspace import Workspace

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
        As for :func:`p2psim.runs.batches.run_batch`.
    jobs : int or None
        Number of processes; 1 is this one alone. None begins in this process and starts one process a core
        when what is left is worth it.
    more
        As for :class:`p2psim.runs.batches.Schedule`.
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
            if number > 1 and schedule.left() >= _WORTH_A_POOL and has_room_for_workers():
                break
        else:
            return
    assert workspace.directory is not None
    yield from run_pool(cells, schedule, workspace.directory, options, workers)


_CURE = (
    "worker processes import the script, which would begin the run anew in each of them: put what it does under\n\n"
    'if __name__ == "__main__":\n    ...\n\nor give jobs=1'
)


def refuse_unguarded() -> None:
    """Refuse to start workers for a script that is now running a statement which each of them would run, too.

    Raises
    ------
    InputError
        With what is missing.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise InputError(_CURE)
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    frames = (frame for frame, _ in walk_stack(None))
    top = (frame for frame in frames if frame.f_code.co_name == "<module>")
    frame = next((frame for frame in top if frame.f_globals.get("__name__") == "__main__"), None)
    if file is None or frame is None or frame.f_code.co_filename != file:
        return
    try:
        statements = ast.parse(Path(file).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return
    for statement in statements:
        if any(
            isinstance(node, ast.Compare) and "__name__" in ast.unparse(node) for node in ast.walk(statement)
        ):
            return
        if statement.lineno <= frame.f_lineno <= (statement.end_lineno or statement.lineno):
            raise InputError(f"{file}:{statement.lineno}: {_CURE}")
