"""ε that each agent has spent, over time; and runs beside what was forecast of them."""

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from p2psim.core.errors import InputError
from p2psim.report import notes, panels, scales, style
from p2psim.report.channels import MOST_LINES, Plan
from p2psim.report.curves import all_curves
from p2psim.report.figures.spacetime import releases_of
from p2psim.report.figures.timing import events_of_one, names_of_agents, one_replica
from p2psim.report.source import Source, of_run
from p2psim.report.words import is_fraction, number, visible, words

#: A budget is drawn if it is at most so many times what was spent of it.
MOST_ROOM = 10

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
    ledger = of_run(source.ledger, cell, replica).set_index("agent")
    own = releases_of(events)
    total = ledger["epsilon_claimed"].astype(float)
    if own.empty or not np.isfinite(total).all():
        raise InputError(f"nothing that costs a finite ε was released in replica {replica} of cell {cell}")
    names = names_of_agents(source, cell, replica, int(own["agent"].max()))
    end = float(events["time"].max())
    figure, axes = style.new_axes()
    few = len(names) <= MOST_LINES
    kinds = names if few else _groups(source, cell, replica, len(names))
    colour_of = dict(zip(dict.fromkeys(kinds), style.colours(len(set(kinds))), strict=True))
    shades = [colour_of[kind] for kind in kinds]
    spent_all = 0
    ends = []
    for agent, of_one in own.groupby("agent"):
        times, who = of_one["time"].to_numpy(dtype=float), int(str(agent))
        each = total[who] / max(int(ledger["releases"][who]), 1)
        x = np.concatenate([[0.0], times, [end]])
        y = each * np.concatenate([[0], np.arange(1, times.size + 1), [times.size]])
        alpha, width = (1.0, None) if few else (0.35, 0.8)
        axes.step(x, y, where="post", color=shades[who], alpha=alpha, linewidth=width)
        style.note(axes, names[who], x, y)
        called = f"agent {names[who]}" if names[who].isdecimal() else names[who]
        ends.append((float(y[-1]), called, shades[who]))
        if y[-1] >= float(ledger["budget"][who]) * (1 - 1e-9):
            style.mark(axes, [times[-1]], [y[-1]], "o", 6, style.ALARM, zorder=4)
            spent_all += 1
    budgets = ledger["budget"].astype(float)
    axes.set(xlabel=style.AXIS_LABELS["time"], ylabel="privacy spent ε, lower is better")
    highest, budget = max(value for value, *_ in ends), float(budgets.iloc[0])
    entries: list[tuple[str, Any]] = []
    unseen = ""
    if budgets.nunique() == 1 and budget <= MOST_ROOM * highest:
        axes.axhline(budget, **style.reference())
        entries.append(("budget", Line2D([], [], **style.reference())))
        highest = max(highest, budget)
    elif budgets.nunique() == 1:
        unseen = f" The budget, {number(budget)}, is off the scale."
    axes.set_ylim(0, 1.05 * highest)
    scales.few_ticks(axes)
    if spent_all:
        entries.append(("budget spent", Line2D([], [], color=style.ALARM, marker="o", linestyle="none")))
    if not few and len(colour_of) > 1:
        entries = [(group, Line2D([], [], color=color)) for group, color in colour_of.items()] + entries
    if not few:  # who spends least and most
        ends = sorted({end[0]: end for end in ends}.values(), key=lambda end: end[0])
        scales.label_ends(axes, [ends[0], ends[-1]] if len(ends) > 1 else [])
    elif not scales.label_ends(axes, ends):
        entries = [(name, Line2D([], [], color=color)) for _, name, color in ends] + entries
    style.put_legend(figure, entries)
    spent = f"{spent_all} of {len(names)} spend their whole budget"
    remark = f"{one_replica(source, cell, replica)}: {spent}.{unseen}"
    panels.finish(figure, source, "privacy spent by each agent", [remark])
    return {"spent": figure}


def _groups(source: Source, cell: int, replica: int, count: int) -> list[str]:
    """The group of each agent; empty where there are none, or more than there are colours."""
    agents = of_run(source.agents, cell, replica)
    groups = agents[agents["index"] >= 0].set_index("index")["group"].astype(object).reindex(range(count))
    unclear = groups.isna().any() or groups.nunique() > MOST_LINES
    return [""] * count if unclear else groups.map(visible).tolist()


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
    source = replace(source, against="time" if forecasts[0].forecast.curve.axis == "time" else "step")
    metric = forecasts[0].forecast.metric
    if source.metric not in (None, metric):
        raise InputError(f"the forecast of this run is of {metric}, got {source.metric}")
    source.rows(metric)
    plan = Plan(source)
    curves, alike = all_curves(source, metric, plan)
    mains = [one for one in curves if one.is_main]
    figure, (grid,) = panels.metric_panels(plan, [metric], panels.axis_label(source))
    values = np.concatenate([one.what.values for one in mains])
    log = scales.is_log(source.log, values, is_fraction(metric))
    known = [one for one in forecasts if one.cell.index in plan.of_cell]
    expected = {plan.of_cell[one.cell.index].number: one.forecast.curve for one in known}
    for panel, axes in enumerate(grid):
        scales.fit_values(axes, values, log, is_fraction(metric))
        for one in mains:
            if panel not in one.panels:
                continue
            look, curve = {**one.line.look, "marker": "", "linestyle": "-"}, one.what
            label = one.label or source.main
            mean = curve.each.mean(axis=1)
            panels.draw_band(axes, curve, label, look["color"], mean)
            axes.plot(curve.x, mean, label=label, **look)
            forecast = expected[one.line.number]
            axes.plot(forecast.points, forecast.expected, color="black", linestyle=":", zorder=4)
            style.note(axes, f"{label}, forecast", forecast.points, forecast.expected)
        scales.few_ticks(axes)
    panels.name_values(figure, grid, style.metric_label(metric))
    entries = plan.legend()
    if entries and entries[0][1] is None:
        entries.append(("", None))
    expectation = ("forecast, expected value", Line2D([], [], color="black", linestyle=":"))
    style.put_legend(figure, [*entries, expectation])
    counts = [one.what.replicas for one in mains]
    remark = notes.spread(source, counts, of="mean")
    panels.finish(figure, source, f"{words(metric)} and what was forecast", [remark, *notes.alike(alike)])
    return {f"forecast-{metric}": figure}
