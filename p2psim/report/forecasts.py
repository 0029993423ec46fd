"""Figures of forecasts: along the run, by owner or agent, and against the number of owners and ε."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from p2psim.analysis.forecasts.forecast import Calibration
from p2psim.analysis.forecasts.study import CellForecast
from p2psim.report import files, notes, scales, style
from p2psim.report.channels import MOST_LINES
from p2psim.report.source import FITNESS
from p2psim.report.words import as_text, named, words, words_of_cells
from p2psim.scenario.cells import labels_of
from p2psim.scenario.model import Scenario

#: Cells that have figures of their own.
MOST_CELLS = 6

#: Owners that have a bar of their own; so many names of so many characters stand side by side.
_BARS, _UPRIGHT, _SHORT_NAME = 40, 12, 6

#: What is said under a figure where a flag is raised.
FLAGS = {
    "not_private": "Not private: the mechanism as run guarantees nothing",
    "scaled_records": "Scaled (scale_records): noise as if each record stood for {scale}",
    "public_graph_assumed": "The graph is assumed to be public (public_graph_assumed)",
    "data_dependent_step": "The step size was chosen from private data (data_dependent_step)",
}

#: Factors of all budgets that lines are drawn at.
FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class DrawnForecast:
    """A cell's forecast, and the words around it.

    Attributes
    ----------
    label : str
        What distinguishes the cell from the others: its swept values.
    notes : tuple of str
        What must be said under each figure, such as why the forecast is approximate.
    of : LearnerForecast, DescentForecast or AveragingForecast
    pilots : Calibration, optional
    """

    label: str
    notes: tuple[str, ...]
    of: Any
    pilots: Calibration | None = None


def cell_labels(forecasts: Sequence[CellForecast], study: Scenario | None = None) -> list[str]:
    """What tells each cell from the others, as legends of runs say it, in the words of the study; of one, nothing."""
    cells = [forecast.cell for forecast in forecasts]
    tree = {} if study is None else {"labels": study.labels, "sweep": study.sweep}
    return words_of_cells([cell.swept for cell in cells], labels_of(cells), tree)[0]


def cell_notes(forecast: CellForecast) -> tuple[str, ...]:
    """Whether the forecast is exact, and what a run of the cell would say under its figures, as far as it is known."""
    from p2psim.privacy.releases import Violations

    scenario, cell = forecast.cell.scenario, forecast.forecast.setting.cell
    lines = [f"Approximate: {reason}." for reason in forecast.forecast.approximate]
    lines = lines or ["Exact: no approximation was made."]
    budget, scale = cell.setup.plan.budget, scenario.privacy.scale_records
    caveats = cell.caveats(Violations.none(len(budget)))
    raised = {
        "not_private": not (cell.setup.plan.mechanism.is_private and np.isfinite(budget).all()),
        "scaled_records": scale != 1,
        "public_graph_assumed": caveats.public_graph_assumed,
        "data_dependent_step": caveats.data_dependent_step,
    }
    lines += [f"{FLAGS[flag].format(scale=f'{scale:g}')}." for flag, holds in raised.items() if holds]
    if scenario.learning.algorithm.is_printed:
        lines.append("Form printed: the update as the paper prints it.")
    # Those that say that ψ must not be taken at face value.
    return (*lines, *(f"Warning: {text}." for text in cell.warnings if "ψ" in text or "stability" in text))


def draw_forecasts(
    forecasts: Sequence[CellForecast], folder: str, study: Scenario | None = None
) -> list[Path]:
    """Draw all figures into a folder, in the words of the study if it is given; returns the files.

    Raises
    ------
    InputError
        If nothing can be written there.
    """
    learners = [cell for cell in forecasts if cell.forecast.metric == FITNESS]
    graphs = [cell for cell in forecasts if cell.forecast.metric != FITNESS]
    drawn = [
        DrawnForecast(label, cell_notes(cell), cell.forecast, cell.calibration)
        for group in (learners, graphs)
        if group
        for cell, label in zip(group, cell_labels(group, study), strict=True)
    ]
    return draw_cells(drawn, folder)


def draw_cells(cells: Sequence[DrawnForecast], folder: str) -> list[Path]:
    """Draw the figures of learners, then those of graphs."""
    figures: dict[str, Figure] = {}
    stars = [cell for cell in cells if cell.of.metric == FITNESS]
    graphs = [cell for cell in cells if cell.of.metric != FITNESS]
    noisy = [cell for cell in stars if cell.of.noise.any()]
    with style.look():
        if stars:
            figures["forecast-run"] = _run(stars)
        for number, cell in enumerate(stars[:MOST_CELLS]):
            ending = f"-{number}" if len(stars) > 1 else ""
            draw = {"owners": _owners, "partners": _partners, "surface": _surface, "alone": _alone}
            if cell.of.noise.any():
                figures |= {f"forecast-{name}{ending}": figure(cell) for name, figure in draw.items()}
        if noisy:
            figures["forecast-budgets"] = _budgets(noisy)
        for metric in dict.fromkeys(cell.of.metric for cell in graphs):
            figures[f"forecast-{metric}"] = _run([cell for cell in graphs if cell.of.metric == metric])
        for number, cell in enumerate(graphs[:MOST_CELLS]):
            if cell.of.agents:
                figures[f"forecast-agents{f'-{number}' if len(graphs) > 1 else ''}"] = _agents(cell)
        return files.save_all(figures, folder)


#: Label of the axis of expected ψ.
_EXPECTED = "expected ψ (dimensionless), lower is better"


def _run(cells: Sequence[DrawnForecast]) -> Figure:
    """What is expected along the run, what is left of it without noise, local models, and pilot replicas."""
    figure, axes = style.new_axes()
    metric, first, shown = cells[0].of.metric, cells[0].of.curve, cells[:MOST_LINES]
    of_learner = metric == FITNESS
    for number, cell in enumerate(shown):
        line, curve = style.plain_line(number), cell.of.curve
        colour, label = line["color"], cell.label or ("E[ψ]" if of_learner else "forecast")
        axes.plot(curve.points, curve.expected, label=label, **line)
        if curve.noiseless is not None:
            axes.plot(curve.points, curve.noiseless, color=colour, linewidth=0.8, alpha=0.6)
        if (pilots := cell.pilots) is not None:
            look = style.line_style(number) | {"linestyle": "", "markersize": 3}
            axes.errorbar(pilots.step, pilots.mean, 2 * pilots.error, **look)
    for number, alone in enumerate(sorted({cell.of.curve.alone for cell in shown} - {None})[:3]):
        of_first = None if number else "local models, without noise"
        axes.axhline(alone, color=style.REFERENCE, linestyle=":", label=of_first)
    axes.set_yscale("log")
    along = {"step": style.AXIS_LABELS["step"], "commits": "updates of all agents"}
    remark = f"Thick: {'E[ψ]' if of_learner else 'what is expected'}"
    remark += "; thin: without noise." if first.noiseless is not None else "."
    if any(cell.pilots is not None for cell in shown):
        remark += " Points: pilots, ± 2 standard errors."
    title = f"Expected {words(metric)} along the run"
    x = along.get(first.axis, "time (mean clock periods)")
    y = _EXPECTED if of_learner else style.metric_label(metric)
    single = [f"{len(cells) - MOST_CELLS} more cells have no figures."] if len(cells) > MOST_CELLS else []
    remarks = [remark, *left_out(len(cells) - len(shown)), *single, *common_notes(shown)]
    style.finish(figure, axes, x, y, title, remarks)
    return figure


def _owners(cell: DrawnForecast) -> Figure:
    """Share of the noise that is each owner's, in their order; of many, those with the largest shares."""
    figure, axes = style.new_axes()
    names = [party.label for party in cell.of.parties]
    order = np.sort(np.argsort(-cell.of.noise, kind="stable")[:_BARS])
    share = 100 * cell.of.noise / cell.of.noise.sum()
    axes.bar(np.arange(order.size), share[order], color=style.line_style(0)["color"])
    axes.set_xticks(np.arange(order.size), [names[i] for i in order])
    if order.size > _UPRIGHT or max(len(name) for name in names) > _SHORT_NAME:
        axes.tick_params(axis="x", labelsize="x-small", rotation=90)
    axes.grid(False, axis="x")
    remarks = ["What each owner's noise adds to E[ψ] at the end, as a share of what all add."]
    if len(names) > order.size:
        remarks.append(f"The {order.size} largest of {len(names)} shares, in the order of the owners.")
    return _finished(figure, axes, cell, "owner", "share of the noise (%)", "Whose noise it is", *remarks)


