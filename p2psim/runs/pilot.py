"""Estimates of the memory and the time that a study needs: memory from its numbers, time from a second of it.

Estimates of memory are lower bounds: what they refuse cannot run on this machine. For the time, the smallest cell warms
up, and a second simulation of it shows whether whole simulations fit into the time that is left. If they do, the
study's own simulations follow in its order, so that what its cells share is shared here too; if not, the pace of that
simulation is used. The first simulation of each cell sets up what its others share, which is counted once a cell. Where
the largest cell has many more events, its pace is looked at as well, and time is a straight line between the two: what
does not depend on events, such as metrics, is not counted once an event. The variation of the pace over stretches of
the pilot gives the range.
"""

import mmap
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from p2psim.core.compiled import cache_directory
from p2psim.core.errors import Fault, InputError
from p2psim.runs.progress import time_in_words
from p2psim.runs.system import address_limit, peak_memory
from p2psim.scenario.model import Cell, Scenario
from p2psim.scenario.record import fewest, most
from p2psim.simulation.algorithms import Assessment
from p2psim.simulation.workspace import Workspace

#: Bytes of a number; of what is kept of each agent, of each link in one direction, of each simulation to be done.
_NUMBER, _AGENT, _LINK, _SIMULATION = 8, 1000, 80, 100
#: Events that a study may have without being asked for again: a month of one processor.
MOST_EVENTS = 10**13
#: Seconds that the records and tables of an agent take to prepare, about; and that preparing may take without being
#: asked for again.
_PREPARATION, MOST_PREPARATION = 1e-4, 300.0
_CONFIRM = "--confirm-cells accepts any size"


@dataclass(frozen=True)
class Need:
    """Bytes that something takes, what that is, and the numbers that it is made of, by key."""

    size: float
    what: str
    numbers: Mapping[str, float]


def available_memory() -> float:
    """Bytes that this process may still take; infinite where the system does not say."""
    limits = [address_limit()]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):
        cgroup = Path("/sys/fs/cgroup")
        limits.append(int((cgroup / "memory.max").read_text()) - int((cgroup / "memory.current").read_text()))
    return max(min(limits), 0.0)


#: Bytes of address space that a process takes beyond what it has once a study is read: compiled kernels, tables; and
#: one with workers, which hands their results on.
_ALONE, _WITH_WORKERS = 510e6, 860e6


def limited_room() -> float:
    """Bytes of address space that its limit leaves to this process."""
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return max(address_limit() - pages * mmap.PAGESIZE, 0)
    return address_limit()


def has_room_for_workers() -> bool:
    """Whether the limit on address space leaves enough for worker processes."""
    return limited_room() >= _WITH_WORKERS


def refuse_little_room(jobs: int | None) -> None:
    """Refuse to run where libraries, which end the process without a word or hang, have too little address space.

    Raises
    ------
    InputError
    """
    several = jobs is not None and jobs > 1
    room, need = limited_room(), _WITH_WORKERS if several else _ALONE
    if room < need:
        whose, cure = (f" for {jobs} workers", "use --jobs 1 or raise") if several else ("", "raise")
        raise InputError(
            f"too little memory{whose}: its limit (ulimit -v) leaves {_shown(room)}, and about {_shown(need)} are "
            f"needed; {cure} the limit"
        )


def refuse_excess(scenario: Scenario, grid: Sequence[Cell], confirmed: bool) -> None:
    """Refuse a study whose cells cannot be in memory, or take too long to prepare, before their data is made.

    Raises
    ------
    InputError
        With the key whose number is to blame, unless it is `confirmed`.
    """
    if confirmed:
        return
    room, faults = available_memory(), dict[Fault, None]()
    simulations = most(scenario.replicas) * len(grid)
    replicas = Need(_SIMULATION * simulations, "the list of simulations", {"replicas": 1})
    for needs in [[replicas], *(_needs(cell.scenario) for cell in grid)]:
        if sum(need.size for need in needs) > room:
            worst = max(needs, key=lambda need: need.size)
            key = max(worst.numbers, key=lambda name: worst.numbers[name])
            need, free = _shown(worst.size), _shown(room)
            said = f"{worst.what} would take about {need}, and {free} of memory are free"
            faults[scenario.locate(Fault(f"{said}; {_CONFIRM}", key))] = None
    for cell in () if faults else grid:
        agents, key = _agents(cell.scenario)
        if (seconds := _PREPARATION * agents) > MOST_PREPARATION:
            said = f"{agents:,} agents would take about {time_in_words(seconds)} to prepare, before anything runs"
            faults[scenario.locate(Fault(f"{said}; {_CONFIRM}", key))] = None
    if faults:
        raise InputError(*faults)


