"""``p2psim run`` runs every cell and replica of a scenario into a run folder; ``p2psim check`` says what that costs."""

import argparse
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from p2psim.cli.arguments import ANY, OVERRIDES, as_given, command, load_scenario, option
from p2psim.cli.show import notes_on, print_result
from p2psim.core.errors import InputError
from p2psim.core.printing import complain, print_json

if TYPE_CHECKING:
    from p2psim.runs.result import Result
    from p2psim.scenario.model import Scenario


#: Options that are handed on as they are given.
_AS_GIVEN = ("jobs", "overwrite", "executor", "scheduler", "check_events", "confirm_cells", "arguments")


@command(
    "run",
    "run every cell and replica into a run folder",
    option("scenario SCENARIO", "a scenario file"),
    option("--out DIR", "the run folder; runs/NAME by default"),
    *OVERRIDES,
    option("--jobs N", "number of processes; by default one per core where it pays", whole=(1, 10_000)),
    option("--executor", "where simulations run", choices=("local", "dask"), default="local"),
    option("--scheduler ADDRESS", "of the Dask scheduler; without it a cluster is started here"),
    option("--overwrite", "replace the results that the folder holds"),
    option("--check-events", "check the invariants of every event stream"),
    option("--cell I", "run this cell alone (with --replica)", whole=ANY),
    option("--replica R", "run this replica alone (with --cell)", whole=ANY),
    option(
        "--progress",
        "on standard error: a bar, if that is a terminal; one JSON object per line; or nothing",
        choices=("bar", "json", "none"),
        default="bar",
    ),
    option("--quiet", "no progress and no notices; warnings stay"),
    json="print the results as JSON",
    needs=("p2psim.runs.runner", "p2psim.runs.result", "p2psim.simulation.simulate"),
)
def run(args: argparse.Namespace) -> None:
    """``p2psim run``."""
    from p2psim.core.files import is_compiled
    from p2psim.runs.runner import run
    from p2psim.scenario.notices import is_repeated

    if (args.cell is None) != (args.replica is None):
        raise InputError("--cell and --replica must be given together")
    lines = args.progress == "json"
    scenario = load_scenario(args.scenario, args)
    if not args.quiet and not is_compiled():
        complain("compiling the kernels, once; later runs take them from the cache", as_line=lines)
    shown: set[str] = set()

    def tell(warning: str) -> None:
        shown.add(warning)
        complain(warning, "warning", lines)

    only = None if args.cell is None else (args.cell, args.replica)
    given = as_given(args, *_AS_GIVEN) | {"progress": "none" if args.quiet else args.progress}
    result = run(scenario, args.out, only=only, tell=tell, **given)
    asked = scenario if scenario.tune is None else result.scenario
    notes = [] if args.cell is not None else _beside_what_was_asked(result, asked)
    for warning in result.warnings:
        if not is_repeated(warning, shown):
            complain(warning, "warning", lines)
    # Of many cells the sweep would take long to read from the folder again, and nothing depends on it.
    tree = asked.model_copy(update={"sweep": {}}).resolved()
    _show_result(result, args.json, notes, tree)


def _beside_what_was_asked(result: "Result", scenario: "Scenario") -> list[str]:
    """What the run folder, and so the table, holds beside what was asked for."""
    from p2psim.runs.describing import stop_notes
    from p2psim.scenario.cells import cells
    from p2psim.scenario.record import most
    from p2psim.scenario.yaml import cells_named

    described = result.described
    wanted = {cell.content for cell in cells(scenario, confirm_cells=True)}
    earlier = [number for number, cell in enumerate(described.cells) if cell.content not in wanted]
    held = Counter(content for content, _ in described.runs if content in wanted)
    notes = list(stop_notes(described.cells))
    if held and max(held.values()) > most(scenario.replicas):
        replicas = f"{max(held.values())} replicas held, {most(scenario.replicas)} asked for"
        notes.append(
            f"{replicas}: the table covers all replicas in the folder; choose another --out for fewer"
        )
    if earlier:
        notes.append(f"{cells_named(earlier)}: from an earlier sweep, not from this one")
    return notes


def _show_result(result: "Result", as_json: bool, notes: Sequence[str], scenario: Mapping[str, Any]) -> None:
    """A short table of results with its flags and notes, and where they are."""
    from p2psim.runs.summary import rows_of

    rows = rows_of(result)
    if as_json:
        tree = {"folder": str(result.path), "table": rows, "warnings": result.manifest["warnings"]}
        print_json({**tree, "notes": [*notes, *notes_on(result, rows, scenario)]})
        return
    print_result(result, rows, notes, scenario=scenario)
    print(f"results: {result.path} (metrics.parquet, ledger.parquet, …); figures: p2psim plot {result.path}")


@command(
    "check",
    "validate scenarios, and show what their runs would cost",
    option("scenarios SCENARIO", "scenario files", nargs="+"),
    option(
        "--no-pilot",
        "do not simulate for a second to estimate the time",
        dest="pilot",
        action="store_false",
    ),
    option(
        "--jobs N", "processes that the time is estimated for; one per core by default", whole=(1, 10_000)
    ),
    *OVERRIDES,
    json="print it as JSON",
    needs=("p2psim.runs.checking", "p2psim.scenario.model"),
)
def check(args: argparse.Namespace) -> None:
    """``p2psim check``."""
    from p2psim.runs.checking import check_scenario

    # A run starts as this command does.
    reports, faults, start = [], [], time.process_time()
    for path in args.scenarios:
        began = time.perf_counter()
        try:
            scenario = load_scenario(path, args)
            options = as_given(args, "confirm_cells", "pilot", "jobs")
            started = start + time.perf_counter() - began
            reports.append(check_scenario(scenario, path, started=started, **options))
        except InputError as error:
            faults += error.faults
    if args.json:
        print_json([report.as_tree() for report in reports])
    else:
        for report in reports:
            report.show()
    if faults:
        raise InputError(*faults)
