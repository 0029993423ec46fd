"""Choosing the value of a tuned key: the validation study goes into the folder ``tuning`` of the run folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.runs.result import Result
from p2psim.runs.store import TUNING
from p2psim.scenario.cells import cells, value_at
from p2psim.scenario.fields import explicit
from p2psim.scenario.model import Scenario
from p2psim.scenario.record import metric_named
from p2psim.scenario.sweep import steps_of


def tuned(scenario: Scenario, folder: Path, run: Callable[[Scenario, Path], Result]) -> Scenario:
    """The scenario with the value that each cell chooses.

    Parameters
    ----------
    scenario : Scenario
        With a section ``tune`` that has not chosen yet.
    folder : Path
        The run folder.
    run : callable
        Runs a scenario into a folder.

    Raises
    ------
    SimulationError
        If all values of a cell failed. A value that failed in some replica is not chosen.
    """
    assert scenario.tune is not None
    study, place = scenario.validation_study(), folder / TUNING
    try:
        result = run(study, place)
    except SimulationError:
        result = Result.load(place)
    return scenario.with_chosen(choices(scenario, study, result))


def choices(scenario: Scenario, study: Scenario, result: Result) -> list[object]:
    """The value of each cell with the best mean of the metric; the first of equal ones.

    Parameters
    ----------
    scenario, study : Scenario
        The study, and its validation study.
    result : Result
        Of the validation study.
    """
    tune, grid = scenario.tune, cells(study, confirm_cells=True)
    assert tune is not None
    ends: dict[Any, float] = result.last_values(["cell", "model", "metric", "replica"]).to_dict()
    names = (tune.metric, f"{tune.metric} (mean over agents)")
    last = {
        (cell, replica): end
        for (cell, model, name, replica), end in ends.items()
        if model == "main" and name in names
    }
    places = {cell.content: place for place, cell in enumerate(result.described.cells)}
    metric = metric_named(tune.metric)
    sign = -1.0 if metric is not None and metric.rises else 1.0
    each = [[last.get((places.get(cell.content), r), np.nan) for r in range(tune.replicas)] for cell in grid]
    scores = sign * np.mean(each, axis=1).reshape(-1, len(tune.values))
    if (failed := np.flatnonzero(np.isnan(scores).all(axis=1))).size:
        raise SimulationError(f"tune: every value failed in cell {failed[0]}; see {result.path}")
    best = np.nanargmin(scores, axis=1) + np.arange(len(scores)) * len(tune.values)
    return [explicit(value_at(grid[place].scenario, steps_of(tune.key)), digests=True) for place in best]


def fault_of_choice(result: Result, tuning: Result) -> str:
    """What is wrong with the values that a run folder says were chosen; empty where its validation study gives them."""
    scenario = result.scenario
    assert scenario.tune is not None
    untuned = scenario.with_chosen(None)
    study = untuned.validation_study()
    if tuning.described.identity != study.identity():
        return "it is not the validation study of this scenario"
    again, chosen = choices(untuned, study, tuning), scenario.tune.chosen
    return "" if again == chosen else f"it gives other values than tune.chosen has: {again}, not {chosen}"
