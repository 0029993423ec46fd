"""Running a study: every cell and replica that is not done yet, into a run folder."""

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from p2psim.core import registry
from p2psim.core.errors import FolderError, InputError, SimulationError, check_place, show
from p2psim.core.files import path_of
from p2psim.core.options import AS_TUPLE, INT32, Few, Options, derived, given
from p2psim.runs import compaction, describing, manifest, store
from p2psim.runs.batches import BatchOptions
from p2psim.runs.checking import assess_cells, warnings_of
from p2psim.runs.clusters import connect, run_dask
from p2psim.runs.invocations import InvocationRecorder
from p2psim.runs.parts import RunKey, StoredPart
from p2psim.runs.pilot import refuse_excess, refuse_length
from p2psim.runs.pool import refuse_unguarded, run_local
from p2psim.runs.progress import shown
from p2psim.runs.result import Result
from p2psim.runs.system import available_cores, refuse_little_room, warm_up
from p2psim.runs.tables import StoredTables
from p2psim.runs.tuning import tuned
from p2psim.runs.work import Work
from p2psim.scenario.model import Cell, Scenario
from p2psim.simulation.workspace import Workspace

#: Where run folders go when nothing is said.
RUNS = Path("runs")


def _way_of_progress(value: object) -> object:
    return ("bar" if value else "none") if isinstance(value, bool) else value


class RunOptions(Options):
    """How a study is run, as far as it changes no result; see `run`."""

    jobs: Few | None = 1
    overwrite: bool = False
    progress: Annotated[Literal["bar", "json", "none"], BeforeValidator(_way_of_progress)] = "bar"
    executor: Literal["local", "dask"] = "local"
    scheduler: str | None = None
    check_events: bool = False
    only: Annotated[tuple[int, int], AS_TUPLE] | None = None
    confirm_cells: bool = False
    arguments: Annotated[tuple[str, ...], AS_TUPLE] | None = None


def default_folder(scenario: Scenario) -> Path:
    """``runs/NAME``; what a file name cannot hold becomes a hyphen."""
    return RUNS / (re.sub(r"[^\w.-]", "-", scenario.name).strip(".") or "study")


def run(
    scenario: Scenario,
    out: str | os.PathLike[str] | None = None,
    *,
    jobs: int | None = 1,
    overwrite: bool = False,
    progress: bool | str = True,
    executor: str = "local",
    scheduler: str | None = None,
    check_events: bool = False,
    only: tuple[int, int] | None = None,
    confirm_cells: bool = False,
    tell: Callable[[str], None] | None = None,
    arguments: Sequence[str] | None = None,
) -> Result:
    """Run what is missing of a study, and return its results.

    Parameters
    ----------
    scenario : Scenario
        What to run.
    out : path, optional
        The run folder; ``runs/NAME`` when left out. One that holds results of the same scenario is completed:
        finished simulations are not repeated, more replicas or sweep values are added.
    jobs : int or None
        Number of processes. None takes one per core where it pays. Scripts that ask for more than one
        must guard their main part by ``if __name__ == "__main__":``.
    overwrite : bool
        Start afresh, replacing the results that the folder holds.
    progress : bool or str
        How to show progress on standard error: "bar", if that is a terminal, "json", a line at a time, or "none"; True
        is "bar".
    executor : {"local", "dask"}
        Which processes do the work.
    scheduler : str, optional
        Address of the Dask scheduler; without one a cluster of `jobs` processes is started on this machine.
    check_events : bool
        Check the invariants of every event stream.
    only : (cell, replica), optional
        Run this simulation alone, in this process.
    confirm_cells : bool
        Accept a study of any size: cells, memory and time.
    tell : callable, optional
        Called with each warning that is known before the simulations begin; all warnings are in the manifest.
    arguments : sequence of str, optional
        Of the command line that asks for it; kept in the manifest.

    Returns
    -------
    Result

    Raises
    ------
    InputError
        If the scenario, the folder or an argument is wrong; nothing was written.
    SimulationError
        If simulations failed; finished simulations are kept.
    KeyboardInterrupt
        When interrupted; finished simulations are kept.
    """
    values = locals().copy()
    from p2psim.scenario.cells import cells

    if not isinstance(scenario, Scenario):
        raise InputError(f"run takes a Scenario, got {show(scenario)}; Scenario.load reads one from a file")
    options = given(RunOptions, **{name: values[name] for name in RunOptions.model_fields})
    if tell is not None and not callable(tell):
        raise InputError(f"tell: must be a function, got {show(tell)}")
    if options.scheduler is not None and options.executor != "dask":
        raise InputError("scheduler is for executor dask")
    folder = path_of("out", out) if out is not None else default_folder(scenario)
    if options.jobs != 1 or options.executor == "dask":
        refuse_unguarded()
    if scenario.tune is not None and scenario.tune.chosen is None:
        scenario = _tuned(scenario, folder, options, tell)
    grid = cells(scenario, confirm_cells=options.confirm_cells)
    refuse_excess(scenario, grid, options.confirm_cells)
    if options.executor == "local":
        refuse_little_room(1 if options.only is not None else options.jobs)
    if options.only is not None:
        check_place("cell", options.only[0], len(grid))
        check_place("replica", options.only[1], INT32)
    failed = Study(folder, scenario, grid, options, tell or (lambda warning: None)).complete()
    if failed:
        raise SimulationError(describing.describe_failures(failed, grid, folder))
    return Result.load(folder)