def _finished(
    figure: Figure, axes: Axes, cell: DrawnForecast, x: str, y: str, title: str, *remarks: str
) -> Figure:
    """The figure of a cell with its labels, title, legend and notes."""
    style.finish(figure, axes, x, y, f"{title}{notes.of(cell.label)}", [*remarks, *cell.notes])
    return figure


def _partners(cell: DrawnForecast) -> Figure:
    """Expected ψ against the number of average owners at several ε, and what one reaches alone."""
    figure, axes = style.new_axes()
    most, shades = max(100, 4 * len(cell.of.parties)), style.colours(len(FACTORS), ordered=True)
    numbers = np.unique(np.geomspace(2, most, 14).round().astype(int))
    for number, factor in enumerate(FACTORS):
        epsilon = factor * cell.of.alike.epsilon
        psi = np.array([cell.of.alike.psi(int(N), epsilon) for N in numbers])
        axes.plot(numbers, psi, label=budget(epsilon), color=shades[number])
        style.note(axes, budget(epsilon), numbers, psi)
    axes.axhline(cell.of.alike.alone, color="black", linestyle=":", label="alone, without noise")
    scales.log_axes(axes)
    remark = "E[ψ] at the end of N owners like the average one; dotted: mean ψ of the optimum of one's own records."
    title = "Does it pay to join?"
    return _finished(figure, axes, cell, "owners N, all alike", _EXPECTED, title, remark)


