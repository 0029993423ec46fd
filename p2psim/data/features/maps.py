"""The base of all features, three linear maps (standardisation, PCA, whitening), and random Fourier features.

Linear maps are fitted on the learner's public rows alone. Variances divide by the number of public rows.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import MeaningError
from p2psim.core.options import Count, Options, Positive
from p2psim.data.records import Held

#: Of columns, or of features.
Names = tuple[str, ...]
#: Maps rows, shape (n, p), to rows of features, shape (n, q).
RowMap = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Fitted:
    """A map of rows that is ready for use.

    Attributes
    ----------
    apply : callable
        Maps rows, shape (n, p), to rows of features, shape (n, q), each by itself; called for owners' training rows,
        public rows and test rows, of which there may be none. It returns a new array.
    names : tuple of str
        The q features.
    numbers : dict
        What was fitted, in plain JSON types; it is written to the resolved scenario.
    """

    apply: RowMap
    names: Names
    numbers: dict[str, object] = field(default_factory=dict)


class Feature(Options):
    """Base of all features: a map that is fitted without owners' records, and applied to everyone's.

    A feature of your own is a subclass with a ``kind``, its own keys, and ``fit``.

    Attributes
    ----------
    kind : str
        The name, as ``kind: Literal["fourier"] = "fourier"``.
    needs_public : bool
        Whether it is fitted on public rows, so that there must be some.
    needs_ratings : bool
        Whether it makes features of items out of ratings. It comes first then, and brings its own ``transform``.
    data_dependent : bool
        Whether it is computed from owners' records; no budget pays for that, and the ledger names it.
    is_linear : bool
        Whether features are linear in the columns, up to a constant.
    """

    part_kind: ClassVar[str] = "feature"

    # Subclasses declare it with a Literal.
    kind: Any

    needs_public: ClassVar[bool] = True
    needs_ratings: ClassVar[bool] = False
    data_dependent: ClassVar[bool] = False
    is_linear: ClassVar[bool] = False

    @abstractmethod
    def fit(self, public: np.ndarray, names: Names, key: str, random: np.random.Generator) -> Fitted:
        """Fit the map.

        Parameters
        ----------
        public : ndarray of float64, shape (m, p)
            The learner's rows as the steps before have left them; m may be 0 unless it `needs_public`.
        names : tuple of str
            The p columns.
        key : str
            The dotted scenario key of this step, named in errors.
        random : numpy.random.Generator
            The only source of random numbers.

        Returns
        -------
        Fitted

        Raises
        ------
        MeaningError
            If it cannot be fitted on these rows.
        """

    def restored(self, numbers: Mapping[str, Any], names: Names) -> RowMap:
        """Map that was fitted, from its numbers, for records that come later.

        Parameters
        ----------
        numbers : mapping
            As `fit` gave them.
        names : tuple of str
            The columns that it is given.

        Raises
        ------
        MeaningError
            If the kind does not offer it, as here.
        """
        raise MeaningError("data.features", f"{self.kind} cannot map new records: its class lacks restored")

    def transform(self, held: Held, key: str, random: np.random.Generator) -> tuple[Held, dict[str, object]]:
        """Fit the map, and apply it to training, public and test rows.

        Returns
        -------
        held : Held
            Without bounds on x: whatever a map does to them is not known.
        fitted : dict
            The kind, the fitted numbers and the names of the features, in plain JSON types.

        Raises
        ------
        MeaningError
            If there are no public rows and it needs some, it cannot be fitted, or its results do not fit its names.
        """
        if self.needs_public and not len(held.public):
            message = f"{self.kind} is fitted on public rows, of which there are none"
            raise MeaningError("data.public", message)
        fitted = self.fit(held.public, held.names, key, random)

        def mapped(rows: np.ndarray) -> np.ndarray:
            features = np.asarray(fitted.apply(rows), dtype=np.float64)
            if features.shape != (len(rows), len(fitted.names)):
                raise MeaningError(
                    key,
                    f"{self.kind} names {len(fitted.names)} features, and makes an array of shape {features.shape} of "
                    f"{len(rows)} rows",
                )
            return features

        X, public = mapped(held.X), mapped(held.public)
        test = held.test and replace(held.test, X=mapped(held.test.X))
        held = replace(held, X=X, public=public, test=test, names=fitted.names, x_l1=None, x_max=None)
        return held, {"kind": self.kind, **fitted.numbers, "names": list(fitted.names)}


class Standardise(Feature):
    """Subtract the mean and divide by the standard deviation; columns that are constant are dropped."""

    kind: Literal["standardise"] = "standardise"

    is_linear: ClassVar[bool] = True

    def fit(self, public: np.ndarray, names: Names, key: str, random: np.random.Generator) -> Fitted:
        """Take mean and standard deviation of the columns that vary.

        Raises
        ------
        MeaningError
            If none does.
        """
        constant = np.ptp(public, axis=0) == 0
        if constant.all():
            raise MeaningError(key, f"standardise: no column varies on the {len(public)} public rows")
        dropped = [name for name, is_constant in zip(names, constant, strict=True) if is_constant]
        kept = public[:, ~constant] if dropped else public
        spread = kept.std(axis=0)
        _check_finite(spread, key)
        numbers = {"dropped": dropped, "mean": kept.mean(axis=0).tolist(), "std": spread.tolist()}
        left = tuple(name for name, is_constant in zip(names, constant, strict=True) if not is_constant)
        return Fitted(self.restored(numbers, names), left, numbers)

    def restored(self, numbers: Mapping[str, Any], names: Names) -> RowMap:
        """See `Feature.restored`."""
        kept = ~np.isin(names, numbers["dropped"])
        centre, spread = np.array(numbers["mean"]), np.array(numbers["std"])
        return lambda rows: ((rows if kept.all() else rows[:, kept]) - centre) / spread


class _Linear(Feature):
    """Base of features that subtract a mean and multiply by a matrix."""

    is_linear: ClassVar[bool] = True

    def fitted(self, centre: np.ndarray, variances: np.ndarray, matrix: np.ndarray, names: Names) -> Fitted:
        """Map with these numbers, to features of these names."""
        numbers = {"mean": centre.tolist(), "variances": variances.tolist(), "matrix": matrix.tolist()}
        return Fitted(self.restored(numbers, names), names, numbers)

    def restored(self, numbers: Mapping[str, Any], names: Names) -> RowMap:
        """See `Feature.restored`."""
        centre, matrix = np.array(numbers["mean"]), np.array(numbers["matrix"])
        return lambda rows: (rows - centre) @ matrix


class PCA(_Linear):
    """Keep the directions of largest variance."""

    kind: Literal["pca"] = "pca"
    components: Count = Field(10, description="number of directions kept")

    def fit(self, public: np.ndarray, names: Names, key: str, random: np.random.Generator) -> Fitted:
        """Find the directions.

        Raises
        ------
        MeaningError
            If the rows vary in fewer directions.
        """
        centre, variances, directions = _spectrum(public, self.components, key, self.kind)
        return self.fitted(centre, variances, directions, tuple(f"pc{j + 1}" for j in range(self.components)))


class Whiten(_Linear):
    """Make the covariance the identity, by its inverse symmetric root (so that features keep their names)."""

    kind: Literal["whiten"] = "whiten"

    def fit(self, public: np.ndarray, names: Names, key: str, random: np.random.Generator) -> Fitted:
        """Find the inverse root of the covariance.

        Raises
        ------
        MeaningError
            If the rows do not vary in every direction.
        """
        centre, variances, directions = _spectrum(public, public.shape[1], key, self.kind)
        return self.fitted(centre, variances, (directions / np.sqrt(variances)) @ directions.T, names)


class RandomFourier(Feature):
    """√(2/q)·cos(ωᵀx + b), whose inner products are those of a Gaussian kernel up to chance (Rahimi and Recht 2007).

    A linear model of them is a kernel machine with exp(−‖x − x′‖²/(2·width²)).
    """

    kind: Literal["random-fourier"] = "random-fourier"
    components: Count = Field(100, description="number of features q")
    width: Positive = Field(1.0, description="standard deviation of the kernel, in units of x")

    needs_public: ClassVar[bool] = False

    def fit(self, public: np.ndarray, names: Names, key: str, random: np.random.Generator) -> Fitted:
        """Draw ω normal with variance 1/width², and b uniform in [0, 2π)."""
        frequencies = random.standard_normal((len(names), self.components)) / self.width
        phases = random.uniform(0.0, 2.0 * np.pi, self.components)
        numbers: dict[str, object] = {"frequencies": frequencies.tolist(), "phases": phases.tolist()}
        cosines = tuple(f"cos{j + 1}" for j in range(self.components))
        return Fitted(self.restored(numbers, names), cosines, numbers)

    def restored(self, numbers: Mapping[str, Any], names: Names) -> RowMap:
        """See `Feature.restored`."""
        frequencies, phases = np.array(numbers["frequencies"]), np.array(numbers["phases"])
        size = np.sqrt(2.0 / self.components)
        return lambda rows: size * np.cos(rows @ frequencies + phases)


def _check_finite(moments: np.ndarray, key: str) -> None:
    if not np.isfinite(moments).all():
        raise MeaningError(key, "the public rows hold numbers too large to square")


def _spectrum(
    public: np.ndarray, wanted: int, key: str, kind: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, largest variances, and their directions (columns), largest entry positive; of equals the first.

    Raises
    ------
    MeaningError
        If the rows vary in fewer directions than are wanted.
    """
    rows, columns = public.shape
    centre = public.mean(axis=0)
    centred = public - centre
    covariance = centred.T @ centred / rows
    _check_finite(covariance, key)
    variances, directions = np.linalg.eigh(covariance)
    variances, directions = variances[::-1], directions[:, ::-1]
    if wanted > columns:
        raise MeaningError(f"{key}.components", f"must be at most the {columns} columns, got {wanted}")
    # The usual rank rule: below this a variance is rounding error.
    rank = int((variances > variances[0] * max(rows, columns) * np.finfo(float).eps).sum())
    if wanted > rank:
        cure = f"; put {{kind: pca, components: {rank}}} before it" if kind == "whiten" and rank else ""
        message = f"{kind}: needs {wanted} directions, but the {rows} public rows vary in {rank} only{cure}"
        raise MeaningError(key, message)
    # The sign of an eigenvector is arbitrary; without a rule it may change with the library. Entries that are equal but
    # for rounding, as those of any two standardised columns, count as equal.
    sizes = np.abs(directions)
    largest = (sizes >= sizes.max(axis=0) * (1 - 1e-9)).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(columns)])
    return centre, variances[:wanted], (directions * signs)[:, :wanted]
