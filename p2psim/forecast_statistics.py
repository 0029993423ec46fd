"""``p2psim forecast``: what parties write down of their data, and forecasts from that."""

import argparse
from typing import TYPE_CHECKING, Any

from p2psim.errors import InputError
from p2psim.printing import print_json, print_table
from p2psim.subcommands import number, whole

if TYPE_CHECKING:
    from p2psim.study.forecasting.exchange import Party
    from p2psim.study.scenario import Scenario


def add_statistics(command: argparse.ArgumentParser) -> None:
    """Add the options of statistics."""
    command.add_argument(
        "--statistics",
        nargs="+",
        default=[],
        metavar="FILE",
        help="forecast from second moments that parties have written (JSON or npz), not from the scenario's data",
    )
    command.add_argument(
        "--export-statistics",
        metavar="FILE",
        help="forecast nothing: write the second moments of the scenario's data, for --statistics",
    )
    command.add_argument("--party", metavar="LABEL", help="with --export-statistics: of this owner alone")
    command.add_argument(
        "--statistics-epsilon",
        type=number,
        metavar="E",
        help="with --export-statistics: add noise that makes what is written E-DP",
    )
    command.add_argument(
        "--statistics-delta",
        type=number,
        metavar="D",
        help="with --statistics-epsilon: Gaussian noise, (E, D)-DP; Laplace noise when left out",
    )
    command.add_argument(
        "--statistics-seed",
        type=whole("--statistics-seed"),
        metavar="S",
        help="with --statistics-epsilon: noise that can be repeated, and so taken off; to study, not to publish",
    )


def refuse_export_options(asked: argparse.Namespace) -> None:
    """Refuse options that only ``--export-statistics`` has a use for.

    Raises
    ------
    InputError
    """
    for name in ("party", "statistics_epsilon", "statistics_delta", "statistics_seed"):
        if getattr(asked, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} goes with --export-statistics")


def export_statistics(scenario: "Scenario", asked: argparse.Namespace) -> int:
    """Write what owners would exchange, and say what it costs; returns the exit code."""
    from p2psim.study.forecasting.disclosing import Disclosure, exported
    from p2psim.study.forecasting.exchange import write_parties

    if asked.statistics:
        raise InputError("--export-statistics takes the scenario's data, and --statistics does not: give one")
    if asked.statistics_epsilon is None:
        for name in ("statistics_delta", "statistics_seed"):
            if getattr(asked, name) is not None:
                raise InputError(f"--{name.replace('_', '-')} goes with --statistics-epsilon")
    how = Disclosure(
        float("inf") if asked.statistics_epsilon is None else asked.statistics_epsilon,
        asked.statistics_delta or 0.0,
        asked.statistics_seed,
    )
    made = exported(scenario, asked.party, how)
    write_parties(made, asked.export_statistics)
    if asked.json:
        print_json({"file": asked.export_statistics, "parties": [_row(one) for one in made]})
        return 0
    print_table([_row(one) for one in made], f"{asked.export_statistics}: second moments of")
    print(_told(made[0]))
    return 0


def _row(one: "Party") -> dict[str, Any]:
    charge = one.charge
    return {
        "owner": one.label,
        "records": one.records,
        "numbers": (len(one.moment) + 1) * (len(one.moment) + 2) // 2,
        "mechanism": "none" if charge is None else charge.mechanism,
        "sensitivity": None if charge is None else charge.sensitivity,
        "noise": None if charge is None else charge.scale,
        "ε": float("inf") if charge is None else charge.epsilon,
        "δ": None if charge is None else charge.delta,
    }


def _told(one: "Party") -> str:
    charge = one.charge
    if charge is None:
        return "exact: nothing is promised to those whose records these are; --statistics-epsilon adds noise"
    if charge.seed is not None:
        return "not private: whoever knows the seed can take the noise off; leave out --statistics-seed"
    return (
        f"each owner is charged ε = {charge.epsilon:g}"
        + (f", δ = {charge.delta:g}" if charge.delta else "")
        + ", once, beside what its answers in a run cost"
    )
