"""What an accountant is, and what all of them do at the edges."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, is_pure

#: Of more agents or releases than these no ε is kept: it would take too much memory.
_MOST_KEPT = 4096


class Accountant(ABC):
    """Base of all accountants: turns releases into ε at δ, and δ at ε, and refuses releases that it does not know.

    It says no less than what is true of the dominating pairs of the noises, also where each release was chosen after
    the ones before it, and it says the smaller of its own bound and that of basic composition. The order of releases
    does not matter.

    An accountant of your own is a subclass, made without arguments, with ``name``, ``meaning``, ``supports``,
    ``epsilon_bound`` and ``delta_bound``.

    Attributes
    ----------
    name, meaning : str
        Its ε is the column ``epsilon_NAME`` of ledgers.
    needs_delta : bool
        Whether it gives more at a δ above 0 than at 0.
    """

    part_kind: ClassVar[str] = "accountant"

    name: str
    meaning: str
    needs_delta: bool = True

    @abstractmethod
    def supports(self, noise: Noise) -> bool:
        """Whether it can account for a noise (`p2psim.privacy.accounting.noises`); say no to any that is not known."""

    @abstractmethod
    def epsilon_bound(self, charges: Charges, delta: float) -> np.ndarray:
        """ε of each agent at δ, shape (N,), rounded up; infinite says nothing.

        Parameters
        ----------
        charges : Charges
            Of noises that are supported; losses are positive and finite, equal releases are one with a count.
        delta : float
            In (0, 1).
        """

    @abstractmethod
    def delta_bound(self, charges: Charges, epsilon: float) -> np.ndarray:
        """δ of each agent at ε, shape (N,), rounded up; 1 says nothing.

        Parameters
        ----------
        charges : Charges
            As in `epsilon_bound`.
        epsilon : float
            Not negative, finite.
        """

    def epsilon(self, charges: Charges, delta: float) -> np.ndarray:
        """ε of each agent at δ, shape (N,): never less than the truth; infinite where nothing is guaranteed.

        It may be kept, and cannot be written to where it is.

        Parameters
        ----------
        charges : Charges
        delta : float
            In [0, 1).

        Raises
        ------
        ValueError
            If a noise is not supported, or δ is out of range.
        """
        if not 0 <= delta < 1:
            raise ValueError(f"δ must be in [0, 1), got {delta}")
        if not delta and charges.are_single:  # to see who differs would take longer than to add
            self._check(charges)
            sums = basic_sums(charges)
            sums.setflags(write=False)
            return sums
        few = max(charges.loss.size, charges.agents) <= _MOST_KEPT
        return kept_epsilon(self, charges, delta) if few else self._epsilon(charges, delta)

    def _epsilon(self, charges: Charges, delta: float) -> np.ndarray:
        def capped(sane: Charges) -> np.ndarray:
            simple = basic_sums(sane)
            return np.maximum(np.minimum(simple, self.epsilon_bound(sane, delta)) if delta else simple, 0.0)

        return self._guarded(charges, capped, np.inf)

    def delta(self, charges: Charges, epsilon: float) -> np.ndarray:
        """δ of each agent at ε, shape (N,): never less than the truth; 1 where nothing is guaranteed.

        Parameters
        ----------
        charges : Charges
        epsilon : float
            Not negative.

        Raises
        ------
        ValueError
            If a noise is not supported, or ε is negative or not a number.
        """
        if not epsilon >= 0:
            raise ValueError(f"ε must not be negative, got {epsilon}")
        if epsilon == np.inf:
            return np.zeros(charges.agents)

        def capped(sane: Charges) -> np.ndarray:
            bound = np.clip(self.delta_bound(sane, epsilon), 0.0, 1.0)
            return np.where(basic_sums(sane) <= epsilon, 0.0, bound)

        return self._guarded(charges, capped, 1.0)

    def _check(self, charges: Charges) -> None:
        for noise in charges.used:
            if not self.supports(noise):
                raise ValueError(f"{self.name} cannot account for {noise.name} releases")

    def _guarded(self, charges: Charges, measure: Callable[[Charges], np.ndarray], lost: float) -> np.ndarray:
        """Measure agents that differ and whose losses are all finite; the others have lost everything."""
        self._check(charges)
        few, places = charges.condensed
        finite = np.ones(few.agents, bool)
        finite[few.owners[np.isinf(few.loss)]] = False
        measured = np.full(few.agents, lost)
        if finite.any():
            sane = few if finite.all() else few.pick(finite)
            with np.errstate(over="ignore", under="ignore"):
                measured[finite] = measure(sane)
        if np.isnan(measured).any():
            raise ArithmeticError(f"{self.name} gives no number for some releases")
        return measured[places]


@lru_cache(64)
def kept_epsilon(accountant: Accountant, charges: Charges, delta: float) -> np.ndarray:
    """ε by an accountant, kept: cells of a replica that differ in nothing that privacy sees have the same charges."""
    epsilon = accountant._epsilon(charges, delta)
    epsilon.setflags(write=False)
    return epsilon


def basic_sums(charges: Charges) -> np.ndarray:
    """Σε₀ of each agent, shape (N,); infinite where a release with a loss is not pure."""

    def pure(noise: Any, losses: np.ndarray) -> np.ndarray:
        return noise.pure(losses) if is_pure(noise) else np.where(losses > 0, np.inf, 0.0)

    return charges.sums(charges.each(pure))
