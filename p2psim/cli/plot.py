"""``p2psim plot``: draw the figures of a run."""

import argparse

from p2psim.cli.arguments import ANY, Commands, add_command, number, read_references, whole
from p2psim.core.figure_names import AGAINST, AGAINST_A_KEY, ALONG_THE_RUN, EVERYTHING, KIND_NAMES
from p2psim.core.printing import print_json


def add(commands: Commands) -> None:
    """Add the command."""
    plot = add_command(
        commands,
        "plot",
        "draw the figures of a run",
        _plot,
        json="print the names of the files as JSON",
        needs=("p2psim.runs.result",),
    )
    plot.add_argument("run", metavar="RUN", help="a run folder")
    plot.add_argument(
        "--kind",
        action="append",
        metavar="KIND",
        help=f"{', '.join(KIND_NAMES)}; or one of --parts; may be given again; {EVERYTHING} for all that the run "
        "can give; by default what the scenario says under figure, or all",
    )
    plot.add_argument("--metric", help="the metric to draw; every metric by default")
    plot.add_argument(
        "--against",
        metavar="AXIS",
        help=f"what {', '.join(ALONG_THE_RUN)} are drawn against: {', '.join(AGAINST)}; "
        f"{' and '.join(AGAINST_A_KEY)}: a swept key",
    )
    plot.add_argument("--facet", metavar="KEY", help="a swept key: a figure for each of its values")
    plot.add_argument(
        "--agent",
        type=whole("--agent", *ANY),
        metavar="I",
        help="of collaboration: the owner whose isolated ψ is drawn",
    )
    plot.add_argument(
        "--quantile",
        nargs=2,
        type=number,
        default=(0.25, 0.75),
        metavar=("LOW", "HIGH"),
        help="edges of bands and bars over replicas",
    )
    plot.add_argument(
        "--log", action=argparse.BooleanOptionalAction, help="log axis for the values; by default they decide"
    )
    plot.add_argument("--title", metavar="TEXT", help="title of the figures")
    plot.add_argument(
        "--target", type=number, metavar="X", help="of targets: the value of the metric that is to be reached"
    )
    plot.add_argument(
        "--reference",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="of paired: a swept key and its value in the cells that all others are compared with; may be given again",
    )
    plot.add_argument("--out", metavar="DIR", help="where to; figures in the run folder by default")


def _plot(asked: argparse.Namespace) -> int:
    """``p2psim plot``."""
    from p2psim.runs.result import Result

    files = Result.load(asked.run).plot(
        asked.kind,
        metric=asked.metric,
        folder=asked.out,
        against=asked.against,
        target=asked.target,
        reference=read_references(asked.reference),
        facet=asked.facet,
        agent=asked.agent,
        quantile=tuple(asked.quantile),
        log=asked.log,
        title=asked.title,
    )
    if asked.json:
        print_json([str(file) for file in files])
    else:
        print(*files, sep="\n")
    return 0
