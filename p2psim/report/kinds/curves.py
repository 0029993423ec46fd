"""Any recorded metric against commits or time."""

from typing import TYPE_CHECKING

from p2psim.errors import InputError
from p2psim.report.bands import band_figure, stem
from p2psim.report.source import FITNESS, Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_curves(source: Source) -> "dict[str, Figure]":
    """Percentile bands of the metric asked for, or of every metric that has no figure of its own.

    Raises
    ------
    InputError
        If the run did not record it, or has no other metric.
    """
    names = [source.metric] if source.metric else [name for name in source.recorded() if name != FITNESS]
    if not names:
        raise InputError(f"the run has no metric besides {FITNESS}; add one to record.metrics")
    return {stem(source, f"curves-{name}"): band_figure(source, name) for name in names}
