"""``p2psim report``: a page of a run, as one HTML file."""

import argparse
from pathlib import Path

from p2psim.cli.arguments import ANY, command, number, option, templates
from p2psim.core.printing import print_json


@command(
    "report",
    "write a page of a run: results, privacy, agents, and a player of one recorded replica, in one HTML file",
    option("run RUN", "a run folder"),
    option("--cell I", "the cell whose replica is played; 0 by default", whole=ANY, default=0),
    option("--replica R", "the replica that is played; the first one of the cell by default", whole=ANY),
    option("--from T", "play from this simulated time on", number, dest="begin"),
    option("--to T", "play until this simulated time", number, dest="end"),
    option("--verify", "recompute the run as p2psim verify does, and show the result on the page"),
    option("--out FILE", "where to; report.html in the run folder by default"),
    json="print the file's name and size as JSON",
    needs=("p2psim.runs.result",),
)
def report(args: argparse.Namespace) -> None:
    """``p2psim report``."""
    from p2psim.report.page import write_page
    from p2psim.runs.result import Result
    from p2psim.runs.verification import verify_result

    result = Result.load(args.run)
    path = write_page(
        result,
        None if args.out is None else Path(args.out),
        cell=args.cell,
        replica=args.replica,
        begin=args.begin,
        end=args.end,
        question=templates().get(result.described.name.replace("-", "_"), ""),
        checked=verify_result(result) if args.verify else None,
    )
    if args.json:
        print_json({"file": str(path), "bytes": path.stat().st_size})
    else:
        print(path)
