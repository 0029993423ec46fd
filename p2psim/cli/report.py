"""``p2psim report``: a page of a run, as one HTML file."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from p2psim.cli.arguments import ANY, command, number, option, templates
from p2psim.core.errors import InputError
from p2psim.core.printing import print_json

if TYPE_CHECKING:
    from p2psim.runs.result import Result


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
    _check_place(result, args.out)
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


def _check_place(result: "Result", out: str | None) -> None:
    """Refuse a place that is no file's, or is that of a file of the run."""
    from p2psim.core.faults import path_of
    from p2psim.runs import manifest, store

    if out is None:
        return
    place = path_of("--out", out)
    if place.is_dir():
        raise InputError(f"--out: {out} is a folder; give the name of a file")
    if not place.absolute().parent.is_dir():
        raise InputError(f"--out: there is no folder {place.parent}")
    own = {result.path.resolve() / name for name in (*result.described.files, manifest.NAME, store.LOCK)}
    if place.resolve() in own:
        raise InputError(f"--out: {out} is a file of the run; choose another")
