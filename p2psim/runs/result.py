"""The results of a study, read from its run folder."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2psim.core.errors import FolderError, InputError, MissingPartError
from p2psim.core.files import path_of
from p2psim.core.printing import key_values
from p2psim.core.registry import missing_of
from p2psim.runs import manifest as manifests
from p2psim.runs import store
from p2psim.runs.manifest import Manifest
from p2psim.runs.seals import damage
from p2psim.scenario import notices
from p2psim.scenario.model import Scenario
from p2psim.simulation.workspace import RunArrays, Workspace

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from p2psim.runs.learnt import LearntModel


class Result:
    """The results of a study. Tables are read when first asked for.

    Make one with `Result.load`, or get one from :func:`p2psim.run`.

    Parameters
    ----------
    path, described, trusting
        As the attributes.

    Attributes
    ----------
    path : Path
        The run folder.
    described : Manifest
        What the folder holds and how it was made; its cells are those of the tables, by their numbers there.
    trusting : bool
        Whether what can be read is read of files that have changed since they were written.
    """

    def __init__(self, path: Path, described: "Manifest", trusting: bool = False):
        self.path = path
        self.described = described
        self.trusting = trusting
        self._faults: dict[str, str] = {}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Result":
        """Open a run folder.

        Raises
        ------
        FolderError
            If it is none, is damaged, or has no finished results yet.
        """
        folder = path_of("run", path)
        if folder.is_file():
            raise FolderError(f"{folder}: is a file; give a run folder, which p2psim run makes (runs/NAME)")
        if not folder.is_dir():
            raise FolderError(f"{folder}: there is no such run folder{store.meant(folder)}")
        manifest = manifests.read(folder)
        if not manifest.files:
            again = "run it again to go on from where it stopped"
            cure = "wait for it" if store.is_running(folder) else again
            raise FolderError(f"{folder}: its run has not finished; {cure}")
        # While a run goes on, the cells of its grid may be others than those of the tables.
        cells = {cell.content: cell for cell in manifest.cells}
        return cls(folder, replace(manifest, cells=tuple(cells[content] for content in manifest.stored)))

    def __repr__(self) -> str:
        cells, runs = len(self.described.cells), len(self.described.runs)
        return f"Result({str(self.path)!r}: {cells} cells, {runs} simulations)"

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """``manifest.json`` as plain values."""
        return json.loads((self.path / manifests.NAME).read_text(encoding="utf-8"))

    @property
    def swept(self) -> list[str]:
        """Names of the swept columns."""
        return list(self.described.cells[0].swept)

    @property
    def warnings(self) -> list[str]:
        """Warnings as they are printed: each once, with the cells that it concerns."""
        cells, warnings = self.described.cells, self.described.warnings.items()
        texts = notices.in_order((text, manifests.numbers_in(cells, warned)) for text, warned in warnings)
        return notices.lines(notices.without_variants(texts), [cell.swept for cell in cells])

    @cached_property
    def scenario(self) -> "Scenario":
        """The resolved scenario."""
        return self.read(lambda: Scenario.load(self.whole("scenario.yaml"), confirm_cells=True))

    @cached_property
    def scenario_tree(self) -> dict[str, Any]:
        """The resolved scenario as plain values, which need no part; empty where the file holds no mapping.

        Raises
        ------
        FolderError
            If it is damaged.
        """
        return store.plain_scenario(self.whole("scenario.yaml"))

    def read(self, load: Callable[[], "Scenario"]) -> "Scenario":
        """Load a scenario of this folder.

        Raises
        ------
        MissingPartError
            If it cannot be read without parts that made the results.
        """
        try:
            return load()
        except InputError as error:
            if missing := missing_of(self.described.made_by):
                raise MissingPartError(error.faults, missing) from None
            raise

    @cached_property
    def labels(self) -> dict[str, dict[str, str]]:
        """Labels of swept parts, by key and by the column's value, where tables and figures for people write more."""
        if not any(isinstance(value, str) for cell in self.described.cells for value in cell.swept.values()):
            return {}
        from p2psim.scenario.cells import cells, labels_of

        try:
            return labels_of(cells(self.scenario, confirm_cells=True))
        except FolderError:
            raise
        except InputError:  # a part is missing, or arrays were given in Python
            return {}

    @cached_property
    def metrics(self) -> "pd.DataFrame":
        """``metrics.parquet``: one row per recorded value."""
        return self._table("metrics")

    @cached_property
    def ledger(self) -> "pd.DataFrame":
        """``ledger.parquet``: one row per agent, with what its releases cost."""
        return self._table("ledger")

    @cached_property
    def agents(self) -> "pd.DataFrame":
        """``agents.parquet``: one row per agent, with what it is."""
        return self._table("agents")

    @cached_property
    def events(self) -> "pd.DataFrame | None":
        """``events.parquet``: one row per event; None unless ``record.events`` was set."""
        return self._table("events") if "events.parquet" in self.described.files else None

    @cached_property
    def links(self) -> "pd.DataFrame | None":
        """``links.parquet``: one row per link, or per time that it was there; None unless ``record.events`` was set."""
        return self._table("links") if "links.parquet" in self.described.files else None

    @cached_property
    def noise(self) -> RunArrays:
        """Noise of each (cell, replica): (releases, p), as added to gradients, by agent, then release."""
        return self._arrays("noise.npz")

    @cached_property
    def models(self) -> RunArrays:
        """Recorded models of each (cell, replica): (records, p)."""
        return self._arrays("models.npz")

    def model(
        self, cell: int = 0, replica: int = 0, agent: int | str | None = None, step: int | None = None
    ) -> "LearntModel":
        """A model that was recorded (``record.models``), for predictions of new records in their original units.

        An agent is given by its index or its label. Without `agent` it is the learner's model, or the mean of the
        agents' models where all train one; without `step`, the last one.

        Raises
        ------
        InputError
            If there is none of such a cell, replica, agent or step.
        """
        from p2psim.runs.learnt import recorded_model

        if (cell, replica) not in self.models:
            none = "" if len(self.models) else ": the run recorded none (record.models: true)"
            raise InputError(f"no model of cell {cell}, replica {replica}{none}")
        scenario = self.cell_scenario(cell, self.grid())
        rows = self.metrics[(self.metrics["cell"] == cell) & (self.metrics["replica"] == replica)]
        # What every replica prepares for itself is not kept, and found again here.
        fitted = self.described.fitted[self.described.cells[cell].content]
        fitted = fitted or Workspace(None).case(scenario, replica).fitted
        models, steps = self.models[cell, replica], rows["step"].unique()
        its = self.agents[(self.agents["cell"] == cell) & (self.agents["replica"] == replica)]
        labels = its.sort_values("index")["label"].tolist()
        return recorded_model(models, steps, scenario, fitted, agent, step, labels)

    def grid(self, given: "Scenario | None" = None) -> "dict[str, Scenario]":
        """Scenarios of the cells by their content, of `given` in place of the folder's."""
        from p2psim.scenario.cells import cells

        return {one.content: one.scenario for one in cells(given or self.scenario, confirm_cells=True)}

    def cell_scenario(self, cell: int, grid: "Mapping[str, Scenario]") -> "Scenario":
        """Scenario of a cell, also of one that the grid has no more; a FolderError if it is not known any more."""
        entry = self.described.cells[cell]
        if entry.content in grid:
            return grid[entry.content]
        if not entry.scenario:
            was = f"the values of cell {cell} are not known any more ({key_values(entry.swept)})"
            raise FolderError(f"{self.path}: {was}")
        return self.read(lambda: Scenario.parse(entry.scenario, f"{self.path}/manifest.json"))

    def data(self, cell: int, replica: int) -> "dict[str, Any]":
        """Prepared data that a simulation used, by name; empty when it was not recorded."""
        import numpy as np

        if "data.npz" not in self.described.files:
            return {}
        problem = self.described.runs[self.described.cells[cell].content, replica].problem
        with np.load(self.whole("data.npz"), allow_pickle=False) as archive:
            names = [name for name in archive.files if name.startswith(f"{problem}/")]
            return {name.removeprefix(f"{problem}/"): archive[name] for name in names}

    def whole(self, name: str) -> Path:
        """Path of a file of the run folder that is as it was written.

        Raises
        ------
        FolderError
            If it is not.
        """
        # What is no file is not read by anyone: a pipe would wait for ever.
        if (fault := self.fault(name)) and not (self.trusting and (self.path / name).is_file()):
            message = f"{self.path / name}: {fault}; restore it from a copy, or run again into another folder"
            raise FolderError(message)
        return self.path / name

    def fault(self, name: str) -> str:
        """What is wrong with a file of the run folder; empty when nothing is. Each is read once for it."""
        if name not in self._faults:
            # The scenario of a run that goes on is written anew, and not listed before its end.
            self._faults[name] = damage(self.path / name, self.described.files.get(name))
        return self._faults[name]

    def _arrays(self, name: str) -> RunArrays:
        return RunArrays(self.whole(name) if name in self.described.files else None)

    def table(self, name: str, columns: Sequence[str] | None = None) -> "pa.Table":
        """A table by its name (``metrics``, ``ledger``, …), or some columns of it, without pandas."""
        from p2psim.runs.tables import read_table

        return read_table(self.whole(f"{name}.parquet"), columns, self.trusting)

    def _table(self, name: str) -> "pd.DataFrame":
        # Not by pandas' function: it would load much of pyarrow that this needs not.
        table = self.table(name).to_pandas()
        # A null agent would make floating-point numbers of all agents.
        return table.astype({"agent": "Int32"}) if name == "metrics" else table

    def summary(self) -> "pd.DataFrame":
        """Where each cell ended, over its replicas, and what it cost.

        Returns
        -------
        DataFrame
            One row a cell, model and metric: swept columns, ``cell``, ``model``, ``metric``, ``replicas``,
            ``q25``, ``median``, ``q75`` over replicas of the last recorded value, ``epsilon spent`` (the
            largest of any agent by any of the accountants), ``budget`` (the largest of any agent), ``flags``
            (what must be said with every number, comma-separated). What is computed from the records without noise
            (``global`` and ``local`` models, ``isolated_fitness``) has an infinite ε and the flag ``not_private``, and
            ``local-dp`` the budget. A metric that only single agents have is averaged over them, and its name says so.
        """
        import pandas as pd

        from p2psim.runs.summary import COLUMNS, rows_of

        return pd.DataFrame(rows_of(self), columns=[*self.swept, *COLUMNS])

    def wide(self) -> "pd.DataFrame":
        """Recorded values with one column per metric, for pandas' ``groupby``, seaborn and regressions.

        Returns
        -------
        DataFrame
            One row per cell, replica, model, agent and moment: swept columns (numbers, or labels of parts), ``cell``,
            ``replica``, ``model``, ``agent`` (null for what is of all agents), ``step``, ``time``, and a column per
            metric, NaN where it was not recorded.
        """
        from p2psim.runs.summary import wide

        return self._with_swept(wide(self.metrics))

    def curves(self, metric: str, quantiles: Any = (0.25, 0.5, 0.75), axis: str = "step") -> "pd.DataFrame":
        """Quantiles of a metric over replicas, along the axis ``step`` or ``time``; read cell by cell.

        Returns
        -------
        DataFrame
            One row per cell, model and moment: swept columns, ``cell``, ``model``, the axis, ``replicas`` with a value
            there, and ``q25``, ``median``, ``q75``, or what else is in `quantiles`. Of a metric that only single
            agents have, each replica's value is the mean over them.
        """
        from p2psim.runs.curves import curves

        path = self.whole("metrics.parquet")
        return self._with_swept(curves(path, metric, quantiles, axis, self.trusting))

    def to_latex(self) -> str:
        """Return the summary as a LaTeX table in the style of the package booktabs."""
        from p2psim.runs.summary import latex

        return latex(self.summary().drop(columns="cell"))

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self.summary().to_html(index=False)}"

    def _with_swept(self, table: "pd.DataFrame") -> "pd.DataFrame":
        for position, (key, values) in enumerate(self.swept_columns().items()):
            table.insert(position, key, [values[number] for number in table["cell"]])
        return table

    def swept_columns(self) -> dict[str, list[Any]]:
        """Of each swept key what stands in the rows of each cell: a number, or a label of a part, to group by."""
        columns = {}
        for key in self.swept:
            label = self.labels.get(key, {})
            values = [cell.swept[key] for cell in self.described.cells]
            columns[key] = [label.get(value, value) if isinstance(value, str) else value for value in values]
        return columns

    def last_values(self, keys: list[str]) -> "pd.Series[float]":
        """Last recorded value of each metric by ``keys``; of agents' own metrics, the mean over agents."""
        import pandas as pd

        from p2psim.runs.curves import ends, last_values

        *columns, values = last_values(ends(self.whole("metrics.parquet"), keys, self.trusting), keys)
        return pd.Series(values, pd.MultiIndex.from_arrays(columns, names=keys), name="value")

    def time_to(self, metric: str, target: float, rising: bool | None = None) -> "pd.DataFrame":
        """When each replica first had a metric at a target, as far as it was recorded.

        Parameters
        ----------
        metric : str
            A recorded one; of one that only single agents have, the mean over them.
        target : float
        rising : bool, optional
            Whether it is reached from below; by default from below for accuracies, counts, and shares of what went
            well, from above for all else.

        Returns
        -------
        DataFrame
            One row per cell, model and replica: swept columns, ``cell``, ``model``, ``replica``, ``time``, ``reached``.
            Where ``reached`` is false, ``time`` is that of the last record: the replica is censored there, and leaving
            it out would flatter. `p2psim.runs.summary.share_reached` takes both columns.

        Raises
        ------
        InputError
            If the metric was not recorded, or the target is not finite.
        """
        return self._reached(metric, target, rising, "time")

    def commits_to(self, metric: str, target: float, rising: bool | None = None) -> "pd.DataFrame":
        """Return after how many commits, in the column ``step``; else as `time_to`."""
        return self._reached(metric, target, rising, "step")

    def _reached(self, metric: str, target: float, rising: bool | None, axis: str) -> "pd.DataFrame":
        from p2psim.runs.summary import first_reached, of_metric, rises

        rows = of_metric(self.metrics, metric, self.path)
        table = first_reached(rows, axis, target, rises(metric) if rising is None else rising)
        return self._with_swept(table)

    def plot(self, *args: Any, **kwargs: Any) -> Any:
        """Draw the figures of :mod:`p2psim.report`; arguments are those of ``p2psim.report.draw``."""
        from p2psim.runs.unfinished import plot

        return plot(self, *args, **kwargs)

    def report(self, cell: int | None = None, replica: int | None = None, height: int = 900) -> Any:
        """Show the page of the run in a notebook, playing a replica of a cell; ``str()`` of it is the HTML."""
        return import_module("p2psim.report.page").shown(self, cell, replica, height)
