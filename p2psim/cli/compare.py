"""``p2psim compare``: differences between two runs, or from a reference cell of one, with intervals."""

import argparse

from p2psim.cli.arguments import command, number, option, read_references
from p2psim.core.errors import InputError
from p2psim.core.printing import last_parts, print_json, print_table, print_wrapped


@command(
    "compare",
    "differences between two runs, or from a reference cell of one, with intervals",
    option("run RUN_A", "a run folder"),
    option("other RUN_B", "the run folder to compare it with", nargs="?"),
    option(
        "--reference KEY=VALUE",
        "instead of RUN_B: compare the cells of RUN_A with those that have this value of a swept key",
        repeated=True,
    ),
    option("--metric METRIC", "the only metric to compare"),
    option("--confidence CONFIDENCE", "of each interval; 0.95 by default", number, default=0.95),
    json="print the differences as JSON",
    needs=("p2psim.runs.result",),
)
def compare(args: argparse.Namespace) -> None:
    """``p2psim compare``."""
    from p2psim.analysis.comparison import compare, compare_within, differing_keys, short
    from p2psim.runs.result import Result
    from p2psim.scenario.notices import comparability

    if (args.other is None) == (not args.reference):
        raise InputError("compare takes two run folders, or one and --reference KEY=VALUE")
    first = Result.load(args.run)
    if args.other is not None:
        second = Result.load(args.other)
        table, differing = compare(first, second, args.confidence), differing_keys(first, second)
        title = f"b = {args.other} against a = {args.run}"
    else:
        references = read_references(args.reference)
        table, differing = compare_within(first, references, args.confidence), list(references)
        title = f"{args.run}: each cell (b) against {', '.join(args.reference)} (a)"
    if args.metric is not None:
        known = list(dict.fromkeys(table["metric"]))
        table = table[table["metric"] == args.metric]
        if table.empty:
            raise InputError(f"no metric {args.metric!r} in common; known: {', '.join(known)}")
    if args.json:
        print_json(table.astype(object).to_dict("records"))
        return
    shown = short(table).astype(object)
    names = list(map(str, shown))
    keys = names.index("a")
    swept = last_parts(names[: keys - 2], names[keys - 2 :])
    print_table(shown.rename(columns=swept).to_dict("records"), title, most=len(table), keys=keys)
    for note in comparability(set(table["metric"]), differing, first.scenario_tree):
        print(f"note: {note}")
    how = "paired by replica" if table["paired"].iloc[0] else "other seeds, so not paired"
    print_wrapped(
        f"means over replicas, {how}; intervals of {args.confidence:.3g} confidence each, "
        "not of all together; ratio: geometric mean of b/a"
    )
