"""``p2psim show`` and ``export``: a finished run for a terminal, a spreadsheet, a paper, or TensorBoard."""

import argparse
from collections.abc import Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from p2psim.cli.arguments import command, option
from p2psim.core.errors import InputError
from p2psim.core.printing import MOST_ROWS, complain, markdown, print_json, print_table, print_wrapped

if TYPE_CHECKING:
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
    from p2psim.runs.summary import latex, rows_of
    from p2psim.runs.verdict import kept, said

    result = Result.load(args.run)
    rows = rows_of(result)
    for column, wanted in (("metric", args.metric), ("model", args.model)):
        known = list(dict.fromkeys(row[column] for row in rows))
        for name in wanted:
            if name not in known:
                raise InputError(f"--{column}: no {column} {name!r} in {args.run}; known: {', '.join(known)}")
        rows = [row for row in rows if row[column] in (wanted or known)]
    verdict = kept(result)
    checked = [said(verdict)] if verdict else []
    if args.format == "text":
        print_result(result, rows, checked, most=len(rows))
        return
    # Numbers go elsewhere; what must be said with them is said all the same.
    for note in (*checked, *notes_on(result, rows)):
        complain(note, "note")
    if args.format == "json":
        print_json(rows)
        return
    import pandas as pd

    if args.format == "csv":
        print(pd.DataFrame(rows).to_csv(index=False), end="")
    elif args.format == "latex":
        print(latex(pd.DataFrame(rows).drop(columns="cell")), end="")
    else:
        print(markdown([{key: row[key] for key in row if key != "cell"} for row in rows]))


def notes_on(
    result: "Result", rows: Sequence[Mapping[str, Any]], scenario: Mapping[str, Any] | None = None
) -> list[str]:
    """What must be said with numbers of a run: budgets that are broken, and metrics that cells do not share.

    The scenario as a plain tree, without its sweep perhaps, is that of the folder when left out.
    """
    from p2psim.runs.summary import broken_bounds
    from p2psim.scenario.notices import comparability
    from p2psim.scenario.tuning import notes_on_tuning

    tree = result.scenario_tree if scenario is None else scenario
    return [
        *broken_bounds(result.table("ledger")),
        *comparability({row["metric"] for row in rows}, result.swept, tree),
        *notes_on_tuning(tree),
    ]


def print_result(
    result: "Result",
    rows: Sequence[Mapping[str, Any]],
    notes: Sequence[str] = (),
    most: int = MOST_ROWS,
    scenario: Mapping[str, Any] | None = None,
) -> None:
    """Print a summary with its notes, for a person; the scenario is as of `notes_on`."""
    from p2psim.runs.summary import readable
    from p2psim.runs.tables import FLAG_MEANINGS

    shown = readable(rows, result.swept)
    marks = map("".join, chain(*(product(ascii_lowercase, repeat=length) for length in (1, 2, 3))))
    flags = dict.fromkeys(flag for row in shown for flag in _flags_in(row["flags"]))
    letters = dict(zip(flags, marks, strict=False))
    for row in shown:
        row["flags"] = " ".join(letters[flag] for flag in _flags_in(row["flags"]))
    how = ", medians [and quartiles]" if any(row["replicas"] > 1 for row in rows) else ""
    title = f"{result.described.name}: last recorded values over replicas{how}"
    print_table(shown, title, most, keys=len(result.swept) + 1)
    for flag, letter in letters.items():
        meaning = f": {FLAG_MEANINGS[flag]}" if flag in FLAG_MEANINGS else ""
        print_wrapped(f"  {letter}  {flag}{meaning}", " " * 5)
    for note in (*notes, *notes_on(result, rows, scenario)):
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
