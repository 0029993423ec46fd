"""Tables of a run that has not finished, as far as it got, for figures."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from p2psim.core.errors import FolderError
from p2psim.core.faults import path_of
from p2psim.core.options import given
from p2psim.runs import manifest as manifests
from p2psim.runs import store
from p2psim.runs.parts import TABLES, read_part
from p2psim.runs.tables import Placed, merge
from p2psim.scenario.figure import PlotOptions

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
    """

    path: Path
    scenario: Mapping[str, Any]
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

    folder = path_of("run", run)
    if not (folder / manifests.NAME).is_file():
        return None
    described = manifests.read(folder)
    if described.files:
        return None
    paths = (
        path for path in (folder / store.PARTS).glob("[!.]*") if path.name not in (store.DATA, store.FINAL)
    )
    numbers = {cell.content: number for number, cell in enumerate(described.cells)}
    placed = [
        Placed(numbers[key[0]], key[1], key, part)
        for part in map(read_part, sorted(paths))
        for key in part.runs
        if key[0] in numbers
    ]
    if not placed:
        raise FolderError(
            f"{folder}: its run has not finished a single batch of simulations yet; wait for it"
        )
    placed.sort(key=lambda run: (run.cell, run.replica))
    swept = {key: [cell.swept.get(key) for cell in described.cells] for key in described.cells[0].swept}
    tables: dict[str, Any] = {}
    with TemporaryDirectory() as made:
        for name in TABLES:
            path = Path(made) / f"{name}.parquet"
            if merge(name, placed, swept, path):
                tables[name] = pd.read_parquet(path)
    tables["metrics"] = tables["metrics"].astype({"agent": "Int32"})
    tree = store.plain_scenario(folder / store.SCENARIO)
    return Unfinished(
        folder, tree | {"name": f"{described.name} ({len(placed)} simulations so far)"}, **tables
    )


def plot(result: Any, *args: Any, **kwargs: Any) -> Any:
    """Draw the figures of a result, or of what a run has so far."""
    # Figures stand above results: they are loaded by name, and only when they are asked for.
    report = import_module("p2psim.report")
    names = signature(report.draw).parameters
    given(PlotOptions, **dict(zip(list(names)[1:], args, strict=False)), **kwargs)
    files = report.draw(result, *args, **kwargs)
    store.add_figures(result.path, files)
    return files
