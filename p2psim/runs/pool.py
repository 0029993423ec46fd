"""Local executors: this process, or worker processes, each on a pipe of its own; one that dies takes nobody with it.

A worker writes what its batches gave under hidden names into the run folder. The parent flushes it to disk meanwhile,
and gives it a name that counts: what a worker leaves that dies is nobody's. Before workers start, a script without a
guarded main part is refused.

Not a ``ProcessPoolExecutor``: its workers share one pipe for results, and when one is killed in the middle of writing,
the parent waits for the rest of the message for ever.
"""

import ast
import contextlib
import itertools
import math
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from traceback import walk_stack
from typing import Any

from p2psim.core.compiled import load_numba
from p2psim.core.errors import InputError, SimulationError, first_line
from p2psim.core.process import ENDINGS
from p2psim.runs.batches import BatchOptions, BatchResult, Item, Schedule, given_up, run_batch
from p2psim.runs.system import (
    OF_WORKERS,
    SERVER,
    available_cores,
    block_sigint,
    environment,
    has_room_for_workers,
    worker_context,
)
from p2psim.runs.work import Work
from p2psim.scenario.model import Cell
from p2psim.simulation.workspace import Workspace

#: Workers that may end before their first batch, one after the other, before the run stops: the machine is at fault.
_MOST_STARTUP_FAILURES = 3
#: Seconds within which a worker must be ready: without enough memory some libraries wait for ever.
START_SECONDS = 60.0
_GO_ON = "finished simulations are kept; run again to continue, perhaps with fewer --jobs"


if SERVER in os.environ:
    load_numba()


def _serve(connection: Connection, directory: Path, options: BatchOptions, parts: Path) -> None:
    """Life of a worker: it says that it is ready; then come batches, with the cells that it has not seen yet."""
    # These may reach the whole process group; the parent alone decides what becomes of the workers.
    for ending in (signal.SIGINT, *ENDINGS):
        signal.signal(ending, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_with_parent, args=(parent.sentinel,), daemon=True).start()
    workspace = Workspace(directory)
    cells: dict[int, Cell] = {}
    connection.send(None)
    with contextlib.suppress(EOFError):
        while True:
            items, new = connection.recv()
            cells.update(new)
            result = run_batch(cells, items, workspace, options)
            if result.part is not None:
                place = parts / f".{uuid.uuid4().hex}"
                try:
                    result = replace(result, part=result.part.put(place))
                except OSError as error:
                    shutil.rmtree(place, ignore_errors=True)
                    result = BatchResult(None, result.failed, len(result.failed), stopped=error)
            connection.send(result)


def _exit_with_parent(sentinel: int) -> None:
    """End this process when its parent is gone, killed perhaps: nobody would take its results."""
    wait([sentinel])
    os._exit(1)


@dataclass
class Worker:
    """A process and our end of its pipe.

    Attributes
    ----------
    process : BaseProcess
    connection : Connection
    ready : bool
        Whether it has said so.
    items : sequence of (position, replica)
        The batch that it has.
    known : set of int
        Positions of the cells that it has been sent. Not the whole grid at the start: of many cells most go to
        one worker only.
    started : float
        When, by the monotonic clock.
    """

    process: BaseProcess
    connection: Connection
    ready: bool = False
    items: Sequence[Item] = ()
    known: set[int] = field(default_factory=set)
    started: float = field(default_factory=time.monotonic)

    @property
    def time_left(self) -> float:
        """Seconds that it has until it must be ready; infinite once it is."""
        return math.inf if self.ready else max(self.started + START_SECONDS - time.monotonic(), 0.0)

    def send(self, items: Sequence[Item], cells: Sequence[Cell]) -> None:
        """Hand a batch over. That it has died meanwhile is seen when its answer is waited for."""
        self.items = items
        if items:
            new = {position: cells[position] for position, _ in items if position not in self.known}
            self.known |= new.keys()
            with contextlib.suppress(OSError):
                self.connection.send((items, new))

    def end(self) -> int | None:
        """Kill it, whatever it does, and return how it ended."""
        # Idle after an orderly end; after an interrupt nobody waits for a batch to finish.
        self.process.kill()
        self.process.join()
        code = self.process.exitcode
        self.process.close()
        self.connection.close()
        return code


