"""Audits a scenario: each way of releasing that differs from the others, once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.audit.algorithms import system_of
from p2psim.audit.audit_run import MOST_RELEASES
from p2psim.audit.system import AuditSystem
from p2psim.audit.trial import Trial, audit_system
from p2psim.core.errors import InputError, check_place
from p2psim.core.options import INT32
from p2psim.learning.batches import batch_of
from p2psim.privacy.audit import GAUSSIAN, LAPLACE, NoiseDistribution
from p2psim.privacy.mechanisms import Mechanism
from p2psim.privacy.plan import Plan
from p2psim.privacy.shares import Releases
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.outcome import streams_of

if TYPE_CHECKING:
    from p2psim.scenario.model import Cell, Scenario
    from p2psim.simulation.algorithms.cell import PreparedCell

#: Ways of releasing that one command audits; of more it says how many are left.
MOST_AUDITS = 10
#: Runs on each data set that one audit can keep in memory.
MOST_SAMPLES = 10_000_000

#: Distributions of noise by the kind of mechanism.
DISTRIBUTIONS = {"laplace": LAPLACE, "discrete-laplace": LAPLACE, "gaussian": GAUSSIAN}


@dataclass(frozen=True)
class AuditMode:
    """Agents of some cells that release in the same way, but for a common factor of their budgets.

    Attributes
    ----------
    scenario : Scenario
        Of the first such cell.
    cell : PreparedCell
    cells : tuple of int
        Indices of the cells in which agents do so.
    agents : int
        How many agents of the first cell.
    system : AuditSystem
    """

    scenario: Scenario
    cell: PreparedCell
    cells: tuple[int, ...]
    agents: int
    system: AuditSystem


@dataclass(frozen=True)
class Audited:
    """A way of releasing, and what its audit found."""

    mode: AuditMode
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
        return not any(mode.trial.faults for mode in self.audited)


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
    from threadpoolctl import threadpool_limits

    from p2psim.runs.pilot import refuse_excess
    from p2psim.scenario.cells import cells
    from p2psim.simulation.workspace import Workspace

    if not 100 <= samples <= MOST_SAMPLES:
        raise InputError(f"samples must be from 100 to {MOST_SAMPLES:,}, got {samples:,}")
    if not 0 < gamma < 1:
        raise InputError(f"gamma must lie between 0 and 1, got {gamma}")
    check_place("replica", replica, INT32)
    notes: dict[str, None] = {}
    # As in a run: last digits must not depend on the number of threads, which small matrices only wait for.
    with tempfile.TemporaryDirectory(prefix="p2psim-") as directory, threadpool_limits(limits=1):
        grid = cells(scenario, confirm_cells=confirm_cells)
        refuse_excess(scenario, grid, confirm_cells)
        modes = _modes(grid, replica, Workspace(Path(directory)), notes)
        if len(modes) > MOST_AUDITS:
            notes[f"{len(modes) - MOST_AUDITS} more ways of releasing were not audited"] = None
            modes = modes[:MOST_AUDITS]
        audited = tuple(_audit(mode, replica, samples, gamma / len(modes)) for mode in modes)
    if any(one.trial.audited < one.trial.limit for one in audited):
        notes["of an agent's releases the first were looked at, as many as are audited"] = None
    return Audit(audited, tuple(notes), samples, gamma)


def _audit(mode: AuditMode, replica: int, samples: int, gamma: float) -> Audited:
    privacy, network = mode.scenario.privacy, mode.scenario.network
    law, streams = _law(privacy.mechanism), streams_of(mode.scenario, replica)
    plan, delta = mode.cell.setup.plan, privacy.delta or 0.0
    trial = audit_system(mode.system, plan, law, streams, network.engine, delta, samples, gamma)
    return Audited(mode, trial)


def _law(mechanism: Mechanism) -> NoiseDistribution:
    """Law of a mechanism's noise; of one that is not known here, a guess by its norm for scores, and nothing more."""
    guess = replace(LAPLACE if mechanism.norm == "l1" else GAUSSIAN, cumulative=None)
    return DISTRIBUTIONS.get(mechanism.kind, guess)


