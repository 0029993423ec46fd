"""``p2psim check``: validate scenarios, and show what running them would mean."""

import argparse

from p2psim.cli.arguments import OVERRIDES, as_given, command, load_scenario, option
from p2psim.core.errors import InputError
from p2psim.core.printing import print_json


@command(
    "check",
    "validate scenarios, and show what running them would mean",
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

    reports, faults = [], []
    for path in args.scenarios:
        try:
            scenario = load_scenario(path, args)
            options = as_given(args, "confirm_cells", "pilot", "jobs")
            reports.append(check_scenario(scenario, path, **options))
        except InputError as error:
            faults += error.faults
    if args.json:
        print_json([report.as_tree() for report in reports])
    else:
        for report in reports:
            report.show()
    if faults:
        raise InputError(*faults)
