"""``p2psim list``, ``schema`` and ``completion``: the names of scenarios and commands, for readers and programs."""

import argparse
import os

from p2psim.cli.arguments import command, option, templates
from p2psim.core.errors import InputError
from p2psim.core.printing import print_json, print_wrapped, table_rows

#: Meanings begin below each other, but for those of longer names.
_WIDEST_NAME = 24


@command(
    "list",
    "list what a scenario can name, and the shipped scenarios",
    option(
        "word", "only parts that have this word in their name, keys or description", nargs="?", default=""
    ),
    json="print it as JSON",
    needs=("p2psim.scenario.schema",),
)
def list_names(args: argparse.Namespace) -> None:
    """``p2psim list``."""
    from p2psim.scenario.schema import CatalogueEntry, catalogue, matching

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


@command(
    "completion",
    "print the code that makes a shell complete commands and options",
    option("shell SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")),
    epilog='bash and zsh: eval "$(p2psim completion bash)" in ~/.bashrc or ~/.zshrc. '
    "fish: p2psim completion fish > ~/.config/fish/completions/p2psim.fish",
)
def completion(args: argparse.Namespace) -> None:
    """``p2psim completion``."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["p2psim"], shell=args.shell))


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell, and end, if it is the shell that asks."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)
