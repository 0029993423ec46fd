"""``p2psim account releases``, ``calibrate`` and ``run``: what releases cost, and noise for a budget."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2psim.cli.account import options
from p2psim.cli.arguments import ANY, command, number, one_of, option
from p2psim.core.errors import InputError, MissingPartError
from p2psim.core.printing import print_json, print_table, table_rows

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

    from p2psim.privacy.accounting.accountant import Accountant
    from p2psim.privacy.accounting.charges import Charges
    from p2psim.runs.ledger_check import Recounted


_LIST = """\
A list of releases is written LOSSxCOUNT,LOSSxCOUNT,…: `0.1x50,0.2x10`. The loss of a release is its sensitivity divided
by the scale of its noise, in the norm of that noise (L1 for Laplace and discrete Laplace, L2 for Gaussian): ε₀ of a
Laplace release, μ of a Gaussian one. An entry may name its own noise and its own sampling rate: `gaussian:0.5x10`,
`laplace:1@0.01x100`. Neighbouring data differ in one record that is replaced by another."""

#: Points of a drawn curve.
_POINTS = 25

#: What every number of this rests on.
_NOTES = (
    "adjacency: one record is replaced by another; upper bounds on the loss of the real-number mechanism",
)


@command(
    "releases",
    "what a list of releases costs, by every accountant",
    *options.NOISE,
    one_of(
        option("--loss LIST", "loss of each release: 0.1, or 0.1x50,0.2x10"),
        option("--scale LIST", "scale of the noise instead, beside --sensitivity"),
    ),
    option("--sensitivity D", "Δ, for --scale; 1 by default", number),
    option("--count N", "times that the list is repeated", whole=(1,), default=1),
    options.at_point(),
    options.ACCOUNTANT,
    option("--plot FILE.png", "draw accountants against the number of releases (PNG and SVG)"),
    option("--trade-off FILE.png", "draw δ against ε, and errors of any test (PNG and SVG)"),
    json="print it as JSON",
    epilog=_LIST,
)
def account_releases(args: argparse.Namespace) -> None:
    """Print the accounts, and draw the figures that were asked for."""
    at = options.read_at(args)
    releases = _releases(args)
    accountants, left_out = options.chosen(args.accountant, releases.noises)
    costs = [(name, float(at.sums(accountant, releases)[0])) for name, accountant in accountants.items()]
    files = []
    # A curve of the least of all would hide the one that it is.
    drawn = {name: accountants[name] for name in accountants if name != "best" or len(accountants) == 1}
    if args.plot:
        files += _save(args.plot, "--plot", lambda: _growth(releases, drawn, at))
    if args.trade_off:
        files += _save(args.trade_off, "--trade-off", lambda: _trade_off(releases, drawn))
    if args.json:
        tree: dict[str, Any] = {"releases": releases.loss.size, "epsilon": at.epsilon, "delta": at.delta}
        tree["accountants"] = table_rows(("accountant", at.key), costs)
        tree |= {"not_able": left_out, "assumed": options.assumed(releases.noises), "files": files}
        print_json(tree)
        return
    rows = table_rows(("accountant", at.symbol), ((name, options.upward(cost)) for name, cost in costs))
    print_table(rows, f"{at.symbol} of {releases.loss.size:,} releases at {at.fixed}")
    options.left_out_note(left_out, releases.noises)
    options.assumed_note(releases.noises)
    print("\n".join(files), end="\n" if files else "")


def _releases(args: argparse.Namespace) -> Charges:
    options.check_rate("--rate", args.rate)
    if args.loss is not None:
        if args.sensitivity is not None:
            message = "--sensitivity: needs --scale; a loss is already the sensitivity divided by the scale"
            raise InputError(message)
        return options.listed(options.read_list(args.loss, "--loss", args.noise, args.rate), args.count)
    sensitivity = options.positive("--sensitivity", 1.0 if args.sensitivity is None else args.sensitivity)
    entries = options.read_list(args.scale, "--scale", args.noise, args.rate, sensitivity)
    return options.listed(entries, args.count)


def _save(file: str, argument: str, draw: Any) -> list[str]:
    """Draw a figure and write it as PNG and SVG."""
    from p2psim.report import files, style

    path = Path(file)
    if path.suffix not in (".png", ".svg") or not path.parent.is_dir():
        message = f"{argument}: a file NAME.png (or .svg) in an existing folder is expected, got {file}"
        raise InputError(message)
    with style.look():
        return list(map(str, files.save_all({path.stem: draw()}, path.parent)))


def _growth(releases: Charges, accountants: dict[str, Accountant], at: options.EvaluationPoint) -> Figure:
    """Accounts of the first so many releases of the list."""
    import numpy as np

    from p2psim.report.account import draw_growth

    total = releases.loss.size
    counts = np.unique(np.rint(np.geomspace(1, total, _POINTS)).astype(int)).tolist()
    charges = releases.prefixes(counts)
    sums = {name: at.sums(accountant, charges) for name, accountant in accountants.items()}
    title = f"the first releases of {total:,}: {_names(releases)}"
    return draw_growth(counts, sums, f"{at.symbol} at {at.fixed}", title, _NOTES)


def _trade_off(releases: Charges, accountants: dict[str, Accountant]) -> Figure:
    """δ from ε = 0 to where the best of them is at 1e-12."""
    import numpy as np

    from p2psim.privacy.accounting.accountants import trade_off
    from p2psim.report.account import draw_trade_off

    ends = [float(accountant.epsilon(releases, 1e-12)[0]) for accountant in accountants.values()]
    end = min((value for value in ends if math.isfinite(value)), default=math.inf)
    if not math.isfinite(end):
        raise InputError("--trade-off: nothing is guaranteed at any ε, so there is no curve")
    epsilons = np.linspace(0, end, 101)
    curves = {name: trade_off(accountant, releases, epsilons)[0] for name, accountant in accountants.items()}
    return draw_trade_off(epsilons, curves, f"{releases.loss.size:,} releases: {_names(releases)}", _NOTES)


def _names(releases: Charges) -> str:
    """Noises and the range of losses."""
    noises = ", ".join(noise.name for noise in releases.noises)
    low, high = float(releases.loss.min()), float(releases.loss.max())
    return f"{noises}, loss {low:g}" + (f" to {high:g}" if high > low else "")


@command(
    "calibrate",
    "the noise that keeps a number of releases within a budget, or the releases that fit it",
    *options.NOISE,
    one_of(
        option("--count N", "releases with the same loss: print the loss", whole=(-(2**63),)),
        option("--loss L", "loss of each release: print how many", number),
    ),
    option("--epsilon E", "ε of the budget", number, required=True),
    option("--delta D", "δ of the budget; 0 by default", number, default=0.0),
    options.ACCOUNTANT,
    json="print it as JSON",
)
def calibrate(args: argparse.Namespace) -> None:
    """Print the largest loss, or the most releases, by each accountant."""
    import numpy as np

    from p2psim.privacy.accounting.accountants import largest_loss, most_releases

    epsilon = options.positive("--epsilon", args.epsilon)
    delta = options.share("--delta", args.delta, zero=True)
    options.check_rate("--rate", args.rate)
    noise = options.noise_of(args.noise, None if args.rate == 1 else args.rate)
    accountants, left_out = options.chosen(args.accountant, [noise])
    if delta == 0:
        at_delta = [name for name, accountant in accountants.items() if accountant.needs_delta]
        if at_delta and (args.accountant or len(at_delta) == len(accountants)):
            raise InputError(f"--delta: must be given for {', '.join(at_delta)}")
        left_out += at_delta
        accountants = {name: accountants[name] for name in accountants if name not in at_delta}
    if args.count is not None and not 1 <= args.count <= options.MOST:
        raise InputError(f"--count: must be from 1 to {options.MOST:,}, got {args.count}")
    losses: Any = np.ones(args.count) if args.count else options.positive("--loss", args.loss)
    solve: Any = largest_loss if args.count else most_releases
    try:
        values = [(name, solve(each, noise, losses, epsilon, delta)) for name, each in accountants.items()]
    except ValueError as error:
        raise InputError(str(error)) from None
    budget = f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else "")
    if args.json:
        rows = table_rows(("accountant", "loss" if args.count else "releases"), values)
        rows = [row | {"scale": 1 / row["loss"]} if args.count else row for row in rows]
        tree = {"noise": noise.name, "epsilon": epsilon, "delta": delta, "accountants": rows}
        print_json({**tree, "not_able": left_out, "assumed": options.assumed([noise])})
        return
    if args.count is None:
        rows = table_rows(("accountant", "most releases"), ((name, f"{most:,}") for name, most in values))
        print_table(rows, f"{noise.name} releases of loss {args.loss:g} within {budget}")
    else:
        shown = ((name, options.downward(loss), options.upward(1 / loss)) for name, loss in values)
        print_table(
            table_rows(("accountant", "largest loss", "least scale"), shown),
            f"{args.count:,} releases with {noise.name} noise within {budget}, for sensitivity 1",
        )
    if left_out:
        print(f"left out: {', '.join(left_out)} (cannot account for {noise.name}, or need --delta)")
    options.assumed_note([noise])


#: Ranges of agents that a row of the table names.
MOST_RANGES = 5


@command(
    "run",
    "what the releases of a run cost, agent by agent, by every accountant",
    option("run RUN", "a run folder"),
    options.at_point("; that of the run by default"),
    options.ACCOUNTANT,
    option("--cell I", "this cell alone", whole=ANY),
    json="print it as JSON",
)
def account_run(args: argparse.Namespace) -> None:
    """Print what each cell's agents spent, the most over replicas."""
    from p2psim.runs.ledger_check import recount
    from p2psim.runs.result import Result
    from p2psim.runs.verification import checked_partly

    result = Result.load(args.run)
    try:
        if args.delta is None and args.epsilon is None:
            args.delta = result.scenario.privacy.delta
            if args.delta is None:
                raise InputError("give --delta or --epsilon, since the run has no δ")
        at = options.read_at(args)
        runs = list(recount(result, args.cell))
    except MissingPartError as error:
        raise checked_partly(result, error) from None
    noises = list(dict.fromkeys(noise for run in runs for noise in run.charges.used))
    accountants, left_out = options.chosen(args.accountant, noises)
    spent = []
    for run in runs:
        holders = run.scenario.privacy.overlap.holders
        sums = {name: at.sums(by, run.charges, holders) for name, by in accountants.items()}
        spent.append((run, sums))
    if args.json:
        agents = [row for run, sums in spent for row in _each(run, sums, at.key)]
        print_json({"epsilon": at.epsilon, "delta": at.delta, "not_able": left_out, "agents": agents})
        return
    rows = []
    for cell in dict.fromkeys(run.cell for run in runs):
        replicas = [(run, sums) for run, sums in spent if run.cell == cell]
        entry = result.described.cells[cell]
        rows += [{"cell": cell, **entry.swept, **row} for row in _of_cell(replicas, at.symbol, entry.notes)]
    title = f"{at.symbol} of agents' real records at {at.fixed}; the most over replicas"
    print_table(rows, title, len(rows), keys=list(rows[0]).index("agents") + 1)
    options.left_out_note(left_out, noises)


