"""What simulations of one process share: events and unit noise of a replica, and prepared cells."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.randomness import Streams
from p2psim.privacy.releases import ReleaseCounter
from p2psim.privacy.shares import Releases
from p2psim.scenario.model import Scenario
from p2psim.scenario.record import RecordSection
from p2psim.simulation.algorithms import PreparedCell, adapter_of
from p2psim.simulation.algorithms.replay import ReplaySetup
from p2psim.simulation.prepared import PreparedData
from p2psim.simulation.workspace import Workspace

if TYPE_CHECKING:
    from p2psim.simulation.algorithms.learner_replay import Bundle, Together

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


class PlayedReplica:
    """Events and unit noise of a replica, in chunks: computed as they are read, from memory where they were kept.

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

    Attributes
    ----------
    ended : str
        How the run ended, after the last chunk.
    counter : ReleaseCounter
        Its releases and commits, after the last chunk.
    facts : dict
        What has been read off the events, by whoever did.
    """

    def __init__(self, setup: ReplaySetup, streams: Streams, engine: str, check: bool, keep: bool):
        self._setup, self._streams, self._engine, self._check = setup, streams, engine, check
        self._most = KEEP_BYTES if keep else -1
        self._chunks: list[EventChunk] | None = None
        self.facts: dict[Hashable, Any] = {}
        self.ended = ""

    def read(self) -> Iterator[EventChunk]:
        """Yield the chunks, in order."""
        if self._chunks is not None:
            yield from self._chunks
            return
        setup, mechanism, noise_key = self._setup, self._setup.plan.mechanism, self._streams.key("noise")
        events = setup.events(self._streams, self._engine)
        checker = setup.checker() if self._check else None
        self.counter = counter = ReleaseCounter.empty(setup.network.links.agents, setup.queries)
        chunks, kept = list[EventChunk](), 0
        for stretch in events:
            if checker is not None:
                checker.check(stretch)
            releases = counter.read(stretch)
            unit = mechanism.draw(noise_key, releases.agents, releases.numbers, setup.dimension)
            chunk = EventChunk(stretch, releases, unit)
            kept += stretch.nbytes + unit.nbytes
            if kept <= self._most:
                chunks.append(chunk)
            else:
                chunks = []
            yield chunk
        self.ended = events.ended
        if kept <= self._most:
            self._chunks = chunks


class EventCache:
    """The replicas that were played last, for the next cell that has the same events and unit noise."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._of_bundle: tuple[object, ...] = ()

    def bundle(
        self, setup: ReplaySetup, streams: Sequence[Streams], record: RecordSection, together: "Together"
    ) -> "Bundle":
        """Several replicas together, of which this is recorded."""
        key = setup.key, streams, record.every, record.events
        if key != self._of_bundle:
            self._of_bundle, self._bundle = key, together.bundle(streams)
        return self._bundle

    def replica(
        self, setup: ReplaySetup, streams: Streams, engine: str, check: bool = False, keep: bool = True
    ) -> PlayedReplica:
        """A replica, to be read; parameters as of `PlayedReplica`."""
        # What tells replicas apart whose events or unit noise differ.
        key = setup.key, streams, engine, check, keep
        if key != self._key:
            self._key, self._played = key, PlayedReplica(setup, streams, engine, check, keep)
        return self._played


#: Cells that a process keeps.
KEPT_CELLS = 64


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
        # By the scenario's id and, where each replica draws its own, the replica; with the scenario, so that its id
        # stays its own.
        self.cells: OrderedDict[tuple[int, int | None], tuple[Scenario, PreparedData, PreparedCell]] = (
            OrderedDict()
        )

    def cell(
        self, scenario: Scenario, replica: int, workspace: Workspace
    ) -> tuple[PreparedData, PreparedCell]:
        """Case and cell of a scenario (without a sweep) in one replica."""
        if workspace is not self._used:  # of another study: its cells hold their data
            self.cells.clear()
            self._used = workspace
        key: tuple[int, int | None] = id(scenario), None
        if key not in self.cells:
            case = workspace.case(scenario, replica)
            if draws_anew(scenario):
                key = id(scenario), replica
        if key not in self.cells:
            similar = self._like_the_last(scenario, case, key[1])
            self.cells[key] = scenario, case, similar or adapter_of(scenario).cell(scenario, case, replica)
            if key[1] is not None:
                # The cells of a replica follow each other: those of others, and their data, can go.
                for other in [other for other in self.cells if other[1] not in (None, replica)]:
                    del self.cells[other]
        self.cells.move_to_end(key)
        while len(self.cells) > KEPT_CELLS:
            self.cells.popitem(last=False)
        return self.cells[key][1:]

    def _like_the_last(self, scenario: Scenario, case: PreparedData, replica: int | None) -> Any:
        """The cell of a scenario that differs in budgets alone from that of the last one; None for any other."""
        if not self.cells:
            return None
        (_, of_replica), (_, its_case, last) = next(reversed(self.cells.items()))
        return last.like(scenario) if of_replica == replica and its_case is case else None


def draws_anew(scenario: Scenario) -> bool:
    """Whether every replica draws something of a cell: its data, graph, first models, or a baseline's noise."""
    if scenario.data.redrawn:
        return True
    learning = scenario.learning
    parts = [scenario.network.topology, learning.algorithm.first_models, *learning.baselines]
    return any(getattr(part, "is_random", False) and getattr(part, "seed", None) is None for part in parts)
