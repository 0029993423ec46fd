"""What each command does; they take parsed arguments and return an exit code."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from p2psim.core.errors import Fault, InputError
from p2psim.core.printing import complain, print_json, print_table

if TYPE_CHECKING:
    from p2psim.runs.result import Result
    from p2psim.scenario.model import Scenario


#: What takes a command long to import.
_NEEDS = {
    "run": ("p2psim.runs.runner", "p2psim.runs.result"),
    "check": ("p2psim.runs.checking", "p2psim.scenario.model"),
    "audit": ("p2psim.audit.driver",),
    "forecast": ("p2psim.scenario.model",),
    "account": (),
    "data": (),
    "new": ("p2psim.scenario.model",),
    "list": ("p2psim.scenario.catalogue",),
    "schema": ("p2psim.scenario.schema",),
}


def load(command: str) -> None:
    """Import what a command needs before it does anything."""
    for module in _NEEDS.get(command, ("p2psim.runs.result",)):
        import_module(module)


def _load(path: str, asked: argparse.Namespace) -> "Scenario":
    """Read a scenario with what the command line sets."""
    from p2psim.cli.new import hint
    from p2psim.scenario.model import Scenario

    if not os.path.lexists(path):
        raise InputError(Fault(f"there is no such file{hint(path)}", path=path))
    if os.path.isdir(path):
        raise InputError(Fault("is a folder; give a scenario file", path=path))
    overrides = list(asked.set)
    for key, value in (("replicas", asked.replicas), ("seed", asked.seed), ("network.engine", asked.engine)):
        if value is not None:
            overrides.append(f"{key}={value}")
    return Scenario.load(path, overrides, confirm_cells=asked.confirm_cells)


def _run(asked: argparse.Namespace) -> int:
    """``p2psim run``."""
    from p2psim.core.compiled import is_compiled
    from p2psim.runs.runner import run
    from p2psim.scenario.notices import is_repeated

    if (asked.cell is None) != (asked.replica is None):
        raise InputError("--cell and --replica go together")
    lines = asked.progress == "json"
    scenario = _load(asked.scenario, asked)
    if not asked.quiet and not is_compiled():
        complain("compiling the kernels, once; later runs take them from the cache", as_line=lines)
    told: set[str] = set()

    def tell(warning: str) -> None:
        told.add(warning)
        complain(warning, "warning", lines)

    result = run(
        scenario,
        asked.out,
        jobs=asked.jobs,
        overwrite=asked.overwrite,
        progress="none" if asked.quiet else asked.progress,
        executor=asked.executor,
        scheduler=asked.scheduler,
        check_events=asked.check_events,
        only=None if asked.cell is None else (asked.cell, asked.replica),
        confirm_cells=asked.confirm_cells,
        tell=tell,
        arguments=asked.arguments,
    )
    notes = [] if asked.cell is not None else _beside_what_was_asked(result, scenario)
    for warning in result.warnings:
        if not is_repeated(warning, told):
            complain(warning, "warning", lines)
    _show_result(result, asked.json, notes)
    return 0


def _beside_what_was_asked(result: "Result", scenario: "Scenario") -> list[str]:
    """What the run folder, and so the table, holds beside what was asked for."""
    from p2psim.runs.describing import stop_notes
    from p2psim.scenario.cells import cells
    from p2psim.scenario.record import most
    from p2psim.scenario.yaml import cells_named

    described = result.described
    wanted = {cell.content for cell in cells(scenario, confirm_cells=True)}
    earlier = [number for number, cell in enumerate(described.cells) if cell.content not in wanted]
    held = Counter(content for content, _ in described.runs if content in wanted)
    notes = list(stop_notes(described.cells))
    if held and max(held.values()) > most(scenario.replicas):
        replicas = f"{max(held.values())} replicas held, {most(scenario.replicas)} asked for"
        notes.append(f"{replicas}: the table is of all that are held; choose another --out for fewer")
    if earlier:
        notes.append(f"{cells_named(earlier)}: of an earlier sweep, not of the one asked for")
    return notes


def _show_result(result: "Result", as_json: bool, notes: Sequence[str]) -> None:
    """A short table of results with its flags and notes, and where they are."""
    from p2psim.runs.ledger_check import broken_bounds
    from p2psim.scenario.notices import comparability

    table = result.summary()
    notes = [*notes, *broken_bounds(result.ledger), *comparability(set(table["metric"]), result.swept)]
    if as_json:
        warnings = result.manifest["warnings"]
        tree = {"folder": str(result.path), "table": _records(table), "warnings": warnings}
        print_json({**tree, "notes": notes})
        return
    title = f"{result.described.name}: last recorded values over replicas"
    print_table(_records(table), title)
    for note in notes:
        print(f"note: {note}")
    print(f"results: {result.path} (metrics.parquet, ledger.parquet, …); figures: p2psim plot {result.path}")


def _records(table: Any) -> list[dict[str, Any]]:
    """Rows of a DataFrame in Python's own types."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.astype(object).values.tolist()]


