"""Features: linear maps fitted on the learner's public rows alone, and factors of rated items.

The maps are applied here to everyone's records; the factors are fitted in :mod:`p2psim.data.als`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from p2psim.errors import MeaningError
from p2psim.options import AS_LIST, BY_NAME, Count, Options, Positive


class Standardise(Options):
    """Subtract the mean and divide by the standard deviation; columns that are constant are dropped."""

    kind: Literal["standardise"] = "standardise"


class PCA(Options):
    """Keep the directions of largest variance."""

    kind: Literal["pca"] = "pca"
    components: Count = Field(10, description="number of directions kept")


class Whiten(Options):
    """Make the covariance the identity, by its inverse symmetric root (so that features keep their names)."""

    kind: Literal["whiten"] = "whiten"


class ALS(Options):
    """Factors of the rated item, from all training ratings by alternating least squares (ALS-WR).

    For sources of ratings, and first among the features. They are computed from owners' records, and no
    budget pays for that; the ledger says so.
    """

    kind: Literal["als"] = "als"
    factors: Count = Field(20, description="number of factors, the features of an item")
    regularization: Positive = Field(
        0.015, description="λ, weighted by the number of ratings of the agent or item"
    )
    iterations: Count = Field(10, description="how often both sides are solved")


Map = Standardise | PCA | Whiten
Feature = Annotated[Standardise | PCA | Whiten | ALS, Field(discriminator="kind"), BY_NAME]


#: Steps in order; a single one needs no list.
Features = Annotated[list[Feature], AS_LIST]


@dataclass(frozen=True)
class Featured:
    """Features after all steps.

    Attributes
    ----------
    X : ndarray, shape (n, q)
    public : ndarray, shape (m, q)
    test : ndarray, shape (t, q)
    names : tuple of str
        The q features.
    fitted : list of dict
        What was fitted in each step, and which columns were dropped, in plain JSON types.
    """

    X: np.ndarray
    public: np.ndarray
    test: np.ndarray
    names: tuple[str, ...]
    fitted: list[dict[str, object]]


def apply_features(
    steps: Sequence[Map],
    X: np.ndarray,
    public: np.ndarray,
    names: tuple[str, ...],
    test: np.ndarray | None = None,
    first: int = 0,
) -> Featured:
    """Fit each step on the public rows, and apply it to all, one step after the other.

    Variances divide by the number of public rows.

    Parameters
    ----------
    steps : sequence of Feature
    X : ndarray, shape (n, p)
        Owners' rows; nothing of them enters the fit.
    public : ndarray, shape (m, p)
        The learner's rows.
    names : tuple of str
        The p features.
    test : ndarray, shape (t, p), optional
        Owners' test rows, mapped alike.
    first : int
        Place of the first of these steps in ``data.features``, for errors.

    Returns
    -------
    Featured

    Raises
    ------
    MeaningError
        If there are no public rows, or they vary in too few directions for a step.
    """
    if steps and not len(public):
        raise MeaningError(
            "data.public", f"{steps[0].kind} is fitted on public rows, of which there are none"
        )
    test = X[:0] if test is None else test
    fitted: list[dict[str, object]] = []
    for place, step in enumerate(steps, start=first):
        key = f"data.features.{place}"
        if isinstance(step, Standardise):
            constant = np.ptp(public, axis=0) == 0
            if constant.all():
                raise MeaningError(key, f"standardise: no column varies on the {len(public)} public rows")
            dropped = [name for name, still in zip(names, constant, strict=True) if still]
            if dropped:
                X, public, test = X[:, ~constant], public[:, ~constant], test[:, ~constant]
                names = tuple(name for name, still in zip(names, constant, strict=True) if not still)
            centre, spread = public.mean(axis=0), public.std(axis=0)
            _check_finite(spread, key)
            X, public, test = ((rows - centre) / spread for rows in (X, public, test))
            numbers: dict[str, object] = {"dropped": dropped, "mean": centre.tolist(), "std": spread.tolist()}
        else:
            centre = public.mean(axis=0)
            variances, directions = _spectrum(public - centre, key)
            if isinstance(step, PCA):
                _check_directions(step.components, variances, len(public), key, "pca")
                variances, matrix = variances[: step.components], directions[:, : step.components]
                names = tuple(f"pc{j + 1}" for j in range(step.components))
            else:
                _check_directions(len(variances), variances, len(public), key, "whiten")
                matrix = (directions / np.sqrt(variances)) @ directions.T
            X, public, test = ((rows - centre) @ matrix for rows in (X, public, test))
            numbers = {"mean": centre.tolist(), "variances": variances.tolist(), "matrix": matrix.tolist()}
        fitted.append({"kind": step.kind, **numbers, "names": list(names)})
    return Featured(X, public, test, names, fitted)


def _check_finite(moments: np.ndarray, key: str) -> None:
    if not np.isfinite(moments).all():
        raise MeaningError(key, "the public rows hold numbers too large to square")


def _spectrum(centred: np.ndarray, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Variances in descending order, and their directions (columns), largest entry positive; of equals the first."""
    covariance = centred.T @ centred / len(centred)
    _check_finite(covariance, key)
    variances, directions = np.linalg.eigh(covariance)
    variances, directions = variances[::-1], directions[:, ::-1]
    # The sign of an eigenvector is arbitrary; without a rule it may change with the library. Entries that are equal but
    # for rounding, as those of any two standardised columns, count as equal.
    sizes = np.abs(directions)
    largest = (sizes >= sizes.max(axis=0) * (1 - 1e-9)).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(directions.shape[1])])
    return variances, directions * signs


def _check_directions(wanted: int, variances: np.ndarray, rows: int, key: str, step: str) -> None:
    columns = len(variances)
    if wanted > columns:
        raise MeaningError(f"{key}.components", f"must be at most the {columns} columns, got {wanted}")
    # The usual rank rule: below this a variance is rounding error.
    rank = int((variances > variances[0] * max(rows, columns) * np.finfo(float).eps).sum())
    if wanted > rank:
        cure = f"; put {{kind: pca, components: {rank}}} before it" if step == "whiten" and rank else ""
        raise MeaningError(
            key, f"{step}: needs {wanted} directions, but the {rows} public rows vary in {rank} only{cure}"
        )
