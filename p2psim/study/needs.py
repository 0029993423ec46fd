"""What a study needs of memory and time, estimated from its numbers before anything of that size is made.

The estimates are rough, and below what is needed rather than above: what they refuse cannot run on this machine.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from p2psim.errors import Fault, InputError
from p2psim.learning.section import STARS
from p2psim.study.replicas import most

if TYPE_CHECKING:
    from p2psim.study.cells import Cell
    from p2psim.study.families.stage import Assessment
    from p2psim.study.scenario import Scenario

#: Bytes of a number; of what is kept of each agent, of each link in one direction, of each simulation to be done.
_NUMBER, _AGENT, _LINK, _SIMULATION = 8, 1000, 80, 100
#: Events that a study may have without being asked for again: a month of one processor.
MOST_EVENTS = 10**13
_CONFIRM = "--confirm-cells accepts any size"


@dataclass(frozen=True)
class Need:
    """Bytes that something takes, what that is, and the numbers that it is made of, by key."""

    size: float
    what: str
    numbers: Mapping[str, float]


def available_memory() -> float:
    """Bytes that this process may still take; infinite where the system does not say."""
    limits = [float("inf")]
    with suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        limits += [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    with suppress(OSError, ValueError):
        cgroup = Path("/sys/fs/cgroup")
        limits.append(int((cgroup / "memory.max").read_text()) - int((cgroup / "memory.current").read_text()))
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        limits.append(soft)
    return max(min(limits), 0.0)


def refuse_excess(scenario: Scenario, grid: Sequence[Cell], confirmed: bool) -> None:
    """Refuse a study whose cells cannot be in memory, before their data is made.

    Raises
    ------
    InputError
        With the key whose number is to blame, unless it is `confirmed`.
    """
    if confirmed:
        return
    room, faults = available_memory(), dict[Fault, None]()
    replicas = Need(
        _SIMULATION * most(scenario.replicas) * len(grid), "the list of simulations", {"replicas": 1}
    )
    for needs in [[replicas], *(_needs(cell.scenario) for cell in grid)]:
        if sum(need.size for need in needs) > room:
            worst = max(needs, key=lambda need: need.size)
            key = max(worst.numbers, key=lambda name: worst.numbers[name])
            said = (
                f"{worst.what} would take about {_shown(worst.size)}, and {_shown(room)} of memory are free"
            )
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
            said = (
                f"about {fact.events:.3g} events in one simulation would take more than a month; {_CONFIRM}"
            )
            raise InputError(scenario.locate(Fault(said, key)))
    total = most(scenario.replicas) * sum(fact.events for fact in facts)
    if total > MOST_EVENTS and isinstance(scenario.replicas, int):
        said = f"about {total:.3g} events in all would take more than a month of one processor; {_CONFIRM}"
        raise InputError(scenario.locate(Fault(said, "replicas")))


def _needs(scenario: Scenario) -> list[Need]:
    """What one cell needs that its numbers say, without its data."""
    topology, source = scenario.network.topology, scenario.data.source
    where = "network.topology.shape" if topology.kind == "grid" else "network.topology.agents"
    agents = topology.size
    if agents is None and (said := getattr(source, "agents", None)) is not None:
        agents, where = said, "data.source.agents"
    agents = agents or 1
    links = min(topology.link_ends(agents), float(agents) * agents)
    needs = [
        Need(_AGENT * agents, f"{agents:,} agents", {where: agents}),
        Need(_LINK * links, f"{links:,.0f} links", {where: agents}),
    ]
    algorithm = scenario.learning.algorithm
    if algorithm.kind in ("synchronous-descent", "synchronous-averaging"):
        # A step size of each round.
        horizon = algorithm.horizon
        needs.append(Need(_NUMBER * horizon, f"{horizon:,} rounds", {"learning.algorithm.horizon": horizon}))
    dimension, points = getattr(source, "dimension", None), getattr(source, "points", None)
    if isinstance(dimension, int) and points is not None:
        each = points if isinstance(points, int) else getattr(points, "mean", 1.0)
        rows = sum(points.values()) if isinstance(points, Mapping) else agents * each
        numbers = {where: agents, "data.source.points": rows / agents, "data.source.dimension": dimension}
        needs.append(
            Need(_NUMBER * rows * dimension, f"{rows:,.0f} records of {dimension:,} features", numbers)
        )
        if scenario.learning.algorithm.kind in STARS:
            what = f"the products of {dimension:,} features of {agents:,} owners"
            needs.append(
                Need(
                    _NUMBER * agents * dimension**2, what, {where: agents, "data.source.dimension": dimension}
                )
            )
        else:
            needs.append(
                Need(_NUMBER * agents * dimension, f"{agents:,} models of {dimension:,} numbers", numbers)
            )
    return needs


def _shown(size: float) -> str:
    """Bytes in the largest unit that leaves a number of at least one."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
    power = 0
    while size >= 1000 and power < len(units) - 1:
        size, power = size / 1000, power + 1
    return f"{size:,.3g} {units[power]}"