def _start(context: Any, directory: Path, options: BatchOptions, parts: Path) -> Worker:
    """Start a worker process.

    Parameters
    ----------
    context
        From `_context`.
    directory : Path
        Of the workspace.
    options : BatchOptions
        As for :func:`p2psim.runs.batches.run_batch`.
    parts : Path
        Where it writes what its batches gave.
    """
    mine, theirs = context.Pipe()
    with environment(OF_WORKERS), block_sigint():
        process = context.Process(target=_serve, args=(theirs, directory, options, parts), daemon=True)
        try:
            process.start()
        except (OSError, EOFError, MemoryError, RuntimeError) as error:
            raise SimulationError(
                f"a worker process could not be started ({first_line(error)}), perhaps for lack of memory; {_GO_ON}"
            ) from error
    # The worker's end must be open nowhere else, so that its death is seen.
    theirs.close()
    return Worker(process, mine)


def exchange(
    cells: Sequence[Cell], schedule: Schedule, start: Callable[[], Worker], workers: int
) -> Generator[BatchResult, None, None]:
    """Hand out batches and take in results until nothing is left; a worker that dies is replaced."""
    pool: list[Worker] = []
    startup_failures = 0
    try:
        pool += (start() for _ in range(workers))
        while True:
            for worker in pool:
                if worker.ready and not worker.items:
                    worker.send(schedule.take(), cells)
            awaited = [worker for worker in pool if worker.items or (len(schedule) and not worker.ready)]
            waiting = {worker.connection: worker for worker in awaited}
            if not waiting:
                if not schedule.refill():
                    return
                continue
            left = min(worker.time_left for worker in waiting.values())
            heard = wait(list(waiting), None if math.isinf(left) else left)
            late = [worker for worker in waiting.values() if not heard and not worker.time_left]
            for worker in late:
                pool.remove(worker)
                worker.end()
                if not pool:
                    raise SimulationError(
                        f"no worker process was ready within {START_SECONDS:g} s, perhaps for lack of memory; {_GO_ON}"
                    )
            for ready in heard:
                worker = waiting[ready]  # type: ignore[index]
                try:
                    result = worker.connection.recv()
                except (EOFError, OSError):
                    # The pipe has ended, between messages or in the middle of one.
                    pool.remove(worker)
                    result = _handle_dead_worker(cells, schedule, worker)
                    startup_failures = 0 if worker.ready else startup_failures + 1
                    if startup_failures >= _MOST_STARTUP_FAILURES:
                        raise SimulationError(
                            f"{startup_failures} worker processes ended before their first batch "
                            f"(killed, or out of memory); {_GO_ON}"
                        ) from None
                    pool.append(start())
                    if result is not None:
                        yield result
                    continue
                if not worker.ready:
                    worker.ready = True
                    continue
                schedule.learn(result)
                # Before the result is written, so that the worker need not wait for the disk.
                worker.send(schedule.take(), cells)
                yield result
    finally:
        for worker in pool:
            worker.end()


def _handle_dead_worker(cells: Sequence[Cell], schedule: Schedule, worker: Worker) -> BatchResult | None:
    """Return the batch of a dead worker to the schedule; a simulation that ended two workers counts as failed."""
    name = str(worker.process.pid)
    worker.process.join(timeout=5)
    code = worker.end()
    if not worker.items or not schedule.lose(worker.items):
        return None
    how = f"was ended by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
    return given_up(cells, worker.items[0], how, name)


#: A study that one process finishes sooner than this is not worth a pool.
WORTH_A_POOL = 3.0


def run_local(
    work: Work, workspace: Workspace, options: BatchOptions, jobs: int | None, parts: Path
) -> Generator[BatchResult, None, None]:
    """Do all batches on this machine.

    Parameters
    ----------
    work : Work
    workspace, options
        As for :func:`p2psim.runs.batches.run_batch`.
    jobs : int or None
        Number of processes; 1 is this one alone. None begins in this process and starts one process per core
        when what is left is worth it.
    parts : Path
        Folder into which other processes write what their batches gave, under hidden names.
    """
    workers = available_cores() if jobs is None else jobs
    if work.rule is None:
        workers = max(1, min(workers, len(work.items)))
    schedule = Schedule(work.items, workers, work.more)
    if jobs is None or workers == 1:
        for batch in itertools.count():
            if not schedule.refill():
                return
            result = run_batch(work.grid, schedule.take(), workspace, options)
            schedule.learn(result)
            yield result
            # From the second on: the first batch may have compiled, and does not tell how long the rest takes.
            if batch and workers > 1 and schedule.left() >= WORTH_A_POOL and has_room_for_workers():
                break
    assert workspace.directory is not None
    start = partial(_start, worker_context(), workspace.directory, options, parts)
    try:
        yield from exchange(work.grid, schedule, start, workers)
    finally:
        for left in parts.glob(".*"):  # by those that have been ended
            shutil.rmtree(left, ignore_errors=True)


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
