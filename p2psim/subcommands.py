"""Adds a command to a parser, as all of them are told: a summary in lists, and as a sentence of its own."""

import argparse
from typing import TypeAlias

#: Parsers of commands are added to this.
Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(
    commands: Commands, name: str, summary: str, json: str = "", epilog: str = ""
) -> argparse.ArgumentParser:
    """Add a command, with an option ``--json`` where it is said what that does."""
    added: argparse.ArgumentParser = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", epilog=epilog
    )
    if json:
        added.add_argument("--json", action="store_true", help=json)
    return added
