"""Share of the replicas that have reached a target, along the run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from p2psim.errors import InputError
from p2psim.report import notes, style
from p2psim.report.bands import axis_label, axis_words, stem
from p2psim.report.curves import labels
from p2psim.report.source import Source
from p2psim.study.survival import Reached, share_reached
from p2psim.study.targets import first_reached, rises

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

    Raises
    ------
    InputError
        If no metric or no target is given, or the run did not record it.
    """
    if source.metric is None or source.target is None:
        raise InputError("give what is to be reached: --metric NAME --target VALUE")
    return {
        stem(source, f"targets-{source.metric}-{source.target:g}"): _figure(
            source, source.metric, source.target
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


def _figure(source: Source, metric: str, target: float) -> "Figure":
    drawn = lines(source, metric, target)
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
        told = f"{line.replicas - line.censored.size} of {line.replicas}"
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
    sign = "≥" if rises(metric) else "≤"
    what = f"{metric.replace('_', ' ')} {sign} {target:g}"
    style.add_title(axes, source.title(f"{what} by {axis_words(source)}"))
    style.few_ticks(axes)
    style.add_legend(figure, axes)
    style.add_footnote(figure, [*_remarks(drawn), *notes.run_notes(source)])
    return figure


def _remarks(drawn: list[Line]) -> list[str]:
    never = sum(line.censored.size for line in drawn)
    total = sum(line.replicas for line in drawn)
    band = "; band: its 95 % interval (Rothman, Wilson)" if len(drawn) <= MOST_BANDS else ""
    out = [f"Line: share of the replicas at the first record that reaches the target (Kaplan, Meier){band}."]
    if never:
        out.append(
            f"{never} of {total} replicas end without having reached it (ticks), and count as long as they are watched."
        )
    return out
