"""The sections `figure`, what `p2psim plot` draws of a run by default, and `labels`, words of swept keys there."""

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from p2psim.core.errors import Fault
from p2psim.core.faults import unknown
from p2psim.core.figures import AGAINST, AGAINST_A_KEY, ALONG_THE_RUN, FIGURES, having
from p2psim.core.files import path_of
from p2psim.core.nodes import Node, at, plain
from p2psim.core.options import AS_LIST, AS_TUPLE, BY_NAME, Fraction, Index, Options
from p2psim.core.part_types import NameOf
from p2psim.core.printing import exact
from p2psim.scenario.record import RecordSection

if TYPE_CHECKING:
    import pandas as pd


def _one_line(text: str) -> str:
    """Words that figures, pages and terminals show: no control characters, line ends or halves of characters."""
    if any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in text):
        raise ValueError(f"must be text in one line, without control characters; got {text[:60]!a}")
    return text


Line = Annotated[str, AfterValidator(_one_line)]


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
        description="log axis for the values; left out, where they are positive and span a factor of 10",
    )
    target: float | None = Field(
        None, description="of targets: the value of the metric that is to be reached"
    )
    reference: dict[str, Any] = Field(
        {},
        description="of paired: swept keys and their values in the cells that all others are compared with",
    )
    title: Line | None = Field(None, description="title; left out, what is drawn")


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
    drawn_by = dict.fromkeys(name for figure in figures for name in _keys_of(figure))
    faults = (
        [] if swept or not drawn_by else [Fault(f"{_NOTHING} ({', '.join(drawn_by)}); {_LEAVE}", "figure")]
    )
    return faults + [
        Fault(message, f"figure.{number}.{key}")
        for number, figure in enumerate(figures)
        for messages in (_axes(figure, swept), _of_kind(figure), _recorded(figure, record, swept))
        for key, message in messages
    ]


#: What is said of figures by swept keys where there is no sweep.
_NOTHING, _LEAVE = "draws by swept keys, and nothing is swept", "leave it out: --set 'figure=[]'"


def _keys_of(figure: FigureOptions) -> Iterator[str]:
    """Swept keys that a figure is drawn by."""
    kind = FIGURES[figure.kind]
    if figure.against is not None and kind.against_a_key:
        yield figure.against
    if figure.facet is not None and kind.has_facets:
        yield figure.facet
    yield from figure.reference


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
            yield "against", f"{figure.kind} has its own axis; this key is of {kinds}"
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
    if swept and name not in swept:
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
    if figure.metric is not None and not kind.takes_metric:
        yield "metric", f"changes nothing of {figure.kind}"
    if kind.draws and figure.metric not in (None, kind.draws):
        yield "metric", f"{figure.kind} draws {kind.draws}, got {figure.metric}"
    low, high = figure.quantile
    if not low <= 0.5 <= high:
        yield "quantile", f"must lie on both sides of the median, 0.5; got {exact(low)} and {exact(high)}"


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


#: Words of a key, or of all its values in their order.
Labels = dict[str, Line | list[Line]]


def words_of_values(before: Node, after: Node) -> Node:
    """The second of two forms of a scenario, whose lists under ``labels`` are those of the first, with its own sweep.

    Words in a list are those of the values that the first sweeps. Where the second sweeps some of these values, in any
    order, it has their words; where it sweeps others too, the list is left out: a word would be that of another value.
    """
    labels, was = after.child("labels"), before.child("labels")
    if labels is None or was is None or not isinstance(labels.content, dict):
        return after
    entries = dict(labels.content)
    for name, words in labels.content.items():
        unchanged = was.child(name) is words
        if not unchanged or not isinstance(words.content, list):
            continue
        old, new = (_values_in(form.child("sweep"), name) for form in (before, after))
        if new is None or new == old or old is None or len(old) != len(words.content):
            continue
        del entries[name]
        if all(value in old for value in new):
            entries[name] = Node([words.content[old.index(value)] for value in new], words.place)
    labelled = Node(entries, labels.place, labels.keys)
    return Node({**after.content, "labels": labelled}, after.place, after.keys)


