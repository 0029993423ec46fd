"""Replays of replicas with a central learner: one of any length, or several short ones of a cell together.

A star of a few owners where no message takes time needs less than a microsecond a commit; calls of Python and NumPy for
each replica would take as long again. So what differs between replicas is computed in one call for several of them.
Each gives the same bytes as alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.core.events import DROP, EVENT, event_table
from p2psim.core.randomness import Streams
from p2psim.learning.graph.metrics import Snapshot
from p2psim.learning.metrics import Series
from p2psim.learning.star.problem import Recorded, StarProblem
from p2psim.learning.star.replay import LearnerReplay
from p2psim.network.section import RunSetup
from p2psim.privacy.ledger import Account
from p2psim.privacy.releases import releases_of_runs
from p2psim.privacy.shares import Releases
from p2psim.scenario.record import RecordSection
from p2psim.simulation.algorithms.replay import Replay, ReplayResult
from p2psim.simulation.observer import Key, series_of, values_of
from p2psim.simulation.recorder import Marks, marks_of_runs

if TYPE_CHECKING:
    import pyarrow as pa

    from p2psim.network.compiled_engine.engine import RunsTogether


def check_models(recorded: Recorded, step_name: str) -> None:
    """Raise a SimulationError where a recorded model is not finite."""
    finite = np.isfinite(recorded.theta)
    if not finite.all():
        first = recorded.step[~finite.all(axis=1)][0]
        raise SimulationError(f"the model is not finite from {step_name} {first} on")


def check_values(series: Series) -> None:
    """Raise a SimulationError where a value is not finite."""
    finite = np.isfinite(series.value)
    if not finite.all():
        raise SimulationError(f"{series.metric} is not finite from step {series.step[~finite][0]} on")


class LearnerMetrics(NamedTuple):
    """Metrics of a learner's models.

    Attributes
    ----------
    of_star : list of type of StarMetric
    of_graph : list of type of GraphMetric
        Those that graphs have too.
    """

    of_star: list[Any]
    of_graph: list[Any]


class RecordedLearnerReplay(Replay):
    """One replica with a central learner, and its models where they are recorded.

    Parameters
    ----------
    replay : LearnerReplay
    problem : StarProblem
    owners : SharedProblem
        The same, with each owner's records held out.
    record : RecordSection
    groups : sequence of str or None
        The owners' groups, where means over them are recorded.
    metrics : LearnerMetrics
        Those that are recorded.
    """

    def __init__(
        self,
        replay: LearnerReplay,
        problem: StarProblem,
        owners: Any,
        record: RecordSection,
        groups: Sequence[str] | None,
        metrics: LearnerMetrics,
    ):
        super().__init__(replay)
        self._problem, self._owners, self._record = problem, owners, record
        self._groups, self._metrics = None if groups is None else np.array(groups), metrics
        self._kept: list[Recorded] = []

    def feed(self, events: np.ndarray, noise: np.ndarray, places: np.ndarray, marks: Marks) -> None:
        """See `Replay.feed`."""
        theta = self._replay.feed(events, noise, marks.places)
        if marks.places.size:
            self._kept.append(Recorded(marks.steps, marks.times, theta))

    def finish(self, marks: Marks) -> ReplayResult:
        """See `Replay.finish`."""
        kept = self._kept
        if marks.steps.size or not kept:
            last = np.repeat(self._replay.model[None], marks.steps.size, axis=0)
            kept = [*kept, Recorded(marks.steps, marks.times, last)]
        recorded = kept[0]
        if len(kept) > 1:
            recorded = Recorded(*(np.concatenate(columns) for columns in zip(*kept, strict=True)))
        check_models(recorded, self._replay.step_name)
        series = tuple(
            entry for metric in self._metrics.of_star for entry in metric.measure(self._problem, recorded)
        )
        if self._metrics.of_graph:
            series += tuple(self._of_owners(recorded))
        for entry in series:
            check_values(entry)
        return ReplayResult(series, recorded.theta)

    def _of_owners(self, recorded: Recorded) -> Iterator[Series]:
        """Metrics that graphs have too: of the learner's model, and of θ* at the first and the last record."""
        problem, rows = self._problem, dict[Key, list[tuple[int, float, float]]]()
        ends = sorted({0, recorded.step.size - 1})
        for model, moments in (("main", range(recorded.step.size)), ("optimum", ends)):
            for row in moments:
                theta = recorded.theta[row] if model == "main" else problem.optimum
                snapshot = Snapshot(
                    self._owners, theta[None], self._objective(theta), lambda: problem.minimum, 0
                )
                moment = int(recorded.step[row]), float(recorded.time[row])
                for metric in self._metrics.of_graph:
                    for key, value in values_of(metric, model, snapshot, self._record, self._groups).items():
                        rows.setdefault(key, []).append((*moment, value))
        yield from (series_of(key, values) for key, values in rows.items())

    def _objective(self, theta: np.ndarray) -> Callable[[], float]:
        problem = self._problem
        return lambda: problem.minimum * (1 + float(problem.relative_fitness(theta)[0]))


