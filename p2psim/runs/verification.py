"""Recomputes the recorded simulations of a run folder from their events, noise and data.

Without a part that made the results only their events and the releases in the ledger can be checked. The topology may
be unknown then, so that every agent that exchanged a message with another counts as its neighbour.
"""

import contextlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from p2psim.core.errors import FolderError, InputError, MissingPartError, SimulationError
from p2psim.core.events import BEGIN, COLUMNS, COMMIT, EVENT, KINDS, LEARNER, OUTCOMES, SEND
from p2psim.core.registry import parts
from p2psim.data.prepare import public_bounds
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Exchange
from p2psim.network.graph import Graph, from_edges, star_links
from p2psim.network.spec import SINGLY, Conduct
from p2psim.network.verify import verify
from p2psim.network.verify_messages import Resending
from p2psim.network.verify_order import Ordering
from p2psim.runs.describing import differences
from p2psim.runs.ledger_check import faults, simulations_of
from p2psim.runs.manifest import CellEntry, check_format
from p2psim.runs.result import Result
from p2psim.runs.store import TUNING
from p2psim.runs.tuning import fault_of_choice
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import adapter_of
from p2psim.simulation.check import NUDGE, SLACK, TOLERANCE, verify_replica
from p2psim.simulation.outcome import Series, check_event_format
from p2psim.simulation.prepared import PreparedData


@dataclass(frozen=True)
class ReplicaCheck:
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


def verify_result(result: Result, scenario: Scenario | None = None) -> list[ReplicaCheck]:
    """Recompute every simulation of a run folder, and of the validation study that tuned it, and the values it chose.

    See `damaged_files` for whether its files are as they were written.

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
    SimulationError
        If tuned values are not those that the validation study gives.
    """
    check_format(result.path, result.described)
    if scenario is not None and scenario.identity() != result.described.identity:
        changes = differences(result.path / "scenario.yaml", scenario)
        raise FolderError(
            f"{result.path}: these are not results of the scenario given{f' ({changes})' * bool(changes)}"
        )
    damaged = damaged_files(result)
    if not all((result.path / name).is_file() for name in result.described.files):
        raise FolderError(*damaged)  # nobody opens what is no file: a pipe would wait for ever
    try:
        readable = Result(result.path, result.described, trusting=True) if damaged else result
        checks = list(_check_all(readable, scenario))
        if readable.scenario_tree.get("tune"):
            _check_tuning(readable)
        return checks
    except Exception as error:
        if damaged:
            raise FolderError(*damaged) from error
        if isinstance(error, MissingPartError):
            raise checked_partly(result, error) from None
        raise


def _check_tuning(result: Result) -> None:
    tuning = Result.load(result.path / TUNING)
    wrong = [check for check in verify_result(tuning) if check.verdict == "wrong"]
    faults = [f"cell {check.cell}, replica {check.replica} is not what its events give" for check in wrong]
    if fault := "; ".join(faults) or fault_of_choice(result, tuning):
        raise SimulationError(f"{tuning.path}: {fault}")


def checked_partly(result: Result, error: MissingPartError) -> FolderError | SimulationError:
    """What a command that lacks a part says: what could be checked without it, and whether that is right."""
    if damaged := damaged_files(result):
        return FolderError(*damaged)
    right = f"the hashes of its {len(result.described.files)} files"
    if result.events is not None:
        tree, events, ledgers = result.scenario_tree, by_run(result.events), by_run(result.ledger)
        for (number, replica), rows in sorted(events.items()):
            stream, cell, ledger = stream_of(rows), result.described.cells[number], ledgers[number, replica]
            fault = broken_invariant(stream, len(ledger), tree, cell)
            if fault := fault or miscounted(stream, ledger, tree, cell):
                return SimulationError(f"{error}\ncell {number}, replica {replica}: {fault}")
        right += f", and invariants of the events and releases in the ledger of {len(events)} simulations"
    return SimulationError(f"{error}\nnot fully verified without it; right are {right}")


