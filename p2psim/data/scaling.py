"""Bounds on features and labels, by public numbers: what sensitivities rest on."""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag

from p2psim.core.errors import MeaningError
from p2psim.core.options import Options, Positive


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


def l1_norms(X: np.ndarray) -> np.ndarray:
    """‖x‖₁ of every row, shape (n,), without a second copy of X."""
    norms = np.zeros(len(X))
    for j in range(X.shape[1]):
        norms += np.abs(X[:, j])
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
            raise MeaningError(
                key,
                "each-record needs labels ±1 or other classes, as numbers depend on the scale of x; give a radius",
            )
        for rows in (X, public, test):
            norms = l1_norms(rows)
            np.divide(rows, norms[:, None], out=rows, where=norms[:, None] > 0)
            rows *= options.bound
            pull_within(rows, options.bound)
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
