"""Figures that compare the ψ that owners reach together with the isolated ψ that they reach alone.

`draw_collaboration` draws both against a swept number (W figures 6 and 11). `draw_alone` draws the isolated ψ of each
owner against its number of records (F, hospitals).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from p2psim.core.errors import InputError, check_place
from p2psim.report import notes, style
from p2psim.report.curves import finals, labels, quartiles
from p2psim.report.figures.finals import swept_number
from p2psim.report.source import FITNESS, Float, Source

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALONE = "isolated_fitness"


@dataclass(frozen=True)
class Line:
    """One line: what all reach together, and what owners reach alone.

    Attributes
    ----------
    label : str
    x, low, median, high : ndarray, shape (m,)
        Finite x in ascending order; quantiles over replicas of the final ψ.
    alone : ndarray, shape (m,)
        Median over replicas of the isolated ψ: of one owner, or of its mean over owners.
    counts : tuple of int
        Replicas of each point.
    """

    label: str
    x: Float
    low: Float
    median: Float
    high: Float
    alone: Float
    counts: tuple[int, ...]

    @property
    def pays(self) -> "np.ndarray":
        """Whether the median together lies below that alone, shape (m,)."""
        return self.median < self.alone


def draw_collaboration(source: Source) -> "dict[str, Figure]":
    """Medians with bars, a line for each combination of the other swept keys; dotted: alone.

    Raises
    ------
    InputError
        If no axis is given, it is not swept over numbers, another metric is asked for, or ψ or isolated ψ was not
        recorded.
    """
    drawn = lines(source)
    key = str(source.key)
    figure = style.new_figure(8.4, 4.8)
    axes = figure.add_subplot()
    every = np.concatenate([part for line in drawn for part in (line.low, line.high, line.alone)])
    log = bool(np.nanmin(every) > 0) if source.log is None else source.log
    if log:
        axes.set_yscale("log", nonpositive="mask")
    alike = _alike(drawn)
    for index, line in enumerate(drawn):
        look = style.line_style(index)
        axes.vlines(line.x, line.low, line.high, color=look["color"], linewidth=2.2, alpha=0.5)
        axes.plot(line.x, line.median, label=line.label or "together", markersize=6, linewidth=1.6, **look)
        if not alike:
            axes.plot(line.x, line.alone, color=look["color"], linestyle=":", linewidth=1.8)
    if alike:
        axes.plot(drawn[0].x, drawn[0].alone, color="black", linestyle=":", linewidth=1.8, label="alone")
    else:
        axes.plot([], [], color="0.3", linestyle=":", linewidth=1.8, label="alone, in the line's colour")
    style.number_axis(axes, np.concatenate([line.x for line in drawn]))
    axes.set_xlabel(style.key_label(key))
    axes.set_ylabel(style.metric_label(FITNESS))
    if log:
        style.few_decades(axes, every)
    style.add_title(axes, source.title(f"together and alone, against {key.split('.')[-1]}"))
    style.add_legend(figure, axes)
    style.add_footnote(figure, [*_remarks(source, drawn, key.split(".")[-1]), *notes.run_notes(source)])
    return {f"collaboration-{key.split('.')[-1]}": figure}


def lines(source: Source) -> list[Line]:
    """What is drawn, in the order of the cells; for errors see `draw_collaboration`."""
    if source.metric not in (None, FITNESS):
        raise InputError(f"collaboration draws {FITNESS}, since that is what {ALONE} can be compared with")
    if source.key is None:
        raise InputError("say what to draw against: a swept key, --against KEY")
    key = swept_number(source, source.key)
    together, alone = finals(source, FITNESS), _alone(source)
    together = together.assign(x=pd.to_numeric(together[key]))
    together = together[np.isfinite(together["x"]) & (together["model"] == "main")]
    others = [name for name in source.swept if name != key and not _follows(together, name, "x")]
    named = labels(others, together)
    out = []
    groups = together.groupby(others, sort=False, dropna=False) if others else [((), together)]
    for _, group in groups:
        parts = [(float(str(x)), part) for x, part in group.groupby("x", sort=True)]
        values = [part["value"].to_numpy(dtype=float) for _, part in parts]
        low, median, high = np.array([quartiles(each[None, :], source.band)[:, 0] for each in values]).T
        own = [float(np.median(alone[alone["cell"].isin(part["cell"])]["value"])) for _, part in parts]
        out.append(
            Line(
                label=named[tuple(group[[*others, "model"]].iloc[0])],
                x=np.array([x for x, _ in parts]), low=low, median=median, high=high, alone=np.array(own),
                counts=tuple(len(each) for each in values),
            )
        )  # fmt: skip
    return out


def _alone(source: Source) -> pd.DataFrame:
    """Isolated ψ of each cell and replica: of the owner asked for, or the mean over owners."""
    rows = source.rows(ALONE)
    if source.agent is not None:
        check_place("agent", source.agent, int(rows["agent"].max()) + 1)
        rows = rows[rows["agent"] == source.agent]
    last = rows.drop_duplicates(["cell", "replica", "agent"], keep="last")
    return last.groupby(["cell", "replica"])["value"].mean().reset_index()


def _follows(table: pd.DataFrame, name: str, x: str) -> bool:
    """Whether a swept key advances with the axis, and so tells no lines apart."""
    return bool(table.groupby(x)[name].nunique().max() == 1)


def _alike(drawn: list[Line]) -> bool:
    return all(
        len(line.x) == len(drawn[0].x) and np.allclose(line.alone, drawn[0].alone, rtol=1e-9, atol=0)
        for line in drawn
    )


def _remarks(source: Source, drawn: list[Line], symbol: str) -> list[str]:
    counts = notes.replicas([count for line in drawn for count in line.counts])
    whose = "the mean over owners" if source.agent is None else f"owner {source.agent}"
    out = [
        f"Line: median of the final ψ over {counts}; bar: {source.band_words}. "
        f"Dotted: ψ of the optimum of one's own records alone, without noise ({whose})."
    ]
    for line in drawn:
        where = ", ".join(f"{x:g}" for x in line.x[line.pays]) if not line.pays.all() else "every value"
        told = f"pays at {symbol} = {where}" if line.pays.any() else "does not pay anywhere"
        out.append(f"Joining {told}{notes.of(line.label)}.")
    return out


def draw_alone(source: Source) -> "dict[str, Figure]":
    """A point for each owner, and for each cell a horizontal line with its band.

    Raises
    ------
    InputError
        If ψ or isolated ψ was not recorded, another metric is asked for, or owners differ between cells.
    """
    if source.metric not in (None, FITNESS):
        raise InputError(f"alone draws {FITNESS} and {ALONE}")
    records, own = owners(source)
    together = finals(source, FITNESS)
    together = together[together["model"] == "main"]
    named = labels(source.swept, together)
    figure = style.new_figure(8.4, 4.8)
    axes = figure.add_subplot()
    style.log_ticks(axes)
    if source.log is not False:
        axes.set_yscale("log", nonpositive="mask")
    axes.plot(
        records,
        own,
        linestyle="none",
        marker="o",
        markersize=5,
        color="0.35",
        label=f"each of {len(own)} owners, alone",
    )
    remarks = []
    for index, (_, group) in enumerate(together.groupby("cell", sort=True)):
        look = style.line_style(index)
        low, median, high = quartiles(group["value"].to_numpy(dtype=float)[None, :], source.band)[:, 0]
        label = named[tuple(group[[*source.swept, "model"]].iloc[0])]
        axes.axhspan(low, high, color=look["color"], alpha=0.15, linewidth=0)
        axes.axhline(
            median, color=look["color"], linestyle=look["linestyle"], linewidth=1.6, label=label or "together"
        )
        gain = int(np.sum(own > median))
        remarks.append(f"{gain} of {len(own)} owners gain by joining{notes.of(label)}.")
    axes.set_xlabel("records of the owner (number)")
    axes.set_ylabel(style.metric_label(FITNESS))
    style.add_title(axes, source.title("each owner alone, and all together"))
    style.add_legend(figure, axes)
    counts = notes.replicas(together.groupby("cell")["replica"].nunique().tolist())
    first = (
        f"Point: ψ of the optimum of an owner's own records, without noise. Line: median of the final ψ over {counts}; "
        f"band: {source.band_words}."
    )
    style.add_footnote(figure, [first, *remarks, *notes.run_notes(source)])
    return {"alone": figure}


def owners(source: Source) -> tuple[Float, Float]:
    """Records and isolated ψ of each owner, of the first replica.

    Raises
    ------
    InputError
        If they differ between cells.
    """
    rows = source.rows(ALONE)
    first = rows[rows["replica"] == rows["replica"].min()].drop_duplicates(["cell", "agent"], keep="last")
    by_cell = [part.sort_values("agent") for _, part in first.groupby("cell", sort=True)]
    own = by_cell[0]["value"].to_numpy(dtype=float)
    for part in by_cell[1:]:
        if len(part) != len(own) or not np.allclose(part["value"], own, rtol=1e-9, atol=0):
            raise InputError(
                "owners differ between cells; draw a figure for each value that changes them: --facet KEY"
            )
    agents = source.agents
    mine = agents[
        (agents["cell"] == by_cell[0]["cell"].iloc[0]) & (agents["replica"] == rows["replica"].min())
    ]
    records = mine.set_index("index")["records"].loc[by_cell[0]["agent"].astype(int)]
    return records.to_numpy(dtype=float), own
