"""Merging of all that a run folder holds into its tables and archives, in one atomic step.

A pilot has what it simulated merged as well, elsewhere, to see how long that takes.

Stopping rules read the last recorded values of a metric here, from parts and from tables: of a metric that is recorded
for all agents together that value, otherwise the mean over agents.
"""

import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from p2psim.core import files as aside
from p2psim.runs import manifest, store
from p2psim.runs.invocations import InvocationRecorder
from p2psim.runs.manifest import CellEntry, Manifest
from p2psim.runs.parts import ARCHIVES, TABLES, EncodedPart, RunKey, StoredPart
from p2psim.runs.seals import print_of
from p2psim.runs.store import Content
from p2psim.runs.tables import Placed, Source, StoredTables, merge
from p2psim.scenario.model import Cell, Scenario
from p2psim.scenario.record import Until
from p2psim.simulation.algorithms import Assessment
from p2psim.simulation.workspace import members_of, read_member, write_archive


def finish(
    folder: Path,
    content: store.Content,
    described: Manifest,
    scenario_text: str,
    record: InvocationRecorder,
    threads: int = 1,
) -> None:
    """Merge everything into the tables and archives, and remove the parts.

    Parameters
    ----------
    folder : Path
        The run folder, under `lock`.
    content : store.Content
        What it holds now.
    described : Manifest
        With the cells in the order of the new tables; runs, warnings and files are filled in here.
    scenario_text : str
        The resolved scenario.
    record : InvocationRecorder
        Of the invocation, whose last reading is taken when the tables are written.
    threads : int
        That pack tables.
    """
    runs, swept = placed_runs(described.cells, content.sources()), swept_values(described.cells)
    building = _building(folder)
    for name in TABLES:
        merge(name, runs, swept, building / f"{name}.parquet", threads)
    for name in ARCHIVES:
        _merge_archive(building / f"{name}.npz", runs.arrays(name))
    _merge_archive(building / "data.npz", _data_arrays(folder, content))
    (building / store.SCENARIO).write_text(scenario_text, encoding="utf-8")
    # What is known of files is found while they are flushed.
    with ThreadPoolExecutor(1) as other:
        paths = sorted(building.iterdir())
        flushed = other.submit(lambda: list(map(aside.sync, paths)))
        files, entries = {path.name: print_of(path) for path in paths}, content.entries()
        flushed.result()
    stored = tuple(cell.content for cell in described.cells)
    ended = {key: entries[key] for key in runs.keys}
    final = replace(described, stored=stored, runs=ended, warnings=content.warnings(), files=files)
    calls = (*described.invocations[:-1], record.so_far(described.state))
    _commit(folder, building, replace(final, invocations=calls))


#: Seconds to keep the files of a batch that are almost empty, about.
_PART = 2e-3


def rehearsed(
    scenario: Scenario,
    grid: Sequence[tuple[Cell, Assessment]],
    parts: Sequence[EncodedPart | StoredPart],
    arrays: Callable[[str], Mapping[str, np.ndarray]] | None = None,
    threads: int = 1,
) -> Callable[[int], list[float]]:
    """How long the writing of results takes.

    Parameters
    ----------
    scenario : Scenario
    grid : sequence of (Cell, Assessment)
    parts : sequence of EncodedPart or StoredPart
        Of simulations of these cells; the first is of one alone.
    arrays
        As for `store.add_part`.
    threads : int
        As for `finish`.

    Returns
    -------
    callable
        Gives, for a number of simulations, the seconds to keep batches of them, the seconds to make a run folder of
        these, and the bytes of that folder: straight lines between the first part and all.
    """
    if not parts:
        return lambda simulations: [0.0, 0.0, 0.0]
    # The first time loads libraries, and takes memory that is there the second time.
    first, little, _, much = (
        _rehearsal(scenario, grid, some, arrays, threads) for some in (parts[:1], parts[:1], parts, parts)
    )
    known = sum(len(part.runs) for part in parts)
    # A study has fewer batches, which take longer.
    much[0] -= (len(parts) - 1) * min(_PART, little[0])
    each = np.maximum(much - little, 0.0) / max(known - 1, 1)
    return lambda simulations: (np.maximum(first, little) + each * (simulations - 1)).tolist()


def _rehearsal(
    scenario: Scenario,
    grid: Sequence[tuple[Cell, Assessment]],
    parts: Sequence[EncodedPart | StoredPart],
    arrays: Callable[[str], Mapping[str, np.ndarray]] | None,
    threads: int,
) -> np.ndarray:
    """Seconds to keep some parts, seconds of all else that a run writes, and bytes."""
    from p2psim.runs.describing import cells_at_end, describe, resolved_text
    from p2psim.scenario.fields import explicit

    present = {key[0] for part in parts for key in part.runs}
    cells = [cell for cell, _ in grid if cell.content in present]
    facts = {cell.content: explicit(fact.facts) for cell, fact in grid if cell.content in present}
    with tempfile.TemporaryDirectory(prefix="p2psim-", ignore_cleanup_errors=True) as name:
        folder, record, began = Path(name), InvocationRecorder(None, "local", 1), time.perf_counter()
        described = describe(scenario, cells, None, folder, {}, facts, record.so_far())
        text = resolved_text(scenario, cells, described)
        store.begin(folder, described, text)
        kept = -time.perf_counter()
        stored = [store.add_part(folder, part, arrays) for part in parts]
        kept += time.perf_counter()
        content = Content(described, (), StoredTables(folder, ())).grown(described, stored)
        described = replace(described, cells=cells_at_end(described, content, {}), state="finished")
        finish(folder, content, described, text, record, threads)
        taken = time.perf_counter() - began - kept
        return np.array(
            [kept, taken, sum(path.stat().st_size for path in folder.iterdir() if path.is_file())]
        )