#: Bytes of the events of simulations that are played together: what a processor's cache may hold.
_BYTES = 4 << 20
#: The most simulations that are played together, and agents of all of them.
_MOST, _AGENTS = 64, 4096


class Bundle(NamedTuple):
    """Events and unit noise of several replicas, and where something is recorded; shared by cells.

    Attributes
    ----------
    runs : RunsTogether
    releases : Releases
        Of one replica after the other.
    release_bounds : ndarray of int64, shape (replicas + 1,)
        Those of replica r are from release_bounds[r] to release_bounds[r + 1].
    unit : ndarray, shape (releases, p)
        Noise of scale one.
    marks : Marks
    mark_bounds : ndarray of int64, shape (replicas + 1,)
    lost : list of tuple of ndarray of int, shape (n,) each
        Of each replica, the releases of each agent that reached nobody, and failed deliveries of its releases.
    columns : pyarrow.Table or None
        The events, where they are kept.
    """

    runs: RunsTogether
    releases: Releases
    release_bounds: np.ndarray
    unit: np.ndarray
    marks: Marks
    mark_bounds: np.ndarray
    lost: list[tuple[np.ndarray, np.ndarray]]
    columns: pa.Table | None


class Replayed(NamedTuple):
    """What one replica gives.

    Attributes
    ----------
    ended : str
        How it ended.
    series : tuple of Series
    models : ndarray, shape (records, p)
    noise : ndarray, shape (releases, p)
        In the order of the events.
    columns : tuple of pyarrow.Table
        The events, where they are kept.
    account : Account
    made : ndarray of int64, shape (n,)
        Releases of each agent.
    commits : int
    last : float
        Time of its last event.
    """

    ended: str
    series: tuple[Series, ...]
    models: np.ndarray
    noise: np.ndarray
    columns: tuple[pa.Table, ...]
    account: Account
    made: np.ndarray
    commits: int
    last: float


def together(cell: Any) -> Together | None:
    """What simulates several replicas of a cell at once; None where nothing does, or calls for each cost little.

    Parameters
    ----------
    cell : StarCell
        Without batches, and without metrics of graphs.

    Raises
    ------
    InputError
        If its events cannot be made.
    """
    record, setup = cell.scenario.record, cell.setup
    if cell.observers or setup.plan.clairvoyant or not isinstance(record.every, int):
        return None
    if setup.commits is None or setup.time is not None:
        return None
    # As for a single run, so that what is refused there is refused here, and parts of users are left to SimPy.
    if setup.events(Streams(), cell.scenario.network.engine).engine != "array":
        return None
    from p2psim.network.compiled_engine.engine import run_together

    make = run_together(setup.network)
    found = None if make is None else Together(cell, make)
    return found if found is not None and found.most > 1 else None