def damaged_files(result: Result) -> list[str]:
    """Files of a run folder that are not as they were written, each with what is wrong."""
    faults = ((name, result.fault(name)) for name in result.described.files)
    return [f"{result.path / name}: {fault}" for name, fault in faults if fault]


def _check_all(result: Result, given: Scenario | None) -> Iterator[ReplicaCheck]:
    check_event_format(result.path, result.described.made_by)
    if result.events is None or result.links is None:
        raise InputError(
            f"{result.path}: its files are as they were written, but no events were recorded by which they can be "
            "recomputed; set record.events: true and run again"
        )
    names = ("events", "links", "metrics", "ledger", "agents")
    tables = {name: by_run(getattr(result, name)) for name in names}
    metrics = tables["metrics"]
    for cell, replica, scenario in simulations_of(result, given):
        run = (cell, replica)
        measured = bool(scenario.record.metrics or scenario.record.per_agent)
        whole = all(run in tables[name] for name in ("events", "ledger", "agents"))
        if not (whole and run in result.noise and (run in metrics or not measured)):
            raise FolderError(f"{result.path}: cell {cell}, replica {replica} is not in its tables")
        stream, noise = stream_of(tables["events"][run]), result.noise[run]
        data = prepared_data(result, scenario, run)
        series = tuple(_series(metrics[run])) if run in metrics else ()
        prepared = adapter_of(scenario).cell(scenario, data, replica)
        rows = {
            name: tables[name][run].loc[:, first:].sort_values(first)
            for name, first in (("ledger", "agent"), ("agents", "index"))
        }
        # A graph that changes may have had no link.
        rows["links"] = tables["links"].get(run, result.links.iloc[:0]).drop(columns=["cell", "replica"])
        try:
            # What cannot have happened cannot be replayed.
            prepared.setup.checker().check(stream)
            if fault := "; ".join(faults(scenario, replica, prepared, stream, noise, rows)):
                raise SimulationError(fault)
            models = result.models.get(run)
            differences = verify_replica(scenario, data, replica, stream, noise, series, models)
        except SimulationError as error:
            yield ReplicaCheck(cell, replica, len(stream), math.inf, fault=str(error))
        else:
            yield ReplicaCheck(cell, replica, len(stream), differences.largest, differences.drift)


def by_run(table: pd.DataFrame) -> dict[tuple[int, int], pd.DataFrame]:
    """Rows of each simulation, by cell and replica."""
    groups: Any = table.groupby(["cell", "replica"], sort=False)
    return {(int(cell), int(replica)): rows for (cell, replica), rows in groups}


def stream_of(rows: pd.DataFrame) -> np.ndarray:
    """Events as the engine made them."""
    words = {"kind": KINDS, "outcome": OUTCOMES}
    stream = np.zeros(len(rows), EVENT)
    for name in COLUMNS:
        stream[name] = pd.Categorical(rows[name], words[name]).codes if name in words else rows[name]
    return stream


def _series(rows: pd.DataFrame) -> Iterator[Series]:
    groups: Any = rows.groupby(["metric", "model", "agent"], sort=False, observed=True, dropna=False)
    for (metric, model, agent), values in groups:
        time, value = (values[name].to_numpy(np.float64) for name in ("time", "value"))
        of = None if pd.isna(agent) else int(agent)
        yield Series(str(metric), str(model), of, values["step"].to_numpy(np.int64), time, value)


def prepared_data(result: Result, scenario: Scenario, run: tuple[int, int]) -> PreparedData:
    """Prepared data of a simulation, and who held them, as the folder tells."""
    arrays = result.data(*run)
    groups = tuple(arrays["groups"].tolist()) if "groups" in arrays else None
    bounds = public_bounds(scenario.data, arrays["y"])
    return PreparedData("", arrays, tuple(arrays["labels"].tolist()), groups, *bounds, {}, ())


#: Where a sweep changes the channel: anything may be sent again any number of times.
_ANYTHING = Resending(2**31, True, 2**31)


