"""``p2psim audit``: run mechanisms on worst-case adjacent data, and hold what they show to their claims."""

import argparse
from typing import TYPE_CHECKING, Any

from p2psim.cli.arguments import ANY, OVERRIDES, Commands, add_command, load_scenario, number, option
from p2psim.core.printing import complain, print_json, print_table

if TYPE_CHECKING:
    from p2psim.audit.driver import Audit, Audited


def add(commands: Commands) -> None:
    """Add the command."""
    add_command(
        commands,
        "audit",
        "run mechanisms as configured on worst-case adjacent data, and hold what they show to their claims",
        _audit,
        option("scenario SCENARIO", "a scenario file"),
        option("--samples N", "runs on each data set; 10,000 by default", whole=(100,), default=10_000),
        option(
            "--gamma G",
            "probability that a right claim is refuted, at most; 1e-6 by default",
            number,
            default=1e-6,
        ),
        option("--replica R", "whose graph and data these are; 0 by default", whole=ANY, default=0),
        *OVERRIDES,
        json="print everything as JSON",
        needs=("p2psim.audit.driver",),
    )


def _audit(asked: argparse.Namespace) -> int:
    """``p2psim audit``."""
    from p2psim.audit.driver import audit

    scenario = load_scenario(asked.scenario, asked)
    found = audit(scenario, asked.samples, asked.gamma, asked.replica, confirm_cells=asked.confirm_cells)
    if asked.json:
        print_json(tree(found))
    else:
        _show(found, scenario.name)
    return 0 if found.stands else 1


def _row(one: "Audited") -> dict[str, Any]:
    """One way of releasing as a line of a table."""
    from p2psim.privacy.shares import UNLIMITED
    from p2psim.scenario.yaml import runs_of

    trial, mode = one.trial, one.mode
    agent = mode.system.agents[0]
    return {
        "cells": ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in runs_of(mode.cells)),
        "agent": agent,
        "agents alike": mode.agents,
        "mechanism": mode.scenario.privacy.mechanism.kind,
        "releases": "any number" if trial.limit == UNLIMITED else trial.limit,
        "audited": trial.audited,
        "moves": trial.moves,
        "claimed ε": trial.epsilon,
        "at δ": trial.delta,
        "ε at least": trial.at_least,
        "p, law": trial.law,
        "p, sharing": None if trial.shared is None else trial.shared.p_value,
        "verdict": "; ".join(trial.faults) or "stands",
    }


def tree(found: "Audit") -> dict[str, Any]:
    """An audit as plain values."""
    return {
        "samples": found.samples,
        "gamma": found.gamma,
        "stands": found.stands,
        "notes": list(found.notes),
        "audited": [
            {
                **_row(one),
                "cells": list(one.mode.cells),
                "made": one.trial.made,
                "largest_loss": one.trial.largest,
                "faults": list(one.trial.faults),
                "sets": [
                    {
                        "canary": found.canary,
                        "threshold": found.threshold,
                        "shown": found.shown,
                        "claimed": found.claimed,
                    }
                    for found in one.trial.findings
                ],
            }
            for one in found.audited
        ],
    }


def _show(found: "Audit", name: str) -> None:
    """Print an audit; notes and refuted claims to standard error."""
    if found.audited:
        print_table([_row(one) for one in found.audited], f"{name}: claims against what runs show")
        print(
            f"{found.samples:,} runs on each of two adjacent data sets and for each canary; budgets scaled so that a "
            f"release has a loss of {found.audited[0].trial.largest:.3g} at most; a right claim is refuted with "
            f"probability {found.gamma:g} at most"
        )
    for note in found.notes:
        complain(f"note: {note}")
    if not found.audited:
        complain("nothing was audited")
    for one in found.audited:
        for fault in one.trial.faults:
            complain(
                f"refuted: agent {one.mode.system.agents[0]} of cell {one.mode.cells[0]}: {_why(one, fault)}"
            )


def _why(one: "Audited", fault: str) -> str:
    """A fault with the numbers that show it."""
    trial = one.trial
    if fault == "more is shown than claimed":
        worst = max(trial.findings, key=lambda found: found.shown - found.claimed)
        return (
            f"{fault}: δ({worst.threshold:.3g}) is at least {worst.shown:.4g}, claimed is {worst.claimed:.4g} "
            f"({worst.canary})"
        )
    if fault == "a record moves more than claimed":
        return f"{fault}: {trial.moves:.4g} times the sensitivity"
    if fault == "more releases than claimed":
        return f"{fault}: {trial.made} or more instead of {trial.limit}"
    if fault == "noise is used twice" and trial.shared is not None:
        return f"{fault}: the signs of two draws agree in {trial.shared.agreement:.1%} of runs"
    return f"{fault}: p = {trial.law:.2g}"
