"""What a metric says of itself, whatever it measures; and the registered metrics of one kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from p2psim.registry import parts


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
    """

    part_kind: ClassVar[str] = "metric"

    name: ClassVar[str]
    meaning: ClassVar[str]
    label: ClassVar[str] = ""
    rises: ClassVar[bool] = False

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
        found: type[MetricType] = parts("metric")[name]
        if not issubclass(found, self._base):
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return (name for name, metric in parts("metric").items() if issubclass(metric, self._base))

    def __len__(self) -> int:
        """Return how many there are."""
        return sum(1 for _ in self)


def meanings(*known: Mapping[str, type[Metric]]) -> dict[str, str]:
    """What metrics are, by name."""
    return {name: metric.meaning for metrics in known for name, metric in metrics.items()}
