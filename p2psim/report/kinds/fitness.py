"""Relative fitness ψ against commits (F figure 2)."""

from typing import TYPE_CHECKING

from p2psim.errors import InputError
from p2psim.report.bands import band_figure, stem
from p2psim.report.source import FITNESS, Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_fitness(source: Source) -> "dict[str, Figure]":
    """Percentile bands of ψ on a log axis, a line for each swept value.

    Raises
    ------
    InputError
        If the run did not record ``relative_fitness``, or another metric is asked for.
    """
    if source.metric not in (None, FITNESS):
        raise InputError(f"fitness draws {FITNESS}; the kind for {source.metric} is curves")
    return {stem(source, "fitness"): band_figure(source, FITNESS, log=True)}
