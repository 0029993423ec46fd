"""A figure of replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import p2psim

if TYPE_CHECKING:
    from matplotlib import figure

    from p2psim.report.source import Source


@p2psim.register
class Histogram(p2psim.Figure):
    """Histogram of last values over replicas, a colour for each cell."""

    name = "histogram"
    meaning = "histogram of the last values of a metric over replicas"
    needs = "metric"
    requires: ClassVar[Mapping[str, str]] = {"metric": "whose values to count"}

    @staticmethod
    def draw(source: Source) -> dict[str, figure.Figure]:
        """Of models of the run itself, not of baselines."""
        from p2psim.core.errors import InputError
        from p2psim.report import style

        if source.metric is None:
            raise InputError("give what to count: --metric NAME")
        rows = source.rows(source.metric)
        last = rows[rows["model"] == "main"].sort_values("step").groupby(["cell", "replica"])["value"].last()
        drawn = style.new_figure()
        axes = drawn.add_subplot()
        for cell, values in last.groupby("cell"):
            axes.hist(values, alpha=0.6, label=f"cell {cell}")
        axes.set_xlabel(style.metric_label(source.metric))
        axes.set_ylabel("replicas")
        style.add_title(axes, source.title("last values"))
        style.add_legend(drawn, axes)
        return {f"histogram-{source.metric}": drawn}
