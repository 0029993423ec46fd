"""``p2psim account calibrate``: the noise that keeps so many releases within a budget, or the releases that fit it."""

from __future__ import annotations

import argparse
from typing import Any

from p2psim.cli.account.options import (
    ACCOUNTANT,
    MOST,
    NOISE,
    check_rate,
    chosen,
    downward,
    noise_of,
    positive,
    share,
    upward,
)
from p2psim.cli.arguments import Commands, add_command, number, one_of, option
from p2psim.core.errors import InputError
from p2psim.core.printing import print_json, print_table


def add(actions: Commands) -> None:
    """Add the action."""
    add_command(
        actions,
        "calibrate",
        "the noise that keeps so many releases within a budget, or the releases that fit it",
        _account,
        *NOISE,
        one_of(
            option("--count N", "releases with the same loss: tell the loss", whole=(-(2**63),)),
            option("--loss L", "loss of each release: tell how many", number),
        ),
        option("--epsilon E", "ε of the budget", number, required=True),
        option("--delta D", "δ of the budget; 0 by default", number, default=0.0),
        ACCOUNTANT,
        json="print it as JSON",
    )


def _account(asked: argparse.Namespace) -> int:
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
    rows = _rows(asked, noise, accountants, epsilon, delta)
    budget = f"ε = {epsilon:g}" + (f", δ = {delta:g}" if delta else "")
    if asked.json:
        tree = {"noise": noise.name, "epsilon": epsilon, "delta": delta, "accountants": rows}
        print_json({**tree, "not_able": left_out})
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


def _rows(
    asked: argparse.Namespace, noise: Any, accountants: dict[str, Any], epsilon: float, delta: float
) -> list[dict[str, Any]]:
    """The largest loss of so many releases by each accountant, or how many have the loss."""
    import numpy as np

    from p2psim.privacy.accounting.calibration import largest_loss, most_releases

    def row(accountant: Any) -> dict[str, Any]:
        if asked.count is None:
            return {"releases": most_releases(accountant, noise, asked.loss, epsilon, delta)}
        loss = largest_loss(accountant, noise, np.ones(asked.count), epsilon, delta)
        return {"loss": loss, "scale": 1 / loss}

    if asked.count is None:
        positive("--loss", asked.loss)
    elif not 1 <= asked.count <= MOST:
        raise InputError(f"--count: must be from 1 to {MOST:,}, got {asked.count}")
    try:
        return [{"accountant": name, **row(accountant)} for name, accountant in accountants.items()]
    except ValueError as error:
        raise InputError(str(error)) from None
