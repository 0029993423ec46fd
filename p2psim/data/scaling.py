"""Bounds on features and labels, by public numbers: what sensitivities rest on."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag

from p2psim.core.errors import MeaningError
from p2psim.core.options import Options, Positive

#: What is said wherever labels that are numbers meet a radius of each record.
NOT_EACH_RECORD = "each-record is for labels that are classes: it changes what a label that is a number means"


class Quantile(Options):
    """A quantile of ‖x‖₁ over the public rows."""

    quantile: Annotated[float, Field(gt=0, le=1)] = Field(description="which one; 0.95 pulls 5 % in")


def _radius_kind(value: Any) -> str:
    if isinstance(value, str):
        return "name"
    return "quantile" if isinstance(value, dict | Quantile) else "number"


Radius = Annotated[
    Annotated[Positive, Tag("number")]
    | Annotated[Quantile, Tag("quantile")]
    | Annotated[Literal["each-record"], Tag("name")],
    Discriminator(_radius_kind),
]


class ScaleX(Options):
    """Divide x by a radius R, then pull what is outside onto the ball ‖x‖₁ ≤ bound.

    Choices
    -------
    norm: l1
        the sum of absolute values
    at: each-record
        every record is divided by its own norm; for classes
    """

    norm: Literal["l1"] = Field("l1", description="the norm that is bounded")
    bound: Positive = Field(1.0, description="largest norm of a record afterwards")
    at: Radius = Field(
        Quantile(quantile=0.95),
        description="the radius R: a public number, {quantile: q} of the public rows, or each-record "
        "(its own norm; for labels that are classes)",
    )


class ScaleY(Options):
    """Centre labels, divide them by a public number, and clip to |y| ≤ bound."""

    center: bool = Field(True, description="subtract the mean of the public rows' labels first")
    bound: Positive = Field(1.0, description="largest |y| afterwards")
    at: Positive | None = Field(
        None,
        description="what becomes `bound`: a public number; left out, the largest |y| of the public rows",
    )


class Scale(Options):
    """Bounds on records; left out, they stay as they are."""

    x: ScaleX | None = Field(None, description="features")
    y: ScaleY | None = Field(None, description="labels")


#: Share of the records beyond what a quantile says that scaling may change without a warning.
_UNSAID = 0.05


def warnings_of(scale: Scale, scaled: Mapping[str, Mapping[str, Any]], records: int) -> list[str]:
    """Warnings that scaling changes more of the owners' training records than the scenario says.

    Parameters
    ----------
    scale : Scale
    scaled : mapping
        What `scale_x` and `scale_y` returned, as ``x`` and ``y``.
    records : int
        Number of training records.
    """
    at = scale.x.at if scale.x is not None else None
    said = {"x": 1 - at.quantile if isinstance(at, Quantile) else 0.0, "y": 0.0}
    texts = {
        "x": "have ‖x‖₁ above the radius {radius:.4g} and are shortened to it, so that the model is learnt from other "
        "features than they have; give a larger data.scale.x.at",
        "y": "are clipped, since they lie further than {divisor:.4g} from {mean:.4g}; give a larger data.scale.y.at",
    }
    warnings = []
    for name, numbers in scaled.items():
        changed, what = (
            (numbers.get("pulled", 0), "records") if name == "x" else (numbers["clipped"], "labels")
        )
        if changed > (said[name] + _UNSAID) * records:
            share = f"{changed} of {records} training {what} ({changed / records:.0%})"
            warnings.append(f"data.scale.{name}: {share} {texts[name].format(**numbers)}")
    return warnings


def l1_norms(X: np.ndarray) -> np.ndarray:
    """‖x‖₁ of every row, shape (n,), without a second copy of X.

    Raises
    ------
    MeaningError
        If one is beyond what floats hold: dividing by it would make the row 0.
    """
    norms = np.zeros(len(X))
    with np.errstate(over="ignore"):
        for j in range(X.shape[1]):
            norms += np.abs(X[:, j])
    if np.isinf(norms).any():
        raise MeaningError("data.scale", "numbers overflow: rescale the data")
    return norms


def pull_within(X: np.ndarray, bound: float) -> int:
    """Divide rows with ‖x‖₁ > bound by ‖x‖₁/bound, in place.

    The result is a hair inside (a few units in the last place), so that the bound holds in whatever
    order somebody adds the entries up.

    Returns
    -------
    int
        Number of rows that were outside.
    """
    return sum(map(partial(_pull_within, bound=bound), _blocks(X)))


#: Rows that are scaled at once: a processor's cache holds them, and copies of them are small.
_BLOCK = 4096


def _blocks(X: np.ndarray) -> Iterator[np.ndarray]:
    """Rows, as views of some at a time."""
    return (X[first : first + _BLOCK] for first in range(0, len(X), _BLOCK))


def _pull_within(X: np.ndarray, bound: float) -> int:
    norms = l1_norms(X)
    slack = 1 + 4 * X.shape[1] * np.finfo(float).eps
    outside = norms > bound / slack
    X[outside] *= (bound / (norms[outside] * slack))[:, None]
    return int((norms > bound).sum())


def scale_x(
    options: ScaleX, X: np.ndarray, public: np.ndarray, classes: bool, test: np.ndarray | None = None
) -> dict[str, object]:
    """Bring owners' and public rows, in place, to ‖x‖₁ ≤ bound.

    Parameters
    ----------
    options : ScaleX
    X : ndarray, shape (n, p)
    public : ndarray, shape (m, p)
    classes : bool
        Whether labels are classes.
    test : ndarray, shape (t, p), optional
        Owners' test rows, treated alike.

    Returns
    -------
    dict
        ``radius`` and the number of owners' training records that were ``pulled`` in.

    Raises
    ------
    MeaningError
        If `at` needs public rows and there are none, if they are all zero, or if `each-record` meets
        labels that depend on the scale of x.
    """
    key = "data.scale.x.at"
    test = X[:0] if test is None else test
    if options.at == "each-record":
        if not classes:
            raise MeaningError(key, NOT_EACH_RECORD)
        for rows in chain.from_iterable(map(_blocks, (X, public, test))):
            norms = l1_norms(rows)
            np.divide(rows, norms[:, None], out=rows, where=norms[:, None] > 0)
            rows *= options.bound
            _pull_within(rows, options.bound)
        return {"radius": "each-record"}
    if isinstance(options.at, Quantile):
        if not len(public):
            raise MeaningError("data.public", f"{key} is a quantile of public rows, of which there are none")
        radius = float(np.quantile(l1_norms(public), options.at.quantile))
        if radius == 0:
            raise MeaningError(key, f"the {options.at.quantile} quantile of public ‖x‖₁ is 0; give a radius")
    else:
        radius = options.at
    pulled = 0
    for rows in (public, test, X):
        rows *= options.bound / radius
        pulled = pull_within(rows, options.bound)
    return {"radius": radius, "pulled": pulled}


def scale_y(
    options: ScaleY, y: np.ndarray, public: np.ndarray, test: np.ndarray | None = None
) -> dict[str, object]:
    """Bring owners' labels, in place, to |y| ≤ bound.

    Parameters
    ----------
    options : ScaleY
    y : ndarray, shape (n,)
    public : ndarray, shape (m,)
        The learner's labels.
    test : ndarray, shape (t,), optional
        Owners' test labels, treated alike.

    Returns
    -------
    dict
        ``mean``, ``divisor`` (what became `bound`) and the number of owners' training labels that were ``clipped``.

    Raises
    ------
    MeaningError
        If a number is fitted and there are no public rows, or their labels are all the same.
    """
    if (options.center or options.at is None) and not len(public):
        raise MeaningError("data.public", "scale.y is fitted on public rows, of which there are none")
    mean = float(public.mean()) if options.center else 0.0
    if options.at is not None:
        divisor = options.at
    else:
        # All equal: the distance from their mean is zero, or rounding error.
        constant = bool(np.ptp(public) == 0)
        divisor = 0.0 if options.center and constant else float(np.abs(public - mean).max())
        if divisor == 0:
            raise MeaningError("data.scale.y.at", "public labels are all the same; give a number")
    clipped = 0
    for labels in (y[:0] if test is None else test, y):
        labels -= mean
        labels *= options.bound / divisor
        clipped = int((np.abs(labels) > options.bound).sum())
        np.clip(labels, -options.bound, options.bound, out=labels)
    return {"mean": mean, "divisor": divisor, "clipped": clipped}


Fill = Literal["mean", "median"]


def fill_gaps(X: np.ndarray, public: np.ndarray, rule: Fill, names: tuple[str, ...]) -> dict[str, float]:
    """Replace NaN in each column, in place, by the mean or median of its public values.

    Parameters
    ----------
    X : ndarray of float64, shape (n, p)
    public : ndarray of int, shape (m,)
        The public rows.
    rule : {"mean", "median"}
    names : tuple of str
        The p columns.

    Returns
    -------
    dict
        What each column with missing values was filled with.

    Raises
    ------
    MeaningError
        If there are no public rows, or a column has no value on them.
    """
    filled: dict[str, float] = {}
    for j in np.flatnonzero(np.isnan(X).any(axis=0)):
        known = X[public, j]
        known = known[~np.isnan(known)]
        if not known.size:
            raise MeaningError(
                "data.public",
                f"data.source.missing: {rule} is fitted on public rows, and column {names[j]!r} has no value on the "
                f"{len(public)} public rows; give more with public: {{last: n}}, or data.source.missing: drop",
            )
        value = float(known.mean() if rule == "mean" else np.median(known))
        X[np.isnan(X[:, j]), j] = value
        filled[names[j]] = value
    return filled