def _surface(cell: DrawnForecast) -> Figure:
    """Expected ψ over the number of average owners and ε, and where it is what one reaches alone."""
    from matplotlib.colors import LogNorm

    figure, axes = style.new_axes()
    numbers = np.unique(np.geomspace(2, max(100, 4 * len(cell.of.parties)), 16).round().astype(int))
    epsilons = cell.of.alike.epsilon * np.geomspace(0.1, 10, 17)
    psi = np.array([[cell.of.alike.psi(int(N), float(epsilon)) for N in numbers] for epsilon in epsilons])
    shown = np.ma.masked_invalid(psi)
    if shown.count() == 0:
        axes.text(0.5, 0.5, "the step is unstable for all of these", transform=axes.transAxes, ha="center")
        style.add_footnote(figure, cell.notes)
        return figure
    norm = LogNorm(float(shown.min()), max(float(shown.max()), float(shown.min()) * 10))
    mesh = axes.pcolormesh(numbers, epsilons, shown, norm=norm, cmap="viridis_r", shading="nearest")
    figure.colorbar(mesh, label=_EXPECTED)
    if shown.min() < cell.of.alike.alone < shown.max():
        axes.contour(numbers, epsilons, shown, levels=[cell.of.alike.alone], colors="black")
        where = "Above the black line it pays"
    else:
        where = f"It pays {'everywhere' if shown.max() <= cell.of.alike.alone else 'nowhere'} here"
    scales.log_axes(axes)
    scales.log_ticks(axes, "y")
    remark = "E[ψ] at the end of N owners like the average one; it pays where that is less than the mean ψ of one alone"
    x, y, title = "owners N, all alike", style.AXIS_LABELS["epsilon"], f"Does it pay to join? {where}"
    return _finished(figure, axes, cell, x, y, title, f"{remark}, without noise.")


