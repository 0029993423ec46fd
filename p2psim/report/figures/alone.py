"""Figures that compare the ψ that owners reach together with the isolated ψ that they reach alone.

`draw_collaboration` draws both against a swept number (W figures 6 and 11). `draw_alone` draws the isolated ψ of each
owner against its number of records (F, hospitals).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from p2psim.core.errors import InputError, check_place
from p2psim.report import notes, panels, scales, style
from p2psim.report.channels import Line, Plan
from p2psim.report.curves import finals, parts_of, quartiles_of, samples_by
from p2psim.report.figures.finals import draw_samples, swept_number
from p2psim.report.source import FITNESS, Float, Source, of_run
from p2psim.report.words import key_label, number

ALONE = "isolated_fitness"


@dataclass(frozen=True)
class FitnessCurve:
    """One line: what all reach together, and what owners reach alone.

    Attributes
    ----------
    line : Line
    x, low, median, high : ndarray, shape (m,)
        Finite x in ascending order; quantiles over replicas of the final ψ.
    samples : list of ndarray
    alone : ndarray, shape (m,)
        Median over replicas of the isolated ψ: of one owner, or of its mean over owners.
    """

    line: Line
    x: Float
    low: Float
    median: Float
    high: Float
    samples: list[Float]
    alone: Float

    @property
    def label(self) -> str:
        """What tells it from the others."""
        return self.line.label

    @property
    def pays(self) -> "np.ndarray":
        """Whether the median together lies below that alone, shape (m,)."""
        return self.median < self.alone


def draw_collaboration(source: Source) -> dict[str, Figure]:
    """Medians with bars, a line for each combination of the other swept keys; black: alone. Below it, joining pays.

    Raises
    ------
    InputError
        If no axis is given, it is not swept over numbers, another metric is asked for, or ψ or isolated ψ was not
        recorded.
    """
    curves, key = lines(source), str(source.key)
    panels.too_many(Plan(source, without=[key], panels=False))
    figure, axes = style.new_axes()
    values = np.concatenate([part for line in curves for part in (line.low, line.high, line.alone)])
    scales.fit_values(axes, values, scales.is_log(source.log, values))
    scales.number_axis(axes, np.concatenate([line.x for line in curves]))
    first = curves[0]
    alike = all(
        len(line.x) == len(first.x) and np.allclose(line.alone, first.alone, rtol=1e-9) for line in curves
    )
    ends = []
    for line in curves:
        draw_samples(axes, source, line.label or "together", line.line.look, line.x, line.samples)
        ends.append((float(line.median[-1]), line.label or "together", line.line.look["color"]))
        if not alike:
            axes.plot(line.x, line.alone, color=line.line.look["color"], linestyle=":")
            style.note(axes, f"{line.label}, alone", line.x, line.alone)
    if alike:
        axes.plot(first.x, first.alone, color="black", label="alone")
        style.note(axes, "alone", first.x, first.alone)
        axes.fill_between(first.x, axes.get_ylim()[0], first.alone, color="0.93", linewidth=0, zorder=0)
        axes.text(0.98, 0.02, "joining pays", ha="right", va="bottom", transform=axes.transAxes, color="0.35")
        ends.append((float(first.alone[-1]), "alone", "black"))
    else:
        axes.plot([], [], color="0.3", linestyle=":", label="alone, in the line's colour")
    below = key_label(key, source.name_of(key))
    axes.set(xlabel=below, ylabel=style.in_lines(style.metric_label(FITNESS), 44))
    if not alike or not scales.label_ends(axes, ends):
        style.add_legend(figure, axes)
    whose = "mean over owners" if source.agent is None else f"owner {source.agent}"
    counts = [len(sample) for line in curves for sample in line.samples]
    alone = f"Alone: optimum of one's own records, without noise ({whose})."
    title = f"together and alone, against {source.name_of(key)}: {_pays(source, curves, key)}"
    panels.finish(figure, source, title, [f"{notes.spread(source, counts, 'bar')} {alone}"])
    return {f"collaboration-{key.split('.')[-1]}": figure}


def _pays(source: Source, curves: list[FitnessCurve], key: str) -> str:
    """In few words where joining pays."""
    where = [line for line in curves if line.pays.any()]
    if not where:
        return "joining pays nowhere"
    if all(line.pays.all() for line in curves):
        return "joining pays everywhere"
    if len(curves) > 1:
        some = "" if all(line.pays.all() for line in where) else "somewhere "
        if len(where) > 2:
            return f"joining pays {some}on {len(where)} of {len(curves)} lines"
        return f"joining pays {some}with {' and '.join(line.label for line in where)}"
    return f"joining pays at {source.name_of(key)} = {', '.join(map(number, where[0].x[where[0].pays]))}"


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
    plan = Plan(source, without=[key], panels=False)
    out = []
    for line, _, group in parts_of(together, plan):
        x, samples = samples_by(group, "x")
        low, median, high = quartiles_of(samples, source.quantile)
        cells = group.groupby("x", sort=True)["cell"]
        isolated = np.array(
            [alone.loc[alone["cell"].isin(some), "value"].median(skipna=False) for _, some in cells]
        )
        out.append(FitnessCurve(line, x, low, median, high, samples, isolated))
    return out


def _alone(source: Source) -> pd.DataFrame:
    """Isolated ψ of each cell and replica: of the owner asked for, or the mean over owners."""
    rows = source.rows(ALONE)
    if source.agent is not None:
        check_place("agent", source.agent, int(rows["agent"].max()) + 1)
        rows = rows[rows["agent"] == source.agent]
    last = rows.drop_duplicates(["cell", "replica", "agent"], keep="last")
    return last.groupby(["cell", "replica"])["value"].mean().reset_index()


def draw_alone(source: Source) -> dict[str, Figure]:
    """A point for each owner, and for each cell a horizontal line with its band: owners above it gain by joining.

    Raises
    ------
    InputError
        If ψ or isolated ψ was not recorded, another metric is asked for, or owners differ between cells.
    """
    if source.metric not in (None, FITNESS):
        raise InputError(f"alone draws {FITNESS} and {ALONE}")
    records, isolated = owners(source)
    together = finals(source, FITNESS).query("model == 'main'")
    plan = Plan(source, panels=False)
    panels.too_many(plan)
    figure, axes = style.new_axes()
    parts = [(line, rows["value"].to_numpy(dtype=float)) for line, _, rows in parts_of(together, plan)]
    values = np.concatenate([isolated, *(sample for _, sample in parts)])
    scales.fit_values(axes, values, source.log is not False and bool(np.any(values > 0)))
    style.mark(axes, records, isolated, "o", 5, "0.35", markeredgewidth=0)
    style.note(axes, "alone", records, isolated)
    scales.log_ticks(axes)
    count, ends = len(isolated), []
    few = notes.are_few(sample.size for _, sample in parts)
    for line, sample in parts:
        low, median, high = quartiles_of([sample], source.quantile)[:, 0]
        color, label = line.look["color"], line.label or "together"
        for value in sample if few and sample.size > 1 else ():
            axes.axhline(value, color=color, linewidth=0.5, alpha=0.5)
        if not few:
            axes.axhspan(low, high, color=color, alpha=0.16, linewidth=0)
        axes.axhline(median, color=color)
        gain = int(np.sum(isolated > median))
        ends.append((float(median), f"{label}: {gain} of {count} gain", color))
        axes.plot([], [], color=color, label=ends[-1][1])
        if few:
            style.note(axes, label, np.nan, median)
            style.note(axes, f"{label}, replicas", np.full(sample.size, np.nan), sample)
        else:
            style.note(axes, label, np.nan, median, low, high)
    axes.set(xlabel="records of the owner (number)", ylabel=style.in_lines(style.metric_label(FITNESS), 44))
    if not scales.label_ends(axes, ends):
        style.add_legend(figure, axes)
    counts = together.groupby("cell")["replica"].nunique().tolist()
    remark = f"{notes.spread(source, counts)} Lines are of ψ together: owners above one gain."
    panels.finish(figure, source, "each owner alone (points), and all together (lines)", [remark])
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
    agents = of_run(source.agents, head["cell"].iloc[0], rows["replica"].min())
    records = agents.set_index("index")["records"].loc[head["agent"].astype(int)]
    return records.to_numpy(dtype=float), isolated
