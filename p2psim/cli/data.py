"""``p2psim data``: list data sources, fetch one, and describe a file."""

import argparse
import sys
from typing import Any

from p2psim.cli.arguments import command, group, option
from p2psim.core.errors import InputError
from p2psim.core.printing import complain, counted, print_json, print_table, print_wrapped, show


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


def _mark(text: str) -> str:
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"must be one character, got {text!r}")
    return text


@command(
    "describe",
    "say what each column of a CSV or Parquet file holds, and what it would become",
    option("file FILE", "a CSV file, or a Parquet file named .parquet or .pq"),
    option("--separator MARK", "what separates fields; a comma by default", _mark, default=","),
    option("--decimal MARK", "decimal mark of numbers; a point by default", choices=(".", ","), default="."),
    json="print it as JSON, with all counts",
)
def describe_file(args: argparse.Namespace) -> None:
    """``p2psim data describe``."""
    from p2psim.data.describing import describe

    told = describe(args.file, args.separator, args.decimal)
    if args.json:
        print_json(told)
        return
    rows = [
        {
            "column": column["column"],
            "holds": column["holds"],
            "missing": column["missing"] or None,
            "values": _values(column),
            "becomes": column["becomes"],
        }
        for column in told["columns"]
    ]
    print_table(rows, f"{told['path']}: {counted(told['rows'], 'row')}", most=len(rows))
    if told["y"]:
        print_wrapped(f"y could be: {', '.join(told['y'][:5])}")
    owners = [f"{name} (smallest owner: {told['smallest'][name]:,})" for name in told["partition"][:5]]
    if owners:
        print_wrapped(f"owners could be named by: {', '.join(owners)}")


def _values(column: dict[str, Any]) -> str:
    """The range of a column, or its most frequent values."""
    if column["least"] is not None:
        return f"{show(column['least'])} to {show(column['most'])}"
    most = ", ".join(f"{name} ({rows:,})" for name, rows in list(column["counts"].items())[:3])
    return (
        f"{column['different'] or 0:,}: {most}{', …' if (column['different'] or 0) > 3 else ''}"
        if most
        else ""
    )


data = group(
    "data", "list data sources, fetch one, and describe a file", list_data, fetch_data, describe_file
)