def broken_invariant(stream: np.ndarray, agents: int, tree: Mapping[str, Any], cell: CellEntry) -> str:
    """What is wrong with a stream of events, whatever the parts of the study were; empty if nothing.

    Parameters
    ----------
    stream : ndarray of EVENT
        Of one simulation.
    agents : int
        Their number.
    tree : mapping
        The resolved scenario, as it was written.
    cell : CellEntry
        The cell, with its swept values.
    """
    swept = {key for key in cell.swept if key.startswith("network.channel")}
    # An effect may be a missing part. It sends nothing again.
    channel = {key: value for key, value in tree["network"]["channel"].items() if key != "effects"}
    resending = _ANYTHING if swept else Channel.model_validate(channel).resending
    links, broken = _links(stream, agents), []
    exchange = _exchange_of(tree, cell)
    missing = exchange is None
    for by_edge, conduct in _conducts(exchange):
        try:
            computes = bool((stream["kind"] == BEGIN).any())
            known = Ordering(own_exchange=missing, own_links=True, computes=computes)
            known = replace(known, in_rounds=conduct.in_rounds)
            verify([stream], links, by_edge=by_edge, resending=resending, order=known, conduct=conduct)
            return ""
        except SimulationError as error:
            broken.append(str(error))
    return broken[0]


def _exchange_of(tree: Mapping[str, Any], cell: CellEntry) -> Exchange | None:
    """The exchange of a cell, as far as its swept values say it; None if nothing is known of its kind."""
    key, given = "network.exchange", dict(tree["network"]["exchange"])
    if key in cell.swept:
        kind, _, values = str(cell.swept[key]).partition("(")
        given = {"kind": kind} | dict(re.findall(r"(\w+)=([\w.-]+)", values))
    inside = ((name.partition(f"{key}.")[2], value) for name, value in cell.swept.items())
    given |= {name: value for name, value in inside if name}
    for name, text in given.items():
        with contextlib.suppress(ValueError, TypeError):
            given[name] = json.loads(text)
    part = parts("exchange").get(given["kind"])
    return None if part is None else part.model_construct(**given)


def _conducts(exchange: Exchange | None) -> Iterable[tuple[bool, Conduct]]:
    """What agents may have done: whether links wake, and the rest.

    Much follows from the algorithm, and whether links wake not from an exchange that is missing.
    """
    if exchange is None:
        return [(False, SINGLY), (True, SINGLY)]
    ways = itertools.product(("wake", "hear"), (False, True))
    return dict.fromkeys((exchange.by_edge, exchange.conduct(*way)) for way in ways)


def miscounted(stream: np.ndarray, ledger: pd.DataFrame, tree: Mapping[str, Any], cell: CellEntry) -> str:
    """How the releases in a ledger differ from those in the events; empty if they do not."""
    # A start that depends on data is a release before the first event.
    start = tree["learning"]["algorithm"].get("start") or {}
    starts = {1 if start.get("kind") in ("local", "private") else 0}
    if any(key.startswith("learning.algorithm") for key in cell.swept):
        starts = {0, 1}
    sent = np.isin(stream["kind"], (SEND, COMMIT))
    releases = stream[sent & (stream["agent"] >= 0) & (stream["release"] >= 0)]
    for agent, recorded in zip(ledger["agent"].tolist(), ledger["releases"].tolist(), strict=True):
        counted = int(releases["release"][releases["agent"] == agent].max(initial=-1)) + 1
        if recorded - counted not in starts:
            return f"the ledger has {recorded} releases of agent {agent}, its events {counted}"
    return ""


def _links(stream: np.ndarray, agents: int) -> Graph:
    if (stream["agent"] == LEARNER).any():
        return star_links(agents)
    ends = np.stack([stream["agent"], stream["peer"]], axis=1)
    pairs = ends[(ends >= 0).all(axis=1) & (ends < agents).all(axis=1)]
    pairs = np.unique(np.sort(pairs, axis=1), axis=0)
    return from_edges(agents, pairs[:, 0], pairs[:, 1])
