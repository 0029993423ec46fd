"""Share of the replicas that have reached a target, along the run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.errors import InputError
from p2psim.report import notes, style
from p2psim.report.curves import labels
from p2psim.report.figures.bands import (
    MOST_LINES,
    MOST_ROWS,
    axis_label,
    axis_words,
    entitle,
    left_out,
    row_panels,
    stem,
)
from p2psim.report.source import Source
from p2psim.runs.summary import Reached, first_reached, rises, share_reached

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Bands are drawn for up to so many lines; more would hide each other.
MOST_BANDS = 4


@dataclass(frozen=True)
class Line:
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


def draw_targets(source: Source) -> "dict[str, Figure]":
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
    draw = _figure if len(drawn) <= MOST_LINES else _rows
    return {
        stem(source, f"targets-{source.metric}-{source.target:g}"): draw(
            source, source.metric, source.target, drawn
        )
    }


def lines(source: Source, metric: str, target: float) -> list[Line]:
    """What is drawn, in the order of the cells; a baseline that is the same in all of them only once."""
    rows = source.placed_rows(metric)
    named = labels(source.swept, rows)
    names = {
        (row[-2], row[-1]): named[(*row[:-2], row[-1])]
        for row in rows.astype({"model": str})[[*source.swept, "cell", "model"]]
        .drop_duplicates()
        .itertuples(index=False, name=None)
    }
    out: list[Line] = []
    drawn: set[tuple[object, ...]] = set()
    for (cell, model), group in first_reached(rows, "x", target, rises(metric)).groupby(["cell", "model"]):
        x, there = group["x"].to_numpy(dtype=float), group["reached"].to_numpy(dtype=bool)
        same = (model, *zip(x.tolist(), there.tolist(), strict=True))
        if model != "main" and same in drawn:
            continue
        drawn.add(same)
        end = float(rows.loc[(rows["cell"] == cell) & (rows["model"] == model), "x"].max())
        out.append(Line(names[cell, model], share_reached(x, there), end, x[~there], x.size))
    return out


def _rows(source: Source, metric: str, target: float, drawn: list[Line]) -> "Figure":
    shown = drawn[:MOST_ROWS]
    figure, (axes,) = row_panels([f"{line.label or 'main'} ({_how_many(line)})" for line in shown], 1)
    look = style.line_style(0)
    for row, line in enumerate(shown):
        early, half, late = (line.reached.quantile(share) for share in (0.25, 0.5, 0.75))
        if np.isfinite(early):
            axes.plot([early, min(late, line.end)], [row, row], color=look["color"], linewidth=2.2)
        if np.isfinite(half):
            axes.plot([half], [row], marker="o", markersize=6, color=look["color"], linestyle="none")
        if not np.isfinite(late):
            axes.plot(
                [line.end], [row], marker=">", markersize=6, color="white", markeredgecolor=look["color"],
                linestyle="none",
            )  # fmt: skip
    axes.set_xlim(left=0)
    style.few_ticks(axes)
    axes.set_xlabel(axis_label(source))
    entitle(figure, source, f"{_what(metric, target)} by {axis_words(source)}")
    remarks = [
        "Dot: where half of the replicas have reached it; line: from a quarter to three quarters (Kaplan, Meier). "
        "In brackets: how many do.",
    ]
    if any(not np.isfinite(line.reached.quantile(0.75)) for line in shown):
        remarks.append(
            "Arrow: the end of the last replica, where less than three quarters have reached it by then."
        )
    style.add_footnote(figure, [*remarks, *_never(drawn), *left_out(len(drawn)), *notes.run_notes(source)])
    return figure


def _how_many(line: Line) -> str:
    return f"{line.replicas - line.censored.size} of {line.replicas}"


def _what(metric: str, target: float) -> str:
    return f"{metric.replace('_', ' ')} {'≥' if rises(metric) else '≤'} {target:g}"


def _figure(source: Source, metric: str, target: float, drawn: list[Line]) -> "Figure":
    figure = style.new_figure()
    axes = figure.add_subplot()
    for index, line in enumerate(drawn):
        look = style.line_style(index)
        found = line.reached
        x = np.concatenate([[0.0], found.at, [line.end]])
        share, low, high = (
            np.concatenate([[0.0], part, part[-1:] if part.size else [0.0]])
            for part in (found.share, found.low, found.high)
        )
        half = found.quantile(0.5)
        told = _how_many(line)
        told += f"; half by {half:.3g}" if np.isfinite(half) else "; never half"
        axes.plot(
            x, share, drawstyle="steps-post", linewidth=1.8, color=look["color"], linestyle=look["linestyle"],
            label=f"{line.label}\n{told}" if line.label else told,
        )  # fmt: skip
        if len(drawn) <= MOST_BANDS and found.at.size:
            axes.fill_between(
                x[1:], low[1:], high[1:], step="post", color=look["color"], alpha=0.15, linewidth=0
            )
        if line.censored.size:
            place = np.searchsorted(found.at, line.censored, side="right")
            heights = np.concatenate([[0.0], found.share])[place]
            axes.plot(
                line.censored, heights, linestyle="none", marker="|", markersize=11, markeredgewidth=1.8,
                color=look["color"],
            )  # fmt: skip
    axes.set_ylim(-0.03, 1.03)
    axes.margins(x=0.02)
    axes.set_xlabel(axis_label(source))
    axes.set_ylabel("share of replicas that have reached it")
    style.add_title(axes, source.title(f"{_what(metric, target)} by {axis_words(source)}"))
    style.few_ticks(axes)
    style.add_legend(figure, axes)
    style.add_footnote(figure, [*_remarks(drawn), *notes.run_notes(source)])
    return figure


def _remarks(drawn: list[Line]) -> list[str]:
    band = "; band: its 95 % interval (Rothman, Wilson)" if len(drawn) <= MOST_BANDS else ""
    line = f"Line: share of the replicas at the first record that reaches the target (Kaplan, Meier){band}."
    return [line, *_never(drawn, " (ticks)")]


def _never(drawn: list[Line], shown_as: str = "") -> list[str]:
    never = sum(line.censored.size for line in drawn)
    if not never:
        return []
    total = sum(line.replicas for line in drawn)
    return [
        f"{never} of {total} replicas end without having reached it{shown_as}, and count as long as they are watched."
    ]