def refuse_length(
    scenario: Scenario, grid: Sequence[Cell], facts: Sequence[Assessment], confirmed: bool
) -> None:
    """Refuse a study whose events cannot be simulated in a month, or not be kept in memory.

    Raises
    ------
    InputError
        Unless it is `confirmed`.
    """
    if confirmed:
        return
    room = available_memory()
    for cell, fact in zip(grid, facts, strict=True):
        learning = cell.scenario.learning.algorithm
        ends = ("horizon", "rounds", "updates_per_agent", "time", "commits")
        end = next((end for end in ends if getattr(learning, end, None) is not None), "kind")
        key = f"learning.algorithm.{end}"
        if cell.scenario.record.events and fact.bytes_of_events > room:
            said = f"{fact.events:,} events would take {_shown(fact.bytes_of_events)}, and {_shown(room)} are free"
            fault = Fault(f"{said}; leave record.events out, or give --confirm-cells", key)
            raise InputError(scenario.locate(fault))
        if fact.events > MOST_EVENTS:
            said = f"about {fact.events:.3g} events in one simulation would take more than a month"
            raise InputError(scenario.locate(Fault(f"{said}; {_CONFIRM}", key)))
    total = most(scenario.replicas) * sum(fact.events for fact in facts)
    if total > MOST_EVENTS and isinstance(scenario.replicas, int):
        said = f"about {total:.3g} events in all would take more than a month of one processor; {_CONFIRM}"
        raise InputError(scenario.locate(Fault(said, "replicas")))


def _agents(scenario: Scenario) -> tuple[int, str]:
    """Agents of a cell, 1 where only the data says it, and the key that gives their number."""
    topology = scenario.network.topology
    if topology.size is None and (said := scenario.data.source.given_owners) is not None:
        return said[1], f"data.source.{said[0]}"
    return topology.size or 1, topology.size_key


def _needs(scenario: Scenario) -> list[Need]:
    """What one cell needs that its numbers say, without its data."""
    topology, source = scenario.network.topology, scenario.data.source
    agents, where = _agents(scenario)
    links = min(topology.link_ends(agents), float(agents) * agents)
    needs = [
        Need(_AGENT * agents, f"{agents:,} agents", {where: agents}),
        Need(_LINK * links, f"{links:,.0f} links", {where: agents}),
    ]
    algorithm = scenario.learning.algorithm
    if (horizon := getattr(algorithm, "horizon", 0)) and "round" in algorithm.star_exchanges:
        # A step size of each round.
        needs.append(Need(_NUMBER * horizon, f"{horizon:,} rounds", {"learning.algorithm.horizon": horizon}))
    dimension, points = getattr(source, "dimension", None), getattr(source, "points", None)
    if isinstance(dimension, int) and points is not None:
        each = points if isinstance(points, int) else getattr(points, "mean", 1.0)
        rows = sum(points.values()) if isinstance(points, Mapping) else agents * each
        sizes = {where: agents, "data.source.dimension": dimension}
        numbers = {where: agents, "data.source.points": rows / agents, "data.source.dimension": dimension}
        what = f"{rows:,.0f} records of {dimension:,} features"
        needs.append(Need(_NUMBER * rows * dimension, what, numbers))
        if algorithm.objective == "fitness":
            what = f"the products of {dimension:,} features of {agents:,} owners"
            needs.append(Need(_NUMBER * agents * dimension**2, what, sizes))
        else:
            what = f"{agents:,} models of {dimension:,} numbers"
            needs.append(Need(_NUMBER * agents * dimension, what, numbers))
    return needs


