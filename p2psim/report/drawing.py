"""``p2psim plot``: draw the figures that a run can give."""

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from p2psim.errors import InputError
from p2psim.report.names import AGAINST, ALONG_THE_RUN
from p2psim.report.source import Against, source


def draw(
    result: Any,
    kind: str | Sequence[str] | None = None,
    metric: str | None = None,
    folder: Path | str | None = None,
    against: Against = "step",
    target: float | None = None,
    reference: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Draw figures of a run, as PNG and SVG.

    Parameters
    ----------
    result : Result
        Or anything with its attributes: ``metrics``, ``ledger``, ``agents``, ``events``, ``manifest``,
        ``path``.
    kind : str or sequence of str, optional
        Names in `p2psim.report.kinds.KINDS`. By default ``targets`` with a target, ``paired`` with a reference,
        ``curves`` when a metric is given, else all that the run can give and that have the axis asked for.
    metric : str, optional
        Metric to draw; the relative fitness by default (``curves``: every metric).
    folder : path, optional
        Where to; ``figures`` in the run folder by default.
    against : {"step", "time", "vectors_sent", "epsilon"}
        Horizontal axis of ``fitness``, ``curves`` and ``targets``.
    target : float, optional
        Of ``targets``: the value of the metric that is to be reached.
    reference : mapping, optional
        Of ``paired``: swept keys and their values in the cells that all others are compared with.

    Returns
    -------
    list of Path
        The files, in the order in which they were written.

    Raises
    ------
    InputError
        If a kind or metric is unknown, a kind does not have the axis, or the run lacks what the figure needs.
        Nothing is written then.
    """
    from p2psim.report import style
    from p2psim.report.kinds import KINDS

    wanted = [kind] if isinstance(kind, str) else list(kind or ())
    for name in wanted:
        if name not in KINDS:
            near = difflib.get_close_matches(name, KINDS, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InputError(f"there is no figure called {name!r}, only {', '.join(KINDS)}{hint}")
    if against not in AGAINST:
        raise InputError(f"curves are drawn against {', '.join(AGAINST)}, not {against!r}")
    if against != "step" and (ends := [name for name in wanted if name not in ALONG_THE_RUN]):
        message = f"{', '.join(ends)} shows no course of a run, so that against {against} means nothing"
        raise InputError(f"{message}; it is for {', '.join(ALONG_THE_RUN)}")
    for kind_of, given, option in (("targets", target, "target"), ("paired", reference or None, "reference")):
        if given is not None and not wanted:
            wanted = [kind_of]
        if given is not None and kind_of not in wanted:
            raise InputError(f"a {option} is for {kind_of}, not for {', '.join(wanted)}")
    everything = not wanted and metric is None
    if not wanted:
        possible = list(KINDS) if against == "step" else list(ALONG_THE_RUN)
        wanted = possible if everything else ["curves"]
    material = source(result, metric, against, target, reference)
    figures = {}
    lacking = []
    with style.look():
        for name in wanted:
            try:
                figures.update(KINDS[name](material))
            except InputError as error:
                lacking += [f"{name}: {fault.message}" for fault in error.faults]
                if not everything:
                    raise InputError(*lacking) from error
        if not figures:
            raise InputError("no figure can be drawn from this run", *lacking)
        into = Path(folder) if folder is not None else Path(result.path) / "figures"
        try:
            into.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write figures into {into}: {error.strerror or error}") from error
        return [path for stem, figure in figures.items() for path in style.save(figure, into, stem)]
