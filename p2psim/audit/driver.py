"""Audits a scenario: each way of releasing that differs from the others, once."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from p2psim.audit.algorithms import system_of
from p2psim.audit.audit_run import MOST_RELEASES, Trial, audit_system
from p2psim.audit.starts import MOST_MINIMISATIONS, StartSystem, audit_start
from p2psim.audit.system import AuditSystem
from p2psim.core.errors import InputError, check_place
from p2psim.core.options import INT32
from p2psim.core.process import one_thread
from p2psim.privacy.shares import Releases
from p2psim.runs.pilot import refuse_excess
from p2psim.scenario.cells import cells
from p2psim.scenario.model import Cell, Scenario
from p2psim.scenario.tuning import refuse_untuned
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.workspace import Workspace

#: Ways of releasing that one command audits; of more it says how many are left.
MOST_AUDITS = 10
#: Runs on each data set that one audit can keep in memory.
MOST_SAMPLES = 10_000_000


@dataclass(frozen=True)
class Audited:
    """Agents of some cells that release in the same way, but for a common factor of their budgets, and their audit.

    Attributes
    ----------
    cells : tuple of int
        Indices of the cells in which agents do so.
    agents : int
        How many agents of the first cell.
    system : AuditSystem or StartSystem
        Of the first cell.
    trial : Trial
        What the audit found.
    """

    cells: tuple[int, ...]
    agents: int
    system: AuditSystem | StartSystem
    trial: Trial


@dataclass(frozen=True)
class Audit:
    """What an audit of a scenario found.

    Attributes
    ----------
    audited : tuple of Audited
    notes : tuple of str
        What was not audited, and why; and what limits what was.
    samples : int
    gamma : float
    """

    audited: tuple[Audited, ...]
    notes: tuple[str, ...]
    samples: int
    gamma: float

    @property
    def stands(self) -> bool:
        """Whether no claim was refuted."""
        return not any(way.trial.faults for way in self.audited)


def audit(
    scenario: Scenario,
    samples: int = 10_000,
    gamma: float = 1e-6,
    replica: int = 0,
    *,
    confirm_cells: bool = False,
) -> Audit:
    """Audit all that a scenario's cells release.

    Parameters
    ----------
    scenario : Scenario
    samples : int
        Runs on each of two adjacent data sets for each canary, at least 100.
    gamma : float
        Probability that any right claim is refuted, at most; in (0, 1).
    replica : int
        Whose graph and data these are, and the first whose noise is taken.
    confirm_cells : bool
        Accept a study of any size: cells, memory and time.

    Raises
    ------
    InputError
        If a number is out of range, or the scenario cannot be prepared.
    """
    if not 100 <= samples <= MOST_SAMPLES:
        raise InputError(f"samples must be from 100 to {MOST_SAMPLES:,}, got {samples:,}")
    if not 0 < gamma < 1:
        raise InputError(f"gamma must lie between 0 and 1, got {gamma}")
    check_place("replica", replica, INT32)
    refuse_untuned(scenario)
    notes: dict[str, None] = {}
    # As in a run: last digits must not depend on the number of threads, which small matrices only wait for.
    with (
        tempfile.TemporaryDirectory(prefix="p2psim-", ignore_cleanup_errors=True) as directory,
        one_thread(),
    ):
        grid = cells(scenario, confirm_cells=confirm_cells)
        refuse_excess(scenario, grid, confirm_cells)
        modes = _modes(grid, replica, Workspace(Path(directory)), notes)
        if len(modes) > MOST_AUDITS:
            notes[f"{len(modes) - MOST_AUDITS} more ways of releasing were not audited"] = None
            modes = modes[:MOST_AUDITS]
        audited = tuple(
            Audited(tuple(places), agents, system, attack(system, replica, samples, gamma / len(modes)))
            for places, agents, system, attack in modes
        )
    if any(way.trial.audited < way.trial.limit for way in audited):
        notes["of an agent's releases the first were looked at, as many as are audited"] = None
    minimises = any(way.system.mechanism == "objective perturbation" for way in audited)
    if samples > MOST_MINIMISATIONS and minimises:
        notes[f"objective perturbation minimises in each run: {MOST_MINIMISATIONS:,} were made"] = None
    return Audit(audited, tuple(notes), samples, gamma)


#: Cells, agents and system of an `Audited`, and what audits the system.
_Way = tuple[list[int], int, AuditSystem | StartSystem, Callable[[Any, int, int, float], Trial]]


def _modes(grid: Sequence[Cell], replica: int, workspace: Workspace, notes: dict[str, None]) -> list[_Way]:
    """The ways of releasing of all cells; what cannot be audited is noted."""
    modes: dict[tuple[Any, ...], _Way] = {}
    for index, scenario in ((of_grid.index, of_grid.scenario) for of_grid in grid):
        start = scenario.learning.algorithm.first_models
        how = start.perturbed_by if start is not None else ""
        perturbs = scenario.privacy.mechanism.is_private and how in ("output", "objective")
        if reason := _excuse(scenario):
            if not perturbs or scenario.learning.algorithm.touches_data:
                notes[reason] = None
            if not perturbs:
                continue
        cell: Any = adapter_of(scenario).cell(scenario, workspace.case(scenario, replica), replica)
        if perturbs:
            for key, of_start in _starts(cell).items():
                modes.setdefault(key, ([], len(of_start.agents), of_start, audit_start))[0].append(index)
        elif start is not None and cell.setup.plan.limit.start is not None:
            notes[
                f"the start {start.kind}{f' by the {how}' * bool(how)}, which is a release, was not audited"
            ] = None
        if reason:
            continue
        for key, agents in _classes(scenario, cell).items():
            if key in modes:
                modes[key][0].append(index)
            elif system := _system(cell, agents):
                modes[key] = [index], len(agents), system, audit_system
            else:
                notes["an agent that no other has records beside was not audited"] = None
        sensitivity = scenario.privacy.sensitivity
        if sensitivity is not None and sensitivity.audit_note:
            notes[sensitivity.audit_note] = None
    return list(modes.values())


def _starts(cell: Any) -> dict[tuple[Any, ...], StartSystem]:
    """Agents whose starts have the same law, which nΛ tells: those of the least and of the largest one."""
    start, problem = cell.scenario.learning.algorithm.start, cell.problem
    strong = np.round(problem.records * start.ridge(problem), 9)
    common = "start", start.perturbation, problem.loss.model_dump_json(), problem.dimension
    return {
        (*common, value): StartSystem(cell, tuple(np.flatnonzero(strong == value).tolist()))
        for value in (strong.min(), strong.max())
    }


def _excuse(scenario: Scenario) -> str:
    """Why a cell cannot be audited; empty if it can."""
    privacy, algorithm = scenario.privacy, scenario.learning.algorithm
    if not privacy.mechanism.is_private:
        return "cells without noise claim nothing"
    if not algorithm.touches_data:
        return f"{algorithm.kind} releases nothing but its start"
    if system_of(algorithm) is None:
        return f"releases of {algorithm.kind} were not audited"
    return ""


def _classes(scenario: Scenario, cell: Any) -> dict[tuple[Any, ...], list[int]]:
    """Agents of a cell that release alike, by what tells them from others.

    That holds the losses of their first releases, relative to the largest and to nine digits.
    """
    plan = cell.setup.plan
    keys: Any = {
        "privacy": {"mechanism", "sensitivity", "when_spent"},
        "network": {"exchange"},
        "learning": {"algorithm": {"kind", "mu", "rho", "batch"}, "loss": {"kind"}},
    }
    common = scenario.model_dump_json(include=keys), cell.setup.dimension
    classes: dict[tuple[Any, ...], list[int]] = {}
    able = np.flatnonzero(cell.problem.records * (plan.releases > 0) * np.isfinite(plan.budget))
    for agent, limit in zip(able.tolist(), plan.releases[able].tolist(), strict=True):
        numbers = np.arange(min(limit, MOST_RELEASES))
        losses = plan.claimed(Releases(np.full_like(numbers, agent), numbers, np.zeros_like(numbers)))
        key = (*common, limit, *np.round(losses / losses.max(), 9).tolist())
        classes.setdefault(key, []).append(agent)
    return classes


def _system(cell: Any, alike: list[int]) -> AuditSystem | None:
    """The first of some agents and another one: of the same kind, else any that has records; None if it needs one."""
    system, first = system_of(cell.scenario.learning.algorithm), alike[0]
    others = [i for i in [*alike[1:2], *np.flatnonzero(cell.problem.records)[:2].tolist()] if i != first]
    return (
        None if system is None or (system.needs_pair and not others) else system(cell, [first, *others[:1]])
    )
