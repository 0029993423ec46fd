"""``p2psim show`` and ``export``: a finished run for a terminal, a spreadsheet, a paper, or TensorBoard."""

import argparse
from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING

from p2psim.cli.arguments import command, option
from p2psim.core.errors import InputError
from p2psim.core.printing import MOST_ROWS, complain, markdown, print_json, print_table, print_wrapped

if TYPE_CHECKING:
    import pandas as pd

    from p2psim.runs.result import Result


@command(
    "show",
    "print the table of a run again, whole or in part, also as CSV, Markdown, LaTeX or JSON",
    option("run RUN", "a run folder"),
    option("--metric METRIC", "only this metric; may be repeated", repeated=True),
    option("--model MODEL", "only this model, such as main; may be repeated", repeated=True),
    option(
        "--format",
        "of the table; csv and json have all digits",
        choices=("text", "csv", "markdown", "latex", "json"),
        default="text",
    ),
    needs=("p2psim.runs.result",),
)
def show(args: argparse.Namespace) -> None:
    """``p2psim show``."""
    from p2psim.runs.result import Result
    from p2psim.runs.summary import latex
    from p2psim.runs.verdict import kept, said

    result = Result.load(args.run)
    table = result.summary()
    for column, wanted in (("metric", args.metric), ("model", args.model)):
        known = list(dict.fromkeys(table[column]))
        for name in wanted:
            if name not in known:
                raise InputError(f"--{column}: no {column} {name!r} in {args.run}; known: {', '.join(known)}")
        if wanted:
            table = table[table[column].isin(wanted)]
    rows = table.astype(object).to_dict("records")
    verdict = kept(result)
    checked = [said(verdict)] if verdict else []
    if args.format == "text":
        print_result(result, table, checked, most=len(table))
        return
    # Numbers go elsewhere; what must be said with them is said all the same.
    for note in (*checked, *notes_on(result, table)):
        complain(note, "note")
    if args.format == "json":
        print_json(rows)
    elif args.format == "csv":
        print(table.to_csv(index=False), end="")
    elif args.format == "latex":
        print(latex(table.drop(columns="cell")), end="")
    else:
        print(markdown([{key: row[key] for key in row if key != "cell"} for row in rows]))


def notes_on(result: "Result", table: "pd.DataFrame") -> list[str]:
    """What must be said with numbers of a run: budgets that are broken, and metrics that cells do not share."""
    from p2psim.runs.ledger_check import broken_bounds
    from p2psim.scenario.notices import comparability
    from p2psim.scenario.tuning import notes_on_tuning

    return [
        *broken_bounds(result.ledger),
        *comparability(set(table["metric"]), result.swept, result.scenario_tree),
        *notes_on_tuning(result.scenario_tree),
    ]


def print_result(
    result: "Result", table: "pd.DataFrame", notes: Sequence[str] = (), most: int = MOST_ROWS
) -> None:
    """Print a table of last values with its notes, for a person."""
    from p2psim.runs.summary import readable
    from p2psim.runs.tables import FLAG_MEANINGS

    shown = readable(table, result.swept)
    raised = list(map(_flags_in, shown["flags"]))
    marks = map("".join, chain(*(product(ascii_lowercase, repeat=length) for length in (1, 2, 3))))
    letters = dict(zip(dict.fromkeys(chain(*raised)), marks, strict=False))
    shown["flags"] = [" ".join(letters[flag] for flag in flags) for flags in raised]
    rows = shown.astype(object).to_dict("records")
    how = ", medians [and quartiles]" if (table["replicas"] > 1).any() else ""
    title = f"{result.described.name}: last recorded values over replicas{how}"
    keys = list(shown).index("model") + 1
    print_table(rows, title, most, keys)
    for flag, letter in letters.items():
        meaning = f": {FLAG_MEANINGS[flag]}" if flag in FLAG_MEANINGS else ""
        print_wrapped(f"  {letter}  {flag}{meaning}", " " * 5)
    for note in (*notes, *notes_on(result, table)):
        print(f"note: {note}")


def _flags_in(text: str) -> list[str]:
    """Flags between commas that are not inside of a part, as of a tuned value."""
    flags: list[str] = []
    is_open = False
    for piece in text.split(", "):
        flags = [*flags[:-1], f"{flags[-1]}, {piece}"] if is_open else [*flags, piece]
        is_open = sum(map(flags[-1].count, "([{")) > sum(map(flags[-1].count, ")]}"))
    return [flag for flag in flags if flag]


@command(
    "export",
    "write the metrics of a run for TensorBoard: a run there for each cell and replica",
    option("run RUN", "a run folder"),
    option("--out DIR", "an empty or new folder; tensorboard in the run folder by default"),
    needs=("p2psim.runs.result",),
)
def export(args: argparse.Namespace) -> None:
    """``p2psim export``."""
    from p2psim.report.tensorboard import export as write
    from p2psim.runs.result import Result

    result = Result.load(args.run)
    out = result.path / "tensorboard" if args.out is None else Path(args.out)
    written = write(result, out)
    print(f"{out}: {len(written)} runs; look at them with: tensorboard --logdir {out}")