def _modes(grid: Sequence[Cell], replica: int, workspace: Any, notes: dict[str, None]) -> list[AuditMode]:
    """The ways of releasing of all cells; what cannot be audited is noted."""
    modes: dict[tuple[Any, ...], AuditMode] = {}
    for index, scenario in ((cell.index, cell.scenario) for cell in grid):
        if reason := _excuse(scenario):
            notes[reason] = None
            continue
        cell: Any = adapter_of(scenario).cell(scenario, workspace.case(scenario, replica), replica)
        for key, agents in _classes(scenario, cell):
            if key in modes:
                modes[key] = replace(modes[key], cells=(*modes[key].cells, index))
            elif system := _system(cell, agents):
                modes[key] = AuditMode(scenario, cell, (index,), agents.size, system)
            else:
                notes["an agent that no other has records beside was not audited"] = None
        sensitivity = scenario.privacy.sensitivity
        if sensitivity is not None and sensitivity.kind == "empirical":
            notes[
                "an empirical bound is read off the data: audited as if it held, which nothing guarantees"
            ] = None
        if cell.setup.plan.limit.start is not None:
            notes["the release that the start is was not audited"] = None
    return list(modes.values())


def _excuse(scenario: Scenario) -> str:
    """Why a cell cannot be audited; empty if it can."""
    privacy, algorithm = scenario.privacy, scenario.learning.algorithm
    if not privacy.mechanism.is_private:
        return "cells without noise claim nothing"
    if not getattr(algorithm, "touches_data", True):
        return f"{algorithm.kind} releases nothing but its start"
    if system_of(algorithm) is None:
        return f"releases of {algorithm.kind} were not audited"
    return ""


def _classes(scenario: Scenario, cell: Any) -> Iterator[tuple[tuple[Any, ...], np.ndarray]]:
    """Agents of a cell that release alike, with what tells them from others."""
    plan, privacy = cell.setup.plan, scenario.privacy
    algorithm = scenario.learning.algorithm
    common = (
        privacy.mechanism.model_dump_json(),
        None if privacy.sensitivity is None else privacy.sensitivity.model_dump_json(),
        privacy.when_spent,
        scenario.network.exchange.model_dump_json(),
        algorithm.kind,
        getattr(algorithm, "mu", None),
        repr(getattr(algorithm, "rho", None)),
        batch_of(algorithm).model_dump_json(),
        scenario.learning.loss.kind,
        cell.setup.dimension,
    )
    able = np.flatnonzero(cell.problem.records * (plan.releases > 0) * np.isfinite(plan.budget))
    profiles = _profiles(plan, able)
    keys = [(int(plan.releases[i]), *profile) for i, profile in zip(able, profiles, strict=True)]
    for key in dict.fromkeys(keys):
        yield (*common, *key), able[[other == key for other in keys]]


def _profiles(plan: Plan, agents: np.ndarray) -> list[tuple[float, ...]]:
    """Losses of each agent's first releases, relative to the largest and to nine digits."""
    if not agents.size:
        return []
    counts = np.minimum(plan.releases[agents], MOST_RELEASES)
    owners = np.repeat(agents, counts)
    numbers = np.concatenate([np.arange(count) for count in counts])
    losses = plan.claimed(Releases(owners, numbers, np.zeros(owners.size, np.int64)))
    parts = np.split(losses, np.cumsum(counts)[:-1])
    return [tuple(np.round(part / part.max(), 9).tolist()) for part in parts]


def _system(cell: Any, alike: np.ndarray) -> AuditSystem | None:
    """The first of some agents and another one: of the same kind, else any that has records; None if it needs one."""
    first = int(alike[0])
    others = [int(i) for i in [*alike[1:2], *np.flatnonzero(cell.problem.records)[:2]] if i != first]
    system = system_of(cell.scenario.learning.algorithm)
    return (
        None if system is None or (system.needs_pair and not others) else system(cell, [first, *others[:1]])
    )
