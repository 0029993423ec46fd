"""``p2psim account calibrate``: noise for a budget, or releases for a budget.

``p2psim account releases``: what a list of releases costs.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2psim.cli.account.arguments import check_rate, downward, positive, share, upward
from p2psim.cli.account.listing import MOST, At, Listed, chosen, listed, noise_of, read_list
from p2psim.core.errors import InputError
from p2psim.core.printing import print_json, print_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from p2psim.privacy.accounting.accountants import Accountant


def account_calibrate(asked: argparse.Namespace) -> int:
    """Print the largest loss, or the most releases, by each accountant; return the exit code."""
    epsilon = positive("--epsilon", asked.epsilon)
    delta = share("--delta", asked.delta, zero=True)
    check_rate("--rate", asked.rate)
    noise = noise_of(asked.noise, None if asked.rate == 1 else asked.rate)
    accountants, left_out = chosen(asked.accountant, [noise])
    if delta == 0:
        without = [name for name, accountant in accountants.items() if not accountant.needs_delta]
        if not without or (asked.accountant and len(without) < len(accountants)):
            raise InputError(
                f"--delta: must be given for {', '.join(n for n in accountants if n not in without)}"
            )
        accountants, left_out = (
            {name: accountants[name] for name in without},
            [*left_out, *(name for name in accountants if name not in without)],
        )
    find = _scales if asked.count is not None else _counts
    rows = find(asked, noise, accountants, epsilon, delta)
    budget = f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else "")
    if asked.json:
        print_json(
            {
                "noise": noise.name,
                "epsilon": epsilon,
                "delta": delta,
                "accountants": rows,
                "not_able": left_out,
            }
        )
        return 0
    if asked.count is not None:
        shown = [
            {
                "accountant": row["accountant"],
                "largest loss": downward(row["loss"]),
                "least scale": upward(row["scale"]),
            }
            for row in rows
        ]
        print_table(
            shown, f"{asked.count:,} releases with {noise.name} noise within {budget}, for sensitivity 1"
        )
    else:
        shown = [{"accountant": row["accountant"], "most releases": f"{row['releases']:,}"} for row in rows]
        print_table(shown, f"{noise.name} releases of loss {asked.loss:g} within {budget}")
    if left_out:
        print(f"not told: {', '.join(left_out)} (cannot account for {noise.name}, or need --delta)")
    return 0


def _scales(
    asked: argparse.Namespace, noise: Any, accountants: dict[str, Any], epsilon: float, delta: float
) -> list[dict[str, Any]]:
    import numpy as np

    from p2psim.privacy.accounting.calibration import largest_loss

    if not 1 <= asked.count <= MOST:
        raise InputError(f"--count: must be from 1 to {MOST:,}, got {asked.count}")
    rows = []
    for name, accountant in accountants.items():
        try:
            loss = largest_loss(accountant, noise, np.ones(asked.count), epsilon, delta)
        except ValueError as error:
            raise InputError(str(error)) from None
        rows.append({"accountant": name, "loss": loss, "scale": 1 / loss})
    return rows


def _counts(
    asked: argparse.Namespace, noise: Any, accountants: dict[str, Any], epsilon: float, delta: float
) -> list[dict[str, Any]]:
    from p2psim.privacy.accounting.calibration import most_releases

    loss = positive("--loss", asked.loss)
    try:
        return [
            {"accountant": name, "releases": most_releases(accountant, noise, loss, epsilon, delta)}
            for name, accountant in accountants.items()
        ]
    except ValueError as error:
        raise InputError(str(error)) from None


#: Points of a drawn curve.
_POINTS = 25


def read_at(asked: argparse.Namespace) -> At:
    """Where accounts are to be drawn up."""
    if asked.delta is not None:
        return At(share("--delta", asked.delta, zero=True), None)
    if not (math.isfinite(asked.epsilon) and asked.epsilon >= 0):
        raise InputError(f"--epsilon: must be a number, at least 0, got {asked.epsilon:g}")
    return At(None, asked.epsilon)


def account_releases(asked: argparse.Namespace) -> int:
    """Print the accounts, draw the figures that were asked for, and return the exit code."""
    at = read_at(asked)
    releases = _releases(asked)
    accountants, left_out = chosen(asked.accountant, releases.noises)
    charges = releases.charges()
    rows: list[dict[str, Any]] = [
        {"accountant": name, at.asked: float(at.sums(accountant, charges)[0])}
        for name, accountant in accountants.items()
    ]
    files = []
    if asked.plot:
        files += _save(asked.plot, "--plot", lambda: _growth(releases, _drawn(accountants), at))
    if asked.trade_off:
        files += _save(asked.trade_off, "--trade-off", lambda: _trade_off(releases, _drawn(accountants)))
    if asked.json:
        tree: dict[str, Any] = {"releases": releases.loss.size, "epsilon": at.epsilon, "delta": at.delta}
        key = "epsilon" if at.delta is not None else "delta"
        tree["accountants"] = [{"accountant": row["accountant"], key: row[at.asked]} for row in rows]
        print_json({**tree, "not_able": left_out, "files": files})
        return 0
    for row in rows:
        row[at.asked] = upward(row[at.asked])
    print_table(rows, f"{at.asked} of {releases.loss.size:,} releases at {at.fixed}")
    if left_out:
        names = ", ".join(dict.fromkeys(noise.name for noise in releases.noises))
        print(f"not told: {', '.join(left_out)} (cannot account for all of: {names})")
    print("\n".join(files), end="\n" if files else "")
    return 0


def _releases(asked: argparse.Namespace) -> Listed:
    check_rate("--rate", asked.rate)
    if asked.count < 1:
        raise InputError(f"--count: must be at least 1, got {asked.count}")
    if asked.loss is not None:
        if asked.sensitivity is not None:
            raise InputError("--sensitivity: belongs to --scale; a loss is sensitivity by scale already")
        return listed(read_list(asked.loss, "--loss", asked.noise, asked.rate), asked.count)
    sensitivity = positive("--sensitivity", 1.0 if asked.sensitivity is None else asked.sensitivity)
    return listed(read_list(asked.scale, "--scale", asked.noise, asked.rate, sensitivity), asked.count)


def _save(file: str, argument: str, draw: Any) -> list[str]:
    """Draw a figure and write it as PNG and SVG."""
    from p2psim.report import style

    path = Path(file)
    if path.suffix not in (".png", ".svg") or not path.parent.is_dir():
        raise InputError(
            f"{argument}: a file NAME.png (or .svg) in a folder that is there is expected, got {file}"
        )
    with style.look():
        figure: Figure = draw()
        return [str(written) for written in style.save(figure, path.parent, path.stem)]


def _drawn(accountants: dict[str, Accountant]) -> dict[str, Accountant]:
    """Those that get a curve: not the least of all, which would hide the one that it is."""
    return {name: one for name, one in accountants.items() if name != "best" or len(accountants) == 1}


def _growth(releases: Listed, accountants: dict[str, Accountant], at: At) -> Figure:
    """Accounts of the first so many releases of the list."""
    import numpy as np

    from p2psim.report.account import draw_growth

    total = releases.loss.size
    counts = np.unique(np.rint(np.geomspace(1, total, _POINTS)).astype(int)).tolist()
    charges = releases.prefixes(counts)
    found = {name: at.sums(accountant, charges) for name, accountant in accountants.items()}
    title = f"the first releases of {total:,}: {_names(releases)}"
    return draw_growth(counts, found, f"{at.asked} at {at.fixed}", title, _NOTES)


def _trade_off(releases: Listed, accountants: dict[str, Accountant]) -> Figure:
    """δ from ε = 0 to where the best of them is at 1e-12."""
    import numpy as np

    from p2psim.privacy.accounting.accountants import trade_off
    from p2psim.report.account import draw_trade_off

    charges = releases.charges()
    ends = [float(accountant.epsilon(charges, 1e-12)[0]) for accountant in accountants.values()]
    end = min((value for value in ends if math.isfinite(value)), default=math.inf)
    if not math.isfinite(end):
        raise InputError("--trade-off: nothing is guaranteed at any ε, so there is no curve")
    epsilons = np.linspace(0, end, 101)
    found = {name: trade_off(accountant, charges, epsilons)[0] for name, accountant in accountants.items()}
    return draw_trade_off(epsilons, found, f"{releases.loss.size:,} releases: {_names(releases)}", _NOTES)


#: What every number of this rests on.
_NOTES = (
    "adjacency: one record is replaced by another; upper bounds on the loss of the real-number mechanism",
)


def _names(releases: Listed) -> str:
    """Noises and the range of losses."""
    noises = ", ".join(noise.name for noise in releases.noises)
    low, high = float(releases.loss.min()), float(releases.loss.max())
    return f"{noises}, loss {low:g}" + (f" to {high:g}" if high > low else "")
