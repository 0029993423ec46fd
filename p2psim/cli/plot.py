"""``p2psim plot``: draw the figures of a run."""

import argparse

from p2psim.cli.arguments import ANY, as_given, command, number, option, read_references
from p2psim.core.figure_names import AGAINST, AGAINST_A_KEY, ALONG_THE_RUN, EVERYTHING, KIND_NAMES
from p2psim.core.printing import print_json


@command(
    "plot",
    "draw the figures of a run",
    option("run RUN", "a run folder"),
    option(
        "--kind KIND",
        f"{', '.join(KIND_NAMES)}; or one of --parts; may be given again; {EVERYTHING} for all that the run "
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
    option("--log", "log axis for the values; by default they decide", action=argparse.BooleanOptionalAction),
    option("--title TEXT", "title of the figures"),
    option(
        "--width WIDTH",
        "for print: column (3.4 inches) or page (7 inches); by default for a screen",
        choices=("column", "page"),
    ),
    option(
        "--format FORMAT",
        "png, svg or pdf; may be given again; png and svg by default; the numbers drawn come beside, as CSV",
        choices=("png", "svg", "pdf"),
        action="append",
    ),
    option("--target X", "of targets: the value of the metric that is to be reached", number),
    option(
        "--reference KEY=VALUE",
        "of paired: a swept key and its value in the cells that all others are compared with; may be given again",
        repeated=True,
    ),
    option("--out DIR", "where to; figures in the run folder by default"),
    json="print the names of the files as JSON",
    needs=("p2psim.runs.result",),
)
def plot(args: argparse.Namespace) -> None:
    """``p2psim plot``."""
    from p2psim.runs.result import Result
    from p2psim.runs.unfinished import so_far

    files = (so_far(args.run) or Result.load(args.run)).plot(
        args.kind,
        folder=args.out,
        reference=read_references(args.reference),
        quantile=tuple(args.quantile),
        **as_given(args, "metric", "against", "target", "facet", "agent", "log", "title", "width"),
        **({"format": args.format} if args.format else {}),
    )
    if args.json:
        print_json([str(file) for file in files])
    else:
        print(*files, sep="\n")
