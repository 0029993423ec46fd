"""Tables and messages of the command: for a terminal, for a pipe, and as JSON."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

#: Rows of a table that a person is shown.
MOST_ROWS = 40


def print_json(value: Any) -> None:
    """Print strict JSON to standard output; infinities are written as in YAML (``.inf``)."""
    print(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain(value: Any) -> Any:
    """The same in types that strict JSON has."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return value


def show(value: Any) -> str:
    """A table's entry: four significant digits of a number, nothing for nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def print_table(rows: Sequence[Mapping[str, Any]], title: str = "", most: int = MOST_ROWS) -> None:
    """Print rows with the same keys, ruled on a terminal, as aligned text elsewhere.

    Parameters
    ----------
    rows : sequence of mapping
    title : str
        Above the table.
    most : int
        Rows to show; of more only the number is told.
    """
    if not rows:
        return
    head = list(rows[0])
    shown = [[show(row[key]) for key in head] for row in rows[:most]]
    numeric = [all(isinstance(row[key], int | float | None) for row in rows) for key in head]
    if sys.stdout.isatty():
        _print_ruled(head, shown, numeric, title)
    else:
        if title:
            print(title)
        widths = [max(len(line[i]) for line in [head, *shown]) for i in range(len(head))]
        for line in [head, *shown]:
            cells = [
                text.rjust(width) if right else text.ljust(width)
                for text, width, right in zip(line, widths, numeric, strict=True)
            ]
            print("  ".join(cells).rstrip())
    if len(rows) > most:
        print(f"… and {len(rows) - most} more rows")


def _print_ruled(
    head: Sequence[str], lines: Sequence[Sequence[str]], numeric: Sequence[bool], title: str
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None)
    for name, right in zip(head, numeric, strict=True):
        table.add_column(Text(name), justify="right" if right else "left", overflow="fold")
    for line in lines:
        table.add_row(*map(Text, line))
    Console().print(table)


def complain(message: object) -> None:
    """Print a message to standard error."""
    print(message, file=sys.stderr, flush=True)
