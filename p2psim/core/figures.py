"""What metrics and figures declare about themselves; the code of a figure is loaded when it is drawn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from p2psim.core.registry import parts, register_all

if TYPE_CHECKING:
    from matplotlib import figure

#: Kinds of figures, each a file in `p2psim.report.figures`.
KIND_NAMES = (
    *("fitness", "timing", "epsilon", "size", "curves", "finals", "agents", "groups", "targets", "paired"),
    *("network", "load", "collaboration", "alone", "ecdf", "degree", "heatmap", "front"),
    *("spacetime", "graph", "spent", "forecast"),
)

#: Those that are only drawn where they are asked for: they compute for long.
ASKED_FOR = ("forecast",)

#: In the place of a kind: all that a run can give.
EVERYTHING = "all"

#: Those that are drawn along an axis of the run; the others show its end.
ALONG_THE_RUN = ("fitness", "curves", "groups", "targets", "network")

#: Those that can be drawn against a swept key.
AGAINST_A_KEY = ("finals", "collaboration")

#: Those whose bands or bars are quantiles over replicas.
WITH_QUANTILES = (
    *("fitness", "curves", "groups", "network", "epsilon", "size"),
    *("finals", "load", "collaboration", "alone", "front", "forecast"),
)

#: Those whose axis of values can be made linear or logarithmic.
WITH_LOG = (
    *("fitness", "curves", "groups", "network", "finals", "load", "collaboration", "alone"),
    *("agents", "ecdf", "degree", "heatmap", "front", "forecast"),
)

#: What those along the run can be drawn against.
AGAINST = ("step", "time", "vectors_sent", "epsilon")

#: Metrics that are an axis: by what is asked for. Values belong together that were recorded at the same moment.
MEASURED_AXES = {"vectors_sent": "vectors_sent", "epsilon": "epsilon_spent"}


class Metric:
    """Base of all metrics: what `record.metrics` can name.

    A metric of your own derives from one of the bases that measure something: `p2psim.StarMetric` (the learner of a
    star), `p2psim.GraphMetric` (models on a graph), `p2psim.NetworkMetric` (the events, whatever is learned). Its class
    is registered and never instantiated: ``measure`` is a static method. It draws no random numbers and changes
    nothing, so that recording more leaves all other results alone.

    Attributes
    ----------
    name : str
        By which scenarios and tables name it.
    meaning : str
        What it is, in a line.
    label : str
        Label of its axis, with the unit in brackets; empty for its name.
    rises : bool
        Whether it is better, or later, the higher it is, so that a target is reached from below.
    each : bool
        Whether it has a number for each agent, so that ``record.per_agent`` can name it.
    """

    part_kind: ClassVar[str] = "metric"

    name: ClassVar[str]
    meaning: ClassVar[str]
    label: ClassVar[str] = ""
    rises: ClassVar[bool] = False
    each: ClassVar[bool] = False

    @classmethod
    def of(
        cls: type[MetricType], name: str, measure: Callable[..., Any] | None, meaning: str, **facts: Any
    ) -> type[MetricType]:
        """Make a metric of a function.

        Parameters
        ----------
        name : str
        measure : callable or None
            As the method of this class; None for what is not measured by a metric itself.
        meaning : str
        **facts
            Other attributes of the class.
        """
        if measure is not None:
            facts = {"measure": staticmethod(measure), "__module__": measure.__module__, **facts}
        return type(name, (cls,), {"name": name, "meaning": meaning, "__doc__": meaning, **facts})


MetricType = TypeVar("MetricType", bound=Metric)


class Registered(Mapping[str, type[MetricType]], Generic[MetricType]):
    """The registered metrics that derive from a base class, by name, in the order of registration."""

    def __init__(self, base: type[MetricType]):
        self._base = base

    def __getitem__(self, name: str) -> type[MetricType]:
        """Return a metric."""
        metric: type[MetricType] = parts("metric")[name]
        if not issubclass(metric, self._base):
            raise KeyError(name)
        return metric

    def __contains__(self, name: object) -> bool:
        """Whether a metric has this name, without an error to be caught where none has."""
        named = parts("metric")
        return isinstance(name, str) and name in named.entries and issubclass(named[name], self._base)

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return (name for name, metric in parts("metric").items() if issubclass(metric, self._base))

    def __len__(self) -> int:
        """Return how many there are."""
        return sum(1 for _ in self)


def meanings(*known: Mapping[str, type[Metric]]) -> dict[str, str]:
    """What metrics are, by name."""
    return {name: metric.meaning for metrics in known for name, metric in metrics.items()}


class Figure:
    """Base of all figures: what `p2psim plot --kind` and a scenario's `figure` can name.

    A figure of your own is a subclass that is registered and never instantiated: ``draw`` is a static method, which
    imports Matplotlib and pandas itself, so that naming figures does not wait for them.

    Attributes
    ----------
    name : str
        By which scenarios and commands name it.
    meaning : str
        What it shows, in a line.
    needs : str
        What a run must have for it, in words; empty where any run will do.
    along_the_run : bool
        Whether it has an axis of the run, so that ``against`` may be one of `AGAINST`.
    against_a_key : bool
        Whether ``against`` may be a swept key.
    has_facets : bool
        Whether ``facet`` gives a figure for each value of a swept key.
    keys : frozenset of str
        Those of ``target``, ``reference``, ``agent``, ``log`` and ``quantile`` that it heeds.
    takes_metric : bool
        Whether ``metric`` changes anything.
    requires : mapping
        Keys that must be given, and what they say, in words.
    draws : str
        The only metric that it draws; empty where there is a choice.
    records : tuple of str
        Metrics that the scenario must record.
    needs_events : bool
        Whether the scenario must record events.
    """

    part_kind: ClassVar[str] = "figure"

    name: ClassVar[str]
    meaning: ClassVar[str]
    needs: ClassVar[str] = ""
    along_the_run: ClassVar[bool] = False
    against_a_key: ClassVar[bool] = False
    has_facets: ClassVar[bool] = True
    keys: ClassVar[frozenset[str]] = frozenset()
    takes_metric: ClassVar[bool] = True
    requires: ClassVar[Mapping[str, str]] = {}
    draws: ClassVar[str] = ""
    records: ClassVar[tuple[str, ...]] = ()
    needs_events: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def draw(source: Any) -> dict[str, figure.Figure]:
        """Draw it.

        Parameters
        ----------
        source : p2psim.report.source.Source
            The tables of a run and what was asked for. Rows of a metric: ``source.rows(name)``, with a column for
            each swept key, then ``cell``, ``replica``, ``step``, ``time``, ``agent``, ``metric``, ``model``, ``value``.

        Returns
        -------
        dict
            Figures by the stem of their files; `p2psim.report.style.new_figure` makes one that no window owns.

        Raises
        ------
        InputError
            That says what the run lacks.
        """


#: All figures that are registered, by name.
FIGURES: Mapping[str, type[Figure]] = parts("figure")


def having(key: str) -> tuple[str, ...]:
    """Names of the figures that heed a key, or of which an attribute holds."""
    return tuple(
        name for name, figure in FIGURES.items() if key in figure.keys or getattr(figure, key, False) is True
    )


#: What those of p2psim show and need, and what else they say of themselves.
_OWN: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "fitness": ("bands of ψ along the run, a line for each swept value", "relative_fitness", {}),
    "timing": ("whose work each commit used", "events", {"needs_events": True, "takes_metric": False}),
    "epsilon": ("final ψ against the privacy budget ε, with the power law", "a sweep of privacy.epsilon", {}),
    "size": ("final ψ against the number of records n, with the power law", "a sweep over records", {}),
    "curves": ("bands of any metric along the run", "a metric that changes", {}),
    "finals": ("last values of metrics, of all cells", "a metric besides ψ", {}),
    "agents": (
        "last values of single agents against their numbers of records",
        "a metric under record.per_agent",
        {},
    ),
    "groups": (
        "a metric of all agents, of each group and of the worst tenth",
        "record.by: group, or worst_decile_accuracy",
        {},
    ),
    "targets": (
        "share of the replicas that have reached a target",
        "metric and target",
        {"keys": frozenset({"target"}), "requires": {"target": "", "metric": "what is to reach the target"}},
    ),
    "paired": (
        "differences of all cells from a reference cell, paired by replica",
        "reference",
        {"keys": frozenset({"reference"}), "requires": {"reference": ""}, "has_facets": False},
    ),
    "network": ("metrics of the network along the run, and why messages fail", "a metric of the network", {}),
    "load": (
        "last values against a swept number of the network, a panel for each metric",
        "a sweep of a number of the network",
        {},
    ),
    "collaboration": (
        "final ψ against a swept number, beside that of an owner alone",
        "relative_fitness, isolated_fitness and against",
        {
            "keys": frozenset({"agent"}),
            "requires": {"against": "the swept key to draw against"},
            "draws": "relative_fitness",
            "records": ("isolated_fitness",),
        },
    ),
    "alone": (
        "ψ of each owner alone against its records, beside that of all together",
        "relative_fitness and isolated_fitness",
        {"draws": "relative_fitness", "records": ("isolated_fitness",)},
    ),
    "ecdf": ("distribution of last values over single agents", "a metric under record.per_agent", {}),
    "degree": (
        "last values of single agents against their number of neighbours and their betweenness",
        "a metric under record.per_agent",
        {},
    ),
    "heatmap": ("last values over two swept keys", "two swept keys", {}),
    "front": ("last values against the privacy spent, and the best for each ε", "cells with different ε", {}),
    "spacetime": (
        "messages between agents over time, absences, and what did not arrive",
        "events",
        {"needs_events": True, "takes_metric": False},
    ),
    "graph": (
        "agents and links: who reached what, and where messages failed",
        "events",
        {"needs_events": True},
    ),
    "spent": (
        "ε that each agent has spent, over time",
        "events and an even allocation",
        {"needs_events": True, "takes_metric": False},
    ),
    "forecast": ("means over replicas beside what is forecast", "a scenario that can be forecast", {}),
}

#: Modules of the figures that have none of their name.
_HOMES = dict.fromkeys(("curves", "fitness", "groups", "network"), "bands")
_HOMES |= dict.fromkeys(("epsilon", "size"), "power")
_HOMES |= {"collaboration": "alone", "load": "finals", "paired": "finals", "ecdf": "agents"}
_HOMES |= {
    "degree": "graph",
    "heatmap": "surface",
    "front": "surface",
    "spent": "spending",
    "forecast": "spending",
}


def _figure(name: str) -> type[Figure]:
    def draw(source: Any) -> dict[str, figure.Figure]:
        home = import_module(f"p2psim.report.figures.{_HOMES.get(name, name)}")
        return getattr(home, f"draw_{name}")(source)

    meaning, needs, facts = _OWN[name]
    keys = {key for key, names in (("quantile", WITH_QUANTILES), ("log", WITH_LOG)) if name in names}
    known = {"name": name, "__doc__": meaning, "meaning": meaning, "needs": needs, "draw": staticmethod(draw)}
    known |= {"along_the_run": name in ALONG_THE_RUN, "against_a_key": name in AGAINST_A_KEY}
    return type(name, (Figure,), known | facts | {"keys": facts.get("keys", frozenset()) | keys})


register_all(map(_figure, KIND_NAMES))
