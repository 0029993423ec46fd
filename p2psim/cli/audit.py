"""``p2psim audit``: run mechanisms on worst-case adjacent data, and compare the results with the claims."""

import argparse
from typing import TYPE_CHECKING, Any

from p2psim.cli.arguments import ANY, OVERRIDES, command, load_scenario, number, option
from p2psim.core.printing import complain, print_json, print_table, table_rows

if TYPE_CHECKING:
    from p2psim.audit.driver import Audit, Audited


@command(
    "audit",
    "run mechanisms as configured on worst-case adjacent data, and compare the results with the claims",
    option("scenario SCENARIO", "a scenario file"),
    option("--samples N", "runs on each data set; 10,000 by default", whole=(100,), default=10_000),
    option(
        "--gamma G",
        "largest probability that a correct claim is refuted; 1e-6 by default",
        number,
        default=1e-6,
    ),
    option("--replica R", "the replica whose graph and data are used; 0 by default", whole=ANY, default=0),
    *OVERRIDES,
    json="print everything as JSON",
    needs=("p2psim.audit.driver",),
)
def audit(args: argparse.Namespace) -> int:
    """``p2psim audit``."""
    from p2psim.audit.driver import audit

    scenario = load_scenario(args.scenario, args)
    result = audit(scenario, args.samples, args.gamma, args.replica, confirm_cells=args.confirm_cells)
    if args.json:
        print_json(tree(result))
    else:
        _show(result, scenario.name)
    return 0 if result.stands else 1


#: Columns of the table: one way of releasing a line.
_COLUMNS = (
    "cells", "agent", "agents alike", "mechanism", "releases", "audited", "moves", "claimed ε", "at δ", "ε at least",
    "p, law", "p, sharing", "verdict",
)  # fmt: skip


def _rows(result: "Audit") -> list[dict[str, Any]]:
    from p2psim.privacy.shares import UNLIMITED
    from p2psim.scenario.yaml import runs_of

    def values(way: "Audited") -> tuple[Any, ...]:
        trial = way.trial
        cells = ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in runs_of(way.cells))
        mechanism = way.system.mechanism
        releases = "any number" if trial.limit == UNLIMITED else trial.limit
        claim = trial.audited, trial.moves, trial.epsilon, trial.delta, trial.at_least, trial.law
        sharing = None if trial.shared is None else trial.shared.p_value
        verdict = "; ".join(trial.faults) or "stands"
        return cells, way.system.agents[0], way.agents, mechanism, releases, *claim, sharing, verdict

    return table_rows(_COLUMNS, map(values, result.audited))


def tree(result: "Audit") -> dict[str, Any]:
    """An audit as plain values."""
    return {
        "samples": result.samples,
        "gamma": result.gamma,
        "stands": result.stands,
        "notes": list(result.notes),
        "audited": [
            {
                **row,
                "cells": list(entry.cells),
                "made": entry.trial.made,
                "largest_loss": entry.trial.largest,
                "faults": list(entry.trial.faults),
                "sets": table_rows(
                    ("canary", "threshold", "shown", "claimed"),
                    ((f.canary, f.threshold, f.shown, f.claimed) for f in entry.trial.findings),
                ),
            }
            for row, entry in zip(_rows(result), result.audited, strict=True)
        ],
    }


def _show(result: "Audit", name: str) -> None:
    """Print an audit; notes and refuted claims to standard error."""
    if result.audited:
        print_table(_rows(result), f"{name}: claims against what runs show")
        print(
            f"{result.samples:,} runs on each of two adjacent data sets and for each canary; budgets scaled so that a "
            f"release has a loss of {result.audited[0].trial.largest:.3g} at most; a right claim is refuted with "
            f"probability {result.gamma:g} at most"
        )
    for note in result.notes:
        complain(f"note: {note}")
    if not result.audited:
        complain("nothing was audited")
    for entry in result.audited:
        place = f"agent {entry.system.agents[0]} of cell {entry.cells[0]}"
        for fault, shown in entry.trial.faults.items():
            complain(f"refuted: {place}: {fault}: {shown}")
