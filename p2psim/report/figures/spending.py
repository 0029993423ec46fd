"""ε that each agent has spent, over time; and runs beside what was forecast of them."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from p2psim.core.errors import InputError
from p2psim.core.events import LEARNER
from p2psim.report import notes, panels, scales, style
from p2psim.report.channels import MOST_LINES, Plan
from p2psim.report.curves import all_curves
from p2psim.report.figures.timing import events_of_one, names_of_agents
from p2psim.report.source import Source
from p2psim.report.words import is_fraction, words

#: Allocations that spend the same at each release.
EVEN = ("horizon", "cap", "uniform")


def draw_spent(source: Source) -> dict[str, Figure]:
    """ε of each agent over time, of one replica; red: where its last release was made.

    Raises
    ------
    InputError
        If the run recorded no events, made no release, or releases cost different amounts.
    """
    cell, replica, events = events_of_one(source)
    kind = source.says("privacy.allocation.kind") or source.says("privacy.allocation")
    if source.says("privacy.enforce") not in (None, "basic") or kind not in EVEN:
        raise InputError(
            "ε is drawn over time where releases cost the same and add up: an even allocation, enforce: basic"
        )
    ledger = source.ledger[(source.ledger["cell"] == cell) & (source.ledger["replica"] == replica)].set_index(
        "agent"
    )
    own = events[
        (events["release"] >= 0) & events["kind"].isin(["send", "commit"]) & (events["agent"] != LEARNER)
    ]
    own = own.drop_duplicates(["agent", "release"])
    total = ledger["epsilon_claimed"].astype(float)
    if own.empty or not np.isfinite(total).all():
        raise InputError(f"nothing that costs a finite ε was released in replica {replica} of cell {cell}")
    names = names_of_agents(source, cell, replica, int(own["agent"].max()))
    end = float(events["time"].max())
    figure, axes = style.new_axes()
    few = len(names) <= MOST_LINES
    shades = style.colours(len(names)) if few else [style.colours(1)[0]] * len(names)
    spent_all = 0
    ends = []
    for agent, of_one in own.groupby("agent"):
        times, who = of_one["time"].to_numpy(dtype=float), int(str(agent))
        each = total[who] / max(int(ledger["releases"][who]), 1)
        x = np.concatenate([[0.0], times, [end]])
        y = each * np.concatenate([[0], np.arange(1, times.size + 1), [times.size]])
        axes.step(
            x, y, where="post", color=shades[who], alpha=1.0 if few else 0.35, linewidth=None if few else 0.8
        )
        style.note(axes, names[who], x, y)
        ends.append((float(y[-1]), names[who], shades[who]))
        if y[-1] >= float(ledger["budget"][who]) * (1 - 1e-9):
            style.mark(axes, [times[-1]], [y[-1]], "o", 6, style.ALARM, zorder=4)
            spent_all += 1
    budgets = ledger["budget"].astype(float)
    if budgets.nunique() == 1:
        axes.axhline(float(budgets.iloc[0]), **style.reference())
    axes.set(xlabel=style.AXIS_LABELS["time"], ylabel="privacy spent ε, lower is better")
    axes.set_ylim(bottom=0)
    scales.few_ticks(axes)
    entries: list[tuple[str, Any]] = (
        [("budget", Line2D([], [], **style.reference()))] if budgets.nunique() == 1 else []
    )
    if spent_all:
        entries.append(("budget spent", Line2D([], [], color=style.ALARM, marker="o", linestyle="none")))
    if few and not scales.label_ends(axes, ends):
        entries = [(name, Line2D([], [], color=color)) for _, name, color in ends] + entries
    style.put_legend(figure, entries)
    remark = (
        f"One replica (cell {cell}, replica {replica}); {spent_all} of {len(names)} spend their whole budget."
    )
    panels.finish(figure, source, "privacy spent by each agent", [remark])
    return {"spent": figure}


def draw_forecast(source: Source) -> dict[str, Figure]:
    """Means over replicas with their band, and dotted what `p2psim forecast` expects.

    Raises
    ------
    InputError
        If the scenario is not known, has no forecast, or the run did not record its metric.
    """
    from p2psim.analysis.forecasts.study import forecast_scenario
    from p2psim.runs.result import Result

    if not isinstance(source.result, Result):
        raise InputError("a forecast needs a run folder with its scenario")
    forecasts = forecast_scenario(source.result.scenario, confirm_cells=True)
    metric = forecasts[0].forecast.metric
    if source.metric not in (None, metric):
        raise InputError(f"what is forecast of this run is {metric}")
    source.rows(metric)
    plan = Plan(source)
    curves, alike = all_curves(source, metric, plan)
    mains = [one for one in curves if one.is_main]
    figure, (grid,) = panels.metric_panels(plan, [metric], panels.axis_label(source))
    values = np.concatenate([one.what.values for one in mains])
    log = scales.is_log(source.log, values, is_fraction(metric))
    expected = {
        plan.of_cell[one.cell.index].number: one.forecast.curve
        for one in forecasts
        if one.cell.index in plan.of_cell
    }
    for panel, axes in enumerate(grid):
        scales.fit_values(axes, values, log, is_fraction(metric))
        for one in mains:
            if panel not in one.panels:
                continue
            look, curve, label = (
                {**one.line.look, "marker": "", "linestyle": "-"},
                one.what,
                one.label or source.main,
            )
            mean = curve.each.mean(axis=1)
            style.shade(axes, curve.x, curve.low, curve.high, look["color"])
            axes.plot(curve.x, mean, label=label, **look)
            style.note(axes, label, curve.x, mean, curve.low, curve.high)
            known = expected[one.line.number]
            axes.plot(known.points, known.expected, color="black", linestyle=":", zorder=4)
            style.note(axes, f"{label}, forecast", known.points, known.expected)
        scales.few_ticks(axes)
    panels.name_values(figure, grid, style.metric_label(metric))
    entries = plan.legend()
    if entries and entries[0][1] is None:
        entries.append(("", None))
    style.put_legend(
        figure, [*entries, ("forecast, expected value", Line2D([], [], color="black", linestyle=":"))]
    )
    counts = [one.what.replicas for one in mains]
    remark = f"n = {notes.replicas(counts)}; line: mean, band: {source.band_words}."
    panels.finish(figure, source, f"{words(metric)} and what was forecast", [remark, *notes.alike(alike)])
    return {f"forecast-{metric}": figure}
