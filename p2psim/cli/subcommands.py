"""Adds a command to a parser, as all of them are told: a summary in lists, and as a sentence of its own."""

import argparse
from collections.abc import Callable
from typing import TypeAlias

from p2psim.core.decimals import BeyondFloatError, decimal
from p2psim.core.errors import InputError

#: Limits of numbers of cells, replicas and agents: they are checked where it is known how many there are.
ANY = -(10**101), 10**101

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


def number(text: str) -> float:
    """Read an option's argument as a number that a float can hold."""
    try:
        return decimal(text)
    except BeyondFloatError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except ValueError:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise argparse.ArgumentTypeError(f"must be a number, got {shown!r}") from None


def whole(option: str, least: int = 0, most: int = 2**63 - 1) -> Callable[[str], int]:
    """Return what reads a whole number within limits as an option's argument."""

    def read(text: str) -> int:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        try:
            # Python refuses to read thousands of digits; all numbers of a hundred are too large.
            number = int(f"{text[:100]}{'0' * text[100:].isdigit()}")
        except ValueError:
            raise argparse.ArgumentTypeError(f"must be a whole number, got {shown!r}") from None
        if not least <= number <= most:
            limit = f"at least {least}" if number < least else f"at most {most}"
            raise InputError(f"{option}: must be {limit}, got {shown}")
        return number

    return read
