"""Recomputing the recorded simulations of a run folder from their events, noise and data."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.errors import FolderError, InputError, MissingPartError, SimulationError
from p2psim.printing import key_values
from p2psim.privacy.mechanisms import NoNoise
from p2psim.study.event_format import check_event_format
from p2psim.study.parts import EVENT_COLUMNS
from p2psim.study.replica_check import NUDGE, SLACK, TOLERANCE, largest_of_network, recompute

if TYPE_CHECKING:
    import pandas as pd

    from p2psim.study.outcome import Series
    from p2psim.study.result import Result
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
        The invariant that the events break; empty when they break none.
    missing : str
        The part of the scenario that has not been let in, and the option that lets it in; then only what does not
        need it was checked, and `largest` is of the metrics of the network.
    """

    cell: int
    replica: int
    events: int
    largest: float
    drift: float = 0.0
    fault: str = ""
    missing: str = ""

    @property
    def verdict(self) -> str:
        """``right``; ``wrong``; or why neither can be said.

        ``not comparable`` where rounding, amplified, explains the difference; ``not verified`` where a part is missing.
        """
        if self.largest <= TOLERANCE:
            return "not verified" if self.missing else "right"
        return "not comparable" if not self.fault and self.largest <= SLACK * self.drift else "wrong"

    @property
    def amplified(self) -> float:
        """By how much rounding was amplified on the way."""
        return self.drift / NUDGE


def verify_result(result: "Result") -> list[Checked]:
    """Recompute every simulation of a run folder.

    Raises
    ------
    InputError
        If the run did not record its events.
    FolderError
        If the events are of another format, or the tables lack a simulation that the manifest names.
    """
    check_event_format(result.path, result.described.made_by)
    if result.events is None:
        raise InputError(f"{result.path}: no events were recorded; set record.events: true and run again")
    return list(_check_all(result))


def _check_all(result: "Result") -> "Iterator[Checked]":
    events = _by_run(result.events)
    metrics, ledgers = _by_run(result.metrics), _by_run(result.ledger)
    for cell, scenario in scenarios_of(result):
        for content, replica in sorted(result.described.runs):
            if content != result.described.cells[cell].content:
                continue
            run = (cell, replica)
            measured = bool(scenario.record.metrics or scenario.record.per_agent)
            if not (run in events and run in result.noise and (run in metrics or not measured)):
                raise FolderError(f"{result.path}: cell {cell}, replica {replica} is not in its tables")
            stream = _stream(events[run])
            case = _case(result, run)
            series = tuple(_series(metrics[run])) if run in metrics else ()
            missing = missing_part(scenario)
            known = without_mechanism(scenario) if missing else scenario
            fault = _broken_invariant(known, stream, case, replica)
            if missing and not fault:
                fault = _miscounted(scenario, ledgers[run], stream)
            if fault:
                # What cannot have happened cannot be replayed.
                yield Checked(cell, replica, len(stream), math.inf, fault=fault, missing=missing)
                continue
            if missing:
                largest = largest_of_network(known, case, replica, stream, series)
                yield Checked(cell, replica, len(stream), largest, missing=missing)
                continue
            try:
                differences = recompute(
                    scenario, case, replica, stream, result.noise[run], series, result.models.get(run)
                )
            except SimulationError as error:
                yield Checked(cell, replica, len(stream), math.inf, fault=str(error))
                continue
            yield Checked(cell, replica, len(stream), differences.largest, differences.drift)


def missing_part(scenario: "Scenario") -> str:
    """Which part of a scenario has not been let in, and the option that lets it in; empty where none is missing."""
    try:
        _ = scenario.privacy.mechanism.norm
    except MissingPartError as error:
        return str(error)
    return ""


def without_mechanism(scenario: "Scenario") -> "Scenario":
    """Return a scenario with the same network, whose releases have no noise and no limit."""
    privacy = scenario.privacy.model_copy(update={"mechanism": NoNoise()})
    return scenario.model_copy(update={"privacy": privacy})


def _by_run(table: "pd.DataFrame | None") -> "dict[tuple[int, int], pd.DataFrame]":
    if table is None:
        return {}
    groups: Any = table.groupby(["cell", "replica"], sort=False)
    return {(int(cell), int(replica)): rows for (cell, replica), rows in groups}


def scenarios_of(result: "Result") -> "Iterator[tuple[int, Scenario]]":
    """Scenario of each cell number, also of those that the grid has no more."""
    from p2psim.study.cells import cells
    from p2psim.study.scenario import Scenario

    grid = {cell.content: cell.scenario for cell in cells(result.scenario, confirm_cells=True)}
    for number, entry in enumerate(result.described.cells):
        if entry.content in grid:
            yield number, grid[entry.content]
        elif entry.scenario:
            yield number, Scenario.parse(entry.scenario, f"{result.path}/manifest.json", recorded=True)
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


def _case(result: "Result", run: tuple[int, int]) -> "Case":
    """Prepared data of a simulation, and who held them, as the folder tells."""
    from p2psim.study.workspace import Case

    table: Any = result.agents
    rows = table[(table["cell"] == run[0]) & (table["replica"] == run[1])].sort_values("index")
    groups = tuple(rows["group"]) if (rows["group"] != "").any() else None
    # Public bounds set the noise, which is recorded; what is recomputed does not depend on them.
    bounds = 0.0, 0.0, 0.0
    return Case("", result.data(*run), tuple(rows["label"]), groups, *bounds, {}, ())


def _miscounted(scenario: "Scenario", ledger: "pd.DataFrame", stream: np.ndarray) -> str:
    """Count the releases in the stream; returns how the ledger differs."""
    from p2psim.network.events import COMMIT, SEND

    # A start that depends on data is a release before the first event.
    start = getattr(scenario.learning.algorithm, "start", None)
    starts = 1 if start is not None and start.kind in ("local", "private") else 0
    made = stream[np.isin(stream["kind"], (SEND, COMMIT)) & (stream["agent"] >= 0) & (stream["release"] >= 0)]
    for agent, recorded in zip(ledger["agent"].tolist(), ledger["releases"].tolist(), strict=True):
        counted = int(made["release"][made["agent"] == agent].max(initial=-1)) + 1 + starts
        if counted != recorded:
            return f"the ledger has {recorded} releases of agent {agent}, its events {counted}"
    return ""


def _broken_invariant(scenario: "Scenario", stream: np.ndarray, case: "Case", replica: int) -> str:
    """Check the stream as a stream; returns what is wrong with it."""
    from p2psim.network.verify import verify
    from p2psim.study.families import family_of

    stage = family_of(scenario).cell(scenario, case, replica).stage
    network = stage.network
    try:
        verify(
            [stream],
            network.links,
            stage.plan.limits,
            goes_on=network.goes_on,
            by_edge=network.by_edge,
            resending=scenario.network.channel.resending,
            end=np.inf if stage.time is None else stage.time,
            polled=network.polled,
        )
    except SimulationError as error:
        return str(error)
    return ""
