"""What figures of forecasts call each cell, and what must be said under them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from p2psim.study.forecasting.graph_study import GraphCellForecast
    from p2psim.study.forecasting.study import CellForecast


def cell_labels(found: Sequence[CellForecast | GraphCellForecast]) -> list[str]:
    """What tells each cell from the others, as legends of runs say it; of one cell, nothing."""
    from p2psim.report.curves import distinct, short_names
    from p2psim.report.source import as_text, named
    from p2psim.study.labels import labels_of

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
    from p2psim.privacy.violations import Violations
    from p2psim.report.notes import FLAGS

    made, scenario = one.forecast, one.cell.scenario
    cell = made.setting.cell
    told = [f"Approximate: {reason}." for reason in made.approximate] or ["Exact: no approximation was made."]
    caveats = cell.caveats(Violations.none(len(cell.stage.plan.budget)))
    if not (cell.stage.plan.mechanism.is_private and np.isfinite(cell.stage.plan.budget).all()):
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
