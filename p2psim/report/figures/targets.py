"""Share of the replicas that have reached a target, along the run."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from p2psim.core.errors import InputError
from p2psim.report import panels, style
from p2psim.report.curves import labelled, once
from p2psim.report.source import Float, Source
from p2psim.runs.summary import Reached, first_reached, rises, share_reached

#: Bands are drawn for up to so many lines; more would hide each other.
MOST_BANDS = 4


@dataclass(frozen=True)
class TargetCurve:
    """One cell and model: its label, what was estimated, where its last replica ended, and who never got there.

    Attributes
    ----------
    label : str
    reached : Reached
    end : float
    censored : ndarray
        Where replicas ended that had not reached the target.
    replicas : int
    """

    label: str
    reached: Reached
    end: float
    censored: np.ndarray
    replicas: int

    @property
    def how_many(self) -> str:
        """How many replicas reach the target, of how many."""
        return f"{self.replicas - self.censored.size} of {self.replicas}"


def draw_targets(source: Source) -> dict[str, Figure]:
    """Kaplan-Meier estimate of the share that has reached the target, a line for each cell and model.

    Where there are many, each has a row instead, with the quartiles of the time that it takes.

    Raises
    ------
    InputError
        If no metric or no target is given, or the run did not record it.
    """
    if source.metric is None or source.target is None:
        raise InputError("give what is to be reached: --metric NAME --target VALUE")
    drawn = lines(source, source.metric, source.target)
    aim = f"{panels.words(source.metric)} {'≥' if rises(source.metric) else '≤'} {source.target:g}"
    title = f"{aim} by {panels.axis_words(source)}"
    figure = (_shares if len(drawn) <= panels.MOST_LINES else _rows)(source, title, drawn)
    return {panels.stem(source, f"targets-{source.metric}-{source.target:g}"): figure}


def lines(source: Source, metric: str, target: float) -> list[TargetCurve]:
    """What is drawn, in the order of the cells; a baseline that is the same in all of them only once."""
    rows = source.placed_rows(metric).astype({"model": str})
    parts = (
        (label, model, (float(part["x"].max()), *_reached(part, target, rises(metric))))
        for label, model, part in labelled(rows, source.swept, ["cell", "model"])
    )
    return [
        TargetCurve(label, share_reached(x, reached), end, x[~reached], x.size)
        for label, _, (end, x, reached) in once(parts, lambda drawn: tuple(drawn[1]) + tuple(drawn[2]))
    ]


def _reached(part: pd.DataFrame, target: float, rising: bool) -> tuple[Float, NDArray[np.bool_]]:
    """Where each replica reached the target or ended, and which of the two."""
    group = first_reached(part, "x", target, rising)
    return group["x"].to_numpy(dtype=float), group["reached"].to_numpy(dtype=bool)


def _rows(source: Source, title: str, drawn: list[TargetCurve]) -> Figure:
    shown = drawn[: panels.MOST_ROWS]
    figure, (axes,) = panels.row_panels([f"{line.label or 'main'} ({line.how_many})" for line in shown], 1)
    colour = style.line_style(0)["color"]
    for row, line in enumerate(shown):
        early, half, late = (line.reached.quantile(share) for share in (0.25, 0.5, 0.75))
        if np.isfinite(early):
            axes.plot([early, min(late, line.end)], [row, row], color=colour, linewidth=2.2)
        if np.isfinite(half):
            style.mark(axes, [half], [row], "o", 6, colour)
        if not np.isfinite(late):
            style.mark(axes, [line.end], [row], ">", 6, "white", markeredgecolor=colour)
    axes.set_xlim(left=0)
    style.few_ticks(axes)
    axes.set_xlabel(panels.axis_label(source))
    dot = "Dot: where half of the replicas have reached it"
    remarks = [f"{dot}; line: from a quarter to three quarters (Kaplan, Meier). In brackets: how many do."]
    if any(not np.isfinite(line.reached.quantile(0.75)) for line in shown):
        remarks.append(
            "Arrow: the end of the last replica, where less than three quarters have reached it by then."
        )
    panels.finish_panels(figure, source, title, [*remarks, *_never(drawn), *panels.left_out(len(drawn))])
    return figure


def _shares(source: Source, title: str, drawn: list[TargetCurve]) -> Figure:
    figure, axes = style.new_axes()
    banded = len(drawn) <= MOST_BANDS
    for index, line in enumerate(drawn):
        look, reached = style.plain_line(index), line.reached
        x = np.concatenate([[0.0], reached.at, [line.end]])
        share, low, high = (
            np.concatenate([[0.0], part, part[-1:] if part.size else [0.0]])
            for part in (reached.share, reached.low, reached.high)
        )
        half = reached.quantile(0.5)
        result = f"{line.how_many}; {f'half by {half:.3g}' if np.isfinite(half) else 'never half'}"
        label = f"{line.label}\n{result}" if line.label else result
        axes.plot(x, share, drawstyle="steps-post", linewidth=1.8, label=label, **look)
        if banded and reached.at.size:
            style.shade(axes, x[1:], low[1:], high[1:], look["color"], step="post")
        if line.censored.size:
            place = np.searchsorted(reached.at, line.censored, side="right")
            style.mark(axes, line.censored, share[place], "|", 11, look["color"], markeredgewidth=1.8)
    axes.set_ylim(-0.03, 1.03)
    axes.margins(x=0.02)
    style.few_ticks(axes)
    band = "; band: its 95 % interval (Rothman, Wilson)" if banded else ""
    remark = f"Line: share of the replicas at the first record that reaches the target (Kaplan, Meier){band}."
    y = "share of replicas that have reached it"
    remarks = [remark, *_never(drawn, " (ticks)")]
    panels.finish(figure, axes, source, panels.axis_label(source), y, title, remarks)
    return figure


def _never(drawn: list[TargetCurve], shown_as: str = "") -> list[str]:
    never, total = sum(line.censored.size for line in drawn), sum(line.replicas for line in drawn)
    end = f"{never} of {total} replicas end without having reached it{shown_as}"
    return [f"{end}, and count as long as they are watched."] if never else []
