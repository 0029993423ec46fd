"""``p2psim account run``: what the releases of a run cost, agent by agent, by every accountant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from p2psim.cli.account.options import (
    ACCOUNTANT,
    EvaluationPoint,
    at_point,
    chosen,
    left_out_note,
    read_at,
    upward,
)
from p2psim.cli.arguments import ANY, Commands, add_command, option
from p2psim.core.errors import InputError, MissingPartError
from p2psim.core.printing import print_json, print_table

if TYPE_CHECKING:
    import numpy as np

    from p2psim.runs.ledger_check import Recounted
    from p2psim.runs.result import Result

#: Ranges of agents that a row of the table names.
MOST_RANGES = 5


def add(actions: Commands) -> None:
    """Add the action."""
    add_command(
        actions,
        "run",
        "what the releases of a run cost, agent by agent, by every accountant",
        _account,
        option("run RUN", "a run folder"),
        at_point("; that of the run by default"),
        ACCOUNTANT,
        option("--cell I", "this cell alone", whole=ANY),
        json="print it as JSON",
    )


def _account(asked: argparse.Namespace) -> int:
    """Print what each cell's agents spent, the most over replicas; return the exit code."""
    from p2psim.runs.ledger_check import recount
    from p2psim.runs.result import Result
    from p2psim.runs.verification import checked_partly

    result = Result.load(asked.run)
    try:
        at = _at(asked, result)
        runs = list(recount(result, asked.cell))
    except MissingPartError as error:
        raise checked_partly(result, error) from None
    noises = list(dict.fromkeys(noise for run in runs for noise in run.charges.used))
    accountants, left_out = chosen(asked.accountant, noises)
    sums = [
        {
            name: at.sums(accountant, run.charges, run.scenario.privacy.overlap.holders)
            for name, accountant in accountants.items()
        }
        for run in runs
    ]
    if asked.json:
        print_json(
            {
                "epsilon": at.epsilon,
                "delta": at.delta,
                "not_able": left_out,
                "agents": [
                    row for run, found in zip(runs, sums, strict=True) for row in _each(run, found, at)
                ],
            }
        )
        return 0
    rows = []
    for cell in dict.fromkeys(run.cell for run in runs):
        mine = [(run, found) for run, found in zip(runs, sums, strict=True) if run.cell == cell]
        entry = result.described.cells[cell]
        rows += [{"cell": cell, **entry.swept, **row} for row in _of_cell(mine, at, entry.notes)]
    print_table(rows, f"{at.asked} of agents' real records at {at.fixed}; the most over replicas", len(rows))
    left_out_note(left_out, noises)
    return 0


def _at(asked: argparse.Namespace, result: Result) -> EvaluationPoint:
    if asked.delta is None and asked.epsilon is None:
        delta = result.scenario.privacy.delta
        if delta is None:
            raise InputError("--delta or --epsilon: one must be given, since the run has no δ of its own")
        return EvaluationPoint(delta, None)
    return read_at(asked)


def _each(run: Recounted, found: dict[str, np.ndarray], at: EvaluationPoint) -> list[dict[str, Any]]:
    key = "epsilon" if at.delta is not None else "delta"
    flags = _flags(run)
    return [
        {
            "cell": run.cell,
            "replica": run.replica,
            "agent": agent,
            "releases": int(run.charges.made[agent]),
            **{f"{key}_{name}": float(values[agent]) for name, values in found.items()},
            "flags": flags[agent],
        }
        for agent in range(run.charges.agents)
    ]


def _flags(run: Recounted) -> list[list[str]]:
    """What must be said with the numbers of each agent, as the ledger has it."""
    from p2psim.runs.tables import FLAGS

    raised = {
        name: run.ledger[name].fillna(False).astype(bool).to_numpy() for name in FLAGS if name in run.ledger
    }
    return [[name for name, flags in raised.items() if flags[agent]] for agent in range(len(run.ledger))]


def _of_cell(
    runs: Sequence[tuple[Recounted, dict[str, np.ndarray]]], at: EvaluationPoint, notes: Sequence[str]
) -> list[dict[str, Any]]:
    """Rows of one cell: agents of whom all is the same have one together."""
    agents = max(run.charges.agents for run, _ in runs)
    together: dict[tuple[Any, ...], list[int]] = {}
    for agent in range(agents):
        releases = max(int(run.charges.made[agent]) for run, _ in runs)
        spent = [upward(float(max(found[name][agent] for _, found in runs))) for name in runs[0][1]]
        raised = {name: None for run, _ in runs for name in _flags(run)[agent]}
        together.setdefault((releases, *spent, ", ".join([*raised, *notes])), []).append(agent)
    names = list(runs[0][1])
    return [
        {
            "agents": ranges(own),
            "releases": releases,
            **{f"{at.asked} {name}": value for name, value in zip(names, spent, strict=True)},
            "flags": flags,
        }
        for (releases, *spent, flags), own in together.items()
    ]


def ranges(numbers: Sequence[int]) -> str:
    """Rising numbers in few words: 0–2, 5. Of many ranges the first, and how many numbers there are."""
    from p2psim.scenario.yaml import runs_of

    shown = [f"{low}" if low == high else f"{low}–{high}" for low, high in runs_of(numbers)]
    if len(shown) > MOST_RANGES:
        shown[MOST_RANGES:] = [f"… ({len(numbers)} in all)"]
    return ", ".join(shown)