def _check(asked: argparse.Namespace) -> int:
    """``p2psim check``."""
    from p2psim.runs.checking import check_scenario

    checked = []
    faults = []
    for path in asked.scenarios:
        try:
            scenario = _load(path, asked)
            checked.append(
                check_scenario(
                    scenario, path, confirm_cells=asked.confirm_cells, pilot=asked.pilot, jobs=asked.jobs
                )
            )
        except InputError as error:
            faults += error.faults
    if asked.json:
        print_json([one.as_tree() for one in checked])
    else:
        for one in checked:
            one.show()
    if faults:
        raise InputError(*faults)
    return 0


def _plot(asked: argparse.Namespace) -> int:
    """``p2psim plot``."""
    from p2psim.runs.result import Result

    files = Result.load(asked.run).plot(
        asked.kind,
        metric=asked.metric,
        folder=asked.out,
        against=asked.against,
        target=asked.target,
        reference=_references(asked.reference),
        facet=asked.facet,
        agent=asked.agent,
        quantile=tuple(asked.quantile),
        log=asked.log,
        title=asked.title,
    )
    _show_files([str(file) for file in files], asked.json)
    return 0


def _show_files(files: Sequence[str], as_json: bool) -> None:
    if as_json:
        print_json(files)
    else:
        print("\n".join(files))


def _audit(asked: argparse.Namespace) -> int:
    """``p2psim audit``."""
    from p2psim.audit.driver import audit
    from p2psim.audit.showing import show, tree

    scenario = _load(asked.scenario, asked)
    found = audit(scenario, asked.samples, asked.gamma, asked.replica, confirm_cells=asked.confirm_cells)
    if asked.json:
        print_json(tree(found))
    else:
        show(found, scenario.name)
    return 0 if found.stands else 1


def _forecast(asked: argparse.Namespace) -> int:
    """``p2psim forecast``."""
    from p2psim.cli.forecast import show_forecast

    return show_forecast(_load(asked.scenario, asked), asked)


def _verify(asked: argparse.Namespace) -> int:
    """``p2psim verify``."""
    from p2psim.cli.verify import verify

    return verify(asked)


def _compare(asked: argparse.Namespace) -> int:
    """``p2psim compare``."""
    from p2psim.analysis.comparison import compare, compare_within, differing_keys, short
    from p2psim.runs.result import Result
    from p2psim.scenario.notices import comparability

    if (asked.other is None) == (not asked.reference):
        raise InputError("compare takes two run folders, or one and --reference KEY=VALUE")
    first = Result.load(asked.run)
    if asked.other is not None:
        second = Result.load(asked.other)
        table, differing = compare(first, second, asked.confidence), differing_keys(first, second)
        title = f"b = {asked.other} against a = {asked.run}"
    else:
        references = _references(asked.reference)
        table, differing = compare_within(first, references, asked.confidence), list(references)
        title = f"{asked.run}: each cell (b) against {', '.join(asked.reference)} (a)"
    if asked.metric is not None:
        known = list(dict.fromkeys(table["metric"]))
        table = table[table["metric"] == asked.metric]
        if table.empty:
            raise InputError(f"no metric {asked.metric!r} in common; there is {', '.join(known)}")
    if asked.json:
        print_json(_records(table))
        return 0
    print_table(_records(short(table)), title, most=len(table))
    for note in comparability(set(table["metric"]), differing):
        print(f"note: {note}")
    how = "paired by replica" if table["paired"].iloc[0] else "other seeds, so not paired"
    print(
        f"means over replicas, {how}; intervals of {asked.confidence:.3g} confidence each, "
        "not of all together; ratio: geometric mean of b/a"
    )
    return 0


