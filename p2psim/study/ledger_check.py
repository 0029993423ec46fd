"""Draws up the ledger, the noise and the table of agents of a recorded replica once more, from its events and data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.network.lost_releases import LostReleases
from p2psim.privacy.ledger import ledger
from p2psim.privacy.releases import Book, by_agent, unit_noise
from p2psim.privacy.violations import Violations
from p2psim.study.compared import largest_difference
from p2psim.study.streams import streams_of

if TYPE_CHECKING:
    import pandas as pd

    from p2psim.study.families.stage import FamilyCell
    from p2psim.study.scenario import Scenario

#: Largest relative difference that rounding explains.
_TOLERANCE = 1e-9


def faults(
    scenario: Scenario,
    replica: int,
    cell: FamilyCell,
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
    cell : FamilyCell
        Made of the recorded data.
    events : ndarray of EVENT
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    tables : mapping
        Rows of this replica in ``ledger`` and ``agents``, by agent.
    """
    plan, streams = cell.stage.plan, streams_of(scenario, replica)
    releases, _ = Book.empty(plan.budget.size).read(events)
    lost = LostReleases(cell.stage.network)
    lost.read(events)
    totals = plan.totals([releases])
    order = by_agent(releases)
    unit = unit_noise(plan, streams.key("noise"), releases, cell.stage.dimension)
    again = plan.noise(unit, releases, totals)[order]
    if _apart(noise, again, max(np.abs(again).max(initial=0.0), np.finfo(float).tiny)):
        yield "noise: it is not what the mechanism draws for these releases"
    rows = tables["ledger"]
    if len(rows) != plan.budget.size:
        yield f"ledger: it has {len(rows)} agents, and {plan.budget.size} take part"
        return
    recorded = Violations(
        rows["bound_violated"].to_numpy().astype(np.int64),
        rows["violation_step"].to_numpy(),
        rows["violation_size"].to_numpy(),
    )
    seen = cell.caveats(
        _violations(scenario, cell, streams, events, noise, releases.places, order)
    ).violations
    # Each is held to what the other does not give: costs to the recorded violations, and these to those of a replay.
    drawn_up = ledger(
        plan,
        lost.releases,
        lost.deliveries,
        releases,
        totals,
        scenario.privacy.accountant,
        cell.caveats(recorded),
    )
    drawn_up |= {
        "bound_violated": seen.found,
        "violation_step": seen.steps,
        "violation_size": seen.sizes,
    }
    yield from _different("ledger", rows, drawn_up)
    yield from _different("agents", tables["agents"], cell.agents())


def _violations(
    scenario: Scenario,
    cell: FamilyCell,
    streams: Any,
    events: np.ndarray,
    noise: np.ndarray,
    places: np.ndarray,
    order: np.ndarray,
) -> Violations:
    """Where records broke the claimed bound, by the compiled replay; clipped ones break none."""
    sensitivity = scenario.privacy.sensitivity
    if sensitivity is None or sensitivity.kind == "clip" or noise.shape[0] != order.size:
        return Violations.none(cell.stage.plan.budget.size)
    in_order = np.empty_like(noise)
    in_order[order] = noise
    player = cell.player(streams)
    player.feed(events, in_order, places)
    return player.finish().violations


def _different(name: str, rows: pd.DataFrame, again: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Columns that differ, each with the first agent where it does."""
    missing = [column for column in again if column not in rows]
    # Columns of cells that have other accountants are empty here.
    beside = [column for column in rows if column not in again and rows[column].notna().any()]
    for column in (*missing, *beside):
        yield f"{name}: column {column} is {'missing' if column in missing else 'not of this scenario'}"
    for column in again:
        if column in missing:
            continue
        held, right = rows[column].to_numpy(), np.asarray(again[column])
        if right.dtype.kind in "OUT":
            differ = held.astype(str) != right.astype(str)
        else:
            held, right = held.astype(float), right.astype(float)
            differ = _differ(held, right)
        if differ.any():
            agent = int(np.flatnonzero(differ)[0])
            yield f"{name}: {column} of agent {agent} is {held[agent]}, and its events and data give {right[agent]}"


def _differ(held: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Where numbers are farther apart than rounding explains."""
    scale = np.where(np.isfinite(right) & (right != 0), np.abs(right), 1.0)
    with np.errstate(invalid="ignore"):
        near = np.abs(held - right) <= _TOLERANCE * scale
    return ~(near | (held == right) | (np.isnan(held) & np.isnan(right)))


def _apart(recorded: np.ndarray, again: np.ndarray, scale: float) -> bool:
    return largest_difference(recorded, again, scale) > _TOLERANCE
