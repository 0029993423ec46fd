"""Any recorded metric against commits or time."""

from typing import TYPE_CHECKING

from p2psim.errors import InputError
from p2psim.figure_names import MEASURED_AXES
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report.bands import band_figure, stem
from p2psim.report.source import FITNESS, Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_curves(source: Source) -> "dict[str, Figure]":
    """Percentile bands of the metric asked for, or of every metric that has no figure of its own.

    Unless asked for, a metric that never changes in any run, such as ``isolated_fitness``, is no curve: ``finals``
    shows it. Nor is one that is an axis, nor that of a group or of the network, which ``groups`` and ``network``
    show beside others.

    Raises
    ------
    InputError
        If the run did not record it, or has no other metric that changes.
    """
    names = [source.metric] if source.metric else [name for name in _others(source) if _changes(source, name)]
    if not names:
        raise InputError(f"the run has no metric besides {FITNESS} that changes; add one to record.metrics")
    return {stem(source, f"curves-{name}"): band_figure(source, name) for name in names}


def _others(source: Source) -> list[str]:
    left_out = (FITNESS, *MEASURED_AXES.values(), *NETWORK_METRICS)
    return [name for name in source.recorded() if name not in left_out and not name.endswith("]")]


def _changes(source: Source, metric: str) -> bool:
    rows = source.rows(metric)
    one = rows["agent"].astype("Int64").fillna(-9)
    values = rows.groupby(["cell", "model", "replica", one], observed=True)["value"]
    return bool((values.nunique(dropna=False) > 1).any())
