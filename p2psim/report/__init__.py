"""Figures of runs: `draw` is what ``p2psim plot`` and `p2psim.Result.plot` call."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from p2psim.core.errors import Fault, InputError, SimulationError, first_line
from p2psim.core.figures import AGAINST, ASKED_FOR, EVERYTHING, FIGURES, having
from p2psim.core.printing import exact
from p2psim.core.registry import load_installed
from p2psim.report.source import BAND, FigureRequest, Source
from p2psim.report.source import source as source_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(
    result: Any,
    kind: str | Sequence[str] | None = None,
    metric: str | None = None,
    folder: Path | str | None = None,
    against: str | None = None,
    target: float | None = None,
    reference: Mapping[str, Any] | None = None,
    facet: str | None = None,
    agent: int | None = None,
    quantile: tuple[float, float] = BAND,
    log: bool | None = None,
    title: str | None = None,
    width: str | None = None,
    format: str | Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """Draw figures of a run, each with a table of the numbers that it shows (CSV).

    Parameters
    ----------
    result : Result
        Or anything with its attributes: ``metrics``, ``ledger``, ``agents``, ``events``, ``manifest``,
        ``path``.
    kind : str or sequence of str, optional
        Names in `p2psim.core.figures.FIGURES`, or ``all`` for all that the run can give and that have the axis asked
        for. By default ``targets`` with a target, ``paired`` with a reference, ``curves`` when a metric is given;
        else what the scenario says under ``figure``, or all.
    metric : str, optional
        Metric to draw; the relative fitness by default (``curves``: every metric).
    folder : path, optional
        Where to; ``figures`` in the run folder by default.
    against : str, optional
        Horizontal axis: ``step`` (the default), ``time``, ``vectors_sent`` or ``epsilon`` of kinds along the run; a
        swept key of ``finals`` and ``collaboration``.
    target : float, optional
        Of ``targets``: the value of the metric that is to be reached.
    reference : mapping, optional
        Of ``paired``: swept keys and their values in the cells that all others are compared with.
    facet : str, optional
        A swept key: a figure for each of its values.
    agent : int, optional
        Of ``collaboration``: the owner whose isolated ψ is drawn; by default the mean over owners.
    quantile : (float, float)
        Lower and upper edge of bands and bars over replicas.
    log : bool, optional
        Log axis for the values; by default the values decide.
    title : str, optional
        Title of every figure.
    width : {"column", "page"}, optional
        For print: 3.4 or 7 inches wide, with text of at least 6 points; by default for a screen.
    format : str or sequence of str
        Of the files: ``png``, ``svg``, ``pdf``.

    Returns
    -------
    list of Path
        The files, in the order in which they were written.

    Raises
    ------
    InputError
        If a kind or metric is unknown, a kind does not have the axis, or the run lacks what the figure needs.
        Nothing is written then.
    SimulationError
        If drawing a figure failed for another reason, which is a defect of the figure; the others are written first.
    """
    from p2psim.report import files, style

    low, high = quantile  # of any sequence
    every = FigureRequest(
        None, metric, against, facet, agent, (low, high), log, target, reference or {}, title
    )
    wanted = [kind] if isinstance(kind, str) else list(kind or ())
    formats = [format] if isinstance(format, str) else list(format)
    for what, given, known in (("format", formats, files.FORMATS), ("width", [width], style.PAGES)):
        if strange := [one for one in given if one not in known]:
            message = f"{what} must be one of {', '.join(map(str, filter(None, known)))}, got {strange[0]!r}"
            raise InputError(message)
    _check(wanted, every)
    usual = {"targets": target is not None, "paired": bool(reference), "curves": metric is not None}
    wanted = wanted or [name for name, given in usual.items() if given][:1]
    material = source_of(result)
    if facet is not None:
        material.check_swept(facet)
    requests = [replace(every, kind=name) for name in wanted]
    if not wanted and every == FigureRequest():
        requests = [
            FigureRequest(**{"heading" if key == "title" else key: given for key, given in entry.items()})
            for entry in material.scenario.get("figure") or ()
        ]
    into = Path(folder) if folder is not None else Path(result.path) / "figures"
    failed: list[str] = []
    with style.look(width):  # type: ignore[arg-type]
        if not requests or wanted == [EVERYTHING]:
            figures = _all_that_can_be_drawn(material, every, failed)
        else:
            figures = {}
            for request in requests:
                _add(figures, _drawn(material, request, failed))
        paths = files.save_all(figures, into, formats)
    if failed:
        raise SimulationError(f"{'; '.join(failed)}; {len(paths)} files of the other figures are in {into}")
    return paths


def _check(wanted: Sequence[str], request: FigureRequest) -> None:
    """Refuse kinds that are unknown or do not go with the rest."""
    if wanted != [EVERYTHING]:
        for name in wanted:
            _refuse_unknown(name)
    along, with_key = request.against in AGAINST, having("against_a_key")
    if request.against is not None and not along and not set(wanted) & set(with_key):
        keys = f"; {' and '.join(with_key)} against a swept key"
        raise InputError(f"curves are drawn against {', '.join(AGAINST)}, not {request.against!r}{keys}")
    allowed = (*(having("along_the_run") if along else with_key), EVERYTHING)
    if request.against is not None and (ends := [name for name in wanted if name not in allowed]):
        message = (
            f"{', '.join(ends)} shows no course of a run, so that against {request.against} means nothing"
        )
        raise InputError(f"{message}; it is for {', '.join(allowed[:-1])}")
    options = {"target": request.target, "reference": request.reference or None, "agent": request.agent}
    for key, given in options.items():
        if given is not None and wanted and not set(wanted) & set(having(key)):
            article = "an" if key == "agent" else "a"
            raise InputError(f"{article} {key} is for {', '.join(having(key))}, not for {', '.join(wanted)}")
    named = [FIGURES[name] for name in wanted if name != EVERYTHING]
    heeded = {key for figure in named for key in figure.keys}
    heeded |= {"metric" for figure in named if figure.takes_metric}
    for key in ("metric", "log", "quantile"):
        if named and key not in heeded and getattr(request, key) != getattr(FigureRequest, key):
            raise InputError(f"{key} changes nothing of {', '.join(wanted)}")
    if request.facet is not None and named and not any(figure.has_facets for figure in named):
        raise InputError(f"{', '.join(wanted)} compares all cells, and has one figure: no facet")
    low, high = request.quantile
    if not 0 <= low <= 0.5 <= high <= 1:
        message = f"quantiles must lie on both sides of the median, 0.5, got {exact(low)} and {exact(high)}"
        raise InputError(message)


def _refuse_unknown(name: str) -> None:
    """Refuse a figure that neither p2psim nor an installed package has."""
    if name not in FIGURES:
        load_installed()
    if name not in FIGURES:
        near = difflib.get_close_matches(name, FIGURES, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        message = f"there is no figure called {name!r}, only {', '.join(FIGURES)}{hint}"
        raise InputError(Fault(message, names_part=True))


def _drawn(material: Source, request: FigureRequest, failed: list[str]) -> "dict[str, Figure]":
    """Figures of one kind by stem; with a facet, those of each of its values. A defect is added to ``failed``."""
    assert request.kind is not None
    _refuse_unknown(request.kind)
    figure, whole = FIGURES[request.kind], material.showing(request)
    try:
        if request.facet is None:
            return dict(figure.draw(whole))
        return {
            f"{stem}-{request.facet.split('.')[-1]}-{_slug(part.fixed[request.facet])}": drawn
            for part in whole.facets(request.facet)
            for stem, drawn in figure.draw(part).items()
        }
    except InputError as error:
        raise InputError(*(f"{request.kind}: {fault.message}" for fault in error.faults)) from error
    except Exception as error:  # whatever it is, it must not lose the other figures
        failed.append(f"the figure {request.kind} could not be drawn: {first_line(error)}")
        return {}


def _all_that_can_be_drawn(
    material: Source, request: FigureRequest, failed: list[str]
) -> "dict[str, Figure]":
    figures: dict[str, Figure] = {}
    lacking: dict[str, list[str]] = {}
    for name in FIGURES if request.against is None else having("along_the_run"):
        if name in ASKED_FOR:
            continue
        try:
            figures.update(_drawn(material, replace(request, kind=name), failed))
        except InputError as error:
            for fault in error.faults:
                lacking.setdefault(fault.message.removeprefix(f"{name}: "), []).append(name)
    if not figures and not failed:
        whys = (f"{', '.join(names)}: {why}" for why, names in lacking.items())
        raise InputError("no figure can be drawn from this run", *whys)
    return figures


def _add(figures: "dict[str, Figure]", more: "Mapping[str, Figure]") -> None:
    """Add figures; a second one of a name is numbered."""
    for stem, figure in more.items():
        name, number = stem, 2
        while name in figures:
            name, number = f"{stem}-{number}", number + 1
        figures[name] = figure


def _slug(value: Any) -> str:
    """A value as part of a file's name."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return re.sub(r"[^\w.+-]+", "-", text).strip("-")[:60] or "value"
