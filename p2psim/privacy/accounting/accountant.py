"""What an accountant is, and what all of them do at the edges."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, is_pure

#: The last questions and their answers: cells of a replica that differ in nothing that privacy sees ask the same.
_ANSWERS: OrderedDict[Hashable, np.ndarray] = OrderedDict()
_MOST_ANSWERS = 64
#: Of more agents or releases than these neither question nor answer is kept: they would take too much memory.
_MOST_KEPT = 4096


@dataclass(frozen=True)
class Accountant:
    """Turns releases into ε at δ, and δ at ε; it refuses releases that it does not know.

    It says no less than what is true of the dominating pairs of the noises, also where each release was chosen after
    the ones before it, and it says the smaller of its own bound and that of basic composition. The order of releases
    does not matter.

    Attributes
    ----------
    name, meaning : str
    supports : callable
        Whether it can account for a noise.
    needs_delta : bool
        Whether it gives more at a δ above 0 than at 0.
    """

    name: str
    meaning: str
    supports: Callable[[Noise], bool]
    needs_delta: bool
    # Bounds on condensed charges whose losses are positive and finite; one that overflows is infinite and says nothing.
    _epsilon: Callable[[Charges, float], np.ndarray]
    _delta: Callable[[Charges, float], np.ndarray]

    def epsilon(self, charges: Charges, delta: float) -> np.ndarray:
        """ε of each agent at δ, shape (N,): never less than the truth; infinite where nothing is guaranteed.

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

        def capped(sane: Charges) -> np.ndarray:
            simple = basic_sums(sane)
            return np.maximum(np.minimum(simple, self._epsilon(sane, delta)) if delta else simple, 0.0)

        if max(charges.loss.size, charges.agents) > _MOST_KEPT:
            return self._guarded(charges, capped, np.inf)
        question = self._epsilon, delta, charges.content
        answer = _ANSWERS.get(question)
        if answer is None:
            answer = self._guarded(charges, capped, np.inf)
            answer.setflags(write=False)
            _ANSWERS[question] = answer
            if len(_ANSWERS) > _MOST_ANSWERS:
                _ANSWERS.popitem(last=False)
        return answer

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
            found = np.clip(self._delta(sane, epsilon), 0.0, 1.0)
            return np.where(basic_sums(sane) <= epsilon, 0.0, found)

        return self._guarded(charges, capped, 1.0)

    def _guarded(self, charges: Charges, measure: Callable[[Charges], np.ndarray], lost: float) -> np.ndarray:
        """Measure agents that differ and whose losses are all finite; the others have lost everything."""
        few, places = charges.condensed
        for noise in charges.used:
            if not self.supports(noise):
                raise ValueError(f"{self.name} cannot account for {noise.name} releases")
        infinite = np.isinf(few.loss)
        finite = np.ones(few.agents, bool)
        if infinite.any():
            finite[few.owners[infinite]] = False
        found = np.full(few.agents, lost)
        if finite.any():
            sane = few if finite.all() else few.pick(finite)
            with np.errstate(over="ignore", under="ignore"):
                found[finite] = measure(sane)
        if np.isnan(found).any():
            raise ArithmeticError(f"{self.name} finds no number for some releases")
        return found[places]


def basic_sums(charges: Charges) -> np.ndarray:
    """Σε₀ of each agent, shape (N,); infinite where a release with a loss is not pure."""

    def pure(noise: Noise, losses: np.ndarray) -> np.ndarray:
        if is_pure(noise):
            return noise.pure(losses)
        return np.where(losses > 0, np.inf, 0.0)

    return charges.sums(charges.each(pure))
