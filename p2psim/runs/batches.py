"""One batch of simulations: what a worker does, whichever executor it works for."""

import errno
import os
import threading
import time
import traceback
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from p2psim.core.errors import InputError, P2PSimError, SimulationError
from p2psim.core.process import one_thread
from p2psim.core.registry import load_parts
from p2psim.runs.invocations import Meter, Resources
from p2psim.runs.parts import EncodedPart, RunKey, StoredPart, archive_bytes, encode
from p2psim.scenario.model import Cell
from p2psim.simulation.outcome import Outcome
from p2psim.simulation.workspace import Workspace

#: Seconds that a batch should take: long beside handing it over, short beside a person's patience.
BATCH_SECONDS = 1.0
#: Bytes that its results should take: of more, the system gives each batch fresh pages, which are dear.
BATCH_BYTES = 32 << 20
#: Errors of the machine, not of a simulation: going on would not help.
_MACHINE = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE}

#: Position of a cell in the grid, and replica.
Item = tuple[int, int]

T = TypeVar("T")


@dataclass(frozen=True)
class BatchOptions:
    """What is the same for all batches of a study.

    Attributes
    ----------
    keep_data : bool
        Whether prepared data is kept with the results.
    shared : frozenset of str
        Problems that the parent has prepared, and whose data need not be sent back.
    check_events : bool
        Whether the invariants of event streams are checked.
    warnings : tuple of str
        What is to be said of every simulation.
    parts : tuple of str
        Names of the modules that the user has let into the parent, to be loaded by the worker.
    share : bool
        Whether several cells may have the events of a replica, so that these are kept.
    """

    keep_data: bool = False
    shared: frozenset[str] = frozenset()
    check_events: bool = False
    warnings: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    share: bool = True


@dataclass(frozen=True)
class BatchResult:
    """What a batch gave.

    Attributes
    ----------
    part : EncodedPart, StoredPart or None
        The simulations that ended, or where they are written; None if none did.
    failed : dict
        Traceback of each that did not.
    done : int
        Number of simulations tried.
    seconds : float
        Wall time of the batch in its process.
    size : int
        Bytes of its results.
    used : Resources or None
        What that process used for it.
    worker : str
        Who did it.
    stopped : BaseException or None
        Why the batch was given up before its end: an interrupt, or a full disk.
    """

    part: EncodedPart | StoredPart | None
    failed: dict[RunKey, str] = field(default_factory=dict)
    done: int = 0
    seconds: float = 0.0
    worker: str = ""
    stopped: BaseException | None = None
    used: Resources | None = None
    size: int = 0


def given_up(cells: Sequence[Cell], item: Item, how: str, worker: str) -> BatchResult:
    """The failure of a simulation that ended its worker, twice."""
    text = f"its worker process {how}, twice, perhaps for lack of memory"
    return BatchResult(None, {(cells[item[0]].content, item[1]): text}, 1, worker=worker)


# Simulations share caches within a process, and a Dask worker may run several threads.
_ONE_AT_A_TIME = threading.Lock()


def run_batch(
    cells: Sequence[Cell] | Mapping[int, Cell],
    items: Sequence[Item],
    workspace: Workspace,
    options: BatchOptions,
    prepare: bool = False,
) -> BatchResult:
    """Simulate the items one after the other.

    Parameters
    ----------
    cells : sequence of Cell, or mapping from position to Cell
        The grid, or as much of it as the items are of.
    items : sequence of (position, replica)
        What to do; those of one replica should stand together.
    workspace : Workspace
        With the data prepared.
    options : BatchOptions
        Of the study.
    prepare : bool
        Prepare the data first, where the workspace is not the parent's.
    """
    try:
        load_parts(*options.parts)
    except InputError as error:
        return BatchResult(None, stopped=SimulationError(f"on a worker, {error}"))
    finished: dict[Item, tuple[RunKey, Outcome, float]] = {}
    failed: dict[RunKey, str] = {}
    data: dict[str, bytes] = {}
    stopped: BaseException | None = None
    # BLAS sums in an order that depends on its number of threads: one, so that all workers agree.
    with _ONE_AT_A_TIME, one_thread():
        start, meter = time.perf_counter(), Meter()
        turns = deque(turns_of(cells, items, workspace, options, prepare))
        while turns:
            turn = turns.popleft()
            position, replica = turn[0]
            scenario, began = cells[position].scenario, time.perf_counter()
            try:
                if prepare:
                    workspace.case(scenario, 0)
                outcomes = played(cells[position], [replica for _, replica in turn], workspace, options)
                problem = outcomes[0].problem_id
                if options.keep_data and problem not in options.shared and problem not in data:
                    data[problem] = archive_bytes(sorted(workspace.arrays(problem).items()))
            except (KeyboardInterrupt, SystemExit, Exception) as error:  # a part may end the process
                if isinstance(error, KeyboardInterrupt) or getattr(error, "errno", None) in _MACHINE:
                    stopped = error
                    break
                if len(turn) > 1:  # one of them: which, they show one by one
                    turns.extendleft([one] for one in reversed(turn))
                    continue
                text = str(error) if isinstance(error, P2PSimError) else traceback.format_exc()
                failed[cells[position].content, replica] = text
            else:
                seconds = (time.perf_counter() - began) / len(turn)
                for item, outcome in zip(turn, outcomes, strict=True):
                    finished[item] = (cells[position].content, item[1]), outcome, seconds
        # In the order of the tables, where rows of neighbours can be taken together.
        simulations = [finished[item] for item in sorted(finished)]
        part = encode(simulations, data, options.warnings) if simulations else None
        done, seconds = len(simulations) + len(failed), time.perf_counter() - start
        size = 0 if part is None else part.size
        return BatchResult(part, failed, done, seconds, str(os.getpid()), stopped, meter.read(), size)