def _alone(cell: DrawnForecast) -> Figure:
    """What each owner reaches alone against its size; horizontal lines are what all reach together at several ε."""
    figure, axes = style.new_axes()
    records, label = cell.of.setting.model.records, "each owner alone, without noise"
    shades = style.colours(len(FACTORS), ordered=True)
    style.mark(axes, records, cell.of.alone, "o", 4, "black", label=label)
    for number, factor in enumerate(FACTORS):
        psi = cell.of.psi_at(factor)
        if np.isfinite(psi):
            label = f"together, {budget(factor * cell.of.alike.epsilon)}"
            axes.axhline(psi, label=label, color=shades[number])
            style.note(axes, label, np.nan, psi)
    scales.log_axes(axes)
    remark = "Point: ψ of the optimum of an owner's own records, without noise. Line: E[ψ] of all owners at the end"
    x, y, title = "records of the owner (number)", "ψ (dimensionless)", "Who gains: owners above a line"
    return _finished(figure, axes, cell, x, y, title, f"{remark}; all budgets are multiplied alike.")


def _budgets(cells: Sequence[DrawnForecast]) -> Figure:
    """Expected ψ of several sets of partners against ε, and what the first owner reaches alone in each."""
    figure, axes = style.new_axes()
    factors = np.geomspace(0.01, 100, 33)
    shown = cells[:MOST_LINES]
    for number, cell in enumerate(shown):
        psi = np.array([cell.of.psi_at(float(factor)) for factor in factors])
        line, label = style.plain_line(number), cell.label or "together"
        axes.plot(factors * cell.of.alike.epsilon, psi, label=label, **line)
        axes.axhline(cell.of.alone[0], color=line["color"], linestyle=":", linewidth=1)
    scales.log_axes(axes)
    remark = "Line: E[ψ] of all owners at the end. Dotted, in its colour: ψ of the optimum of the first owner's records"
    remarks = [f"{remark}, without noise.", *left_out(len(cells) - len(shown)), *common_notes(shown)]
    x = "privacy budget ε (all owners' multiplied alike)"
    style.finish(figure, axes, x, _EXPECTED, "From which budget on it pays", remarks)
    return figure


def _agents(cell: DrawnForecast) -> Figure:
    """Each agent's expected squared distance to its optimum together, against that alone; larger for more records."""
    forecast, records = cell.of, cell.of.setting.cell.problem.records
    figure, axes = style.new_axes()
    shown = np.isfinite(forecast.apart_alone)
    alone, together = forecast.apart_alone[shown], forecast.apart[shown]
    sizes = 60 * records[shown] / records.max() + 5
    axes.scatter(alone, together, s=sizes, color=style.line_style(0)["color"], alpha=0.7, label="an agent")
    ends = [min(alone.min(), together.min()), max(alone.max(), together.max())]
    axes.plot(ends, ends, color="black", linestyle=":", label="no difference")
    axes.set(xscale="log", yscale="log")
    title = "Agents below the line come closer to their optimum by joining"
    remark = "The area of a circle grows with the agent's records."
    x, y = "‖θ − θ*‖² of its own minimiser, without noise", "expected ‖θ − θ*‖² together, at the end"
    return _finished(figure, axes, cell, x, y, title, remark)


def budget(epsilon: float) -> str:
    """What a legend says of a budget, in three digits."""
    return named("ε", as_text(float(f"{epsilon:.3g}")))


def left_out(cells: int) -> list[str]:
    """Say that more cells there are than colours."""
    return [f"{cells} more cells are not drawn."] if cells > 0 else []


def common_notes(cells: Sequence[DrawnForecast]) -> list[str]:
    """Notes of several cells, each once; of one that not all have, which they are."""
    labels: dict[str, list[str]] = {}
    for cell in cells:
        for note in cell.notes:
            labels.setdefault(note, []).append(cell.label)
    return [
        note if len(which) == len(cells) else f"{note} (In {len(which)} of {len(cells)} cells.)"
        for note, which in labels.items()
    ]