def _shown(size: float) -> str:
    """Bytes in the largest unit that leaves a number of at least one."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
    power = next((power for power in range(6) if size < 1000 ** (power + 1)), 6)
    return f"{size / 1000**power:,.3g} {units[power]}"


#: Seconds that a pilot takes, beside the one chunk of events or simulation in which they end.
SECONDS = 1.0
#: Stretches of about equal time into which a pilot is cut, to see how its pace varies.
STRETCHES = 5
#: Seconds until a pool of processes works.
_START = 1.0


@dataclass(frozen=True)
class Pilot:
    """What a pilot found.

    Attributes
    ----------
    simulations : int
        That came to their end.
    events : int
        Played in all, those of the warming up not counted where others followed.
    events_per_second : float
        Of one process, with recording and everything else.
    stretches : int
        Parts of the pilot whose paces were compared; one says nothing of how the pace varies.
    slowest, fastest : float
        Events a second in the slowest and in the fastest of them.
    once_seconds : float
        Of each process: to load compiled code, and to set up the cells.
    least_seconds, most_seconds : float
        Of the whole study, with `jobs` processes: of the fewest replicas at the fastest pace, and of the most at the
        slowest.
    jobs : int
    memory : int
        Bytes of one process, libraries included.
    """

    simulations: int
    events: int
    events_per_second: float
    stretches: int
    slowest: float
    fastest: float
    once_seconds: float
    least_seconds: float
    most_seconds: float
    jobs: int
    memory: int


def kept_code() -> int:
    """Files of machine code in the cache."""
    return sum(1 for _ in cache_directory().rglob("*.nbc"))


def estimate_runtime(
    scenario: Scenario,
    grid: Sequence[Cell],
    facts: Sequence[Assessment],
    workspace: Workspace,
    jobs: int,
    seconds: float = SECONDS,
) -> Pilot:
    """Simulate for about a second, and extrapolate.

    Parameters
    ----------
    scenario : Scenario
    grid, facts : sequence of Cell and of Assessment
    workspace : Workspace
        With the data prepared.
    jobs : int
        Processes that the study shall have.
    seconds : float
        Time that may be taken.

    Returns
    -------
    Pilot
    """
    from p2psim.runs.batches import BatchOptions, cut, run_batch
    from p2psim.simulation.simulate import sample

    def ran(items: Sequence[tuple[int, int]]) -> float:
        result = run_batch(grid, items, workspace, BatchOptions())
        if result.stopped is not None:
            raise result.stopped
        return result.seconds

    def sampled(cell: int, most: float) -> tuple[int, float, list[tuple[float, float]], bool, float]:
        # The first one loads compiled code and sets up the cell, which tells nothing of the others.
        began = time.perf_counter()
        first, _ = sample(grid[cell].scenario, 0, workspace, began + most / 2)
        first_seconds = time.perf_counter() - began
        pieces, ended = sample(grid[cell].scenario, 1, workspace, time.perf_counter() + most)
        played, taken = (sum(column) for column in zip(*pieces, strict=True)) if pieces else (0, 0.0)
        more = first_seconds - sum(events for events, _ in first) * taken / max(played, 1)
        return int(played), taken, [*pieces], ended, max(more, 0.0)

    sizes = [fact.events for fact in facts]
    smallest, largest = sizes.index(min(sizes)), sizes.index(max(sizes))
    until, code = time.perf_counter() + 1.25 * seconds, kept_code()
    played, spent, stretches, ended, begin = sampled(smallest, seconds / 2)
    pace = played / max(spent, 1e-9)
    share = min(1.0, played / max(sizes[smallest], 1))
    line = TimeLine(sizes[smallest], sizes[smallest] / max(pace, 1e-9))
    firsts = list[float]()
    for cell in range(len(grid)) if ended else ():
        if firsts and time.perf_counter() + 2 * sizes[cell] / pace > until - seconds / 2:
            break
        firsts.append(ran([(cell, 0)]))
    again = [([cell], ran([(cell, 1)])) for cell in range(len(firsts))]
    # In batches, as in the study: alone, a small simulation takes longer.
    order = (
        (cell, replica) for replica in range(2, fewest(scenario.replicas)) for cell in range(len(firsts))
    )
    # Whole simulations have metrics as well, and are slower than what was sampled.
    whole_pace = sum(sizes[: len(firsts)]) / max(sum(taken for _, taken in again), 1e-9)
    batches = list[tuple[list[int], float]]()
    for items in (
        cut(order, lambda item: sizes[item[0]], whole_pace * seconds / (2 * STRETCHES)) if firsts else ()
    ):
        if not items or time.perf_counter() + sum(sizes[cell] for cell, _ in items) / whole_pace > until:
            break
        batches.append(([cell for cell, _ in items], ran(items)))
    whole = batches or again
    if whole:
        events = [sizes[cell] for some, _ in whole for cell in some]
        played = sum(events)
        line = TimeLine(played / len(events), sum(taken for _, taken in whole) / len(events))
    other = 0.0
    if sizes[largest] > _UNEQUAL * line.events:
        beside = max(line.seconds - line.events / pace, 0.0) if whole else 0.0
        part, taken, _, _, other = sampled(largest, seconds / 4)
        line = line.through(sizes[largest], sizes[largest] * taken / max(part, 1) + beside)
    if whole:
        stretches = [(sum(line.at(sizes[cell]) for cell in some), taken) for some, taken in whole]
    # What the first simulation of a cell takes more, such as a graph or an optimum: each process pays for it. That of
    # the smallest cell, which was sampled before, says what is loaded, once for all cells.
    more = [max(first - taken, 0.0) for first, (_, taken) in zip(firsts, again, strict=True)]
    begin += more.pop(smallest) if smallest < len(more) else 0.0
    if kept_code() > code:  # compiled here, and loaded by a run
        begin = 0.0
    once = begin + (len(grid) - 1) * (sorted(more)[(len(more) - 1) // 2] if more else other)
    each = sum(line.at(size) for size in sizes)
    paces, pace = spread(stretches) or [1.0], sum(sizes) / max(each, 1e-9)
    alone = [fewest(scenario.replicas) * each / paces[-1], most(scenario.replicas) * each / paces[0]]
    shortest, longest = (min(one + once, one / jobs + once + _START) for one in alone)
    kept = (1 - share) * facts[smallest].bytes_of_events if scenario.record.events else 0
    slowest, fastest, memory = pace * paces[0], pace * paces[-1], peak_memory() + int(kept)
    done = int(ended) + len(firsts) + len(again) + sum(len(some) for some, _ in batches)
    return Pilot(done, played, pace, len(paces), slowest, fastest, once, shortest, longest, jobs, memory)


#: Ratio of the largest cell's events to those of what was simulated, from which on its pace is looked at.
_UNEQUAL = 1.5


@dataclass(frozen=True)
class TimeLine:
    """Seconds of a simulation by its number of events: of one that is known, and in proportion or by a slope."""

    events: float
    seconds: float
    slope: float | None = None

    def through(self, events: float, seconds: float) -> "TimeLine":
        """The same where a larger simulation is known too, which does not take less time."""
        return replace(self, slope=max(seconds - self.seconds, 0.0) / (events - self.events))

    def at(self, events: float) -> float:
        """Seconds of a simulation with so many events."""
        alike = self.seconds * events / max(self.events, 1)
        if self.slope is None:
            return alike
        straight = self.seconds + self.slope * (events - self.events)
        return straight if events > self.events else max(straight, alike)


def spread(pieces: Sequence[tuple[float, float]]) -> list[float]:
    """How the pace varies.

    Parameters
    ----------
    pieces : sequence of (float, float)
        Events, or seconds that are expected, and seconds, one after the other.

    Returns
    -------
    list of float
        Paces of at most `STRETCHES` stretches of about equal time, the slowest first, as multiples of the pace of all.
    """
    events, seconds = (sum(column) for column in zip(*pieces, strict=True)) if pieces else (0, 0.0)
    if not (events and seconds):
        return []
    taken = np.array([piece[1] for piece in pieces])
    # A piece belongs to the stretch in which its middle lies.
    middles = (np.cumsum(taken) - taken / 2) / seconds * STRETCHES
    places = np.minimum(middles.astype(int), STRETCHES - 1)
    counts, times = np.bincount(places, [piece[0] for piece in pieces]), np.bincount(places, taken)
    held = (counts > 0) & (times > 0)
    return sorted((counts[held] / times[held] * seconds / events).tolist())
