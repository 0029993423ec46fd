"""``p2psim account run``: what the releases of a run cost, agent by agent, by every accountant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from p2psim.cli.account.options import ACCOUNTANT, at_point, chosen, left_out_note, read_at, upward
from p2psim.cli.arguments import ANY, command, option
from p2psim.core.errors import InputError, MissingPartError
from p2psim.core.printing import print_json, print_table, table_rows

if TYPE_CHECKING:
    import numpy as np

    from p2psim.runs.ledger_check import Recounted

#: Ranges of agents that a row of the table names.
MOST_RANGES = 5


@command(
    "run",
    "what the releases of a run cost, agent by agent, by every accountant",
    option("run RUN", "a run folder"),
    at_point("; that of the run by default"),
    ACCOUNTANT,
    option("--cell I", "this cell alone", whole=ANY),
    json="print it as JSON",
)
def account_run(args: argparse.Namespace) -> None:
    """Print what each cell's agents spent, the most over replicas."""
    from p2psim.runs.ledger_check import recount
    from p2psim.runs.result import Result
    from p2psim.runs.verification import checked_partly

    result = Result.load(args.run)
    try:
        if args.delta is None and args.epsilon is None:
            args.delta = result.scenario.privacy.delta
            if args.delta is None:
                raise InputError("--delta or --epsilon: one must be given, since the run has no δ of its own")
        at = read_at(args)
        runs = list(recount(result, args.cell))
    except MissingPartError as error:
        raise checked_partly(result, error) from None
    noises = list(dict.fromkeys(noise for run in runs for noise in run.charges.used))
    accountants, left_out = chosen(args.accountant, noises)
    spent = []
    for run in runs:
        holders = run.scenario.privacy.overlap.holders
        sums = {name: at.sums(by, run.charges, holders) for name, by in accountants.items()}
        spent.append((run, sums))
    if args.json:
        agents = [row for run, sums in spent for row in _each(run, sums, at.key)]
        print_json({"epsilon": at.epsilon, "delta": at.delta, "not_able": left_out, "agents": agents})
        return
    rows = []
    for cell in dict.fromkeys(run.cell for run in runs):
        replicas = [(run, sums) for run, sums in spent if run.cell == cell]
        entry = result.described.cells[cell]
        rows += [{"cell": cell, **entry.swept, **row} for row in _of_cell(replicas, at.symbol, entry.notes)]
    print_table(rows, f"{at.symbol} of agents' real records at {at.fixed}; the most over replicas", len(rows))
    left_out_note(left_out, noises)


def _each(run: Recounted, spent: dict[str, np.ndarray], key: str) -> list[dict[str, Any]]:
    """A row of each agent."""
    agents = range(run.charges.agents)
    columns = ("cell", "replica", "agent", "releases", *(f"{key}_{name}" for name in spent), "flags")
    numbers = zip(*(values.tolist() for values in spent.values()), strict=True)
    rows = zip(agents, run.charges.made.tolist(), numbers, _flags(run), strict=True)
    values = ((run.cell, run.replica, i, made, *row, raised) for i, made, row, raised in rows)
    return table_rows(columns, values)


def _flags(run: Recounted) -> list[list[str]]:
    """What must be said with the numbers of each agent, as the ledger has it."""
    from p2psim.runs.summary import raised_flags

    raised = raised_flags(run.ledger)
    return [list(raised.columns[row]) for row in raised.to_numpy()]


def _of_cell(
    runs: Sequence[tuple[Recounted, dict[str, np.ndarray]]], symbol: str, notes: Sequence[str]
) -> list[dict[str, Any]]:
    """Rows of one cell: agents of whom all is the same have one together."""
    together: dict[tuple[Any, ...], list[int]] = {}
    flags = [_flags(run) for run, _ in runs]
    for agent in range(max(run.charges.agents for run, _ in runs)):
        releases = max(int(run.charges.made[agent]) for run, _ in runs)
        most = [upward(float(max(spent[name][agent] for _, spent in runs))) for name in runs[0][1]]
        raised = dict.fromkeys(name for of_run in flags for name in of_run[agent])
        together.setdefault((releases, *most, ", ".join([*raised, *notes])), []).append(agent)
    columns = ("agents", "releases", *(f"{symbol} {name}" for name in runs[0][1]), "flags")
    return table_rows(columns, ((ranges(agents), *row) for row, agents in together.items()))


def ranges(numbers: Sequence[int]) -> str:
    """Rising numbers in few words: 0–2, 5. Of many ranges the first, and how many numbers there are."""
    from p2psim.scenario.yaml import runs_of

    shown = [f"{low}" if low == high else f"{low}–{high}" for low, high in runs_of(numbers)]
    if len(shown) > MOST_RANGES:
        shown[MOST_RANGES:] = [f"… ({len(numbers)} in all)"]
    return ", ".join(shown)
