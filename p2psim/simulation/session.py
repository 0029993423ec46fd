"""What simulations of one process share: events and unit noise of a replica, and prepared cells."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from p2psim.core.randomness import Streams
from p2psim.privacy.releases import ReleaseCounter
from p2psim.privacy.shares import Releases
from p2psim.scenario.model import Scenario
from p2psim.simulation.algorithms import PreparedCell, adapter_of
from p2psim.simulation.algorithms.replay import ReplaySetup
from p2psim.simulation.prepared import PreparedData
from p2psim.simulation.workspace import Workspace

#: A replica whose events and noise take more bytes than this is made anew for every cell.
KEEP_BYTES = 256 * 2**20


@dataclass(frozen=True)
class EventChunk:
    """A chunk of events, its releases in their order, and their noise of scale one."""

    events: np.ndarray
    releases: Releases
    unit: np.ndarray

    @cached_property
    def kinds(self) -> np.ndarray:
        """Kinds of the events, one byte after the other: to look for them in the events reads all of their memory."""
        return np.ascontiguousarray(self.events["kind"])


class EventCache:
    """Events and unit noise of a replica, in chunks, from memory where they were kept.

    Attributes
    ----------
    ended : str
        How the run ended, after the last chunk.
    counter : ReleaseCounter
        Its releases and commits, after the last chunk.
    """

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._chunks: list[EventChunk] = []
        self._facts: dict[Hashable, Any] = {}
        self.ended, self.counter = "", ReleaseCounter.empty(0)

    def facts(self, setup: ReplaySetup, streams: Streams, engine: str, check: bool) -> dict[Hashable, Any]:
        """Facts of the events of a replica, shared by its cells; where the replica is not kept, an empty mapping."""
        return self._facts if self._key == _key(setup, streams, engine, check) else {}

    def read(
        self, setup: ReplaySetup, streams: Streams, engine: str, check: bool, keep: bool = True
    ) -> Iterator[EventChunk]:
        """Yield the chunks of a replica, in order; `ended` and `counter` are known after the last one.

        Parameters
        ----------
        setup : ReplaySetup
        streams : Streams
            Random streams of the replica.
        engine : str
            What makes the events.
        check : bool
            Check the events' invariants.
        keep : bool
            Keep them in memory, for whoever reads them next, if they have room there.
        """
        key = _key(setup, streams, engine, check)
        if key == self._key:
            yield from self._chunks
            return
        self._key, self._chunks, self._facts = (), [], {}
        network, plan = setup.network, setup.plan
        events = setup.events(streams, engine)
        noise_key = streams.key("noise")
        checker = setup.checker() if check else None
        counter, kept = ReleaseCounter.empty(network.links.agents, setup.queries), 0
        most = KEEP_BYTES if keep else -1
        for stretch in events:
            if checker is not None:
                checker.check(stretch)
            releases = counter.read(stretch)
            unit = plan.mechanism.draw(noise_key, releases.agents, releases.numbers, setup.dimension)
            chunk = EventChunk(stretch, releases, unit)
            kept += stretch.nbytes + unit.nbytes
            if kept <= most:
                self._chunks.append(chunk)
            else:
                self._chunks = []
            yield chunk
        self.ended, self.counter = events.ended, counter
        if kept <= most:
            self._key = key


def _key(setup: ReplaySetup, streams: Streams, engine: str, check: bool) -> tuple[object, ...]:
    """What tells replicas apart whose events or unit noise differ."""
    return setup.key, streams.seed, streams.replica, tuple(sorted(streams.variants.items())), engine, check


#: Cells that a process keeps.
_KEPT_CELLS = 64


class Session:
    """What consecutive simulations of one process share: events with unit noise, and cells. It changes no result.

    Attributes
    ----------
    workspace : Workspace
        Prepared data of simulations that are asked for one by one, in memory.
    """

    def __init__(self) -> None:
        self.workspace = Workspace(None)
        self._used: Workspace | None = None
        self.events = EventCache()
        # By the scenario's id, the case's and, where each replica draws its own, the replica; with the scenario, so
        # that its id stays its own.
        self.cells: OrderedDict[tuple[int, str, int | None], tuple[Scenario, PreparedData, PreparedCell]] = (
            OrderedDict()
        )

    def cell(
        self, scenario: Scenario, replica: int, workspace: Workspace
    ) -> tuple[PreparedData, PreparedCell]:
        """Case and cell of a scenario (without a sweep) in one replica."""
        if workspace is not self._used:  # of another study: its cells hold their data
            self.cells.clear()
            self._used = workspace
        case = workspace.case(scenario, replica)
        only = replica if draws_anew(scenario) else None
        key = id(scenario), case.problem_id, only
        if key not in self.cells or self.cells[key][1] is not case:
            self.cells[key] = scenario, case, adapter_of(scenario).cell(scenario, case, replica)
            if only is not None:
                # The cells of a replica follow each other: those of others, and their data, can go.
                for other in [other for other in self.cells if other[2] not in (None, only)]:
                    del self.cells[other]
        self.cells.move_to_end(key)
        while len(self.cells) > _KEPT_CELLS:
            self.cells.popitem(last=False)
        return self.cells[key][1:]


def draws_anew(scenario: Scenario) -> bool:
    """Whether every replica draws something of a cell: its data, graph, first models, or a baseline's noise."""
    if scenario.data.redrawn:
        return True
    learning = scenario.learning
    parts = [scenario.network.topology, learning.algorithm.first_models, *learning.baselines]
    return any(getattr(part, "is_random", False) and getattr(part, "seed", None) is None for part in parts)
