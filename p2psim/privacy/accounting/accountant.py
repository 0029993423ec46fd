"""What an accountant is: a way to add up releases that are of noises it knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from p2psim.errors import MeaningError
from p2psim.privacy.accounting.charges import Charges, Lists
from p2psim.privacy.accounting.names import AccountantName
from p2psim.privacy.accounting.noises import Noise, pure_of

#: From lists and a δ (or an ε) to what an accountant's formula says of each, shape (lists,).
Formula = Callable[[Lists, float], np.ndarray]


@dataclass(frozen=True)
class Accountant:
    """Adds up the releases of each agent; adaptive ones too.

    What it returns is never below the truth for the dominating pairs of the noises: the smaller of its formula and
    basic composition, where that applies. It does not depend on the order of releases.

    Attributes
    ----------
    name : str
    needs_delta : bool
        Whether it says something at δ = 0 only by basic composition, or nothing.
    supports : callable
        Of a noise: whether releases of it can be added up.
    epsilon_of, delta_of : callable
        The formulas, for lists whose losses are positive and finite. One that overflows is infinite, which says
        nothing.
    """

    name: AccountantName
    needs_delta: bool
    supports: Callable[[Noise], bool]
    epsilon_of: Formula
    delta_of: Formula

    def epsilon(self, charges: Charges | Lists, delta: float) -> np.ndarray:
        """Find ε at δ of each agent, shape (N,); infinite where nothing is guaranteed.

        Raises
        ------
        MeaningError
            If δ is not in [0, 1), or a release is of a noise that is not supported.
        """
        if not 0 <= delta < 1:
            raise MeaningError("delta", f"must be at least 0 and below 1, got {delta}")
        lists = self._known(charges)
        result = self._capped(lists, np.full(lists.size, np.inf))
        if delta > 0 or not self.needs_delta:
            with np.errstate(over="ignore", under="ignore"):
                result = np.minimum(result, self.epsilon_of(lists, delta))
        result[np.diff(lists.offsets) == 0] = 0.0
        result[lists.void] = np.inf
        return result[lists.place]

    def delta(self, charges: Charges | Lists, epsilon: float) -> np.ndarray:
        """Find δ at ε of each agent, shape (N,), from 0 to 1.

        Raises
        ------
        MeaningError
            If ε is negative or not a number, or a release is of a noise that is not supported.
        """
        if not epsilon >= 0:
            raise MeaningError("epsilon", f"must be at least 0, got {epsilon}")
        lists = self._known(charges)
        if np.isinf(epsilon):
            return np.zeros(charges.agents)
        with np.errstate(over="ignore", under="ignore"):
            result = np.clip(self.delta_of(lists, epsilon), 0.0, 1.0)
        result[self._capped(lists, np.full(lists.size, np.inf)) <= epsilon] = 0.0
        result[np.diff(lists.offsets) == 0] = 0.0
        result[lists.void] = 1.0
        return result[lists.place]

    def _known(self, charges: Charges | Lists) -> Lists:
        lists = charges.lists
        for number, _ in lists.masks():
            if not self.supports(lists.noises[number]):
                raise MeaningError(
                    "privacy.accountant",
                    f"{self.name} cannot add up releases of {lists.noises[number].name} noise",
                )
        return lists

    @staticmethod
    def _capped(lists: Lists, otherwise: np.ndarray) -> np.ndarray:
        """Basic composition of each list whose releases are all pure, and what is given for the others."""
        pure = pure_losses(lists)
        return np.where(
            np.isnan(lists.total(np.where(np.isinf(pure), np.nan, 0.0))), otherwise, lists.total(pure)
        )


def pure_losses(lists: Lists) -> np.ndarray:
    """ε₀ of each entry, shape (entries,); infinite where the noise is not pure DP."""
    result = np.full(lists.loss.size, np.inf)
    for number, mask in lists.masks():
        found = pure_of(lists.noises[number], lists.loss[mask])
        if found is not None:
            result[mask] = found
    return result


def is_pure(noise: Noise) -> bool:
    """Whether a noise is pure DP."""
    return pure_of(noise, np.ones(1)) is not None
