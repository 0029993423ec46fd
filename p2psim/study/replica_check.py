"""Recomputes a recorded replica with the plain reference, from its events, noise and data alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p2psim.study.families import family_of

if TYPE_CHECKING:
    import numpy as np

    from p2psim.study.outcome import Series
    from p2psim.study.scenario import Scenario


@dataclass(frozen=True)
class Differences:
    """How far a recorded replica is from the recomputed one.

    Attributes
    ----------
    values : int
        Numbers compared.
    largest : float
        Largest relative difference; each family says relative to what.
    """

    values: int
    largest: float


def recompute(
    scenario: Scenario,
    arrays: Mapping[str, np.ndarray],
    replica: int,
    events: np.ndarray,
    noise: np.ndarray,
    series: tuple[Series, ...],
    models: np.ndarray | None = None,
) -> Differences:
    """Replay a replica plainly and compare what was recorded.

    Parameters
    ----------
    scenario : Scenario
        Of the cell, without a sweep.
    arrays : mapping
        The prepared data, as in ``data.npz``.
    replica : int
    events : ndarray of EVENT
    noise : ndarray, shape (releases, p)
        Ordered by (agent, release).
    series : tuple of Series
        What was recorded.
    models : ndarray, shape (records, …), optional
        The recorded models.
    """
    found = list(family_of(scenario).recompute(scenario, arrays, replica, events, noise, series, models))
    return Differences(sum(count for count, _ in found), max((largest for _, largest in found), default=0.0))