def placed_runs(cells: Sequence[CellEntry], sources: Mapping[RunKey, Source]) -> Placed:
    """Simulations of these cells, in order, each with where it is stored."""
    numbers = {cell.content: number for number, cell in enumerate(cells)}
    keys = [key for key in sources if key[0] in numbers]
    runs = np.array([(numbers[cell], replica) for cell, replica in keys], np.int32).reshape(-1, 2)
    order = np.lexsort(runs.T[::-1])
    keys, (of_cells, replicas) = [keys[at] for at in order], runs[order].T
    places = {source: place for place, source in enumerate(dict.fromkeys(sources[key] for key in keys))}
    owners = np.array([places[sources[key]] for key in keys], np.int64)
    return Placed(keys, of_cells, replicas, list(places), owners)


def swept_values(cells: Sequence[CellEntry]) -> dict[str, list[Any]]:
    """Values of each swept key, by cell."""
    return {key: [cell.swept.get(key) for cell in cells] for key in cells[0].swept}


def _building(folder: Path) -> Path:
    """An empty directory for what is to be committed."""
    building = folder / store.PARTS / ".final.aside"
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(parents=True)
    return building


def _commit(folder: Path, building: Path, described: Manifest) -> None:
    """Have all files of a directory, and a manifest, replace those of the folder: all or none of them."""
    (building / manifest.NAME).write_text(manifest.dump(described), encoding="utf-8")
    for path in building.iterdir():
        aside.sync(path)
    os.rename(building, folder / store.PARTS / store.FINAL)
    store.move_final(folder)


def _merge_archive(path: Path, members: Iterator[tuple[str, np.ndarray]]) -> None:
    if (first := next(members, None)) is not None:
        with open(path, "wb") as stream:
            write_archive(stream, chain([first], members))


def _data_arrays(folder: Path, content: store.Content) -> Iterator[tuple[str, np.ndarray]]:
    """All prepared data as ``PROBLEM/array``, sorted: of the earlier archive and of the parts."""
    places: dict[str, tuple[Path, int]] = {}
    if "data.npz" in content.manifest.files:
        path = folder / "data.npz"
        places.update({name: (path, place) for name, place in members_of(path).items()})
    for path in (folder / store.PARTS / store.DATA).glob("[!.]*.npz"):
        places.update({f"{path.stem}/{name}": (path, place) for name, place in members_of(path).items()})
    for name in sorted(places):
        yield name, read_member(*places[name])


def keep_figures(folder: Path, described: Manifest, scenario: Scenario) -> None:
    """Have a finished folder draw what is asked for now, which may have changed since: no result depends on it."""
    kept = Scenario.load(folder / store.SCENARIO, confirm_cells=True)
    if (kept.figure, kept.labels) != (scenario.figure, scenario.labels):
        changed = kept.model_copy(update={"figure": scenario.figure, "labels": scenario.labels})
        building = _building(folder)
        (building / store.SCENARIO).write_text(changed.to_yaml(), encoding="utf-8")
        files = {**described.files, store.SCENARIO: print_of(building / store.SCENARIO)}
        _commit(folder, building, replace(described, files=files))


def values_of_part(part: StoredPart, until: Until) -> dict[RunKey, float]:
    """Values of a batch, by which a cell is judged; NaN where none was recorded."""
    rows = [run["rows"]["metrics"] for run in part.runs.values()]
    return _by_run(part.table("metrics"), list(part.runs), np.repeat(np.arange(len(rows)), rows), until)


def values_of_content(content: Content, until: Until) -> dict[RunKey, float]:
    """Values of all that a run folder holds."""
    values = dict.fromkeys(content.manifest.runs, math.nan)
    for part in content.parts:
        values |= values_of_part(part, until)
    if not content.manifest.runs:
        return values
    table = pq.read_table(
        content.earlier.folder / "metrics.parquet",
        columns=["cell", "replica", "step", "agent", "model", "metric", "value"],
        filters=[("metric", "==", until.metric), ("model", "==", until.model)],
    )
    runs = np.stack([table["cell"].to_numpy(), table["replica"].to_numpy()], axis=1)
    distinct, owner = np.unique(runs, axis=0, return_inverse=True)
    keys = [(content.manifest.stored[cell], int(replica)) for cell, replica in distinct]
    return values | _by_run(table, keys, owner.ravel(), until)


def _by_run(table: pa.Table, keys: Sequence[RunKey], owner: np.ndarray, until: Until) -> dict[RunKey, float]:
    """Last value of each run; ``owner`` says for each row whose it is."""
    wanted = pc.and_(pc.equal(table["metric"], until.metric), pc.equal(table["model"], until.model))
    mask, alone = wanted.to_numpy(), pc.is_null(table["agent"]).to_numpy()
    step, value = table["step"].to_numpy(), table["value"].to_numpy()
    has_own = np.zeros(len(keys), dtype=bool)
    has_own[owner[mask & alone]] = True
    mask &= alone | ~has_own[owner]
    owner, step, value = owner[mask], step[mask], value[mask]
    last = np.full(len(keys), -1, dtype=np.int64)
    np.maximum.at(last, owner, step)
    is_last = step == last[owner]
    owner, value = owner[is_last], value[is_last]
    with np.errstate(invalid="ignore"):
        means = np.bincount(owner, value, minlength=len(keys)) / np.bincount(owner, minlength=len(keys))
    return dict(zip(keys, means.tolist(), strict=True))
