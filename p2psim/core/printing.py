"""Tables and messages of the command: for a terminal, for a pipe, and as JSON."""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: Rows of a table that a person is shown.
MOST_ROWS = 40


def print_json(value: Any) -> None:
    """Print strict JSON to standard output; infinities are written as in YAML (``.inf``)."""
    shows_all = (sys.stdout.encoding or "").lower().startswith("utf")
    print(json.dumps(plain(value), indent=2, ensure_ascii=not shows_all, allow_nan=False))


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
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def counted(number: int, what: str) -> str:
    """``1 cell``, or ``1,200 cells``."""
    plural = "es" if what.endswith("ch") else "s"
    return f"{number:,} {what}{'' if number == 1 else plural}"


def key_values(values: Mapping[str, Any]) -> str:
    """``key = value, key = value``."""
    return ", ".join(f"{key} = {value}" for key, value in values.items())


def table_rows(columns: Sequence[str], values: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Rows of a table, from the names of its columns and the values of each row in the same order."""
    return [dict(zip(columns, row, strict=True)) for row in values]


def print_table(rows: Sequence[Mapping[Any, Any]], title: str = "", most: int = MOST_ROWS) -> None:
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
    if not (sys.stdout.isatty() and _print_ruled(head, shown, numeric, title)):
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


def markdown(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Rows with the same keys as a table in Markdown; numbers with four digits, to the right."""
    head = list(rows[0])
    rule = ["---:" if all(isinstance(row[key], int | float) for row in rows) else "---" for key in head]
    cells = [[str(key) for key in head], rule, *([show(row[key]) for key in head] for row in rows)]
    return "\n".join(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in line)} |" for line in cells)


def _print_ruled(
    head: Sequence[str], lines: Sequence[Sequence[str]], numeric: Sequence[bool], title: str
) -> bool:
    """Print for a terminal; False when the table is too wide to be printed so.

    What is the same in all rows is told once, above the table; what is empty in all rows, not at all.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    columns = range(len(head))
    same = [len(lines) > 1 and len({line[i] for line in lines}) == 1 for i in columns]
    kept = [i for i in columns if not same[i]]
    console = Console()
    # A number broken over two lines is none: rather a table that the terminal wraps as a whole.
    least = sum(max(len(line[i]) for line in lines) if numeric[i] else 8 for i in kept) + len(kept) + 1
    if least > console.width:
        return False
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for i in kept:
        least = max(len(line[i]) for line in lines) if numeric[i] else 1
        table.add_column(
            Text(head[i]), justify="right" if numeric[i] else "left", overflow="fold", min_width=least
        )
    for line in lines:
        table.add_row(*(Text(line[i]) for i in kept))
    if title:
        console.print(Text(title, "bold"))
    shared = [f"{head[i]}: {lines[0][i]}" for i in columns if same[i] and lines[0][i]]
    if shared:
        console.print(Text(", ".join(shared)))
    console.print(table)
    return True


def complain(message: object, kind: str = "", as_line: bool = False) -> None:
    """Print a message to standard error.

    Parameters
    ----------
    message : object
    kind : str
        Such as ``warning``; said before the message.
    as_line : bool
        As a JSON object in one line, with `kind` as its key; a message without is a ``note``.
    """
    text = f"{kind}: {message}" if kind else str(message)
    print(json.dumps({kind or "note": str(message)}) if as_line else text, file=sys.stderr, flush=True)