def _each(run: Recounted, spent: dict[str, np.ndarray], key: str) -> list[dict[str, Any]]:
    """A row of each agent."""
    agents = range(run.charges.agents)
    columns = ("cell", "replica", "agent", "releases", *(f"{key}_{name}" for name in spent), "flags")
    numbers = zip(*(values.tolist() for values in spent.values()), strict=True)
    rows = zip(agents, run.charges.made.tolist(), numbers, _flags(run), strict=True)
    values = ((run.cell, run.replica, i, made, *row, raised) for i, made, row, raised in rows)
    return table_rows(columns, values)


def _flags(run: Recounted) -> list[list[str]]:
    """What must be said with the numbers of each agent, as the ledger has it."""
    from p2psim.runs.summary import raised_flags

    raised = raised_flags(run.ledger)
    return [list(raised.columns[row]) for row in raised.to_numpy()]


def _of_cell(
    runs: Sequence[tuple[Recounted, dict[str, np.ndarray]]], symbol: str, notes: Sequence[str]
) -> list[dict[str, Any]]:
    """Rows of one cell: agents that spent the same have one together, with their least and most releases."""
    import numpy as np

    together: dict[tuple[Any, ...], list[int]] = {}
    flags = [_flags(run) for run, _ in runs]
    made = np.max([run.charges.made for run, _ in runs], axis=0)
    for agent in range(len(made)):
        most = [options.upward(float(max(spent[name][agent] for _, spent in runs))) for name in runs[0][1]]
        raised = dict.fromkeys(name for of_run in flags for name in of_run[agent])
        together.setdefault((*most, ", ".join([*raised, *notes])), []).append(agent)
    columns = ("agents", "releases", *(f"{symbol} {name}" for name in runs[0][1]), "flags")
    rows = ((ranges(agents), _between(made[agents]), *row) for row, agents in together.items())
    return table_rows(columns, rows)


def _between(numbers: np.ndarray) -> int | str:
    """A whole number, or ``3–7`` where they differ."""
    low, high = int(numbers.min()), int(numbers.max())
    return low if low == high else f"{low:,}–{high:,}"


def ranges(numbers: Sequence[int]) -> str:
    """Rising numbers in few words: 0–2, 5. Of many ranges the first, and how many numbers there are."""
    from p2psim.scenario.yaml import runs_of

    shown = [f"{low}" if low == high else f"{low}–{high}" for low, high in runs_of(numbers)]
    if len(shown) > MOST_RANGES:
        shown[MOST_RANGES:] = [f"… ({len(numbers)} in all)"]
    return ", ".join(shown)
