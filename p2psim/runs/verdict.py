"""The verdict of a verification, which stays in the run folder and holds as long as its files are those verified."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from p2psim.core import __version__
from p2psim.core.errors import InputError
from p2psim.core.files import write_text
from p2psim.core.printing import counted
from p2psim.runs.result import Result
from p2psim.runs.seals import DamagedError, opened, sealed
from p2psim.runs.store import TUNING, VERDICT

if TYPE_CHECKING:
    from p2psim.runs.verification import ReplicaCheck


def verdict_of(result: Result, checks: "Sequence[ReplicaCheck]") -> dict[str, Any]:
    """Plain values of a verdict: what was verified, by which version, and what that showed.

    It has no date, so that verifying the same files again gives the same bytes.
    """
    from p2psim.simulation.check import TOLERANCE

    wrong = [check for check in checks if check.verdict == "wrong"]
    right = [check.largest for check in checks if check.verdict == "right"]
    return {
        "p2psim": __version__,
        "verdict": "wrong" if wrong else "right" if right or not checks else "not comparable",
        "simulations": len(checks),
        "not_comparable": sum(check.verdict == "not comparable" for check in checks),
        "wrong": [{"cell": one.cell, "replica": one.replica, "fault": one.fault} for one in wrong],
        "largest": max(right, default=0.0),
        "tolerance": TOLERANCE,
        "files": _files(_studies(result)),
    }


def _studies(result: Result) -> dict[str, Result]:
    """The run, and the validation study inside it that chose a tuned value."""
    inner = result.path / TUNING
    return {"": result} | ({f"{TUNING}/": Result.load(inner)} if os.path.lexists(inner) else {})


def _files(studies: dict[str, Result]) -> dict[str, str]:
    return {
        f"{place}{name}": sha
        for place, study in studies.items()
        for name, (_, sha) in sorted(study.described.files.items())
    }


def keep(result: Result, verdict: dict[str, Any]) -> None:
    """Write a verdict into the run folder; an OSError where nothing can be written there."""
    write_text(result.path / VERDICT, sealed(json.dumps(verdict, indent=2, ensure_ascii=False)))


def forget(result: Result) -> None:
    """Remove an earlier verdict, as far as the folder allows it: a verification that does not end leaves none."""
    with suppress(OSError):
        (result.path / VERDICT).unlink()


def kept(result: Result) -> dict[str, Any] | None:
    """Read the verdict in a run folder; None without one.

    It has the entry ``stale`` where a file is not the one that was verified, or the verdict itself is damaged.
    """
    path = result.path / VERDICT
    if not path.is_file():  # nobody opens a pipe
        return None
    try:
        with opened(path) as verdict:
            studies = _studies(result)
            same = "sha256" in verdict and verdict["files"] == _files(studies)
            stale = not same or any(
                study.fault(name) for study in studies.values() for name in study.described.files
            )
            said(verdict)  # takes every entry that it needs
            return verdict | {"stale": True} if stale else verdict
    except (OSError, DamagedError, InputError):
        return {"stale": True}


def said(verdict: dict[str, Any]) -> str:
    """A verdict in one sentence."""
    if verdict.get("stale"):
        return "p2psim verify ran on other files than those that are here; its verdict does not hold for them"
    by, of = f"p2psim verify ({verdict['p2psim']})", counted(verdict["simulations"], "simulation")
    if faults := [_fault(one) for one in verdict["wrong"]]:
        more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
        return f"{by} recomputed {of}, {len(faults)} of them wrong: {'; '.join(faults[:3])}{more}"
    unclear = verdict["not_comparable"]
    if unclear == verdict["simulations"] > 0:
        return f"{by} recomputed {of} from their events; none is comparable, since rounding is amplified"
    rest = f"; {unclear} are not comparable, since rounding is amplified" if unclear else ""
    largest = f"largest relative difference {verdict['largest']:.3g}"
    return f"{by} recomputed {of} from their events; {largest}, up to {verdict['tolerance']:g} is right{rest}"


def _fault(one: dict[str, Any]) -> str:
    what = f": {one['fault']}" if one["fault"] else ""
    return f"cell {one['cell']}, replica {one['replica']}{what}"
