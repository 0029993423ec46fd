"""What a figure is drawn from: the tables of a run, and what its scenario says."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from p2psim.core.errors import InputError
from p2psim.core.figures import AGAINST, MEASURED_AXES
from p2psim.network.metrics import NETWORK_METRICS
from p2psim.report.words import as_text, named, short
from p2psim.runs.result import Result
from p2psim.runs.store import plain_scenario
from p2psim.scenario.figure import given_words

if TYPE_CHECKING:
    import pandas as pd


Float: TypeAlias = NDArray[np.float64]

Against = Literal["step", "time", "vectors_sent", "epsilon"]

#: Quantiles of a band's lower edge, line and upper edge.
BAND = (0.25, 0.75)

FITNESS = "relative_fitness"


@dataclass(frozen=True)
class FigureRequest:
    """What is to be drawn, in the words of a scenario's ``figure``; ``None`` leaves the choice to the kind.

    Attributes
    ----------
    kind : str or None
    metric : str or None
        The metric that was asked for.
    against : str or None
        Horizontal axis of curves; or a swept key that the ends of cells are drawn against.
    facet : str or None
        Swept key of whose values each has a figure.
    agent : int or None
        Owner whose isolated ψ is drawn; None for the mean over owners.
    quantile : (low, high)
        Quantiles at the edges of bands and bars.
    log : bool or None
        Whether the axis of values is logarithmic; None where the values decide.
    target : float or None
        Value of the metric whose reaching is to be shown.
    reference : mapping
        Swept keys and their values in the cells that others are to be compared with.
    heading : str or None
        Title of the figure in the place of what the kind of figure would write.
    """

    kind: str | None = None
    metric: str | None = None
    against: str | None = None
    facet: str | None = None
    agent: int | None = None
    quantile: tuple[float, float] = BAND
    log: bool | None = None
    target: float | None = None
    reference: Mapping[str, Any] = field(default_factory=dict)
    heading: str | None = None


@dataclass(frozen=True, kw_only=True)
class Source(FigureRequest):
    """The tables of one run, read once for all figures, and what is to be drawn of them.

    Attributes
    ----------
    metrics, ledger, agents : DataFrame
        As in the run folder.
    events : DataFrame or None
        None when the run did not record events.
    manifest : mapping
        The run's manifest.
    scenario : mapping
        The scenario as a plain tree; empty when it is not known.
    result : object
        What all of this was read from.
    against : {"step", "time", "vectors_sent", "epsilon"}
        Horizontal axis of curves.
    key : str or None
        Swept key that the ends of cells are drawn against.
    fixed : mapping
        Swept keys that have one value in all cells that are left, and this value.
    names : mapping
        Words that the scenario gives swept keys.
    values : mapping
        Words that it gives their values, by key and by the column's text.
    """

    metrics: "pd.DataFrame"
    ledger: "pd.DataFrame"
    agents: "pd.DataFrame"
    events: "pd.DataFrame | None" = None
    manifest: Mapping[str, Any] = field(default_factory=dict)
    scenario: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    against: Against = "step"
    key: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The scenario's name, empty when it is not known."""
        return str(self.scenario.get("name") or self.manifest.get("name") or "")

    @property
    def swept(self) -> list[str]:
        """Dotted keys that the run sweeps: the columns before ``cell``."""
        columns = list(self.metrics.columns)
        return columns[: columns.index("cell")]

    @property
    def usual(self) -> Against:
        """The axis of curves where none is asked for: time, where the run recorded by time."""
        every = self.says("record.every")
        return "time" if isinstance(every, Mapping) and every.get("time") is not None else "step"

    def recorded(self) -> list[str]:
        """Names of the metrics in the run."""
        return sorted(map(str, self.metrics["metric"].unique()))

    def rows(self, metric: str) -> "pd.DataFrame":
        """Rows of one metric.

        Raises
        ------
        InputError
            If the run did not record it.
        """
        rows = self.metrics[self.metrics["metric"] == metric]
        if rows.empty:
            recorded = ", ".join(self.recorded()) or "no metrics at all"
            raise InputError(f"the run did not record the metric {metric!r}; it has {recorded}")
        return where_defined(rows)

    def rows_of_all(self, metric: str) -> "pd.DataFrame":
        """The same without values of single agents, where the metric also has one of all agents."""
        rows = self.rows(metric)
        of_all = rows["agent"].isna()
        return rows[of_all] if of_all.any() else rows

    def placed_rows(self, metric: str) -> "pd.DataFrame":
        """Rows of one metric with their place on the horizontal axis in the column ``x``.

        Values are those of `rows_of_all`, less those without a finite place: without noise no privacy is left.

        Raises
        ------
        InputError
            If the run did not record the metric, or what it is to be drawn against, or nothing has a place.
        """
        rows = self.rows_of_all(metric)
        if self.against not in MEASURED_AXES:
            return rows.assign(x=rows[self.against].astype(float))
        by = ["cell", "replica", "step", "time"]
        axis = self.rows(MEASURED_AXES[self.against])
        places = axis[axis["model"] == "main"].drop_duplicates(by).set_index(by)["value"]
        placed = rows.join(places.rename("x"), on=by)
        placed = placed[placed["x"].abs() < float("inf")]
        if placed.empty:
            raise InputError(f"{metric} has no value where {MEASURED_AXES[self.against]} is finite")
        return placed

    def title(self, what: str) -> str:
        """A figure's title: the one that was asked for, or the run's name and `what`; and the values that are fixed."""
        text = self.heading or (f"{self.name}: {what}" if self.name else what[:1].upper() + what[1:])
        fixed = ", ".join(self.said(key, value) for key, value in self.fixed.items())
        return f"{text} ({fixed})" if fixed else text

    def name_of(self, key: str) -> str:
        """Words of a swept key: those that the scenario gives it, or its last ones."""
        return self.names.get(key) or short(key)

    def said(self, key: str, value: Any) -> str:
        """A swept key and one of its values, as titles say them."""
        return self.values.get(key, {}).get(as_text(value)) or named(self.name_of(key), as_text(value))

    @property
    def main(self) -> str:
        """What the run's own model is called beside baselines: the algorithm's name."""
        kind = self.says("learning.algorithm.kind")
        given = self.values.get("learning.algorithm", {}).get(str(kind))
        return given or str(kind or "main").replace("-", " ")

    @property
    def band_words(self) -> str:
        """The quantiles at the edges of bands, for footnotes."""
        low, high = self.quantile
        return f"{100 * low:g} to {100 * high:g} %"

    def says(self, key: str) -> Any:
        """What the scenario says under a dotted key; None where it says nothing."""
        if key in self.fixed:
            return self.fixed[key]
        value: Any = self.scenario
        for step in key.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        return value

    def showing(self, request: FigureRequest) -> "Source":
        """The same tables, to be drawn as asked."""
        along = request.against is None or request.against in AGAINST
        axis, key = (request.against or self.usual, None) if along else (self.usual, request.against)
        return replace(self, **vars(request) | {"against": axis, "key": key})

    def check_swept(self, key: str) -> None:
        """Refuse a key that the run does not sweep.

        Raises
        ------
        InputError
            With those that it sweeps.
        """
        if key not in self.swept:
            message = f"the run does not sweep {key!r}; it sweeps {', '.join(self.swept) or 'nothing'}"
            raise InputError(message)

    def facets(self, key: str) -> "list[Source]":
        """One source for each value of a swept key, in the order of the cells, without the key; see `check_swept`."""
        self.check_swept(key)
        table = self.metrics.drop_duplicates("cell").sort_values("cell")
        values = dict.fromkeys(table[key].tolist())
        parts = [(value, self.of_cells(table.loc[table[key] == value, "cell"])) for value in values]
        return [
            replace(part, metrics=part.metrics.drop(columns=key), fixed={**self.fixed, key: value})
            for value, part in parts
        ]

    def of_cells(self, cells: "Iterable[int]") -> "Source":
        """The tables of some cells alone."""
        tables = {name: getattr(self, name) for name in ("metrics", "ledger", "agents", "events")}
        kept = {name: table[table["cell"].isin(cells)] for name, table in tables.items() if table is not None}
        return replace(self, **kept)


