"""``p2psim show``: the table of a finished run again, for a terminal, a spreadsheet or a paper."""

import argparse
from collections.abc import Sequence
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

    result = Result.load(args.run)
    table = result.summary()
    for column, wanted in (("metric", args.metric), ("model", args.model)):
        known = list(dict.fromkeys(table[column]))
        for name in wanted:
            if name not in known:
                raise InputError(
                    f"--{column}: no {column} {name!r} in {args.run}; there is {', '.join(known)}"
                )
        if wanted:
            table = table[table[column].isin(wanted)]
    rows = table.astype(object).to_dict("records")
    if args.format == "text":
        print_result(result, table, most=len(table))
        return
    # Numbers go elsewhere; what must be said with them is said all the same.
    for note in notes_on(result, table):
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
    raised = [flag for flags in shown["flags"] for flag in flags.split(", ") if flag]
    letters = dict(zip(dict.fromkeys(raised), ascii_lowercase, strict=False))
    shown["flags"] = [
        " ".join(letters[flag] for flag in flags.split(", ") if flag) for flags in shown["flags"]
    ]
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