def _values_in(sweep: Node | None, name: str) -> list[Any] | None:
    """Values of a key, or of those that advance together, as a sweep lists them; None where it does not."""
    values = sweep.child(name) if sweep is not None else None
    if values is None:
        return None
    listed = plain(values)
    if name == "zip" and isinstance(listed, dict) and all(isinstance(one, list) for one in listed.values()):
        return [list(together) for together in zip(*listed.values(), strict=False)]
    return listed if isinstance(listed, list) else None


def label_faults(
    node: Node, labels: Labels, columns: Mapping[str, Sequence[object]], zipped: Sequence[str]
) -> list[Fault]:
    """Say which labels are of nothing that is swept.

    Parameters
    ----------
    node : Node
        Of the scenario, for places.
    labels : dict
    columns : mapping
        Values of each swept key, as in tables, in the order of the cells.
    zipped : sequence of str
        Keys that advance together.
    """
    section = node.child("labels")
    places = section.keys if section is not None else {}
    place = section.place if section is not None else node.place
    return [
        at(places.get(name, place), f"labels.{name}", message)
        for name, words in labels.items()
        for message in _wrong(name, words, columns, zipped)
    ]


def _wrong(
    name: str, words: str | list[str], columns: Mapping[str, Sequence[object]], zipped: Sequence[str]
) -> list[str]:
    key, equals, value = name.partition("=")
    if key == "zip" and not equals and zipped:
        values = list(dict.fromkeys(zip(*(map(str, columns[key]) for key in zipped), strict=True)))
        if isinstance(words, str):
            return [f"must be a list, a word for each of the {len(values)} values that advance together"]
    elif key not in columns:
        return [unknown("swept key", key, list(columns)) if columns else f"{key} is not swept; nothing is"]
    else:
        values = list(dict.fromkeys(columns[key]))  # type: ignore[arg-type]
    if equals:
        matching = [known for known in values if _is(value, known)]
        if isinstance(words, list):
            return ["must be text, the words for this value"]
        if len(matching) > 1:
            known = ", ".join(map(_text, matching))
            return [f"{value} is the kind of {len(matching)} values; write one as in tables: {known}"]
        return [] if matching else [unknown(f"value of {key}", value, list(map(_text, values)))]
    if isinstance(words, list) and len(words) != len(values):
        return [f"has {len(words)} words for {len(values)} values: {', '.join(map(_text, values))}"]
    return []


def _text(value: object) -> str:
    return " with ".join(value) if isinstance(value, tuple) else str(value)


def _is(text: str, value: object) -> bool:
    """Whether a text names a value: by its number, its text, or the kind of a part."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(text.lstrip(".") if text == ".inf" else text) == float(value)
        except ValueError:
            return False
    return text in (str(value), str(value).lower(), str(value).partition("(")[0])


def given_words(
    tree: Mapping[str, Any], table: "pd.DataFrame"
) -> tuple[dict[str, str], dict[str, dict[Any, str]]]:
    """Words of keys, and of values by key and value in a table.

    Values of keys that advance together have the key ``zip``, and the texts of their columns joined by ``|``.

    Parameters
    ----------
    tree : mapping
        A resolved scenario.
    table : DataFrame
        With a column for each swept key, and ``cell``.
    """
    names: dict[str, str] = {}
    values: dict[str, dict[Any, str]] = {}
    cells = table.drop_duplicates("cell").sort_values("cell") if "cell" in table else table
    for name, words in (tree.get("labels") or {}).items():
        key, equals, value = name.partition("=")
        if key == "zip":
            keys = [key for key in cells if key in tree.get("sweep", {}).get("zip", {})]
            known = list(dict.fromkeys(cells[keys].astype(str).agg("|".join, axis=1))) if keys else []
        elif key in cells:
            known = list(dict.fromkeys(cells[key].tolist()))
        else:
            continue
        if equals:
            values.setdefault(key, {}).update({one: words for one in known if _is(value, one)})
        elif isinstance(words, str):
            names[key] = words
        elif len(words) == len(known):
            values.setdefault(key, {}).update(zip(known, words, strict=True))
    return names, values
