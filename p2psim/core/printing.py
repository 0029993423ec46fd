"""Tables and messages of the command: for a terminal, for a pipe, and as JSON."""

import json
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
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
        # A list may have an entry for each of a million agents.
        return list(value) if set(map(type, value)) <= {int, str} else [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return value


def show(value: Any) -> str:
    """A table's entry: four significant digits of a number, nothing for nothing."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    return f"{value:.4g}" if isinstance(value, float) else visible(str(value))


#: Characters that command a terminal or turn the direction of text; line ends and tabs are not among them.
_COMMANDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Text with escapes in the place of control characters, which names in files may have."""
    return _COMMANDING.sub(lambda match: ascii(match[0])[1:-1], text)


def exact(value: float) -> str:
    """Write a number as short as it can be without reading as another one; for messages that refuse it."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


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


def print_table(
    rows: Sequence[Mapping[Any, Any]], title: str = "", most: int = MOST_ROWS, keys: int = 1
) -> None:
    """Print rows with the same keys as aligned text that fits the terminal's width (80 where there is none).

    What is empty in all rows is left out. Where columns have no place beside each other, those that are the same in
    all rows are printed once, above the table; what is still too wide comes in several tables below each other.

    Parameters
    ----------
    rows : sequence of mapping
    title : str
        Above the table.
    most : int
        Rows to show; of more only the number is printed.
    keys : int
        Number of leading columns by which rows are known; each of several tables begins with them.
    """
    if not rows:
        return
    shown = {key: [show(row[key]) for row in rows] for key in rows[0]}
    columns = {
        key: _Column(key, texts[:most], all(isinstance(row[key], int | float | None) for row in rows))
        for key, texts in shown.items()
        if any(texts)
    }
    leading = [key for key in list(rows[0])[:keys] if key in columns]
    if title:
        print(visible(title))
    if len(list(_blocks(leading, columns))) > 1 and len(rows) > 1:
        same = [key for key in columns if len(set(shown[key])) == 1]
        columns = {key: column for key, column in columns.items() if key not in same}
        leading = [key for key in leading if key in columns]
        if same:
            print_wrapped(", ".join(f"{key}: {shown[key][0]}" for key in same))
    for number, block in enumerate(_blocks(leading, columns)):
        if number:
            print()
        _print_block([columns[key] for key in block])
    if len(rows) > most:
        print(f"… and {len(rows) - most} more rows")


#: A blank in an entry at which no line is broken.
_BLANK = "\u00a0"

#: A column of text, and a head above narrow entries, that are wider may be broken between words.
_WIDEST_TEXT, _WIDEST_HEAD = 24, 12


class _Column:
    """Entries below a head; lines of the head and of texts are broken between words where they are long."""

    def __init__(self, head: Any, texts: Sequence[str], numeric: bool) -> None:
        self.texts, self.numeric = texts, numeric
        self.full = max(map(len, texts), default=0)
        least = self.full if numeric else min(self.full, _WIDEST_TEXT)
        words = (word for text in ([] if numeric else texts) for word in text.split(" "))
        least = max(least, *map(len, str(head).split()), *(len(word) for word in words), 1)
        self.head = _wrapped(str(head), max(least, _WIDEST_HEAD))
        self.width = max(least, *map(len, self.head))


def _width() -> int:
    return shutil.get_terminal_size((80, 24)).columns


def print_wrapped(text: str, indent: str = "") -> None:
    """Print text in lines that fit the terminal, broken between words; `indent` begins all lines but the first."""
    width = _width()
    print(
        textwrap.fill(
            visible(text), width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    )


def last_parts(keys: Sequence[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Short names of dotted keys: their last part, with as many before it as tell it from others and what is taken."""
    names = {}
    for key in keys:
        parts = key.split(".")
        tails = [".".join(parts[i:]) for i in reversed(range(len(parts)))]
        names[key] = next(
            (
                tail
                for tail in tails
                if tail not in taken
                and not any(f".{other}".endswith(f".{tail}") for other in keys if other != key)
            ),
            key,
        )
    return names


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]


def _blocks(leading: Sequence[Any], columns: Mapping[Any, _Column]) -> Iterator[list[Any]]:
    """Columns that have place beside each other, the leading ones first in each."""
    block = [*leading]
    for key in columns:
        if key in leading:
            continue
        if len(block) > len(leading) and sum(columns[k].width + 2 for k in (*block, key)) - 2 > _width():
            yield block
            block = [*leading]
        block.append(key)
    if block:
        yield block


def _print_block(columns: Sequence[_Column]) -> None:
    spare = _width() - sum(column.width + 2 for column in columns) + 2
    widths = []
    for column in columns:
        more = max(0, min(spare, column.full - column.width))
        spare -= more
        widths.append(column.width + more)
    height = max(len(column.head) for column in columns)
    heads = [[""] * (height - len(column.head)) + column.head for column in columns]
    lines = [list(line) for line in zip(*heads, strict=True)]
    for row in zip(*(column.texts for column in columns), strict=True):
        wrapped = [_wrapped(text, most) for text, most in zip(row, widths, strict=True)]
        lines += [list(line) for line in zip_longest(*wrapped, fillvalue="")]
    for line in lines:
        cells = zip(line, widths, columns, strict=True)
        parts = (text.rjust(most) if of.numeric else text.ljust(most) for text, most, of in cells)
        print("  ".join(parts).rstrip().replace(_BLANK, " "))


def markdown(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Rows with the same keys as a table in Markdown; numbers with four digits, to the right."""
    head = list(rows[0])
    rule = ["---:" if all(isinstance(row[key], int | float) for row in rows) else "---" for key in head]
    cells = [[str(key) for key in head], rule, *([show(row[key]) for key in head] for row in rows)]
    return "\n".join(f"| {' | '.join(text.replace('|', chr(92) + '|') for text in line)} |" for line in cells)


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
    text = visible(f"{kind}: {message}" if kind else str(message))
    print(json.dumps({kind or "note": str(message)}) if as_line else text, file=sys.stderr, flush=True)
