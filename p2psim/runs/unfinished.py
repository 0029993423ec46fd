"""A run that has not finished: tables as far as it got, for figures."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from p2psim.core import files
from p2psim.core.errors import FolderError
from p2psim.core.options import given
from p2psim.runs import manifest, store
from p2psim.runs.compaction import placed_runs, swept_values
from p2psim.runs.manifest import Manifest
from p2psim.runs.parts import TABLES, read_part
from p2psim.runs.tables import merge, read_table, swept_columns

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Unfinished:
    """What figures take of a `Result`.

    Attributes
    ----------
    path : Path
    scenario : mapping
        As plain values; its name says how many simulations there are.
    metrics, ledger, agents : DataFrame
    events, links : DataFrame or None
    manifest : mapping
    described : Manifest
        What is known of all cells.
    all_cells : DataFrame
        Swept columns of every cell, also of those without results yet.
    """

    path: Path
    scenario: Mapping[str, Any]
    described: Manifest
    all_cells: "pd.DataFrame"
    metrics: "pd.DataFrame"
    ledger: "pd.DataFrame"
    agents: "pd.DataFrame"
    events: "pd.DataFrame | None" = None
    links: "pd.DataFrame | None" = None
    manifest: Mapping[str, Any] = field(default_factory=dict)

    def plot(self, *args: Any, **kwargs: Any) -> Any:
        """Draw figures, as `Result.plot` does."""
        return plot(self, *args, **kwargs)


def so_far(run: str | os.PathLike[str]) -> Unfinished | None:
    """Read the finished batches of a run; None where the run has finished.

    Raises
    ------
    FolderError
        If no batch has finished, or one is damaged.
    """
    import pandas as pd

    folder = files.path_of("run", run)
    if not (folder / manifest.NAME).is_file():
        return None
    described = manifest.read(folder)
    if described.files:
        return None
    parts = map(read_part, store.part_paths(folder))
    placed = placed_runs(described.cells, {key: part for part in parts for key in part.runs})
    if not placed.keys:
        message = f"{folder}: its run has not finished a single batch of simulations yet; wait for it"
        raise FolderError(message)
    swept, tables = swept_values(described.cells), dict[str, Any]()
    with tempfile.TemporaryDirectory() as directory:
        for name in TABLES:
            path = Path(directory) / f"{name}.parquet"
            if merge(name, placed, swept, path):
                tables[name] = read_table(path).to_pandas()
    tables["metrics"] = tables["metrics"].astype({"agent": "Int32"})
    tree = store.plain_scenario(folder / store.SCENARIO)
    tree |= {"name": f"{described.name} ({len(placed.keys)} simulations so far)"}
    all_cells = pa.table(swept_columns(swept)).to_pandas() if swept else pd.DataFrame(index=range(1))
    return Unfinished(folder, tree, described, all_cells.assign(cell=all_cells.index), **tables)


def plot(result: Any, *args: Any, **kwargs: Any) -> Any:
    """Draw the figures of a result, or of what a run has so far."""
    from p2psim.scenario.figure import PlotOptions

    # Figures stand above results: they are loaded by name, and only when they are asked for.
    report = import_module("p2psim.report")
    names = signature(report.draw).parameters
    given(PlotOptions, **dict(zip(list(names)[1:], args, strict=False)), **kwargs)
    files = report.draw(result, *args, **kwargs)
    store.add_figures(result.path, files)
    return files
