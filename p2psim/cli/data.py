"""``p2psim data``: list data sources, and fetch one."""

import argparse
import sys

from p2psim.cli.arguments import command, group, option
from p2psim.core.errors import InputError
from p2psim.core.printing import complain, print_json


@command("list", "list sources, their licences and whether they are here", json="print it as JSON")
def list_data(args: argparse.Namespace) -> None:
    """``p2psim data list``."""
    from p2psim.data.sources import list_sources

    rows = list_sources()
    if args.json:
        print_json(rows)
        return
    for row in rows:
        print(f"{row['source']}: {row['about']}")
        print(f"    licence: {row['licence']}")
        if row["here"] != "yes":
            print(f"    not here: {row['get']}" if row["here"] else f"    from: {row['get']}")


@command(
    "fetch",
    "get a data set, after showing its licence and size",
    option("name NAME", "a source; see p2psim data list"),
    option("--yes", "accept its licence and size without being asked"),
)
def fetch_data(args: argparse.Namespace) -> int | None:
    """``p2psim data fetch``."""
    from p2psim.data.downloads import fetch, terms

    print(terms(args.name), flush=True)
    if not args.yes:
        if not sys.stdin.isatty():
            raise InputError("nobody can be asked here; --yes accepts licence and size")
        if input("Fetch it? [y/N] ").strip().lower() not in ("y", "yes"):
            complain("nothing was fetched")
            return 1
    print(f"ready: {fetch(args.name)}")
    return None


data = group("data", "list data sources, and fetch one", list_data, fetch_data)
