"""``p2psim list`` and ``p2psim schema``: what a scenario can hold, for readers and for editors."""

import argparse

from p2psim.cli.arguments import command, option, templates
from p2psim.core.errors import InputError
from p2psim.core.printing import print_json, print_wrapped, table_rows

#: Meanings begin below each other, but for those of longer names.
_WIDEST_NAME = 24


@command(
    "list",
    "list what a scenario can name, and the shipped scenarios",
    option("word", "only what is named so, has such a key, or speaks of it", nargs="?", default=""),
    json="print it as JSON",
    needs=("p2psim.scenario.catalogue",),
)
def list_names(args: argparse.Namespace) -> None:
    """``p2psim list``."""
    from p2psim.scenario.catalogue import CatalogueEntry, catalogue, matching

    shipped = [CatalogueEntry("(shipped scenario)", name, question) for name, question in templates().items()]
    entries = matching([*shipped, *catalogue()], args.word)
    rows = table_rows(("key", "name", "meaning"), ((e.key, e.name, e.meaning) for e in entries))
    if not rows:
        raise InputError(f"nothing that can be named contains {args.word!r}; p2psim list shows all")
    if args.json:
        print_json(rows)
    else:
        groups: dict[str, list[CatalogueEntry]] = {}
        for entry in entries:
            groups.setdefault(entry.key, []).append(entry)
        for number, (key, named) in enumerate(groups.items()):
            print(f"{'' if not number else chr(10)}{key}")
            widest = min(max(len(entry.name) for entry in named), _WIDEST_NAME)
            for entry in named:
                print_wrapped(f"  {entry.name:{widest}}  {entry.meaning}".rstrip(), " " * (widest + 4))


@command("schema", "print the JSON Schema of a scenario, for editors", needs=("p2psim.scenario.schema",))
def schema(args: argparse.Namespace) -> None:
    """``p2psim schema``."""
    from p2psim.scenario.schema import json_schema

    print_json(json_schema())
