"""Shows what an audit found: a table for a person, and everything as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from p2psim.audit.driver import Audit, Audited
from p2psim.core.printing import complain, print_table
from p2psim.privacy.shares import UNLIMITED


def row(one: Audited) -> dict[str, Any]:
    """One way of releasing as a line of a table."""
    trial, way = one.trial, one.way
    agent = way.arena.agents[0]
    return {
        "cells": _ranges(way.cells),
        "agent": agent,
        "agents alike": way.agents,
        "mechanism": way.scenario.privacy.mechanism.kind,
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


def tree(found: Audit) -> dict[str, Any]:
    """An audit as plain values."""
    return {
        "samples": found.samples,
        "gamma": found.gamma,
        "stands": found.stands,
        "notes": list(found.notes),
        "audited": [
            {
                **row(one),
                "cells": list(one.way.cells),
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


def show(found: Audit, name: str) -> None:
    """Print an audit; notes and refuted claims to standard error."""
    if found.audited:
        print_table([row(one) for one in found.audited], f"{name}: claims against what runs show")
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
                f"refuted: agent {one.way.arena.agents[0]} of cell {one.way.cells[0]}: {_why(one, fault)}"
            )


def _why(one: Audited, fault: str) -> str:
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


def _ranges(numbers: Sequence[int]) -> str:
    """Whole numbers in rising order, with runs of them as first–last."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in runs)
