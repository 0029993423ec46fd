"""``p2psim check``: validate scenarios, and show what running them would mean."""

import argparse

from p2psim.cli.arguments import OVERRIDES, Commands, add_command, load_scenario, option
from p2psim.core.errors import InputError
from p2psim.core.printing import print_json


def add(commands: Commands) -> None:
    """Add the command."""
    add_command(
        commands,
        "check",
        "validate scenarios, and show what running them would mean",
        _check,
        option("scenarios SCENARIO", "scenario files", nargs="+"),
        option(
            "--no-pilot",
            "do not simulate for a second to tell how long all takes",
            dest="pilot",
            action="store_false",
        ),
        option("--jobs N", "processes to tell the time for; one a core by default", whole=(1, 10_000)),
        *OVERRIDES,
        json="print it as JSON",
        needs=("p2psim.runs.checking", "p2psim.scenario.model"),
    )


def _check(args: argparse.Namespace) -> int:
    """``p2psim check``."""
    from p2psim.runs.checking import check_scenario

    checked = []
    faults = []
    for path in args.scenarios:
        try:
            scenario = load_scenario(path, args)
            checked.append(
                check_scenario(
                    scenario, path, confirm_cells=args.confirm_cells, pilot=args.pilot, jobs=args.jobs
                )
            )
        except InputError as error:
            faults += error.faults
    if args.json:
        print_json([one.as_tree() for one in checked])
    else:
        for one in checked:
            one.show()
    if faults:
        raise InputError(*faults)
    return 0
