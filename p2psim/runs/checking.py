"""What the runs of a scenario would cost, without running it."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from p2psim.core.errors import Fault, InputError, first_line
from p2psim.core.options import derived
from p2psim.core.printing import (
    MOST_ROWS,
    complain,
    counted,
    key_values,
    last_parts,
    print_table,
    print_wrapped,
)
from p2psim.core.process import one_thread
from p2psim.runs.pilot import Pilot, estimate_runtime, refuse_excess, refuse_length
from p2psim.runs.progress import time_range
from p2psim.runs.system import available_cores, sized
from p2psim.scenario.model import Cell, Scenario
from p2psim.scenario.notices import comparability, in_order, lines
from p2psim.scenario.record import fewest, most
from p2psim.scenario.tuning import notes_on_tuning
from p2psim.simulation.algorithms import FACT_MEANINGS, Assessment
from p2psim.simulation.computable import computed
from p2psim.simulation.workspace import Workspace

#: Cells are kept for the simulations until they have this many agents together.
_KEPT_AGENTS = 100_000

#: Agents of a cell that a person is shown at least.
FEWEST_AGENTS = 3


@dataclass(frozen=True)
class CheckReport:
    """A scenario, its cells, the facts and agents' labels of each, and its pilot, or why there is none."""

    path: str
    scenario: Scenario
    cells: Sequence[Cell]
    facts: Sequence[Assessment]
    labels: Sequence[Sequence[str]]
    pilot: Pilot | None
    no_pilot: str

    def as_tree(self) -> dict[str, Any]:
        """Everything as plain values."""
        from p2psim.scenario.fields import explicit

        return {
            "path": self.path,
            "scenario": self.scenario.resolved(),
            "replicas": explicit(self.scenario.replicas),
            "events": self.events,
            "memory": self.memory,
            "notes": self.notes,
            "pilot": asdict(self.pilot) if self.pilot is not None else None,
            "cells": [
                {
                    "cell": cell.index,
                    "content": cell.content,
                    "swept": dict(cell.swept),
                    "engine": "simpy"
                    if cell.scenario.network.engine == "simpy" or cell.scenario.network.uncompiled_parts()
                    else "array",
                    "labels": list(labels),
                    **_as_tree(fact),
                }
                for cell, fact, labels in zip(self.cells, self.facts, self.labels, strict=True)
            ],
        }

    @property
    def notes(self) -> list[str]:
        """What its results will not say by themselves."""
        tree = self.scenario.resolved()
        notes = comparability(self.scenario.record.metrics, list(self.cells[0].swept), tree)
        return notes + notes_on_tuning(tree)

    @property
    def events(self) -> int:
        """Events of the whole study, estimated; of the most replicas that it may have."""
        return most(self.scenario.replicas) * sum(fact.events for fact in self.facts)

    @property
    def memory(self) -> int:
        """Bytes of data and of events that one process holds at most, estimated."""
        kept = self.scenario.record.events
        return max(fact.bytes_of_data + (fact.bytes_of_events if kept else 0) for fact in self.facts)

    def show(self) -> None:
        """Print the study's size, the facts of each cell, and the resolved scenario; warnings to standard error."""
        print(
            f"{self.path}: {counted(len(self.cells), 'cell')} × {self._replicas()}, about "
            f"{self.events:,} events; about {self.memory / 1e6:,.1f} MB a process beside the libraries"
        )
        print(self._engine())
        print(self._time())
        for warning in warnings_of(self.cells, self.facts):
            complain(warning, "warning")
        for note in self.notes:
            print(f"note: {note}")
        # Graphs that stay have other facts than graphs that change.
        names = list(dict.fromkeys(name for fact in self.facts for name in fact.facts))
        swept = last_parts(list(self.cells[0].swept), ["cell", *names])
        rows = [
            {
                "cell": cell.index,
                **{swept[key]: value for key, value in cell.swept.items()},
                **{name: fact.facts.get(name) for name in names},
            }
            for cell, fact in zip(self.cells, self.facts, strict=True)
        ]
        # Values of swept keys stand in the first block alone.
        print_table(rows, "\nwhat is known of each cell")
        for name in names:
            if name in FACT_MEANINGS and any(fact.facts.get(name) is not None for fact in self.facts):
                print_wrapped(f"  {name}: {FACT_MEANINGS[name]}", " " * 6)
        each = max(FEWEST_AGENTS, MOST_ROWS // len(self.cells))
        print_table(self._privacy(each), "\nprivacy of each agent", keys=2)
        longest = max(len(fact.privacy) for fact in self.facts)
        if longest > each:
            print(f"… and up to {counted(longest - each, 'more agent')} in each cell; --json has all")
        print(f"\n{self.scenario.to_yaml()}", end="")

    def _engine(self) -> str:
        """What makes the events, and why."""
        networks = [cell.scenario.network for cell in self.cells]
        by_key = sum(network.engine == "simpy" for network in networks)
        uncompiled = [
            parts for one in networks if one.engine != "simpy" and (parts := one.uncompiled_parts())
        ]
        reasons = [(by_key, "as network.engine says")] if by_key else []
        if uncompiled:
            keys = ", ".join(dict.fromkeys(chain(*uncompiled)))
            reasons.append((len(uncompiled), f"because of {keys}: parts of your own have no compiled form"))
        if not reasons:
            return "engine: array, since all parts of the network have a compiled form"
        if reasons[0][0] == len(networks):
            return f"engine: simpy, {reasons[0][1]}"
        said = "; ".join(f"simpy in {counted(cells, 'cell')}, {why}" for cells, why in reasons)
        others = len(networks) - by_key - len(uncompiled)
        return f"engine: {said}" + ("; array in the others" if others else "")

    def _time(self) -> str:
        """How long it will take, or why that is not estimated."""
        pilot = self.pilot
        if pilot is None:
            return f"time: not estimated ({self.no_pilot})"
        paces = " to ".join(dict.fromkeys((f"{pilot.slowest:,.0f}", f"{pilot.fastest:,.0f}")))
        return (
            f"time: about {time_range(pilot.least_seconds, pilot.most_seconds)} with {counted(pilot.jobs, 'job')}, at "
            f"{paces} events a second each, by {counted(pilot.stretches, 'stretch')} of a pilot of "
            f"{pilot.events:,}; about {pilot.memory / 1e6:,.0f} MB a process with the libraries"
            + (f"; {sized(pilot.size)} of results" if pilot.size else "")
        )

    def _replicas(self) -> str:
        least, upto = fewest(self.scenario.replicas), most(self.scenario.replicas)
        return counted(upto, "replica") if least == upto else f"{least:,} to {counted(upto, 'replica')}"

    def _privacy(self, each: int) -> list[dict[str, Any]]:
        """Rows of the first agents of every cell; labels where agents have some, accountants that any cell has."""
        labelled = any(list(labels) != list(map(str, range(len(labels)))) for labels in self.labels)
        # Where nothing is protected no accountant speaks; all rows have the same columns all the same.
        accounts = (agent.spent for fact in self.facts for agent in fact.privacy)
        accountants = dict.fromkeys(chain.from_iterable(accounts))
        computes = any(fact.mean_work is not None for fact in self.facts)
        return [
            {
                "cell": cell.index,
                "agent": agent,
                **({"label": labels[agent]} if labelled else {}),
                "records": fact.records[agent],
                **({"mean time to compute": _work_of(fact, agent)} if computes else {}),
                "budget": each_agent.budget,
                "most releases": "any number" if each_agent.releases is None else each_agent.releases,
                "loss of the first": each_agent.loss,
                "noise scale": each_agent.scale,
                **{f"ε {name}": each_agent.spent.get(name) for name in accountants},
            }
            for cell, fact, labels in zip(self.cells, self.facts, self.labels, strict=True)
            for agent, each_agent in enumerate(fact.privacy[:each])
        ]


def _as_tree(fact: Assessment) -> dict[str, Any]:
    """Facts as plain values, warnings once; nothing is said of the time to compute where there is none."""
    tree = asdict(fact) | {"privacy": [asdict(agent) for agent in fact.privacy]}
    del tree["of_runs"]
    return {name: value for name, value in tree.items() if name != "mean_work" or value is not None}


def _work_of(fact: Assessment, agent: int) -> float:
    return fact.mean_work[agent] if fact.mean_work is not None else 0.0


def warnings_of(grid: Sequence[Cell], facts: Sequence[Assessment]) -> list[str]:
    """Warnings of all cells, each text once, with the cells that it concerns."""
    each_cell = zip(grid, facts, strict=True)
    warnings = [(warning, (cell.index,)) for cell, fact in each_cell for warning in fact.warnings]
    return lines(in_order(warnings), [cell.swept for cell in grid])


def assess_cells(
    scenario: Scenario, grid: Sequence[Cell], workspace: Workspace, account: bool = False
) -> list[Assessment]:
    """Prepare the data of all cells, and see what each is; warnings about its data are among them.

    With `account`, facts say what releases will have cost.

    Raises
    ------
    InputError
        With everything that is wrong in any cell, each with its place in the file.
    """
    from p2psim.scenario.partly import faults_of_files
    from p2psim.simulation.simulate import check

    faults: dict[Fault, None] = {}
    facts, agents = list[Assessment](), 0
    # What is prepared here is simulated with: sums must not depend on the number of threads.
    with one_thread():
        for cell in grid:
            try:
                case = workspace.case(cell.scenario, 0)
                assess = partial(check, cell.scenario, workspace, agents < _KEPT_AGENTS, account)
                fact = computed(cell.scenario, case.arrays["X"], case.arrays["y"], assess)
                facts.append(derived(fact, warnings=case.warnings + fact.warnings))
                agents += len(fact.records)
            except InputError as error:
                wrong = [*error.faults, *faults_of_files(cell.scenario)]
                faults.update(dict.fromkeys(map(scenario.locate, wrong)))
            except (ArithmeticError, ValueError, MemoryError) as error:
                # Numbers that no rule refuses and that linear algebra cannot take.
                which = f"cell {cell.index} ({key_values(cell.swept)})" if cell.swept else "it"
                faults[scenario.locate(Fault(f"{which} cannot be prepared ({first_line(error)})"))] = None
    if faults:
        raise InputError(*faults)
    return facts


def check_scenario(
    scenario: Scenario,
    path: str,
    *,
    confirm_cells: bool = False,
    pilot: bool = False,
    jobs: int | None = None,
    started: float = 0.0,
) -> CheckReport:
    """Check a scenario as far as can be done without running it, but for a second of it.

    Parameters
    ----------
    scenario : Scenario
    path : str
        What it is called.
    confirm_cells : bool
        Accept a study of any size: cells, memory and time.
    pilot : bool
        Simulate for about a second to see how long the whole takes.
    jobs : int or None
        Processes that it shall have; one a core when None.
    started : float
        Seconds that a run takes as well until this is called: a command's own start.

    Raises
    ------
    InputError
        With everything that is wrong.
    """
    from p2psim.core.files import is_compiled
    from p2psim.scenario.cells import cells

    jobs, began = jobs or available_cores(), time.perf_counter()
    grid = cells(scenario, confirm_cells=confirm_cells)
    refuse_excess(scenario, grid, confirm_cells)
    with tempfile.TemporaryDirectory(prefix="p2psim-", ignore_cleanup_errors=True) as directory:
        workspace = Workspace(Path(directory), jobs == 1)
        facts = assess_cells(scenario, grid, workspace, account=True)
        refuse_length(scenario, grid, facts, confirm_cells)
        started += time.perf_counter() - began
        labels = [workspace.case(cell.scenario, 0).labels for cell in grid]
        estimate, why = None, "--no-pilot"
        if pilot and not is_compiled():
            why = "kernels are not compiled yet; the first run compiles them"
        elif pilot:
            try:
                # As in a run: with more threads, BLAS takes several times as long where models are small.
                with one_thread():
                    estimate = estimate_runtime(scenario, grid, facts, workspace, jobs, started=started)
            except Exception as error:
                why = f"the pilot failed, as a run will: {first_line(error)}"
        return CheckReport(path, scenario, grid, facts, labels, estimate, why)
