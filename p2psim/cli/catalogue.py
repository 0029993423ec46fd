"""``p2psim list``, ``schema`` and ``completion``: the names of scenarios and commands, for readers and programs."""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from p2psim.cli.arguments import command, option, templates
from p2psim.core.errors import InputError
from p2psim.core.printing import print_json, print_wrapped, table_rows

#: Meanings begin below each other, but for those of longer names.
_WIDEST_NAME = 24


@command(
    "list",
    "list what a scenario can name, and the shipped scenarios; of one kind, its keys",
    option(
        "word", "only parts that have this word in their name, keys or description", nargs="?", default=""
    ),
    json="print it as JSON",
    needs=("p2psim.scenario.schema",),
)
def list_names(args: argparse.Namespace) -> None:
    """``p2psim list``."""
    from p2psim.scenario.schema import CatalogueEntry, catalogue, keys_of, matching

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
        for key, lines in keys_of(args.word) if args.word else ():
            print(f"\nkeys of {args.word} under {key}{'' if lines else ': none'}")
            for line in lines:
                print_wrapped(f"  {line}", "    ")


@command("schema", "print the JSON Schema of a scenario, for editors", needs=("p2psim.scenario.schema",))
def schema(args: argparse.Namespace) -> None:
    """``p2psim schema``."""
    from p2psim.scenario.schema import json_schema

    print_json(json_schema())


@command(
    "completion",
    "print the code that makes a shell complete commands and options",
    option("shell SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")),
    epilog='bash: eval "$(p2psim completion bash)" in ~/.bashrc. zsh: eval "$(p2psim completion zsh)" in ~/.zshrc. '
    "fish: p2psim completion fish > ~/.config/fish/completions/p2psim.fish",
)
def completion(args: argparse.Namespace) -> None:
    """``p2psim completion``."""
    from argcomplete.shell_integration import shellcode

    code = shellcode(["p2psim"], shell=args.shell)
    # zsh completes nothing by functions before this, which not every ~/.zshrc does.
    start = "whence compdef > /dev/null || { autoload -Uz compinit && compinit -i; }"
    print(code.replace("#compdef p2psim\n", f"#compdef p2psim\n{start}\n") if args.shell == "zsh" else code)


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell, and end, if it is the shell that asks."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        _know_values(parser)
        argcomplete.autocomplete(parser)


def _know_values(parser: argparse.ArgumentParser) -> None:
    """Say of each argument of all commands which values it can have."""
    from argcomplete.completers import DirectoriesCompleter, FilesCompleter

    runs, scenarios = DirectoriesCompleter(), FilesCompleter(("yaml", "yml"))
    tables = FilesCompleter(("csv", "gz", "bz2", "xz", "zip", "parquet", "pq"))
    files = {"run": runs, "other": runs, "scenario": scenarios, "scenarios": scenarios, "file": tables}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _know_values(command)
        elif action.dest in files:
            vars(action)["completer"] = files[action.dest]
        elif action.dest == "name" and not parser.prog.endswith(" fetch"):
            vars(action)["completer"] = lambda **_: []
        elif action.choices is None and action.dest in _NAMES:
            vars(action)["completer"] = partial(_names_of, action.dest)


def _names_of(argument: str, **_: object) -> Iterable[str]:
    return _NAMES[argument]()


def _kinds_of_parts() -> Iterable[str]:
    from p2psim.cli.new import TEMPLATES

    return list(TEMPLATES)


def _catalogued(*keys: str) -> Iterable[str]:
    """Names under some keys of the catalogue, with their meanings; all, without keys."""
    from p2psim.scenario.schema import catalogue

    return {entry.name: entry.meaning for entry in catalogue() if not keys or entry.key in keys}


def _keys_to_set() -> Iterable[str]:
    from p2psim.core.faults import Schemas
    from p2psim.scenario.model import Scenario
    from p2psim.scenario.schema import parts

    schemas = Schemas(Scenario)
    return (
        f"{part.key}.{key}=".removeprefix(".")
        for part in parts(schemas)
        for key in schemas.fields(part.schema)
    )


def _fetched() -> Iterable[str]:
    from p2psim.data.sources.downloaded import DOWNLOADS

    return list(DOWNLOADS)


#: What gives the values of an argument, by its name.
_NAMES: Mapping[str, Callable[[], Iterable[str]]] = {
    "template": templates,
    "part": _kinds_of_parts,
    "word": _catalogued,
    "kind": partial(_catalogued, "figure"),
    "metric": partial(_catalogued, "record.metrics"),
    "accountant": partial(_catalogued, "privacy.accountant"),
    "set": _keys_to_set,
    "name": _fetched,
}
