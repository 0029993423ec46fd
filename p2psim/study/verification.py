"""Recomputing the recorded simulations of a run folder from their events, noise and data."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.data.prepare import public_bounds
from p2psim.errors import FolderError, InputError, MissingPartError, SimulationError
from p2psim.printing import key_values
from p2psim.study.differences import differences
from p2psim.study.event_format import check_event_format
from p2psim.study.manifest import check_format
from p2psim.study.parts import EVENT_COLUMNS
from p2psim.study.replica_check import NUDGE, SLACK, TOLERANCE, recompute
from p2psim.study.result import Result
from p2psim.study.verify_partly import broken_invariant, miscounted

if TYPE_CHECKING:
    import pandas as pd

    from p2psim.study.families.stage import FamilyCell
    from p2psim.study.outcome import Series
    from p2psim.study.scenario import Scenario
    from p2psim.study.workspace import Case


@dataclass(frozen=True)
class Checked:
    """What recomputing one simulation showed.

    Attributes
    ----------
    cell, replica : int
        Which.
    events : int
        How many were replayed.
    largest : float
        Largest relative difference of a recorded value from the recomputed one; infinite with a fault.
    drift : float
        How far two plain replays part whose data differ by rounding; zero where that was not asked.
    fault : str
        The invariant that the events break, or what of the other tables does not follow from them; empty when nothing.
    """

    cell: int
    replica: int
    events: int
    largest: float
    drift: float = 0.0
    fault: str = ""

    @property
    def verdict(self) -> str:
        """``right``; ``wrong``; or ``not comparable`` where rounding, amplified, explains the difference."""
        if self.largest <= TOLERANCE:
            return "right"
        return "not comparable" if not self.fault and self.largest <= SLACK * self.drift else "wrong"

    @property
    def amplified(self) -> float:
        """By how much rounding was amplified on the way."""
        return self.drift / NUDGE


def verify_result(result: Result, scenario: "Scenario | None" = None) -> list[Checked]:
    """Recompute every simulation of a run folder; see `damaged_files` for whether its files are as they were written.

    Parameters
    ----------
    result : Result
    scenario : Scenario, optional
        The one that was run, with the same arrays, where these were given in Python: the folder has their hash only.

    Raises
    ------
    InputError
        If the run did not record its events, or the scenario is another one.
    FolderError
        If the events are of another format, the tables lack a simulation that the manifest names, or files are so
        damaged that they cannot be read.
    """
    check_format(result.path, result.described)
    if scenario is not None and scenario.identity() != result.described.identity:
        told = differences(result.path / "scenario.yaml", scenario)
        raise FolderError(
            f"{result.path}: these are not results of the scenario given{f' ({told})' * bool(told)}"
        )
    damaged = damaged_files(result)
    if not all((result.path / name).is_file() for name in result.described.files):
        raise FolderError(*damaged)  # nobody opens what is no file: a pipe would wait for ever
    try:
        readable = Result(result.path, result.described, trusting=True) if damaged else result
        return list(_check_all(readable, scenario))
    except Exception as error:
        if damaged:
            raise FolderError(*damaged) from error
        if isinstance(error, MissingPartError):
            raise checked_partly(result, error) from None
        raise


def checked_partly(result: Result, error: MissingPartError) -> FolderError | SimulationError:
    """What a command that lacks a part says: what could be checked without it, and whether that is right."""
    if damaged := damaged_files(result):
        return FolderError(*damaged)
    right = f"the hashes of its {len(result.described.files)} files"
    if result.events is not None:
        from ruamel.yaml import YAML

        tree = YAML(typ="safe", pure=True).load(result.whole("scenario.yaml").read_text(encoding="utf-8"))
        events, ledgers = _by_run(result.events), _by_run(result.ledger)
        for (number, replica), rows in sorted(events.items()):
            stream, cell, ledger = _stream(rows), result.described.cells[number], ledgers[number, replica]
            fault = broken_invariant(stream, len(ledger), tree, cell) or miscounted(
                stream, ledger, tree, cell
            )
            if fault:
                return SimulationError(f"{error}\ncell {number}, replica {replica}: {fault}")
        right += f", and invariants of the events and releases in the ledger of {len(events)} simulations"
    return SimulationError(f"{error}\nnot fully verified without it; right are {right}")


def damaged_files(result: Result) -> list[str]:
    """Files of a run folder that are not as they were written, each with what is wrong."""
    found = ((name, result.fault(name)) for name in result.described.files)
    return [f"{result.path / name}: {fault}" for name, fault in found if fault]


def _check_all(result: Result, given: "Scenario | None") -> "Iterator[Checked]":
    from p2psim.study.families import family_of
    from p2psim.study.ledger_check import faults

    check_event_format(result.path, result.described.made_by)
    if result.events is None:
        raise InputError(
            f"{result.path}: its files are as they were written, but no events were recorded by which they can be "
            "recomputed; set record.events: true and run again"
        )
    tables = {name: _by_run(getattr(result, name)) for name in ("events", "metrics", "ledger", "agents")}
    events, metrics = tables["events"], tables["metrics"]
    for cell, scenario in scenarios_of(result, given):
        for content, replica in sorted(result.described.runs):
            if content != result.described.cells[cell].content:
                continue
            run = (cell, replica)
            measured = bool(scenario.record.metrics or scenario.record.per_agent)
            whole = all(run in tables[name] for name in ("events", "ledger", "agents"))
            if not (whole and run in result.noise and (run in metrics or not measured)):
                raise FolderError(f"{result.path}: cell {cell}, replica {replica} is not in its tables")
            stream = _stream(events[run])
            case = _case(result, scenario, run)
            series = tuple(_series(metrics[run])) if run in metrics else ()
            staged = family_of(scenario).cell(scenario, case, replica)
            fault = _broken_invariant(scenario, staged, stream)
            if not fault:
                rows = {
                    name: tables[name][run].loc[:, first:].sort_values(first)
                    for name, first in (("ledger", "agent"), ("agents", "index"))
                }
                fault = "; ".join(faults(scenario, replica, staged, stream, result.noise[run], rows))
            if fault:
                # What cannot have happened cannot be replayed.
                yield Checked(cell, replica, len(stream), math.inf, fault=fault)
                continue
            try:
                differences = recompute(
                    scenario, case, replica, stream, result.noise[run], series, result.models.get(run)
                )
            except SimulationError as error:
                yield Checked(cell, replica, len(stream), math.inf, fault=str(error))
                continue
            yield Checked(cell, replica, len(stream), differences.largest, differences.drift)


def _by_run(table: "pd.DataFrame | None") -> "dict[tuple[int, int], pd.DataFrame]":
    if table is None:
        return {}
    groups: Any = table.groupby(["cell", "replica"], sort=False)
    return {(int(cell), int(replica)): rows for (cell, replica), rows in groups}


def scenarios_of(result: Result, given: "Scenario | None" = None) -> "Iterator[tuple[int, Scenario]]":
    """Scenario of each cell number, also of those that the grid has no more; `given` instead of the folder's."""
    from p2psim.study.cells import cells
    from p2psim.study.scenario import Scenario

    grid = {cell.content: cell.scenario for cell in cells(given or result.scenario, confirm_cells=True)}
    for number, entry in enumerate(result.described.cells):
        if entry.content in grid:
            yield number, grid[entry.content]
        elif entry.scenario:
            yield number, result.read(partial(Scenario.parse, entry.scenario, f"{result.path}/manifest.json"))
        else:
            raise FolderError(
                f"{result.path}: it is not known any more what cell {number} was ({key_values(entry.swept)})"
            )


