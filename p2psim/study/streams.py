"""Random streams of a replica, as a scenario shares them between cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2psim.randomness import Streams

if TYPE_CHECKING:
    from p2psim.study.scenario import Scenario


def streams_of(scenario: Scenario, replica: int) -> Streams:
    """Random streams of a replica; those in ``independent`` are told apart by the cell's content."""
    if not scenario.independent:
        return Streams(scenario.seed, replica)
    from p2psim.study.cells import content

    variant = content(scenario)
    return Streams(scenario.seed, replica, dict.fromkeys(scenario.independent, variant))
