"""What figures of forecasts call each cell, and what must be said under them.

What ``p2psim forecast`` prints and draws of algorithms on graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from p2psim.core.printing import MOST_ROWS, print_table

if TYPE_CHECKING:
    from p2psim.analysis.forecasts.graph_study import GraphCellForecast
    from p2psim.analysis.forecasts.study import CellForecast
    from p2psim.report.graph_forecasts import DrawnGraph


def cell_labels(found: Sequence[CellForecast | GraphCellForecast]) -> list[str]:
    """What tells each cell from the others, as legends of runs say it; of one cell, nothing."""
    from p2psim.report.curves import distinct, short_names
    from p2psim.report.source import as_text, named
    from p2psim.scenario.cells import labels_of

    cells = [one.cell for one in found]
    known = labels_of(cells)
    keys = [key for key in cells[0].swept if len({repr(cell.swept[key]) for cell in cells}) > 1]
    columns = [
        distinct([as_text(known.get(key, {}).get(str(cell.swept[key]), cell.swept[key])) for cell in cells])
        for key in keys
    ]
    names = short_names(keys)
    return [
        ", ".join(named(name, column[row]) for name, column in zip(names, columns, strict=True))
        for row in range(len(cells))
    ]


def notes(one: CellForecast | GraphCellForecast) -> tuple[str, ...]:
    """Whether the forecast is exact, and what a run of the cell would say under its figures, as far as it is known."""
    from p2psim.privacy.releases import Violations
    from p2psim.report.notes import FLAGS

    made, scenario = one.forecast, one.cell.scenario
    cell = made.setting.cell
    told = [f"Approximate: {reason}." for reason in made.approximate] or ["Exact: no approximation was made."]
    caveats = cell.caveats(Violations.none(len(cell.setup.plan.budget)))
    if not (cell.setup.plan.mechanism.is_private and np.isfinite(cell.setup.plan.budget).all()):
        told.append(f"{FLAGS['not_private']}.")
    if scenario.privacy.scale_records != 1:
        told.append(f"{FLAGS['scaled_records'].format(scale=f'{scenario.privacy.scale_records:g}')}.")
    for flag in ("public_graph_assumed", "data_dependent_step"):
        if getattr(caveats, flag):
            told.append(f"{FLAGS[flag]}.")
    if getattr(scenario.learning.algorithm, "form", None) == "printed":
        told.append("Form printed: the update as the paper prints it.")
    told += [f"Warning: {text}." for text in cell.warnings if "ψ" in text or "stability" in text]
    return tuple(told)


#: Moments of a run that a person is shown of one cell.
_MOMENTS = 8


def show_graphs(found: list[GraphCellForecast], name: str) -> None:
    """Print tables: the end, the agents, and the run, of each metric that is forecast."""
    for metric in dict.fromkeys(one.metric for one in found):
        some = [one for one in found if one.metric == metric]
        print_table([one.row() for one in some], f"{name}: expected {metric} at the end, and its parts")
        each = max(3, MOST_ROWS // len(some))
        agents = [row for one in some for row in one.agents(each)]
        print_table(agents, "\nthe noise that each agent adds, and how far it is from its optimum")
        if len(agents) < sum(len(one.agents()) for one in some):
            print("… and more agents; --json has all")
        print_table(
            [row for one in some for row in one.along(_MOMENTS)], f"\nexpected {metric} along the run"
        )


def draw_graphs(found: list[GraphCellForecast], folder: str) -> list[str]:
    """Draw all figures into a folder; returns the files."""
    from p2psim.report.graph_forecasts import draw_graph_forecasts

    drawn = [_drawn(one, label) for one, label in zip(found, cell_labels(found), strict=True)]
    return [str(path) for path in draw_graph_forecasts(drawn, folder)]


def _drawn(one: GraphCellForecast, label: str) -> DrawnGraph:
    from p2psim.analysis.forecasts.graph_descent import DescentForecast
    from p2psim.report.graph_forecasts import DrawnGraph

    made, descent = one.forecast, isinstance(one.forecast, DescentForecast)
    return DrawnGraph(
        label=label,
        notes=notes(one),
        axis=made.moments.axis,
        points=made.moments.points,
        expected=made.expected,
        noiseless=made.noiseless if isinstance(made, DescentForecast) else None,
        metric=one.metric,
        alone=made.alone if isinstance(made, DescentForecast) else None,
        records=made.setting.cell.problem.records if descent else None,
        apart=made.apart if isinstance(made, DescentForecast) else None,
        apart_alone=made.apart_alone if isinstance(made, DescentForecast) else None,
        calibration=None if one.calibration is None else one.calibration.points,
    )
