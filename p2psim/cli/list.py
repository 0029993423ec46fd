"""``p2psim list``: what a scenario can name, and the shipped scenarios."""

import argparse

from p2psim.cli.arguments import Commands, add_command, option, templates
from p2psim.core.errors import InputError
from p2psim.core.printing import print_json, print_table


def add(commands: Commands) -> None:
    """Add the command."""
    add_command(
        commands,
        "list",
        "list what a scenario can name, and the shipped scenarios",
        _list,
        option("word", "only what is named so, has such a key, or speaks of it", nargs="?", default=""),
        json="print it as JSON",
        needs=("p2psim.scenario.catalogue",),
    )


def _list(asked: argparse.Namespace) -> int:
    """``p2psim list``."""
    from p2psim.scenario.catalogue import CatalogueEntry, catalogue, matching

    shipped = [CatalogueEntry("(scenario)", name, question) for name, question in templates().items()]
    found = matching([*shipped, *catalogue()], asked.word)
    rows = [{"key": one.key, "name": one.name, "meaning": one.meaning} for one in found]
    if not rows:
        raise InputError(f"nothing that can be named contains {asked.word!r}; p2psim list shows all")
    if asked.json:
        print_json(rows)
    else:
        print_table(rows, most=len(rows))
    return 0
