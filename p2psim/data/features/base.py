"""What a feature is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from p2psim.data.records import Held
from p2psim.errors import MeaningError
from p2psim.options import Options


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

    apply: Callable[[np.ndarray], np.ndarray]
    names: tuple[str, ...]
    numbers: dict[str, object] = field(default_factory=dict)


class Feature(Options):
    """Base of all features: a map that is fitted without owners' records, and applied to everyone's.

    A feature of your own is a subclass with a ``kind``, keys of its own, and ``fit``.

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
    """

    part_kind: ClassVar[str] = "feature"

    # Subclasses declare it with a Literal.
    kind: Any

    needs_public: ClassVar[bool] = True
    needs_ratings: ClassVar[bool] = False
    data_dependent: ClassVar[bool] = False

    @abstractmethod
    def fit(
        self, public: np.ndarray, names: tuple[str, ...], key: str, random: np.random.Generator
    ) -> Fitted:
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
            raise MeaningError(
                "data.public", f"{self.kind} is fitted on public rows, of which there are none"
            )
        made = self.fit(held.public, held.names, key, random)

        def mapped(rows: np.ndarray) -> np.ndarray:
            found = np.asarray(made.apply(rows), dtype=np.float64)
            if found.shape != (len(rows), len(made.names)):
                raise MeaningError(
                    key,
                    f"{self.kind} names {len(made.names)} features, and makes an array of shape {found.shape} of "
                    f"{len(rows)} rows",
                )
            return found

        X, public = mapped(held.X), mapped(held.public)
        test = held.test and replace(held.test, X=mapped(held.test.X))
        fitted = {"kind": self.kind, **made.numbers, "names": list(made.names)}
        return replace(held, X=X, public=public, test=test, names=made.names, x_l1=None, x_max=None), fitted
