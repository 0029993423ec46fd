"""Arguments of the command ``p2psim``; nothing heavy is imported for them."""

import argparse
from collections.abc import Iterator

from p2psim.cli.subcommands import ANY, Commands, add_command, number, whole
from p2psim.core import __version__
from p2psim.core.figure_names import AGAINST, AGAINST_A_KEY, ALONG_THE_RUN, EVERYTHING, KIND_NAMES


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="p2psim",
        description="Simulate private, asynchronous and decentralised machine learning.",
        epilog="Exit codes: 0 done; 1 a run failed (what was finished is kept); 2 bad input (nothing was "
        "written); 130 interrupted (what was finished is kept).",
    )
    top.add_argument("--version", action="version", version=f"p2psim {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_run(commands)
    _add_check(commands)
    _add_plot(commands)
    _add_verify(commands)
    _add_audit(commands)
    _add_forecast(commands)
    _add_account(commands)
    _add_compare(commands)
    _add_data(commands)
    _add_language(commands)
    for command in _commands_of(top):
        command.add_argument(
            "--parts",
            metavar="MODULE",
            action="append",
            default=[],
            help="import this Python module and let the input name what it defines; may be given again",
        )
    return top


def _commands_of(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers of all commands, those inside others included."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield parser
    for group in groups:
        for command in group.choices.values():
            yield from _commands_of(command)


def _add_overrides(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="set a dotted key to a YAML value; may be given again",
    )
    command.add_argument("--replicas", type=whole("--replicas", 1), metavar="R", help="number of replicas")
    command.add_argument("--seed", type=whole("--seed", -(2**63) + 1), metavar="S", help="seed of the study")
    command.add_argument("--engine", choices=("auto", "simpy", "array"), help="what makes the events")
    command.add_argument(
        "--confirm-cells", action="store_true", help="accept a study of any size: cells, memory and time"
    )


def _add_run(commands: Commands) -> None:
    run = add_command(
        commands, "run", "run every cell and replica into a run folder", "print the results as JSON"
    )
    run.add_argument("scenario", metavar="SCENARIO", help="a scenario file")
    run.add_argument("--out", metavar="DIR", help="the run folder; runs/NAME by default")
    _add_overrides(run)
    run.add_argument(
        "--jobs",
        type=whole("--jobs", 1, 10_000),
        metavar="N",
        help="number of processes; by default one a core if worth it",
    )
    run.add_argument("--executor", choices=("local", "dask"), default="local", help="who does the work")
    run.add_argument(
        "--scheduler", metavar="ADDRESS", help="of the Dask scheduler; without it a cluster is started here"
    )
    run.add_argument("--overwrite", action="store_true", help="replace the results that the folder holds")
    run.add_argument("--check-events", action="store_true", help="check the invariants of every event stream")
    run.add_argument(
        "--cell", type=whole("--cell", *ANY), metavar="I", help="run this cell alone (with --replica)"
    )
    run.add_argument(
        "--replica", type=whole("--replica", *ANY), metavar="R", help="run this replica alone (with --cell)"
    )
    run.add_argument(
        "--progress",
        choices=("bar", "json", "none"),
        default="bar",
        help="on standard error: a bar, if that is a terminal; a JSON object a line; or nothing",
    )
    run.add_argument("--quiet", action="store_true", help="no progress and no notices; warnings stay")


def _add_check(commands: Commands) -> None:
    check = add_command(
        commands, "check", "validate scenarios, and show what running them would mean", "print it as JSON"
    )
    check.add_argument("scenarios", metavar="SCENARIO", nargs="+", help="scenario files")
    check.add_argument(
        "--no-pilot",
        dest="pilot",
        action="store_false",
        help="do not simulate for a second to tell how long all takes",
    )
    check.add_argument(
        "--jobs",
        type=whole("--jobs", 1, 10_000),
        metavar="N",
        help="processes to tell the time for; one a core by default",
    )
    _add_overrides(check)


def _add_plot(commands: Commands) -> None:
    plot = add_command(commands, "plot", "draw the figures of a run", "print the names of the files as JSON")
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


def _add_verify(commands: Commands) -> None:
    verify = add_command(
        commands,
        "verify",
        "recompute recorded runs with the plain reference",
        "print the differences as JSON",
    )
    verify.add_argument("run", metavar="RUN", help="a run folder, recorded with events: true")


def _add_audit(commands: Commands) -> None:
    audit = add_command(
        commands,
        "audit",
        "run mechanisms as configured on worst-case adjacent data, and hold what they show to their claims",
        "print everything as JSON",
    )
    audit.add_argument("scenario", metavar="SCENARIO", help="a scenario file")
    audit.add_argument(
        "--samples",
        type=whole("--samples", 100),
        default=10_000,
        metavar="N",
        help="runs on each data set; 10,000 by default",
    )
    audit.add_argument(
        "--gamma",
        type=number,
        default=1e-6,
        metavar="G",
        help="probability that a right claim is refuted, at most; 1e-6 by default",
    )
    audit.add_argument(
        "--replica",
        type=whole("--replica", *ANY),
        default=0,
        metavar="R",
        help="whose graph and data these are; 0 by default",
    )
    _add_overrides(audit)


def _add_forecast(commands: Commands) -> None:
    from p2psim.cli.forecast import add_forecast

    forecast = add_command(
        commands,
        "forecast",
        "say what runs will reach without running them, and whom it pays to join",
        "print everything as JSON",
    )
    add_forecast(forecast)
    _add_overrides(forecast)


def _add_compare(commands: Commands) -> None:
    compare = add_command(
        commands,
        "compare",
        "differences between two runs, or from a reference cell of one, with intervals",
        "print the differences as JSON",
    )
    compare.add_argument("run", metavar="RUN_A", help="a run folder")
    compare.add_argument("other", metavar="RUN_B", nargs="?", help="the run folder to compare it with")
    compare.add_argument(
        "--reference",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="instead of RUN_B: compare the cells of RUN_A with those that have this value of a swept key",
    )
    compare.add_argument("--metric", help="the only metric to compare")
    compare.add_argument("--confidence", type=number, default=0.95, help="of each interval; .95 by default")


def _add_account(commands: Commands) -> None:
    from p2psim.cli.account.arguments import add_account

    add_account(
        add_command(commands, "account", "privacy calculator: what releases cost, and who learns what")
    )


def _add_data(commands: Commands) -> None:
    data = add_command(commands, "data", "list data sources, and fetch one")
    actions = data.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_command(actions, "list", "list sources, their licences and whether they are here", "print it as JSON")
    fetch = add_command(actions, "fetch", "get a data set, after showing its licence and size")
    fetch.add_argument("name", metavar="NAME", help="a source; see p2psim data list")
    fetch.add_argument("--yes", action="store_true", help="accept its licence and size without being asked")


def _add_language(commands: Commands) -> None:
    new = add_command(commands, "new", "start a scenario from a shipped one, or a part of your own")
    new.add_argument("name", metavar="NAME", help="the file becomes NAME.yaml; of a part NAME.py")
    new.add_argument(
        "--part",
        metavar="KIND",
        help="write a part of this kind that works, and its test: topology, loss, exchange, …",
    )
    new.add_argument(
        "--from", dest="template", metavar="TEMPLATE", default="three_banks", help="see p2psim list"
    )
    known = add_command(
        commands, "list", "list what a scenario can name, and the shipped scenarios", "print it as JSON"
    )
    known.add_argument(
        "word", nargs="?", default="", help="only what is named so, has such a key, or speaks of it"
    )
    add_command(commands, "schema", "print the JSON Schema of a scenario, for editors")
