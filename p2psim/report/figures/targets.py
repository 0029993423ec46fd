"""Share of the replicas that have reached a target, along the run."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from p2psim.core.errors import InputError
from p2psim.report import notes, panels, scales, style
from p2psim.report.channels import MOST_LINES, Line, Plan
from p2psim.report.curves import drawn, parts_of
from p2psim.report.figures.finals import draw_each
from p2psim.report.source import Float, Source
from p2psim.report.words import number, words
from p2psim.runs.summary import Reached, first_reached, rises, share_reached

#: Bands are drawn for up to so many lines; more would hide each other.
MOST_BANDS = 4


@dataclass(frozen=True)
class TargetCurve:
    """One cell and model: its label, what was estimated, where its last replica ended, and who never got there.

    Attributes
    ----------
    label : str
    line : Line
    model : str
    reached : Reached
    end : float
    censored : ndarray
        Where replicas ended that had not reached the target.
    replicas : int
    """

    label: str
    line: Line
    model: str
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
    curves = lines(source, source.metric, source.target)
    aim = f"{words(source.metric)} {'≥' if rises(source.metric) else '≤'} {number(source.target)}"
    title = f"{aim} by {panels.axis_words(source)}"
    figure = (_shares if len(curves) <= MOST_LINES else _rows)(source, title, curves)
    return {panels.stem(source, f"targets-{source.metric}-{source.target:g}"): figure}


def lines(source: Source, metric: str, target: float) -> list[TargetCurve]:
    """What is drawn, in the order of the cells; a baseline that is the same in all of them only once."""
    rows = source.placed_rows(metric).astype({"model": str})
    plan = Plan(source, panels=False)
    parts = []
    for line, model, part in parts_of(rows, plan):
        x, reached = _reached(part, target, rises(metric))
        # The same end does not make two cells the same.
        same = (line.number if model == "main" else 0, *x, *reached)
        parts.append((line, model, (float(part["x"].max()), x, reached), same))
    return [
        TargetCurve(one.label, one.line, one.model, share_reached(x, reached), end, x[~reached], x.size)
        for one in drawn(plan, parts)[0]
        for end, x, reached in [one.what]
    ]


def _reached(part: pd.DataFrame, target: float, rising: bool) -> tuple[Float, NDArray[np.bool_]]:
    """Where each replica reached the target or ended, and which of the two."""
    group = first_reached(part, "x", target, rising)
    return group["x"].to_numpy(dtype=float), group["reached"].to_numpy(dtype=bool)


def _rows(source: Source, title: str, curves: list[TargetCurve]) -> Figure:
    shown = curves[: panels.MOST_ROWS]
    counts = [line.how_many.replace(" ", "\N{NO-BREAK SPACE}") for line in shown]
    names = [f"{line.label or source.main} ({count})" for line, count in zip(shown, counts, strict=True)]
    figure, (axes,) = panels.row_panels(names, 1)
    colour = style.colours(1)[0]
    few = notes.are_few(line.replicas for line in shown)
    for row, line in enumerate(shown):
        early, half, late = (line.reached.quantile(share) for share in (0.25, 0.5, 0.75))
        if few:
            draw_each(axes, names[row], row, line.reached.at, colour, "o", up=False)
        elif np.isfinite(early):
            style.bar(axes, row, early, min(late, line.end), colour)
        if np.isfinite(half):
            style.mark(axes, [half], [row], "o", 6, colour)
        if not np.isfinite(late):
            style.mark(axes, [line.end], [row], ">", 6, "white", markeredgecolor=colour)
        style.note(axes, names[row], row, half, *(() if few else (early, late)))
    axes.set_xlim(left=0)
    scales.few_ticks(axes)
    axes.set_xlabel(panels.axis_label(source))
    rest = "small: each that does" if few else "bar: a quarter to three quarters"
    remark = f"Dot: half of the replicas have reached it (in brackets: how many do); {rest}"
    arrow = any(not np.isfinite(line.reached.quantile(0.75)) for line in shown)
    remarks = [f"{remark}{'; arrow: less than three quarters by the end' if arrow else ''} (Kaplan, Meier)."]
    panels.finish(figure, source, title, [*remarks, *panels.left_out(len(curves))])
    return figure


def _shares(source: Source, title: str, curves: list[TargetCurve]) -> Figure:
    figure, axes = style.new_axes()
    few = notes.are_few(line.replicas for line in curves)
    banded = len(curves) <= MOST_BANDS and not few
    for line in curves:
        is_main, reached = line.model == "main", line.reached
        look = {**line.line.look, "marker": ""} if is_main else style.reference()
        x = np.concatenate([[0.0], reached.at, [line.end]])
        share, low, high = (
            np.concatenate([[0.0], part, part[-1:] if part.size else [0.0]])
            for part in (reached.share, reached.low, reached.high)
        )
        half = reached.quantile(0.5)
        result = f"{line.how_many}; {f'half by {half:.3g}' if np.isfinite(half) else 'never half'}"
        label = f"{line.label}: {result}" if line.label else result
        axes.plot(x, share, drawstyle="steps-post", label=label, **look)
        style.note(axes, line.label, x, share, *(() if few else (low, high)))
        if banded and is_main and reached.at.size:
            style.shade(axes, x[1:], low[1:], high[1:], look["color"], step="post")
        if line.censored.size:
            place = np.searchsorted(reached.at, line.censored, side="right")
            style.mark(axes, line.censored, share[place], "|", 11, look["color"], markeredgewidth=1.4)
    axes.set_ylim(-0.02, 1.02)
    axes.margins(x=0.02)
    scales.few_ticks(axes)
    axes.set(xlabel=panels.axis_label(source), ylabel="share of replicas that have reached it (fraction)")
    style.add_legend(figure, axes)
    band = "; band: 95 % (Rothman, Wilson)" if banded else ""
    never, total = sum(line.censored.size for line in curves), sum(line.replicas for line in curves)
    ticks = f"; ticks: {never} of {total} replicas end without having reached it" if never else ""
    number = notes.replicas([line.replicas for line in curves])
    remark = f"n = {number}; line: estimate by Kaplan and Meier{band}{ticks}."
    panels.finish(figure, source, title, [remark])
    return figure