def of_run(table: "pd.DataFrame", cell: int, replica: int) -> "pd.DataFrame":
    """Rows of one simulation."""
    return table[(table["cell"] == cell) & (table["replica"] == replica)]


def where_defined(metrics: "pd.DataFrame") -> "pd.DataFrame":
    """Metrics, with NaN for shares and means of what has happened so far where nothing has: at the start."""
    undefined = [name for name, metric in NETWORK_METRICS.items() if metric.starts_undefined]
    of_nothing = (metrics["step"] == 0) & (metrics["time"] == 0) & metrics["metric"].isin(undefined)
    return metrics.assign(value=metrics["value"].mask(of_nothing)) if of_nothing.any() else metrics


def source(result: Any, metric: str | None = None, **words: Any) -> Source:
    """Read what figures need from a result: anything with the attributes of `p2psim.Result`.

    Parameters
    ----------
    result : object
        Has DataFrames ``metrics``, ``ledger``, ``agents``, ``events`` (or None), a mapping ``manifest`` and
        a ``path``; the scenario is taken from ``scenario`` or from ``scenario.yaml`` in the path. Labels of
        swept parts, if it has ``labels``, take the place of the columns' values.
    metric, **words
        What is to be drawn, as in `Source`.
    """
    scenario, parts = _scenario(result), getattr(result, "labels", {})
    cells = getattr(result, "all_cells", result.metrics)
    names, values = given_words(scenario, cells)
    values = {
        key: {as_text(parts.get(key, {}).get(text, text)): words for text, words in known.items()}
        for key, known in values.items()
    }
    metrics = relabelled(result.metrics, parts)
    if "zip" in values:  # by the texts of several columns
        values["zip"] = given_words(scenario, relabelled(cells, parts))[1]["zip"]
    tables = {name: getattr(result, name) for name in ("ledger", "agents", "events", "manifest")}
    words |= {"metric": metric, "names": names, "values": values}
    return Source(metrics=metrics, scenario=scenario, result=result, **tables, **words)


def relabelled(table: "pd.DataFrame", labels: Mapping[str, Mapping[str, str]]) -> "pd.DataFrame":
    """The table with labels in the place of its columns' values."""
    columns = {
        key: table[key].astype(object).map(lambda value, known=known: known.get(value, value))
        for key, known in labels.items()
        if key in table
    }
    return table.assign(**columns) if columns else table


def _scenario(result: Any) -> Mapping[str, Any]:
    if isinstance(result, Result):
        return result.scenario_tree
    known: Mapping[str, Any] | None = getattr(result, "scenario", None)
    file = Path(result.path) / "scenario.yaml"
    return known or (plain_scenario(file) if file.is_file() else {})
