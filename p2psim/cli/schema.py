"""``p2psim schema``: print the JSON Schema of a scenario, for editors."""

import argparse

from p2psim.cli.arguments import Commands, add_command
from p2psim.core.printing import print_json


def add(commands: Commands) -> None:
    """Add the command."""
    add_command(
        commands,
        "schema",
        "print the JSON Schema of a scenario, for editors",
        _schema,
        needs=("p2psim.scenario.schema",),
    )


def _schema(asked: argparse.Namespace) -> int:
    """``p2psim schema``."""
    from p2psim.scenario.schema import json_schema

    print_json(json_schema())
    return 0