def _tuned(
    scenario: Scenario, folder: Path, options: RunOptions, tell: Callable[[str], None] | None
) -> Scenario:
    """Run the validation study as the study itself shall be run, and choose."""
    from p2psim.scenario.cells import cells

    # A folder of another study is refused before anything is written into it.
    Study(folder, scenario, cells(scenario, confirm_cells=True), options, print).inspect()
    ways = {name: value for name, value in options if name not in ("only", "arguments")}
    return tuned(scenario, folder, lambda study, place: run(study, place, tell=tell, **ways))


@dataclass(frozen=True)
class Study:
    """A study, the run folder that it goes into, and how it is run.

    Attributes
    ----------
    folder : Path
    scenario : Scenario
    grid : sequence of Cell
        All cells of the scenario.
    options : RunOptions
    tell : callable
        Called with each warning that is known before the simulations begin.
    """

    folder: Path
    scenario: Scenario
    grid: Sequence[Cell]
    options: RunOptions
    tell: Callable[[str], None]

    def complete(self) -> dict[RunKey, str]:
        """Complete the run folder; returns what failed."""
        folder, scenario, grid, options = self.folder, self.scenario, self.grid, self.options
        record = InvocationRecorder(options.arguments, options.executor, options.jobs)
        with contextlib.ExitStack() as stack:
            before = self.inspect()
            # A folder may appear at any moment: nothing but a lock that is held says that it is ours.
            locked = folder.exists()
            if locked:
                stack.enter_context(store.lock(folder))
                before = self.inspect()
            content = store.read_content(folder) if before is not None and not options.overwrite else None
            work = Work(scenario, grid, content, options.only)
            directory = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="p2psim-", ignore_cleanup_errors=True)
            )
            if options.executor == "local" and (options.jobs or 1) > 1 and len(work.items) > 1:
                warm_up()
            alone = options.jobs == 1 or options.only or (work.rule is None and len(work.items) == 1)
            workspace = Workspace(Path(directory), options.executor == "local" and bool(alone))
            fitted, facts = self.prepare(workspace, work) if work.items else ({}, {})
            if content is not None and not work.items and self._is_complete(content, work):
                compaction.keep_figures(folder, content.manifest, scenario)
                return {}
            client = None
            if options.executor == "dask":
                client = stack.enter_context(connect(options.scheduler, options.jobs or available_cores()))
            # From here on the folder changes: the input is known to be good.
            if not locked:
                self._create()
                stack.enter_context(store.lock(folder))
                if self.inspect() is not None:
                    raise FolderError(
                        f"{folder}: another run has just begun in it; wait for it, or choose another --out"
                    )
            if options.overwrite:
                store.clear(folder)
            for message in describing.version_warnings(content):
                self.tell(message)
            described = describing.describe(scenario, grid, content, folder, fitted, facts, record.so_far())
            text = describing.resolved_text(scenario, grid, described)
            store.begin(folder, described, text)
            try:
                failed, parts = self.execute(work, workspace, client, record)
            except BaseException:
                with contextlib.suppress(OSError):
                    invocations = (*described.invocations[:-1], record.so_far("interrupted"))
                    manifest.write(folder, replace(described, state="interrupted", invocations=invocations))
                raise
            held = content or store.Content(described, (), StoredTables(folder, ()))
            content = held.grown(described, parts)
            cells = describing.cells_at_end(described, content, work.stopped())
            state = "failed" if failed else "finished"
            described = replace(described, cells=cells, failed=failed, state=state)
            threads = min(options.jobs or available_cores(), available_cores())
            compaction.finish(folder, content, described, text, record, threads)
            return failed

    def inspect(self) -> manifest.Manifest | None:
        """See whether the folder may be used; see `p2psim.runs.store.inspect`."""
        stored = store.inspect(self.folder, self.options.overwrite)
        if stored is not None and stored.identity != self.scenario.identity() and not self.options.overwrite:
            # The scenario's own mistakes come first: perhaps it is another one because of them.
            assess_cells(self.scenario, self.grid, Workspace(None))
            changes = describing.differences(self.folder / store.SCENARIO, self.scenario)
            details = "; ".join(filter(None, (stored.name, changes)))
            raise FolderError(
                f"{self.folder}: holds the results of another scenario ({details}); "
                "choose another --out, or replace it with --overwrite"
            )
        return stored

    def _create(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"{self.folder}: cannot be created ({error.strerror}); choose another --out"
            raise FolderError(message) from None

    def _is_complete(self, content: store.Content, work: Work) -> bool:
        """Whether the tables hold everything, in the order of this grid, and the manifest says why."""
        held, size = content.manifest, len(self.grid)
        stops = {cell.content: cell.stopped for cell in held.cells[:size] if cell.stopped}
        in_tables = not content.parts and held.stored[:size] == tuple(cell.content for cell in self.grid)
        return in_tables and held.state == "finished" and stops == work.stopped()

    def prepare(
        self, workspace: Workspace, work: Work
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Prepare the data of all cells before anything is written, so that bad input leaves no trace.

        Returned are what the preparation found, and the facts of each cell, by content hash. Who works has the cells'
        warnings from here.
        """
        from p2psim.scenario.fields import explicit

        assessed = assess_cells(self.scenario, self.grid, workspace)
        refuse_length(self.scenario, self.grid, assessed, self.options.confirm_cells)
        for warning in warnings_of(self.grid, assessed):
            self.tell(warning)
        # Cells mostly have the same warnings: each text is kept, and sent to a worker, once.
        texts = dict[tuple[str, ...], tuple[str, ...]]()
        said = (texts.setdefault(fact.of_runs, fact.of_runs) for fact in assessed)
        work.grid = [derived(cell, warnings=text) for cell, text in zip(self.grid, said, strict=True)]
        facts = {cell.content: explicit(fact.facts) for cell, fact in zip(self.grid, assessed, strict=True)}
        return {cell.content: workspace.fitted(cell.scenario) for cell in self.grid}, facts

    def execute(
        self, work: Work, workspace: Workspace, client: Any, record: InvocationRecorder
    ) -> tuple[dict[RunKey, str], list[StoredPart]]:
        """Simulate, keeping each batch as it comes; returns what failed, and the batches."""
        failed, parts = dict[RunKey, str](), list[StoredPart]()
        if not work.items:
            return failed, parts
        keep_data = self.scenario.record.data or self.scenario.record.events
        shared = frozenset(workspace.problems() if client is None else ())
        options = BatchOptions(
            keep_data, shared, self.options.check_events, parts=registry.loaded(), share=len(self.grid) > 1
        )
        if client is not None:
            results = run_dask(client, work, options)
        else:
            jobs = 1 if self.options.only else self.options.jobs
            results = run_local(work, workspace, options, jobs, self.folder / store.PARTS)
        with shown(work.planned, self.options.progress) as advance, contextlib.closing(results) as stream:
            for result in stream:
                part = None
                if result.part is not None:
                    arrays = workspace.arrays if keep_data else None
                    part = store.add_part(self.folder, result.part, arrays)
                    parts.append(part)
                failed.update(result.failed)
                work.take_in(result, part)
                record.take_in(result.worker, result.done, result.used)
                advance(result.done, len(result.failed), result.worker, work.planned)
                if result.stopped is not None:
                    raise result.stopped
        return failed, parts
