"""Estimates of the memory and the time that a study needs: memory from its numbers, time from a second of it.

Estimates of memory are lower bounds: what they refuse cannot run on this machine. For the time, the smallest cell warms
up, and a second simulation of it shows whether whole simulations fit into the time that is left. If they do, the
study's own simulations follow in its order and in batches, so that what its cells share is shared here too, and
replicas are simulated together; if not, the pace of that simulation is used. The first simulation of each cell sets up
what its others share, which is counted once a cell. Where the largest cell has many more events, its pace is looked at
as well, and time is a straight line between the two: what does not depend on events, such as metrics, is not counted
once an event. The variation of the pace over stretches of the pilot gives the range. What was simulated is written as
well. A run takes as long as the check until it simulates.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from p2psim.core.errors import Fault, InputError
from p2psim.core.files import cache_directory
from p2psim.runs.progress import time_in_words
from p2psim.runs.system import available_cores, available_memory, peak_memory, sized
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
            need, free = sized(worst.size), sized(room)
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
            said = (
                f"{fact.events:,} events would take {sized(fact.bytes_of_events)}, and {sized(room)} are free"
            )
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


#: Seconds that a pilot takes, beside what warms up, and the one chunk of events or simulation in which they end.
SECONDS = 1.0
#: Stretches of about equal time into which a pilot is cut, to see how its pace varies.
STRETCHES = 5
#: Seconds until a pool of processes works.
_START = 1.0
#: Cells whose first simulation is compared with the next.
_FEW = 5
#: Ratio of the largest cell's events to those of what was simulated, from which on its pace is looked at.
_UNEQUAL = 1.5


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
    start_seconds : float
        Until the simulations begin, once for the whole study.
    once_seconds : float
        Of each process: to load compiled code, and to set up the cells.
    keep_seconds, write_seconds : float
        To keep the results of all simulations as they come, and to write the run folder at the end.
    least_seconds, most_seconds : float
        Of the whole study, with `jobs` processes: of the fewest replicas at the fastest pace, and of the most at the
        slowest.
    jobs : int
    memory : int
        Bytes of one process, libraries included.
    size : int or None
        Bytes of the run folder; None where no simulation came to its end.
    """

    simulations: int
    events: int
    events_per_second: float
    stretches: int
    slowest: float
    fastest: float
    start_seconds: float
    once_seconds: float
    keep_seconds: float
    write_seconds: float
    least_seconds: float
    most_seconds: float
    jobs: int
    memory: int
    size: int | None


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
    started: float = 0.0,
) -> Pilot:
    """Simulate for about a second, write what that gave, and extrapolate.

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
    started : float
        Seconds that a run takes until its simulations begin.

    Returns
    -------
    Pilot
    """
    from p2psim.runs.batches import BatchOptions, BatchResult, run_batch
    from p2psim.runs.compaction import rehearsed
    from p2psim.simulation.session import KEPT_CELLS
    from p2psim.simulation.simulate import sample

    # As a run has it.
    grid = [replace(cell, warnings=fact.of_runs) for cell, fact in zip(grid, facts, strict=True)]
    keep_data = scenario.record.data or scenario.record.events
    options = BatchOptions(keep_data, frozenset(workspace.problems()), share=len(grid) > 1)

    def ran(items: Sequence[tuple[int, int]]) -> BatchResult:
        result = run_batch(grid, items, workspace, options)
        if result.stopped is not None:
            raise result.stopped
        return result

    def sampled(cell: int, most: float) -> tuple[int, float, list[tuple[float, float]], bool, float]:
        # The first one loads compiled code and sets up the cell, which tells nothing of the others.
        began = time.perf_counter()
        first, _ = sample(grid[cell].scenario, 0, workspace, began + most / 2)
        first_seconds = time.perf_counter() - began
        pieces, ended = sample(grid[cell].scenario, 1, workspace, time.perf_counter() + most)
        played, taken = (sum(column) for column in zip(*pieces, strict=True)) if pieces else (0, 0.0)
        more = first_seconds - sum(events for events, _ in first) * taken / max(played, 1)
        return int(played), taken, [*pieces], ended, max(more, 0.0)

    sizes, code = [fact.events for fact in facts], kept_code()
    smallest, largest = sizes.index(min(sizes)), sizes.index(max(sizes))
    until = time.perf_counter() + 1.25 * seconds
    played, spent, stretches, ended, begin = sampled(smallest, seconds / 2)
    pace = played / max(spent, 1e-9)
    share = min(1.0, played / max(sizes[smallest], 1))
    line = TimeLine(sizes[smallest], sizes[smallest] / max(pace, 1e-9))
    firsts = list[BatchResult]()
    for cell in range(len(grid)) if ended else ():
        if firsts and time.perf_counter() + 2 * sizes[cell] / pace > until - seconds / 2:
            break
        firsts.append(ran([(cell, 0)]))
    again = [ran([(cell, 1)]) for cell in range(len(firsts[:_FEW]))]
    # Then in batches, as in the study: simulations of a cell together take less time than one after the other. Whole
    # ones have metrics as well, and are slower than what was sampled.
    order = (
        (cell, replica)
        for replica in range(1, max(fewest(scenario.replicas), 2))
        for cell in range(len(firsts))
    )
    whole_pace = sum(sizes[: len(again)]) / max(sum(result.seconds for result in again), 1e-9)
    most_events, until = 0.0, time.perf_counter() + 2 * seconds
    batches, settled = list[tuple[list[int], BatchResult]](), 0
    while True:
        if whole_pace * seconds / (2 * STRETCHES) > 1.5 * most_events:
            most_events, settled = whole_pace * seconds / (2 * STRETCHES), len(batches)
            until = min(until, time.perf_counter() + seconds)
        items = _taken(order, sizes, most_events)
        cells = [cell for cell, _ in items]
        together = sum(sizes[cell] for cell in cells)
        # Of about the same size, so that only the machine makes their paces vary.
        few = together < most_events / 2 and len(batches) > settled
        if not items or few or time.perf_counter() + together / whole_pace > until:
            break
        batches.append((cells, ran(items)))
        # What simulates several together is loaded, or compiled, by the first.
        now = together / max(batches[-1][1].seconds, 1e-9)
        whole_pace, late = (now, 0.0) if batches[1:] else (max(whole_pace, now), batches[0][1].seconds)
        until += late
    settled = max(min(settled, len(batches) - 1), min(1, len(batches) - 1))
    whole = batches[settled:] or [([cell], result) for cell, result in enumerate(again)]
    if whole:
        played = sum(events := [sizes[cell] for cells, _ in whole for cell in cells])
        line = TimeLine(played / len(events), sum(result.seconds for _, result in whole) / len(events))
    other = 0.0
    if sizes[largest] > _UNEQUAL * line.events:
        beside = max(line.seconds - line.events / pace, 0.0) if whole else 0.0
        part, taken, _, _, other = sampled(largest, seconds / 4)
        line = line.through(sizes[largest], sizes[largest] * taken / max(part, 1) + beside)

    def expected(cells: Sequence[int]) -> float:
        return sum(line.at(sizes[cell]) for cell in cells)

    stretches = [(expected(cells), result.seconds) for cells, result in whole] or stretches
    # What the first simulation of a cell takes more, such as a graph or an optimum, each process pays for. That of the
    # smallest cell, which was sampled, and the first batch say what is loaded, once for all. Of more cells than a
    # process keeps, each is set up anew whenever it comes, also in batches.
    more = [max(one.seconds - two.seconds, 0.0) for one, two in zip(firsts, again, strict=False)]
    begin += more.pop(smallest) if smallest < len(more) else 0.0
    begin += max(batches[0][1].seconds - expected(batches[0][0]), 0.0) if batches[1:] else 0.0
    begin *= kept_code() == code  # what was compiled here, a run loads
    first = sorted(more)[(len(more) - 1) // 2] if more else other
    once = begin + (len(grid) - 1) * first * (len(firsts) <= KEPT_CELLS or not batches)
    results = [*firsts[:1], *(result for _, result in batches)]
    parts = [one.part for one in results if one.part is not None]
    cells_and_facts = [*zip(grid, facts, strict=True)][: len(firsts)]
    arrays, processes = workspace.arrays if keep_data else None, min(jobs, available_cores())
    writing = rehearsed(scenario, cells_and_facts, parts, arrays, processes)
    each, spans = expected(range(len(grid))), list[float]()
    paces, pace = spread(stretches) or [1.0], sum(sizes) / max(each, 1e-9)
    for replicas, factor in ((fewest(scenario.replicas), paces[-1]), (most(scenario.replicas), paces[0])):
        keep, write, size = writing(replicas * len(grid))
        alone = replicas * each / factor + keep
        spans.append(started + once + min(alone, alone / processes + _START * (jobs > 1)) + write)
    kept = (1 - share) * facts[smallest].bytes_of_events if scenario.record.events else 0
    slowest, fastest, memory = pace * paces[0], pace * paces[-1], peak_memory() + int(kept)
    done = int(ended) + len(again) + len(firsts[1:]) + sum(result.done for result in results)
    paces_and_costs = played, pace, len(paces), slowest, fastest, started, once, keep, write
    return Pilot(done, *paces_and_costs, spans[0], spans[1], jobs, memory, int(size) if parts else None)


def _taken(order: Iterator[tuple[int, int]], sizes: Sequence[int], most: float) -> list[tuple[int, int]]:
    """The next simulations that have so many events together."""
    items, events = list[tuple[int, int]](), 0
    while events < most and (item := next(order, None)) is not None:
        items.append(item)
        events += sizes[item[0]]
    return items


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
