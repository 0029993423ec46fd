"""``p2psim account releases`` and ``calibrate``: what a list of releases costs, and what noise a budget takes."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2psim.cli.account.options import (
    ACCOUNTANT,
    MOST,
    NOISE,
    EvaluationPoint,
    at_point,
    check_rate,
    chosen,
    downward,
    left_out_note,
    listed,
    noise_of,
    positive,
    read_at,
    read_list,
    share,
    upward,
)
from p2psim.cli.arguments import command, number, one_of, option
from p2psim.core.errors import InputError
from p2psim.core.printing import print_json, print_table, table_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p2psim.privacy.accounting.accountant import Accountant
    from p2psim.privacy.accounting.charges import Charges

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
    *NOISE,
    one_of(
        option("--loss LIST", "loss of each release: 0.1, or 0.1x50,0.2x10"),
        option("--scale LIST", "scale of the noise instead, beside --sensitivity"),
    ),
    option("--sensitivity D", "Δ, for --scale; 1 by default", number),
    option("--count N", "times that the list is repeated", whole=(1,), default=1),
    at_point(),
    ACCOUNTANT,
    option("--plot FILE.png", "draw accountants against the number of releases (PNG and SVG)"),
    option("--trade-off FILE.png", "draw δ against ε, and errors of any test (PNG and SVG)"),
    json="print it as JSON",
    epilog=_LIST,
)
def account_releases(args: argparse.Namespace) -> None:
    """Print the accounts, and draw the figures that were asked for."""
    at = read_at(args)
    releases = _releases(args)
    accountants, left_out = chosen(args.accountant, releases.noises)
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
        print_json({**tree, "not_able": left_out, "files": files})
        return
    rows = table_rows(("accountant", at.symbol), ((name, upward(cost)) for name, cost in costs))
    print_table(rows, f"{at.symbol} of {releases.loss.size:,} releases at {at.fixed}")
    left_out_note(left_out, releases.noises)
    print("\n".join(files), end="\n" if files else "")


def _releases(args: argparse.Namespace) -> Charges:
    check_rate("--rate", args.rate)
    if args.loss is not None:
        if args.sensitivity is not None:
            raise InputError("--sensitivity: belongs to --scale; a loss is sensitivity by scale already")
        return listed(read_list(args.loss, "--loss", args.noise, args.rate), args.count)
    sensitivity = positive("--sensitivity", 1.0 if args.sensitivity is None else args.sensitivity)
    return listed(read_list(args.scale, "--scale", args.noise, args.rate, sensitivity), args.count)


def _save(file: str, argument: str, draw: Any) -> list[str]:
    """Draw a figure and write it as PNG and SVG."""
    from p2psim.report import files, style

    path = Path(file)
    if path.suffix not in (".png", ".svg") or not path.parent.is_dir():
        raise InputError(
            f"{argument}: a file NAME.png (or .svg) in a folder that is there is expected, got {file}"
        )
    with style.look():
        return list(map(str, files.save_all({path.stem: draw()}, path.parent)))


def _growth(releases: Charges, accountants: dict[str, Accountant], at: EvaluationPoint) -> Figure:
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
    *NOISE,
    one_of(
        option("--count N", "releases with the same loss: print the loss", whole=(-(2**63),)),
        option("--loss L", "loss of each release: print how many", number),
    ),
    option("--epsilon E", "ε of the budget", number, required=True),
    option("--delta D", "δ of the budget; 0 by default", number, default=0.0),
    ACCOUNTANT,
    json="print it as JSON",
)
def calibrate(args: argparse.Namespace) -> None:
    """Print the largest loss, or the most releases, by each accountant."""
    import numpy as np

    from p2psim.privacy.accounting.calibration import largest_loss, most_releases

    epsilon = positive("--epsilon", args.epsilon)
    delta = share("--delta", args.delta, zero=True)
    check_rate("--rate", args.rate)
    noise = noise_of(args.noise, None if args.rate == 1 else args.rate)
    accountants, left_out = chosen(args.accountant, [noise])
    if delta == 0:
        at_delta = [name for name, accountant in accountants.items() if accountant.needs_delta]
        if at_delta and (args.accountant or len(at_delta) == len(accountants)):
            raise InputError(f"--delta: must be given for {', '.join(at_delta)}")
        left_out += at_delta
        accountants = {name: accountants[name] for name in accountants if name not in at_delta}
    if args.count is not None and not 1 <= args.count <= MOST:
        raise InputError(f"--count: must be from 1 to {MOST:,}, got {args.count}")
    losses: Any = np.ones(args.count) if args.count else positive("--loss", args.loss)
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
        print_json({**tree, "not_able": left_out})
        return
    if args.count is None:
        rows = table_rows(("accountant", "most releases"), ((name, f"{most:,}") for name, most in values))
        print_table(rows, f"{noise.name} releases of loss {args.loss:g} within {budget}")
    else:
        shown = ((name, downward(loss), upward(1 / loss)) for name, loss in values)
        print_table(
            table_rows(("accountant", "largest loss", "least scale"), shown),
            f"{args.count:,} releases with {noise.name} noise within {budget}, for sensitivity 1",
        )
    if left_out:
        print(f"left out: {', '.join(left_out)} (cannot account for {noise.name}, or need --delta)")
