"""``p2psim plot`` draws the figures of a run, ``p2psim report`` a page of it, as one HTML file."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from p2psim.cli.arguments import ANY, as_given, command, number, option, read_references, templates
from p2psim.core.errors import InputError
from p2psim.core.figures import AGAINST, AGAINST_A_KEY, ALONG_THE_RUN, EVERYTHING, KIND_NAMES
from p2psim.core.printing import print_json

if TYPE_CHECKING:
    from p2psim.runs.result import Result


@command(
    "plot",
    "draw the figures of a run",
    option("run RUN", "a run folder"),
    option(
        "--kind KIND",
        f"{', '.join(KIND_NAMES)}; or one of --parts; may be repeated; {EVERYTHING} for all that the run "
        "can give; by default what the scenario says under figure, or all",
        action="append",
    ),
    option("--metric METRIC", "the metric to draw; every metric by default"),
    option(
        "--against AXIS",
        f"what {', '.join(ALONG_THE_RUN)} are drawn against: {', '.join(AGAINST)}; "
        f"{' and '.join(AGAINST_A_KEY)}: a swept key",
    ),
    option("--facet KEY", "a swept key: a figure for each of its values"),
    option("--agent I", "of collaboration: the owner whose isolated ψ is drawn", whole=ANY),
    option(
        "--quantile",
        "edges of bands and bars over replicas",
        number,
        nargs=2,
        default=(0.25, 0.75),
        metavar=("LOW", "HIGH"),
    ),
    option(
        "--log",
        "log axis for the values; by default the values decide",
        action=argparse.BooleanOptionalAction,
    ),
    option("--title TEXT", "title of the figures"),
    option(
        "--width WIDTH",
        "for print: column (3.4 inches) or page (7 inches); by default for a screen",
        choices=("column", "page"),
    ),
    option(
        "--format FORMAT",
        "png, svg or pdf; may be repeated; png and svg by default; the numbers drawn come beside, as CSV",
        choices=("png", "svg", "pdf"),
        action="append",
    ),
    option("--target X", "of targets: the value of the metric that is to be reached", number),
    option(
        "--reference KEY=VALUE",
        "of paired: a swept key and its value in the cells that all others are compared with; may be repeated",
        repeated=True,
    ),
    option("--out DIR", "folder for the figures; figures in the run folder by default"),
    json="print the names of the files as JSON",
    needs=("p2psim.runs.result",),
)
def plot(args: argparse.Namespace) -> None:
    """``p2psim plot``."""
    from p2psim.runs.result import Result
    from p2psim.runs.unfinished import so_far

    result = so_far(args.run) or Result.load(args.run)
    words = as_given(args, "metric", "against", "target", "facet", "agent", "log", "title", "width")
    words |= {"reference": read_references(args.reference), "quantile": tuple(args.quantile)}
    words |= {"format": args.format} if args.format else {}
    files = result.plot(args.kind, folder=args.out, **words)
    if args.json:
        print_json([str(file) for file in files])
    else:
        print(*files, sep="\n")


@command(
    "report",
    "write a page of a run: results, privacy, agents, and a player of one recorded replica, in one HTML file",
    option("run RUN", "a run folder"),
    option("--cell I", "the cell whose replica is played; the first with events by default", whole=ANY),
    option("--replica R", "the replica that is played; the first one of the cell by default", whole=ANY),
    option("--from T", "play from this simulated time on", number, dest="begin"),
    option("--to T", "play until this simulated time", number, dest="end"),
    option("--verify", "recompute the run as p2psim verify does, and show the result on the page"),
    option("--out FILE", "the file to write; report.html in the run folder by default"),
    json="print the file's name and size as JSON",
    needs=("p2psim.runs.result",),
)
def report(args: argparse.Namespace) -> None:
    """``p2psim report``."""
    from p2psim.cli.verify import verify_and_keep
    from p2psim.report.page import write_page
    from p2psim.runs.result import Result

    result = Result.load(args.run)
    _check_place(result, args.out)
    out = None if args.out is None else Path(args.out)
    checked = verify_and_keep(result) if args.verify else None
    question = templates().get(result.described.name.replace("-", "_"), "")
    played = as_given(args, "cell", "replica", "begin", "end")
    path = write_page(result, out, question=question, checked=checked, **played)
    if args.json:
        print_json({"file": str(path), "bytes": path.stat().st_size})
    else:
        print(path)


def _check_place(result: "Result", out: str | None) -> None:
    """Refuse a place that is no file's, or is that of a file of the run."""
    from p2psim.core.files import path_of
    from p2psim.runs import manifest, store

    if out is None:
        return
    place = path_of("--out", out)
    if place.is_dir():
        raise InputError(f"--out: {out} is a folder; give the name of a file")
    if not place.absolute().parent.is_dir():
        raise InputError(f"--out: there is no folder {place.parent}")
    own = {
        result.path.resolve() / name
        for name in (*result.described.files, manifest.NAME, store.VERDICT, store.LOCK)
    }
    if place.resolve() in own:
        raise InputError(f"--out: {out} is a file of the run; choose another")