def _stream(rows: "pd.DataFrame") -> np.ndarray:
    """Events as the engine made them."""
    from p2psim.network.events import EVENT, KINDS, OUTCOMES

    codes: dict[str, Any] = {
        "kind": {name: code for code, name in enumerate(KINDS)},
        "outcome": {name: code for code, name in enumerate(OUTCOMES)},
    }
    stream = np.zeros(len(rows), EVENT)
    for name in EVENT_COLUMNS:
        column = rows[name]
        stream[name] = column.astype(object).map(codes[name]) if name in codes else column
    return stream


def _series(rows: "pd.DataFrame") -> "Iterator[Series]":
    import pandas as pd

    from p2psim.study.outcome import Series

    groups: Any = rows.groupby(["metric", "model", "agent"], sort=False, observed=True, dropna=False)
    for (metric, model, agent), values in groups:
        yield Series(
            str(metric),
            str(model),
            None if pd.isna(agent) else int(agent),
            values["step"].to_numpy(np.int64),
            values["time"].to_numpy(np.float64),
            values["value"].to_numpy(np.float64),
        )


def _case(result: Result, scenario: "Scenario", run: tuple[int, int]) -> "Case":
    """Prepared data of a simulation, and who held them, as the folder tells."""
    from p2psim.study.workspace import Case

    arrays = result.data(*run)
    groups = tuple(arrays["groups"].tolist()) if "groups" in arrays else None
    bounds = public_bounds(scenario.data, arrays["y"])
    return Case("", arrays, tuple(arrays["labels"].tolist()), groups, *bounds, {}, ())


def _broken_invariant(scenario: "Scenario", cell: "FamilyCell", stream: np.ndarray) -> str:
    """Check the stream as a stream; returns what is wrong with it."""
    from p2psim.network.verify import verify

    network = cell.stage.network
    try:
        verify(
            [stream],
            network.links,
            cell.stage.plan.limits,
            goes_on=network.goes_on,
            by_edge=network.by_edge,
            resending=scenario.network.channel.resending,
            end=np.inf if cell.stage.time is None else cell.stage.time,
            polled=network.polled,
        )
    except SimulationError as error:
        return str(error)
    return ""