class Together:
    """Simulates several replicas of a cell at once.

    Parameters
    ----------
    cell : StarCell
        As of `together`.
    make : callable
        From `p2psim.network.compiled_engine.engine.run_together`.
    """

    def __init__(self, cell: Any, make: Callable[[RunSetup, Sequence[Streams]], RunsTogether | None]):
        self._cell, self._make, setup = cell, make, cell.setup
        assert setup.commits is not None
        #: So many events has a run where nothing is lost and nobody is turned away.
        self._events = setup.commits * setup.network.exchange.events_per_commit
        #: How many replicas to play at once.
        agents = setup.network.links.agents
        self.most = int(min(_MOST, _BYTES // (self._events * EVENT.itemsize), _AGENTS // agents))

    def bundle(self, streams: Sequence[Streams]) -> Bundle:
        """Events and unit noise of replicas, by their random streams.

        Raises
        ------
        SimulationError
            If they have far more events than where nothing is lost; `most` is 1 from then on.
        """
        setup, n = self._cell.setup, self._cell.setup.network.links.agents
        room = len(streams) * (self._events + 8) + 64
        run = RunSetup(
            setup.network, setup.network.known_rates, streams[0], setup.limits, setup.commits, None, room
        )
        runs = self._make(run, streams)
        if runs is None:
            self.most = 1
            raise SimulationError("replicas with so many events are to be simulated one by one")
        events, bounds = runs.events, runs.bounds
        releases, ends = releases_of_runs(events, bounds, n)
        unit = np.empty((releases.agents.size, setup.dimension))
        for one, (first, last) in zip(streams, pairwise(ends.tolist()), strict=True):
            rows = slice(first, last)
            unit[rows] = setup.plan.mechanism.draw(
                one.key("noise"), releases.agents[rows], releases.numbers[rows], setup.dimension
            )
        kinds = np.ascontiguousarray(events["kind"])
        every = self._cell.scenario.record.every
        assert isinstance(every, int)
        marks, mark_bounds = marks_of_runs(every, events, kinds, bounds)
        drops, lost = bool((kinds == DROP).any()), []
        for first, last in pairwise(bounds.tolist()):
            losses = setup.lost_releases.begin()
            if drops:
                losses.read(events[first:last], kinds[first:last])
            lost.append((losses.releases, losses.deliveries))
        columns = event_table(events, brief=True) if self._cell.scenario.record.events else None
        return Bundle(runs, releases, ends, unit, marks, mark_bounds, lost, columns)

    def play(self, bundle: Bundle) -> list[Replayed]:
        """What each replica of a bundle gives, in order.

        Raises
        ------
        P2PSimError
            If one of them cannot be simulated: which, `p2psim.simulation.simulate.simulate` shows one by one.
        """
        cell, plan, marks, runs = self._cell, self._cell.setup.plan, bundle.marks, bundle.runs
        noise = plan.noise(bundle.unit, bundle.releases)
        models, violations = cell.start().replay_each(
            runs.events, runs.bounds, noise, bundle.release_bounds, marks.places, bundle.mark_bounds
        )
        series = self._series(models, marks, bundle.mark_bounds)
        replayed = []
        columns = bundle.releases.agents, bundle.releases.numbers, bundle.releases.steps
        mark_bounds, release_bounds = bundle.mark_bounds.tolist(), bundle.release_bounds.tolist()
        for r, (begin, end) in enumerate(pairwise(runs.bounds.tolist())):
            rows, mine = slice(*mark_bounds[r : r + 2]), slice(*release_bounds[r : r + 2])
            releases = Releases(*(column[mine] for column in columns))
            lost, deliveries_lost = bundle.lost[r]
            account = Account(lost, deliveries_lost, releases, None, cell.caveats(violations[r]))
            commits, last = int(marks.steps[rows][-1]), float(runs.events["time"][end - 1])
            replayed.append(
                Replayed(
                    ended=runs.ended[r],
                    series=series[r],
                    models=models[rows],
                    noise=noise[mine],
                    columns=() if bundle.columns is None else (bundle.columns.slice(begin, end - begin),),
                    account=account,
                    made=runs.made[r],
                    commits=commits,
                    last=last,
                )
            )
        return replayed

    def _series(self, models: np.ndarray, marks: Marks, bounds: np.ndarray) -> list[tuple[Series, ...]]:
        """Series of each replica, from the recorded models of all."""
        cell = self._cell
        whole = Recorded(marks.steps, marks.times, models)
        check_models(whole, cell.compiled.step_name)
        cuts = [slice(*ends) for ends in pairwise(bounds.tolist())]
        series: list[list[Series]] = [[] for _ in cuts]
        for metric in cell.metrics.of_star:
            if metric.row_by_row:
                (all_of,) = metric.measure(cell.problem, whole)
                check_values(all_of)
                for mine, rows in zip(series, cuts, strict=True):
                    columns = all_of.step[rows], all_of.time[rows], all_of.value[rows]
                    mine.append(Series(all_of.metric, all_of.model, all_of.agent, *columns))
                continue
            for mine, rows in zip(series, cuts, strict=True):
                mine += metric.measure(cell.problem, Recorded(*(column[rows] for column in whole)))
        return [tuple(mine) for mine in series]
