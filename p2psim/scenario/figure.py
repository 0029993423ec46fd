"""The ``figure`` section of a scenario: what ``p2psim plot`` draws of its run by default."""

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from p2psim.core.errors import Fault
from p2psim.core.faults import path_of, unknown
from p2psim.core.figure_names import AGAINST, AGAINST_A_KEY, ALONG_THE_RUN
from p2psim.core.figures import FIGURES, having
from p2psim.core.options import AS_LIST, AS_TUPLE, BY_NAME, Fraction, Index, Options
from p2psim.core.registry import NameOf
from p2psim.scenario.record import RecordSection


class FigureOptions(Options):
    """One figure, in the words of the options of ``p2psim plot``."""

    kind: Annotated[str, NameOf("figure")] = Field(description="which figure")
    metric: str | None = Field(
        None,
        description="the metric to draw; left out, the relative fitness or, of curves and finals, every other one",
    )
    against: str | None = Field(
        None,
        description=f"horizontal axis: {', '.join(AGAINST)} of {', '.join(ALONG_THE_RUN)}; "
        f"a swept key of {' and '.join(AGAINST_A_KEY)}",
    )
    facet: str | None = Field(None, description="a swept key: a figure for each of its values")
    agent: Index | None = Field(
        None,
        description="of collaboration: the owner whose isolated ψ is drawn; left out, the mean over owners",
    )
    quantile: Annotated[tuple[Fraction, Fraction], AS_TUPLE] = Field(
        (0.25, 0.75), description="lower and upper edge of bands and bars over replicas"
    )
    log: bool | None = Field(
        None,
        description="log axis for the values; left out, where they are positive and span a factor of 100",
    )
    target: float | None = Field(
        None, description="of targets: the value of the metric that is to be reached"
    )
    reference: dict[str, Any] = Field(
        {},
        description="of paired: swept keys and their values in the cells that all others are compared with",
    )
    title: str | None = Field(None, description="title; left out, what is drawn")


#: One figure or a list of them.
Figures = Annotated[list[Annotated[FigureOptions, BY_NAME]], AS_LIST]


def figure_faults(
    figures: Sequence[FigureOptions], record: RecordSection, swept: Collection[str]
) -> list[Fault]:
    """What the figures ask for that the study does not have.

    Parameters
    ----------
    figures : sequence of FigureOptions
    record : RecordSection
    swept : collection of str
        The keys that the sweep sets.
    """
    return [
        Fault(message, f"figure.{number}.{key}")
        for number, figure in enumerate(figures)
        for messages in (_axes(figure, swept), _of_kind(figure), _recorded(figure, record, swept))
        for key, message in messages
    ]


Messages = Iterator[tuple[str, str]]


def _axes(figure: FigureOptions, swept: Collection[str]) -> Messages:
    """Axes, facets and references are of keys that are swept."""
    kind = FIGURES[figure.kind]
    if figure.against is not None:
        if kind.along_the_run:
            if figure.against not in AGAINST:
                yield "against", unknown("axis", figure.against, AGAINST)
        elif kind.against_a_key:
            yield from _is_swept("against", figure.against, swept)
        else:
            kinds = ", ".join((*having("along_the_run"), *having("against_a_key")))
            yield "against", f"{figure.kind} has an axis of its own; this key is of {kinds}"
    if figure.facet is not None:
        if not kind.has_facets:
            yield "facet", f"{figure.kind} compares all cells, and has one figure"
        elif figure.facet == figure.against:
            yield "facet", f"{figure.facet} is the horizontal axis already"
        else:
            yield from _is_swept("facet", figure.facet, swept)
    for key in figure.reference:
        yield from _is_swept("reference", key, swept)


def _is_swept(key: str, name: str, swept: Collection[str]) -> Messages:
    if not swept:
        yield key, f"{name} is not swept; nothing is"
    elif name not in swept:
        yield key, unknown("swept key", name, list(swept))


def _of_kind(figure: FigureOptions) -> Messages:
    """Keys that only some kinds have, and those that these need."""
    kind = FIGURES[figure.kind]
    for key in ("target", "metric", "reference", "against", "agent", "log", "quantile"):
        given = getattr(figure, key) != FigureOptions.model_fields[key].default
        if key in kind.requires and not given:
            words = kind.requires[key]
            yield key, f"is required: {words}" if words else "is required"
        if given and key not in ("metric", "against") and key not in kind.keys:
            yield key, f"is of {', '.join(having(key))}, not of {figure.kind}"
    if kind.draws and figure.metric not in (None, kind.draws):
        yield "metric", f"{figure.kind} draws {kind.draws}, got {figure.metric}"
    low, high = figure.quantile
    if not low <= 0.5 <= high:
        yield "quantile", f"must lie on both sides of the median, .5; got {low:g} and {high:g}"


def _recorded(figure: FigureOptions, record: RecordSection, swept: Collection[str]) -> Messages:
    """What is drawn must be recorded; where that is swept, the run tells."""
    if any(key.split(".")[0] in ("record", "learning") and "metric" in key for key in swept):
        return
    kind, recorded = FIGURES[figure.kind], [*record.metrics, *record.per_agent]
    if figure.metric is not None and figure.metric.split("[")[0] not in recorded:
        yield "metric", unknown("recorded metric", figure.metric, recorded)
    for name in kind.records:
        if name not in recorded:
            yield "kind", f"{figure.kind} needs {name} in record.metrics"
    if kind.needs_events and not record.events:
        yield "kind", f"{figure.kind} needs record.events: true"


class PlotOptions(FigureOptions):
    """Arguments of ``p2psim.report.draw``, as far as their types go."""

    kind: Annotated[tuple[str, ...], Field(min_length=1), AS_TUPLE, AS_LIST] | None = None  # type: ignore[assignment]
    folder: Annotated[
        Any, AfterValidator(lambda value: value if value is None else path_of("folder", value))
    ] = None
    reference: dict[str, Any] | None = None  # type: ignore[assignment]
    agent: int | None = None
    width: Literal["column", "page"] | None = None
    format: Annotated[tuple[Literal["png", "svg", "pdf"], ...], Field(min_length=1), AS_TUPLE, AS_LIST] = (
        "png",
        "svg",
    )