def played(cell: Cell, replicas: Sequence[int], workspace: Workspace, options: BatchOptions) -> list[Outcome]:
    """Simulate the replicas of a turn."""
    from p2psim.simulation.simulate import simulate, simulate_together

    if len(replicas) > 1:
        return simulate_together(cell.scenario, replicas, workspace, cell.warnings)
    ways = options.check_events, options.share, cell.warnings
    return [simulate(cell.scenario, replicas[0], workspace, *ways)]


def turns_of(
    cells: Sequence[Cell] | Mapping[int, Cell],
    items: Sequence[Item],
    workspace: Workspace,
    options: BatchOptions,
    prepare: bool = False,
) -> Iterator[list[Item]]:
    """What is played at once, in an order in which cells share events: items of one cell, or one item.

    Parameters as of `run_batch`.
    """
    from p2psim.simulation.simulate import simulated_at_once

    most: dict[int, int] = {}
    for position, number in Counter(position for position, _ in items).items():
        if number == 1 or options.check_events:
            continue
        try:
            if prepare:
                workspace.case(cells[position].scenario, 0)
            most[position] = simulated_at_once(cells[position].scenario, workspace)
        except Exception:  # it is said of each simulation
            most[position] = 1
    size = min((number for number in most.values() if number > 1), default=1)
    of_replica = defaultdict[int, list[Item]](list)
    for item in items:
        of_replica[item[1]].append(item)
    replicas = list(of_replica.values())
    for first in range(0, len(replicas), size):
        block = [item for row in replicas[first : first + size] for item in row]
        together = defaultdict[int, list[Item]](list)
        for item in block:
            if most.get(item[0], 1) > 1:
                together[item[0]].append(item)
        yield from together.values()
        yield from ([item] for item in block if item[0] not in together)


def cut(items: Iterable[T], size_of: Callable[[T], float], most: float) -> Iterator[list[T]]:
    """Cut a series of items into batches of at most this size together, or of one item."""
    batch: list[T] = []
    size = 0.0
    for item in items:
        if batch and size + size_of(item) > most:
            yield batch
            batch, size = [], 0.0
        batch.append(item)
        size += size_of(item)
    yield batch


class Schedule:
    """Cuts what is to be done into batches of about `BATCH_SECONDS`, learning as results come in.

    Parameters
    ----------
    items : sequence of (position, replica)
        In the order in which they shall be done.
    workers : int
        Among how many.
    more : callable
        Returns what else is to be done once the results of everything before have been taken in; nothing ends it.
    """

    def __init__(self, items: Sequence[Item], workers: int, more: Callable[[], Sequence[Item]] = list):
        self._items = deque(items)
        self._more = more
        self._again = deque[Item]()
        self._lost: set[Item] = set()
        self.workers = workers
        self._done = 0.0
        self._seconds = 0.0
        self._size = 0.0

    def __len__(self) -> int:
        return len(self._items) + len(self._again)

    def learn(self, result: BatchResult) -> None:
        """Take in how long a batch took, and how large it is. The first one compiles, so later ones count for more."""
        self._done = self._done / 2 + result.done
        self._seconds = self._seconds / 2 + result.seconds
        self._size = self._size / 2 + result.size

    def left(self) -> float:
        """Estimate of the seconds that the rest will take one process."""
        return len(self) * self._seconds / self._done if self._done else float("inf")

    def refill(self) -> bool:
        """Ask for more, when nothing is left and every result has been taken in; whether there is some."""
        if not len(self):
            self._items.extend(self._more())
        return len(self) > 0

    def lose(self, items: Sequence[Item]) -> bool:
        """Take back a batch whose worker died: each of it is tried again, alone and after all others.

        Returns
        -------
        bool
            Whether it has been so already: then it is given up.
        """
        if len(items) == 1 and items[0] in self._lost:
            return True
        self._lost.update(items)
        self._again += items
        return False

    def take(self) -> Sequence[Item]:
        """Take the next batch off; empty when nothing is left."""
        if self._again and not self._items:
            return [self._again.popleft()]
        size = 1
        if self._done:
            most = BATCH_SECONDS / max(self._seconds, 1e-9), BATCH_BYTES / max(self._size, 1.0)
            size = max(1, round(min(most) * self._done))
            # Towards the end, batches small enough that nobody waits long for the last one.
            size = min(size, max(1, len(self) // (2 * self.workers))) if self.workers > 1 else size
        return [self._items.popleft() for _ in range(min(size, len(self._items)))]
