"""``p2psim verify``: recompute recorded runs, and show what differs."""

import argparse
from typing import TYPE_CHECKING

from p2psim.cli.arguments import command, option
from p2psim.core.errors import FolderError
from p2psim.core.printing import complain, print_json, print_table, table_rows

if TYPE_CHECKING:
    from p2psim.runs.result import Result
    from p2psim.runs.verification import ReplicaCheck


@command(
    "verify",
    "recompute recorded runs with the plain reference",
    option("run RUN", "a run folder, recorded with events: true"),
    json="print the differences as JSON",
    needs=("p2psim.runs.result",),
)
def verify(args: argparse.Namespace) -> int:
    """``p2psim verify``."""
    from p2psim.runs.result import Result
    from p2psim.runs.verification import damaged_files
    from p2psim.simulation.check import TOLERANCE

    result = Result.load(args.run)
    checked, damaged = verify_and_keep(result), damaged_files(result)
    rows = table_rows(
        ("cell", "replica", "events", "largest", "verdict", "rounding amplified", "fault"),
        ((c.cell, c.replica, c.events, c.largest, c.verdict, c.amplified, c.fault) for c in checked),
    )
    wrong = [row for row in rows if row["verdict"] == "wrong"]
    unclear = [row for row in rows if row["verdict"] == "not comparable"]
    largest = max((row["largest"] for row in rows if row not in unclear), default=0.0)
    if damaged and not wrong:
        raise FolderError(*damaged)
    for line in damaged:
        complain(line, "damaged")
    if args.json:
        verdicts = {"wrong": len(wrong), "not_comparable": len(unclear), "damaged": damaged}
        print_json({"largest": largest, "tolerance": TOLERANCE, "checked": rows, **verdicts})
        return 1 if wrong else 0
    print_table([{key: row[key] for key in row if key != "verdict"} for row in wrong], "beyond the tolerance")
    shown = ("cell", "replica", "largest", "rounding amplified")
    print_table(
        [{key: row[key] for key in shown} for row in unclear],
        "not comparable: an unstable step amplifies rounding, so that two reference replays differ as well",
    )
    print(
        f"{len(rows)} simulations recomputed"
        f"{f', {len(unclear)} of them not comparable' if unclear else ''}; "
        f"largest relative difference {'of the others ' if unclear else ''}{largest:.3g} "
        f"(up to {TOLERANCE:g} is right)"
    )
    if result.scenario_tree.get("tune"):
        print("the validation study was recomputed too, and gives the tuned values")
    return 1 if wrong else 0


def verify_and_keep(result: "Result") -> "list[ReplicaCheck]":
    """Verify a run, and leave the verdict in its folder, if that can be written to and its files are whole."""
    from p2psim.runs import verdict
    from p2psim.runs.verification import damaged_files, verify_result

    # A verification that does not end leaves no verdict.
    verdict.forget(result)
    checked = verify_result(result)
    if damaged_files(result):
        return checked
    try:
        verdict.keep(result, verdict.verdict_of(result, checked))
    except OSError as error:
        complain(f"{result.path}: the verdict cannot be written there ({error.strerror})", "note")
    return checked
