"""What budgets permit: what ε at δ is worth in what adds up of losses, and how many releases it pays for.

Releases add up in one of two ways, and an allocation spreads what adds up: Σ ε₀ ≤ ε for pure DP, since every
accountant takes the smaller of its own bound and basic composition; Σ μ² ≤ μ̄² for Gaussian noise, since every
accountant's bound on a list of Gaussians depends on Σ μ² alone, with μ̄ the largest μ of one release within ε at δ.
Where losses are stated instead, or are the largest that an accountant permits, that accountant is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from p2psim.errors import AgentError
from p2psim.privacy.accounting.accountants import ACCOUNTANTS
from p2psim.privacy.accounting.calibration import largest_loss, most_releases
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.names import AccountantName
from p2psim.privacy.accounting.noises import Noise, Subsampled
from p2psim.privacy.mechanisms import Mechanism

#: Of a bracket that is at most as wide as four times the number in it: as many as its digits.
_HALVINGS = 54


@dataclass(frozen=True)
class Limit:
    """What all releases of each agent may cost together, and who counts.

    Attributes
    ----------
    epsilon : ndarray, shape (N,)
        ε, positive; infinite for no limit and no noise.
    delta : float
        δ; 0 where no accountant needs one. Of one agent's releases, where several may hold the same record.
    enforce : str
        The accountant that stops releases.
    start : ndarray, shape (N,), or None
        Loss of a release that each agent made before the first event, for its start, for the records as scaled;
        infinite where that guarantees nothing.
    start_real : ndarray, shape (N,), or None
        The same for the real records.
    promise : ndarray, shape (N,), or None
        ε that a record of each agent may lose to all its holders; `epsilon` when left out.
    holders : int
        The most agents that hold the same record.
    """

    epsilon: np.ndarray
    delta: float = 0.0
    enforce: AccountantName = "basic"
    start: np.ndarray | None = None
    start_real: np.ndarray | None = None
    promise: np.ndarray | None = None
    holders: int = 1

    @property
    def promised(self) -> np.ndarray:
        """ε that a record of each agent may lose, shape (N,)."""
        return self.epsilon if self.promise is None else self.promise

    @property
    def delta_in_all(self) -> float:
        """δ of a record whoever holds it."""
        return self.delta * self.holders

    @property
    def finite(self) -> np.ndarray:
        """Whether an agent's budget limits anything, shape (N,)."""
        return np.isfinite(self.epsilon)

    def before(self, agent: int, mechanism: Mechanism) -> Charges | None:
        """Charges for an agent's start; None where there is none, or where nothing is guaranteed after it."""
        if self.start is None or not np.isfinite(self.start[agent]):
            return None
        return Charges.of(mechanism.noise, [float(self.start[agent])])


