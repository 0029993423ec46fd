"""Recomputes a recorded replica with the plain reference, from its events, noise and data alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from p2psim.network.metrics import NETWORK_METRICS
from p2psim.study.compared import drift
from p2psim.study.families import family_of
from p2psim.study.families.network_check import compare_network
from p2psim.study.families.spending import compare_spending
from p2psim.study.record import SPENDING
from p2psim.study.streams import streams_of

if TYPE_CHECKING:
    import numpy as np

    from p2psim.study.outcome import Series
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case

#: Largest relative difference that rounding explains where nothing amplifies it.
TOLERANCE = 1e-9

#: By how much the features are scaled to see what becomes of rounding: four units in the last place.
NUDGE = 2.0**-50

#: Rounding at every step may move a replay so many times farther than one nudge does.
SLACK = 100


@dataclass(frozen=True)
class Differences:
    """How far a recorded replica is from the recomputed one.

    Attributes
    ----------
    values : int
        Numbers compared.
    largest : float
        Largest relative difference; each family says relative to what.
    drift : float
        As large a difference between two plain replays, of which one has nudged data; zero where `largest` is
        within `TOLERANCE`, since it is not asked then.
    """

    values: int
    largest: float
    drift: float = 0.0


def recompute(
    scenario: Scenario,
    case: Case,
    replica: int,
    events: np.ndarray,
    noise: np.ndarray,
    series: tuple[Series, ...],
    models: np.ndarray | None = None,
) -> Differences:
    """Replay a replica plainly and compare what was recorded.

    An unstable step (h above 2) amplifies rounding, so that two right implementations part. Where the difference
    exceeds the tolerance, the replica is therefore replayed plainly once more, with all features scaled by
    1 + `NUDGE`, to see how far plain replays part from each other.

    Parameters
    ----------
    scenario : Scenario
        Of the cell, without a sweep.
    case : Case
        The prepared data, as in ``data.npz``, and the agents' labels and groups.
    replica : int
    events : ndarray of EVENT
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    series : tuple of Series
        What was recorded.
    models : ndarray, shape (records, …), optional
        The recorded models.
    """
    family, streams = family_of(scenario), streams_of(scenario, replica)
    counted = tuple(one for one in series if one.metric in NETWORK_METRICS)
    spent = tuple(one for one in series if one.metric in SPENDING)
    learned = tuple(one for one in series if one.metric not in {**NETWORK_METRICS, **SPENDING})
    cell = family.cell(scenario, case, replica)
    stage, record = cell.stage, scenario.record
    # What is counted does not depend on models, so that nothing amplifies its rounding.
    exact = [
        *compare_network(stage.network, record, events, counted),
        *compare_spending(stage.plan, record, events, spent),
    ]
    found = list(cell.recompute(streams, events, noise, learned, models))
    values = sum(one.recorded.size for one in (*exact, *found))
    miscounted = max((one.difference for one in exact), default=0.0)
    largest = max((one.difference for one in found), default=0.0)
    if miscounted > TOLERANCE or largest <= TOLERANCE:
        return Differences(values, max(miscounted, largest))
    nudged = replace(case, arrays={**case.arrays, "X": case.arrays["X"] * (1 + NUDGE)})
    again = family.cell(scenario, nudged, replica).recompute(streams, events, noise, learned, models)
    return Differences(values, largest, drift(found, again))
