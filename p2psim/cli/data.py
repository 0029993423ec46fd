"""``p2psim data``: list data sources, fetch one, and describe a file."""

import argparse
import json
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
    from p2psim.data.sources.downloaded import fetch, terms

    print(terms(args.name), flush=True)
    if not args.yes:
        if not sys.stdin.isatty():
            raise InputError("no terminal to ask for confirmation; --yes accepts licence and size")
        if input("Fetch it? [y/N] ").strip().lower() not in ("y", "yes"):
            complain("nothing was fetched")
            return 1
    print(f"ready: {fetch(args.name)}")
    return None


def _mark(text: str) -> str:
    text = "\t" if text == r"\t" else text
    if len(text) != 1 or text in '"\r\n' or not text.isascii():
        raise argparse.ArgumentTypeError(f"must be one character, such as ; or \\t for a tab, got {text!r}")
    return text


@command(
    "describe",
    "print what each column of a CSV or Parquet file holds, and what it would become",
    option("file FILE", "a CSV file, or a Parquet file named .parquet or .pq"),
    option("--separator MARK", "what separates fields; a comma by default", _mark),
    option("--decimal MARK", "decimal mark of numbers; a point by default", choices=(".", ",")),
    json="print it as JSON, with all counts",
)
def describe_file(args: argparse.Namespace) -> None:
    """``p2psim data describe``."""
    from p2psim.data.describing import describe, is_parquet

    if is_parquet(args.file) and (args.separator or args.decimal):
        raise InputError(
            f"--separator, --decimal: are for CSV files; got {args.file}, which is Parquet by its name"
        )
    if args.separator == args.decimal and args.decimal is not None:
        raise InputError(
            f"--separator, --decimal: both are {args.decimal}; if a comma separates fields and numbers with a "
            'decimal comma are in quotation marks ("1,5"), give --decimal alone'
        )
    described = describe(args.file, args.separator or ",", args.decimal or ".")
    if args.json:
        print_json(described)
        return
    rows = [
        {
            "column": column["column"],
            "holds": column["holds"],
            "missing": column["missing"] or None,
            "values": _values(column),
            "becomes": column["becomes"],
        }
        for column in described["columns"]
    ]
    print_table(rows, f"{described['path']}: {counted(described['rows'], 'row')}", most=len(rows))
    classes = described["classes"]
    for what, names in (
        ("y could be", [name for name in described["y"] if name not in classes]),
        ("y could be, with data.classes: all", [name for name in described["y"] if name in classes]),
    ):
        if names:
            print_wrapped(f"{what}: {', '.join(names[:5])}")
    owners = [
        f"{name} (smallest owner: {described['smallest'][name]:,})" for name in described["partition"][:5]
    ]
    if owners:
        print_wrapped(f"owners could be named by: {', '.join(owners)}")
    written = {"separator": args.separator, "decimal": args.decimal}
    keys = ", ".join(f"{key}: {json.dumps(mark)}" for key, mark in written.items() if mark)
    if keys:
        path = json.dumps(described["path"], ensure_ascii=False)
        print_wrapped(f"in a scenario: data.source: {{kind: csv, path: {path}, {keys}, y: …}}")


def _values(column: dict[str, Any]) -> str:
    """The range of a column, or its most frequent values."""
    if column["least"] is not None:
        return f"{show(column['least'])} to {show(column['most'])}"
    most = ", ".join(f"{name} ({rows:,})" for name, rows in list(column["counts"].items())[:3])
    different = column["different"] or 0
    return f"{different:,}: {most}{', …' if different > 3 else ''}" if most else ""


data = group(
    "data", "list data sources, fetch one, and describe a file", list_data, fetch_data, describe_file
)