def _references(given: Sequence[str]) -> dict[str, object]:
    """Swept keys and values as the command line gives them."""
    from p2psim.scenario.yaml import scalar

    pairs = [text.partition("=") for text in given]
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise InputError(f"--reference takes KEY=VALUE, got {key}{equals}{value}")
    try:
        return {key: scalar(value) for key, _, value in pairs}
    except ValueError as error:
        raise InputError(f"--reference: {error}") from None


def _account(asked: argparse.Namespace) -> int:
    """``p2psim account``."""
    from p2psim.cli.account.network import account

    return account(asked)


def _data(asked: argparse.Namespace) -> int:
    """``p2psim data``."""
    return _data_list(asked) if asked.action == "list" else _data_fetch(asked)


def _data_list(asked: argparse.Namespace) -> int:
    """``p2psim data list``."""
    from p2psim.data.listing import list_sources

    rows = list_sources()
    if asked.json:
        print_json(rows)
    else:
        for row in rows:
            print(f"{row['source']}: {row['about']}")
            print(f"    licence: {row['licence']}")
            if row["here"] != "yes":
                print(f"    not here: {row['get']}" if row["here"] else f"    from: {row['get']}")
    return 0


def _data_fetch(asked: argparse.Namespace) -> int:
    """``p2psim data fetch``."""
    from p2psim.data.downloads import fetch, terms

    print(terms(asked.name), flush=True)
    if not asked.yes:
        if not sys.stdin.isatty():
            raise InputError("nobody can be asked here; --yes accepts licence and size")
        if input("Fetch it? [y/N] ").strip().lower() not in ("y", "yes"):
            complain("nothing was fetched")
            return 1
    print(f"ready: {fetch(asked.name)}")
    return 0


def _new(asked: argparse.Namespace) -> int:
    """``p2psim new``."""
    if asked.part is not None:
        from p2psim.cli.new import new_part

        print(*new_part(asked.part, asked.name), sep="\n")
        return 0
    from p2psim.cli.new import new

    print(new(asked.name, asked.template))
    return 0


def _list(asked: argparse.Namespace) -> int:
    """``p2psim list``."""
    from p2psim.cli.new import templates
    from p2psim.scenario.catalogue import CatalogueEntry, catalogue, matching

    shipped = [CatalogueEntry("(scenario)", name, question) for name, question in templates().items()]
    found = matching([*shipped, *catalogue()], asked.word)
    rows = [{"key": one.key, "name": one.name, "meaning": one.meaning} for one in found]
    if not rows:
        raise InputError(f"nothing that can be named contains {asked.word!r}; p2psim list shows all")
    if asked.json:
        print_json(rows)
    else:
        print_table(rows, most=len(rows))
    return 0


def _schema(asked: argparse.Namespace) -> int:
    """``p2psim schema``."""
    from p2psim.scenario.schema import json_schema

    print_json(json_schema())
    return 0


#: Each command by its name.
COMMANDS = {
    "run": _run,
    "check": _check,
    "plot": _plot,
    "verify": _verify,
    "audit": _audit,
    "forecast": _forecast,
    "account": _account,
    "compare": _compare,
    "data": _data,
    "new": _new,
    "list": _list,
    "schema": _schema,
}
