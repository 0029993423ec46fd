"""Recomputes the ledger, the noise and the agents' table of a recorded replica from its events and data.

It also computes the cost of a finished run for accountants that its scenario did not name.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from p2psim.core.errors import FolderError, check_place
from p2psim.network.tally import LostReleases
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.ledger import ledger, real_charges
from p2psim.privacy.plan import Claims
from p2psim.privacy.releases import ReleaseCounter, Violations, by_agent, joined
from p2psim.runs.result import Result
from p2psim.scenario.model import Scenario
from p2psim.scenario.notices import Compared
from p2psim.simulation.algorithms import PreparedCell, adapter_of
from p2psim.simulation.outcome import link_table, streams_of
from p2psim.simulation.recorder import NOWHERE
from p2psim.simulation.session import EventCache
from p2psim.simulation.workspace import Workspace

#: Largest relative difference that rounding explains.
_TOLERANCE = 1e-9
#: Columns of the ledger about broken bounds.
_VIOLATIONS = ("bound_violated", "violation_step", "violation_size")


def faults(
    scenario: Scenario,
    replica: int,
    cell: PreparedCell,
    events: np.ndarray,
    noise: np.ndarray,
    tables: Mapping[str, pd.DataFrame],
) -> Iterator[str]:
    """Say what of a recorded replica does not follow from its events and data.

    Parameters
    ----------
    scenario : Scenario
        Of the cell, without a sweep.
    replica : int
    cell : PreparedCell
        Made of the recorded data.
    events : ndarray of EVENT
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    tables : mapping
        Rows of this replica in ``ledger`` and ``agents``, by agent, and in ``links``.
    """
    plan, streams = cell.setup.plan, streams_of(scenario, replica)
    releases = ReleaseCounter.empty(plan.budget.size, cell.setup.queries).read(events)
    lost = LostReleases(cell.setup.network, end=cell.setup.time)
    lost.read(events)
    totals = plan.totals([releases])
    order = by_agent(releases)
    unit = plan.mechanism.draw(streams.key("noise"), releases.agents, releases.numbers, cell.setup.dimension)
    again = plan.noise(unit, releases, totals)[order]
    scale = max(np.abs(again).max(initial=0.0), np.finfo(float).tiny)
    if Compared(noise, again, scale).difference > _TOLERANCE:
        yield "noise: it is not what the mechanism draws for these releases"
    rows = tables["ledger"]
    if len(rows) != plan.budget.size:
        yield f"ledger: it has {len(rows)} agents, and {plan.budget.size} take part"
        return
    # Where records broke the claimed bound, by the compiled replay; clipped ones break none.
    violations, sensitivity = Violations.none(plan.budget.size), scenario.privacy.sensitivity
    if sensitivity is not None and sensitivity.is_checked and noise.shape[0] == order.size:
        in_order = np.empty_like(noise)
        in_order[order] = noise
        replay = cell.replay(streams)
        replay.feed(events, in_order, releases.places, NOWHERE)
        violations = replay.violations
    caveats = cell.caveats(violations).violations
    # Each is held to what the other does not give: costs to the recorded violations, and these to those of a replay.
    held, accountants = cell.caveats(_recorded_violations(rows)), scenario.privacy.accountant
    lost_releases = lost.releases * cell.setup.queries
    drawn_up = ledger(plan, lost_releases, lost.deliveries, releases, totals, accountants, held)
    drawn_up |= zip(_VIOLATIONS, (caveats.found, caveats.steps, caveats.sizes), strict=True)
    yield from _different("ledger", rows, drawn_up)
    yield from _different("agents", tables["agents"], cell.agents)
    links = link_table(cell.setup.network.links, float(events["time"][-1]), cell.setup.time)
    if len(tables["links"]) != links["a"].size:
        yield f"links: it has {len(tables['links'])} rows, and the scenario gives {links['a'].size}"
    else:
        yield from _different("links", tables["links"], links, "row")


def _recorded_violations(rows: pd.DataFrame) -> Violations:
    broken, steps, sizes = (rows[name].to_numpy() for name in _VIOLATIONS)
    return Violations(broken.astype(np.int64), steps, sizes)


def _different(
    name: str, rows: pd.DataFrame, again: Mapping[str, np.ndarray], row: str = "agent"
) -> Iterator[str]:
    """Columns that differ, each with the first agent, or other row, where it does."""
    missing = [column for column in again if column not in rows]
    # Columns of cells that have other accountants are empty here.
    beside = [column for column in rows if column not in again and rows[column].notna().any()]
    for column in (*missing, *beside):
        yield f"{name}: column {column} is {'missing' if column in missing else 'not of this scenario'}"
    for column in (column for column in again if column in rows):
        held, right = rows[column].to_numpy(), np.asarray(again[column])
        if right.dtype.kind in "OUT":
            differ = held.astype(str) != right.astype(str)
        else:
            held, right = held.astype(float), right.astype(float)
            near = np.isclose(held, right, rtol=_TOLERANCE, atol=0.0, equal_nan=True)
            differ = ~(near | ((right == 0) & (np.abs(held) <= _TOLERANCE)))
        if differ.any():
            agent = int(np.flatnonzero(differ)[0])
            yield f"{name}: {column} of {row} {agent} is {held[agent]}, and its events and data give {right[agent]}"


@dataclass(frozen=True)
class Recounted:
    """Releases of one simulation.

    Attributes
    ----------
    cell, replica : int
    scenario : Scenario
    charges : Charges
        Of its agents, for their real records.
    ledger : DataFrame
        Its rows, by agent.
    """

    cell: int
    replica: int
    scenario: Scenario
    charges: Charges
    ledger: pd.DataFrame


def recount(result: Result, only: int | None = None) -> Iterator[Recounted]:
    """Draw up the charges of every simulation of a run folder.

    Data are prepared and events made again, as the scenario says; nothing is learned. Which bounds the data broke is
    taken from the ledger.

    Parameters
    ----------
    result : Result
    only : int, optional
        The only cell that is wanted.

    Raises
    ------
    InputError
        If there is no such cell, or a data file is not there any more.
    FolderError
        If the releases are not those of the ledger: data or p2psim have changed since.
    """
    if only is not None:
        check_place("cell", only, len(result.described.cells))
    workspace, cache = Workspace(None), EventCache()
    for cell, replica, scenario in simulations_of(result):
        if only not in (None, cell):
            continue
        rows = result.ledger[(result.ledger["cell"] == cell) & (result.ledger["replica"] == replica)]
        rows = rows.sort_values("agent")
        prepared = adapter_of(scenario).cell(scenario, workspace.case(scenario, replica), replica)
        setup, streams, engine = prepared.setup, streams_of(scenario, replica), scenario.network.engine
        played = cache.replica(setup, streams, engine)
        releases = joined([piece.releases for piece in played.read()])
        totals = setup.plan.totals(piece.releases for piece in played.read())
        claims = Claims.of(setup.plan, releases, totals)
        charges = real_charges(setup.plan, claims, prepared.caveats(_recorded_violations(rows)))
        if not np.array_equal(charges.made, rows["releases"].to_numpy()):
            raise FolderError(
                f"{result.path}: the releases of cell {cell}, replica {replica} are not those of the ledger; "
                "data or p2psim have changed since"
            )
        yield Recounted(cell, replica, scenario, charges, rows)


def simulations_of(result: Result, given: Scenario | None = None) -> Iterator[tuple[int, int, Scenario]]:
    """Cell, replica and scenario of each simulation, also of cells that the grid has no more.

    The scenario is of `given`, where there is one, instead of the folder's.
    """
    replicas = defaultdict[str, list[int]](list)
    for content, replica in sorted(result.described.runs):
        replicas[content].append(replica)
    grid = result.grid(given)
    for number, entry in enumerate(result.described.cells):
        scenario = result.cell_scenario(number, grid)
        for replica in replicas[entry.content]:
            yield number, replica, scenario