def before_sampling(losses: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Pure losses of noise whose releases, each of a sample of the records, have the given losses.

    A sample of a share q turns ε₀ into log(1 + q(e^ε₀ − 1)) (Balle, Barthe, Gaboardi 2018, Theorems 8 and 9 with
    δ = 0), so ε comes of log(1 + (e^ε − 1)/q).

    Parameters
    ----------
    losses : ndarray, shape (releases,)
        Positive, possibly infinite.
    rates : ndarray, shape (releases,)
        q in (0, 1].
    """
    small = np.minimum(losses, 30.0)  # above, e^ε − 1 is e^ε in double precision
    found = np.where(losses > 30.0, losses - np.log(rates), np.log1p(np.expm1(small) / rates))
    return np.where(rates == 1, losses, found)


def sampled(noise: Noise, rate: float) -> Noise:
    """A noise whose releases each sample this share of the records."""
    return noise if rate == 1 else Subsampled(noise, rate)


def allowance(mechanism: Mechanism, epsilon: np.ndarray, delta: float, enforce: AccountantName) -> np.ndarray:
    """What ε at δ is worth in what adds up of losses, shape (N,): ε itself, or μ̄²; infinite where ε is.

    Parameters
    ----------
    mechanism : Mechanism
    epsilon : ndarray, shape (N,)
        Positive.
    delta : float
    enforce : str
        The accountant that says when one release is within ε at δ.
    """
    if mechanism.power == 1 and mechanism.adds_up:
        return epsilon
    values, place = np.unique(epsilon, return_inverse=True)
    worth = np.full(values.size, np.inf)
    finite = np.isfinite(values)
    if finite.any():
        worth[finite] = _of_one_release(mechanism.noise, values[finite], delta, enforce) ** mechanism.power
    return worth[place.reshape(-1)]


def _of_one_release(noise: Noise, epsilon: np.ndarray, delta: float, enforce: AccountantName) -> np.ndarray:
    """Largest loss of a single release within each ε at δ, for all together, and never above it."""

    def within(losses: np.ndarray) -> np.ndarray:
        charges = Charges((noise,), np.zeros(losses.size, np.int8), losses, np.arange(losses.size + 1))
        return ACCOUNTANTS[enforce].epsilon(charges, delta) <= epsilon

    low, high = np.ones(epsilon.size), np.ones(epsilon.size)
    while (fits := within(high)).any():
        high = np.where(fits, 2 * high, high)
    while not (fits := within(low)).all():
        low = np.where(fits, low, low / 2)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = within(middle)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


def allowances(mechanism: Mechanism, limit: Limit) -> np.ndarray:
    """What each agent's releases have in all of what adds up, after its start, shape (N,).

    Raises
    ------
    MeaningError
        If nothing is left.
    """
    whole = allowance(mechanism, limit.epsilon, limit.delta, limit.enforce)
    if limit.start is None:
        return whole
    left = whole - np.where(np.isfinite(limit.start), limit.start, 0.0) ** mechanism.power
    if (left <= 0).any():
        agent = int(np.argmax(left <= 0))
        raise AgentError(
            "learning.algorithm.start.epsilon",
            f"must be less than privacy.epsilon, {limit.epsilon[agent]:g} for agent {{agent}}, of which it is a part",
            agent,
        )
    return left


def composed(
    mechanism: Mechanism, limit: Limit, accountant: AccountantName, releases: np.ndarray, rates: np.ndarray
) -> np.ndarray:
    """Largest loss that each of an agent's equal releases may have, shape (N,); infinite where the budget is.

    Parameters
    ----------
    mechanism : Mechanism
    limit : Limit
    accountant : str
        Who composes.
    releases : ndarray of int, shape (N,)
        How many each agent makes at most.
    rates : ndarray, shape (N,)
        Share of the records that each release samples.

    Raises
    ------
    MeaningError
        If no loss is small enough.
    """

    def solve(agent: int) -> float:
        noise = sampled(mechanism.noise, float(rates[agent]))
        budget = float(limit.epsilon[agent]), limit.delta
        before = limit.before(agent, mechanism)
        same = np.ones(int(releases[agent]))
        power = mechanism.power
        try:
            factor = largest_loss(ACCOUNTANTS[accountant], noise, same, *budget, power, before)
        except ValueError as error:
            raise AgentError("privacy.epsilon", f"is too small for agent {{agent}}: {error}", agent) from None
        return factor ** (1 / power)

    return _once_each(solve, limit, (releases, rates))


def affordable(
    mechanism: Mechanism,
    limit: Limit,
    rates: np.ndarray,
    losses: Callable[[int], np.ndarray],
    ends: np.ndarray,
) -> np.ndarray:
    """Releases that each agent can make within its budget, one after the other, by the accountant that enforces it.

    Parameters
    ----------
    mechanism : Mechanism
    limit : Limit
    rates : ndarray, shape (N,)
        Share of the records that each release samples.
    losses : callable
        Of an agent: the losses of its releases in order, as many as it makes at most.
    ends : ndarray of int64, shape (N,)
        How many agents make at most; what is returned for those whose budgets are infinite.

    Returns
    -------
    ndarray of int64, shape (N,)
    """
    listed = [losses(agent) if limit.finite[agent] else np.empty(0) for agent in range(ends.size)]
    keys: dict[bytes, int] = {}
    alike = np.array([keys.setdefault(one.tobytes(), len(keys)) for one in listed])

    def solve(agent: int) -> float:
        noise = sampled(mechanism.noise, float(rates[agent]))
        budget = float(limit.epsilon[agent]), limit.delta
        before = limit.before(agent, mechanism)
        return float(most_releases(ACCOUNTANTS[limit.enforce], noise, listed[agent], *budget, before))

    found = _once_each(solve, limit, (alike, rates))
    return np.array(
        [int(count) if np.isfinite(count) else end for count, end in zip(found, ends, strict=True)]
    )


def _once_each(solve: Callable[[int], float], limit: Limit, others: tuple[np.ndarray, ...]) -> np.ndarray:
    """What is solved for each agent, once for all that are alike; infinite where the budget is."""
    columns = [limit.epsilon, np.zeros(limit.epsilon.size) if limit.start is None else limit.start, *others]
    table = np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)
    _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    values = np.array([solve(int(agent)) if limit.finite[agent] else np.inf for agent in first])
    return values[place.reshape(-1)]
