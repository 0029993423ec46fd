"""Figures that compare the ψ that owners reach together with the isolated ψ that they reach alone.

`draw_collaboration` draws both against a swept number (W figures 6 and 11). `draw_alone` draws the isolated ψ of each
owner against its number of records (F, hospitals).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from p2psim.core.errors import InputError, check_place
from p2psim.report import notes, panels, style
from p2psim.report.curves import finals, labelled, quartiles_of, samples_by
from p2psim.report.figures.finals import swept_number
from p2psim.report.source import FITNESS, Float, Source, short

ALONE = "isolated_fitness"


@dataclass(frozen=True)
class FitnessCurve:
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


def draw_collaboration(source: Source) -> dict[str, Figure]:
    """Medians with bars, a line for each combination of the other swept keys; dotted: alone.

    Raises
    ------
    InputError
        If no axis is given, it is not swept over numbers, another metric is asked for, or ψ or isolated ψ was not
        recorded.
    """
    drawn, key = lines(source), str(source.key)
    figure, axes = style.new_axes(8.4, 4.8)
    values = np.concatenate([part for line in drawn for part in (line.low, line.high, line.alone)])
    log = bool(np.nanmin(values) > 0) if source.log is None else source.log
    if log:
        axes.set_yscale("log", nonpositive="mask")
    first = drawn[0]
    alike = all(
        len(line.x) == len(first.x) and np.allclose(line.alone, first.alone, rtol=1e-9, atol=0)
        for line in drawn
    )
    dots: dict[str, Any] = {"linestyle": ":", "linewidth": 1.8}
    for index, line in enumerate(drawn):
        look = style.line_style(index)
        axes.vlines(line.x, line.low, line.high, color=look["color"], linewidth=2.2, alpha=0.5)
        axes.plot(line.x, line.median, label=line.label or "together", markersize=6, linewidth=1.6, **look)
        if not alike:
            axes.plot(line.x, line.alone, color=look["color"], **dots)
    if alike:
        axes.plot(first.x, first.alone, color="black", label="alone", **dots)
    else:
        axes.plot([], [], color="0.3", label="alone, in the line's colour", **dots)
    style.number_axis(axes, np.concatenate([line.x for line in drawn]))
    if log:
        style.few_decades(axes, values)
    title, remarks = f"together and alone, against {short(key)}", _remarks(source, drawn, short(key))
    panels.finish(figure, axes, source, style.key_label(key), style.metric_label(FITNESS), title, remarks)
    return {f"collaboration-{key.split('.')[-1]}": figure}


def lines(source: Source) -> list[FitnessCurve]:
    """What is drawn, in the order of the cells; for errors see `draw_collaboration`."""
    if source.metric not in (None, FITNESS):
        raise InputError(f"collaboration draws {FITNESS}, since that is what {ALONE} can be compared with")
    if source.key is None:
        raise InputError("say what to draw against: a swept key, --against KEY")
    key = swept_number(source, source.key)
    together, alone = finals(source, FITNESS), _alone(source)
    together = together.assign(x=pd.to_numeric(together[key]))
    together = together[np.isfinite(together["x"]) & (together["model"] == "main")]
    # A key that advances with the axis tells no lines apart.
    places = together.groupby("x")
    others = [name for name in source.swept if name != key and places[name].nunique().max() > 1]
    out = []
    for label, _, group in labelled(together, others):
        x, samples = samples_by(group, "x")
        low, median, high = quartiles_of(samples, source.quantile)
        cells = group.groupby("x", sort=True)["cell"]
        isolated = np.array(
            [alone.loc[alone["cell"].isin(some), "value"].median(skipna=False) for _, some in cells]
        )
        out.append(FitnessCurve(label, x, low, median, high, isolated, tuple(map(len, samples))))
    return out


def _alone(source: Source) -> pd.DataFrame:
    """Isolated ψ of each cell and replica: of the owner asked for, or the mean over owners."""
    rows = source.rows(ALONE)
    if source.agent is not None:
        check_place("agent", source.agent, int(rows["agent"].max()) + 1)
        rows = rows[rows["agent"] == source.agent]
    last = rows.drop_duplicates(["cell", "replica", "agent"], keep="last")
    return last.groupby(["cell", "replica"])["value"].mean().reset_index()


def _remarks(source: Source, drawn: list[FitnessCurve], symbol: str) -> list[str]:
    counts = notes.replicas([count for line in drawn for count in line.counts])
    whose = "the mean over owners" if source.agent is None else f"owner {source.agent}"
    out = [
        f"Line: median of the final ψ over {counts}; bar: {source.band_words}. "
        f"Dotted: ψ of the optimum of one's own records alone, without noise ({whose})."
    ]
    for line in drawn:
        where = ", ".join(f"{x:g}" for x in line.x[line.pays]) if not line.pays.all() else "every value"
        result = f"pays at {symbol} = {where}" if line.pays.any() else "does not pay anywhere"
        out.append(f"Joining {result}{notes.of(line.label)}.")
    return out


def draw_alone(source: Source) -> dict[str, Figure]:
    """A point for each owner, and for each cell a horizontal line with its band.

    Raises
    ------
    InputError
        If ψ or isolated ψ was not recorded, another metric is asked for, or owners differ between cells.
    """
    if source.metric not in (None, FITNESS):
        raise InputError(f"alone draws {FITNESS} and {ALONE}")
    records, isolated = owners(source)
    together = finals(source, FITNESS).query("model == 'main'")
    figure, axes = style.new_axes(8.4, 4.8)
    style.log_ticks(axes)
    if source.log is not False:
        axes.set_yscale("log", nonpositive="mask")
    style.mark(axes, records, isolated, "o", 5, "0.35", label=f"each of {len(isolated)} owners, alone")
    remarks = []
    for index, (label, _, group) in enumerate(labelled(together, source.swept, ["cell", "model"])):
        look = style.plain_line(index)
        low, median, high = quartiles_of([group["value"].to_numpy(dtype=float)], source.quantile)[:, 0]
        axes.axhspan(low, high, color=look["color"], alpha=0.15, linewidth=0)
        axes.axhline(median, linewidth=1.6, label=label or "together", **look)
        gain = int(np.sum(isolated > median))
        remarks.append(f"{gain} of {len(isolated)} owners gain by joining{notes.of(label)}.")
    counts = notes.replicas(together.groupby("cell")["replica"].nunique().tolist())
    point = "Point: ψ of the optimum of an owner's own records, without noise."
    line = f"Line: median of the final ψ over {counts}; band: {source.band_words}."
    x, y = "records of the owner (number)", style.metric_label(FITNESS)
    title = "each owner alone, and all together"
    panels.finish(figure, axes, source, x, y, title, [f"{point} {line}", *remarks])
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
    head, *others = (part.sort_values("agent") for _, part in first.groupby("cell", sort=True))
    isolated = head["value"].to_numpy(dtype=float)
    for part in others:
        if len(part) != len(isolated) or not np.allclose(part["value"], isolated, rtol=1e-9, atol=0):
            raise InputError(
                "owners differ between cells; draw a figure for each value that changes them: --facet KEY"
            )
    agents = source.agents
    agents = agents[(agents["cell"] == head["cell"].iloc[0]) & (agents["replica"] == rows["replica"].min())]
    records = agents.set_index("index")["records"].loc[head["agent"].astype(int)]
    return records.to_numpy(dtype=float), isolated
