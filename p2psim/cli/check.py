"""``p2psim check``: validate scenarios, and show what running them would mean."""

import argparse

from p2psim.cli.arguments import Commands, add_command, add_overrides, load_scenario, whole
from p2psim.core.errors import InputError
from p2psim.core.printing import print_json


def add(commands: Commands) -> None:
    """Add the command."""
    check = add_command(
        commands,
        "check",
        "validate scenarios, and show what running them would mean",
        _check,
        json="print it as JSON",
        needs=("p2psim.runs.checking", "p2psim.scenario.model"),
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
    add_overrides(check)


def _check(asked: argparse.Namespace) -> int:
    """``p2psim check``."""
    from p2psim.runs.checking import check_scenario

    checked = []
    faults = []
    for path in asked.scenarios:
        try:
            scenario = load_scenario(path, asked)
            checked.append(
                check_scenario(
                    scenario, path, confirm_cells=asked.confirm_cells, pilot=asked.pilot, jobs=asked.jobs
                )
            )
        except InputError as error:
            faults += error.faults
    if asked.json:
        print_json([one.as_tree() for one in checked])
    else:
        for one in checked:
            one.show()
    if faults:
        raise InputError(*faults)
    return 0
