"""Adds a command to a parser, as all of them are told: a summary in lists, and as a sentence of its own."""

import argparse
from collections.abc import Callable
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


def whole(least: int = 0, most: int = 2**63 - 1) -> Callable[[str], int]:
    """Return what reads a whole number of at least and at most so much from an argument."""

    def read(text: str) -> int:
        try:
            number = int(text) if len(text) <= 20 else None
        except ValueError:
            number = None
        if number is None or not least <= number <= most:
            shown = text if len(text) <= 40 else f"{text[:40]}…"
            upto = f"from {least} to {most}" if most < 2**63 - 1 else f"of at least {least}"
            raise argparse.ArgumentTypeError(f"must be a whole number {upto}, got {shown!r}")
        return number

    return read
