"""``p2psim forecast``: results of runs without running them, and which owners gain by joining."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from p2psim.cli.arguments import OVERRIDES, as_given, command, load_scenario, number, option
from p2psim.core.errors import InputError
from p2psim.core.printing import MOST_ROWS, print_json, print_table, table_rows

if TYPE_CHECKING:
    from p2psim.analysis.forecasts.exchange import Charge, Party
    from p2psim.analysis.forecasts.study import CellForecast
    from p2psim.scenario.model import Scenario

#: Moments of a run that a person is shown of one cell.
_MOMENTS = 8


@command(
    "forecast",
    "predict the results of runs without running them, and which owners gain by joining",
    option(
        "scenario SCENARIO",
        "a scenario file of a central learner, of coordinate descent, of averaging or of decentralised SGD",
    ),
    option(
        "--calibrate R",
        "also run R pilot replicas of each cell, and show how far the forecast is off",
        whole=(0, 10**6),
        default=0,
    ),
    option(
        "--best",
        "also search for the horizon, ρ (or c₁) and allocation with the smallest forecast for these budgets",
    ),
    option(
        "--coalitions",
        "also forecast every coalition of owners (12 at most; of more, what owners add is sampled)",
    ),
    option("--figures DIR", "draw figures into this folder"),
    option(
        "--statistics FILE",
        "forecast from second moments that parties have written (JSON or npz), not from the scenario's data",
        nargs="+",
        default=[],
    ),
    option(
        "--export-statistics FILE",
        "forecast nothing: write the second moments of the scenario's data, for --statistics",
    ),
    option("--party LABEL", "with --export-statistics: of this owner alone"),
    option(
        "--statistics-epsilon E",
        "with --export-statistics: add noise that makes what is written E-DP",
        number,
    ),
    option(
        "--statistics-delta D",
        "with --statistics-epsilon: Gaussian noise, (E, D)-DP; Laplace noise when left out",
        number,
    ),
    option(
        "--statistics-seed S",
        "with --statistics-epsilon: noise that can be repeated, and so removed; to study, not to publish",
        whole=(),
    ),
    *OVERRIDES,
    json="print everything as JSON",
    needs=("p2psim.scenario.model",),
)
def forecast(args: argparse.Namespace) -> None:
    """``p2psim forecast``."""
    from p2psim.analysis.forecasts.exchange import read_parties
    from p2psim.analysis.forecasts.study import forecast_scenario
    from p2psim.report.forecasts import MOST_CELLS, draw_forecasts
    from p2psim.scenario.notices import lines

    scenario = load_scenario(args.scenario, args)
    if args.export_statistics:
        export_statistics(scenario, args)
        return
    of_export = ("party", "statistics_epsilon", "statistics_delta", "statistics_seed")
    _refuse(args, of_export, "--export-statistics")
    parties, more = read_parties(args.statistics), as_given(args, "coalitions", "confirm_cells")
    forecasts = forecast_scenario(scenario, args.calibrate, args.best, statistics=parties, **more)
    drawn = [str(path) for path in draw_forecasts(forecasts, args.figures, scenario)] if args.figures else []
    if args.json:
        print_json({"name": scenario.name, "cells": [cell.as_tree() for cell in forecasts], "figures": drawn})
        return
    # Those of learners first.
    symbols = dict.fromkeys(cell.forecast.symbol for cell in forecasts)
    for symbol in sorted(symbols, key=lambda symbol: symbol != "ψ"):
        _show([cell for cell in forecasts if cell.forecast.symbol == symbol], symbol, scenario.name)
    if args.coalitions:
        _show_coalitions(forecasts)
    if args.best:
        print_table(_best(forecasts), "\nleast forecast for the same budgets")
    reasons = ((reason, (cell.cell.index,)) for cell in forecasts for reason in cell.forecast.approximate)
    for line in lines(reasons, [cell.cell.swept for cell in forecasts]):
        print(f"approximate: {line}")
    for name in drawn:
        print(f"figure: {name}")
    if drawn and len(forecasts) > MOST_CELLS:
        print(f"note: {len(forecasts)} cells; the first {MOST_CELLS} have their own figures")


def _show(forecasts: "Sequence[CellForecast]", symbol: str, name: str) -> None:
    """Print tables of cells with forecasts of the same: the end, the agents, and the run."""
    print_table([cell.row() for cell in forecasts], f"{name}: expected {symbol} at the end, and its parts")
    each, agents = max(3, MOST_ROWS // len(forecasts)), [cell.agents() for cell in forecasts]
    print_table([row for rows in agents for row in rows[:each]], f"\n{forecasts[0].forecast.agents_title}")
    if (longest := max(map(len, agents))) > each:
        print(f"… and {forecasts[0].forecast.others(longest - each)}; --json has all")
    along = [row for cell in forecasts for row in cell.along(_MOMENTS)]
    print_table(along, f"\nexpected {symbol} along the run")


def _show_coalitions(forecasts: "Sequence[CellForecast]") -> None:
    """Coalitions of each cell, the best first, and what owners have in them."""
    reports = [(f.cell.index, f.coalitions) for f in forecasts if f.coalitions is not None]
    coalitions = (
        (cell, " + ".join(c.members), c.psi, f"{c.gaining} of {len(c.members)}")
        for cell, report in reports
        for c in report.coalitions
    )
    columns: tuple[str, ...] = ("cell", "coalition", "ψ", "members who gain")
    print_table(table_rows(columns, coalitions), "\nwhat coalitions reach, the best first")
    owners = (
        (cell, o.label, o.epsilon, o.shapley, o.error or None, o.marginal, o.least_epsilon)
        for cell, report in reports
        for o in report.stakes
    )
    columns = ("cell", "owner", "ε", "Shapley value", "± s.e.", "−∂ψ/∂ε", "least ε")
    print_table(table_rows(columns, owners), "\nwhat owners add to all, in ψ")


def _best(forecasts: "Sequence[CellForecast]") -> list[dict[str, Any]]:
    rows = []
    for cell in forecasts:
        if (best := cell.best) is not None:
            step = best.c1 if best.rho is None else best.rho
            psi = cell.forecast.curve.expected[-1]
            rows.append((cell.cell.index, best.horizon, step, best.allocation, best.psi, psi))
    return table_rows(("cell", "horizon", "ρ or c₁", "allocation", "ψ", "ψ as it is"), rows)


def _refuse(args: argparse.Namespace, names: Sequence[str], other: str) -> None:
    """Refuse options that only another has a use for."""
    for name in names:
        if getattr(args, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} needs {other}")


def export_statistics(scenario: "Scenario", args: argparse.Namespace) -> None:
    """Write what owners would exchange, and say what it costs."""
    from p2psim.analysis.forecasts.exchange import Disclosure, exported, write_parties

    if args.statistics:
        raise InputError("--export-statistics takes the scenario's data, and --statistics does not: give one")
    if args.statistics_epsilon is None:
        _refuse(args, ("statistics_delta", "statistics_seed"), "--statistics-epsilon")
    epsilon = float("inf") if args.statistics_epsilon is None else args.statistics_epsilon
    how = Disclosure(epsilon, args.statistics_delta or 0.0, args.statistics_seed)
    parties = exported(scenario, args.party, how)
    write_parties(parties, args.export_statistics)
    columns = ("owner", "records", "numbers", "mechanism", "sensitivity", "noise", "ε", "δ")
    rows = table_rows(columns, map(_exported, parties))
    if args.json:
        print_json({"file": args.export_statistics, "parties": rows})
    else:
        print_table(rows, f"{args.export_statistics}: second moments of")
        print(_promise(parties[0].charge))


def _exported(party: "Party") -> tuple[Any, ...]:
    """What a line of the table of exported statistics says."""
    charge, p = party.charge, len(party.moment)
    cost: tuple[Any, ...] = "none", None, None, float("inf"), None
    if charge is not None:
        cost = charge.mechanism, charge.sensitivity, charge.scale, charge.epsilon, charge.delta
    return party.label, party.records, (p + 1) * (p + 2) // 2, *cost


def _promise(charge: "Charge | None") -> str:
    """What is promised to those whose records they are."""
    if charge is None:
        return "exact statistics protect no record; --statistics-epsilon adds noise"
    if charge.seed is not None:
        return "not private: anybody who knows the seed can remove the noise; leave out --statistics-seed"
    delta = f", δ = {charge.delta:g}" if charge.delta else ""
    return f"each owner is charged ε = {charge.epsilon:g}{delta}, once, in addition to its answers in a run"
