"""The ``privacy`` section of a scenario: what is released at what cost, bounds on gradients, and what budgets permit.

Ξ bounds the norm of one record's gradient: the L1 norm for Laplace noise, the L2 norm for Gaussian noise. Replacing one
of an owner's n_i records moves its mean gradient by at most 2Ξ/n_i in that norm. A bound on the L1 norm is one on the
L2 norm, since ‖g‖₂ ≤ ‖g‖₁; the converse is false by up to √p.

`allowance` gives what ε at δ is worth in what adds up of losses, and `affordable` how many releases it pays for.
Releases add up in one of two ways, and an allocation spreads what adds up: Σ ε₀ ≤ ε for pure DP, since every accountant
takes the smaller of its own bound and basic composition; Σ μ² ≤ μ̄² for Gaussian noise, since every accountant's bound
on a list of Gaussians depends on Σ μ² alone, with μ̄ the largest μ of one release within ε at δ. Where losses are
stated instead, or are the largest that an accountant permits, that accountant is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import AgentError, Fault
from p2psim.core.options import AS_LIST, BY_NAME, Options, PerAgent, Positive
from p2psim.privacy.accounting.accountants import ACCOUNTANTS, AccountantName
from p2psim.privacy.accounting.calibration import largest_loss, most_releases
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import Noise, sampled
from p2psim.privacy.allocations import AnyAllocation, Horizon
from p2psim.privacy.mechanisms import AnyMechanism, Mechanism
from p2psim.privacy.shares import Overlap


class SensitivityBound(Options):
    """Base of where the bound on one record's gradient comes from.

    Attributes
    ----------
    holds : bool
        Whether ε follows from it; where not, the ledger's is infinite and only the claim is finite.
    """

    holds: ClassVar[bool] = True

    def faults(self, privacy: PrivacySection, star: bool) -> Iterator[Fault]:
        """What the noise, or a star or agents on a graph, cannot use of it."""
        return iter(())


class Clip(SensitivityBound):
    """Clip each record's gradient to a norm: always safe where the noise is for that norm.

    Choices
    -------
    norm: l1
        the sum of absolute values
    norm: l2
        the Euclidean norm
    """

    kind: Literal["clip"] = "clip"
    norm: Literal["l1", "l2"] = Field(
        "l1",
        description="norm that is clipped: Laplace noise needs l1; Gaussian noise takes both, and l2 clips less",
    )
    bound: Positive = Field(description="Ξ, the largest norm")

    def faults(self, privacy: PrivacySection, star: bool) -> Iterator[Fault]:
        """A bound on an L2 norm is none on the L1 norm, unless that is asked for by its name; the converse holds."""
        if self.norm == "l2" and privacy.mechanism.is_private and privacy.mechanism.norm == "l1":
            hint = ", or give gaussian noise" if star else "; as-printed makes that claim, flagged"
            message = (
                f"{privacy.mechanism.title} needs l1: beside l2 clipping the loss is up to √p times the claim"
            )
            yield Fault(message + hint, "privacy.sensitivity.norm")


class Declared(SensitivityBound):
    """A public bound, checked against the data at every release; a violation voids the guarantee and is flagged."""

    kind: Literal["declared"] = "declared"
    bound: Positive = Field(
        description="Ξ, the largest norm of one record's gradient, in the mechanism's norm"
    )


class Bounds(SensitivityBound):
    """Computed from the public bounds on x, y and θ, in the mechanism's norm."""

    kind: Literal["bounds"] = "bounds"


class Empirical(SensitivityBound):
    """The largest that the records in hand can reach on Θ, as the papers did: not private, always flagged."""

    kind: Literal["empirical"] = "empirical"
    holds: ClassVar[bool] = False


class AsPrinted(SensitivityBound):
    """Clip each record's gradient as B does and claim what B claims, true or not: always flagged, with an infinite ε.

    An L2 bound beside Laplace noise understates the loss by up to √p. On graphs only.
    """

    kind: Literal["as-printed"] = "as-printed"
    norm: Literal["l1", "l2"] = Field("l2", description="norm that is clipped, whatever the noise needs")
    bound: Positive = Field(description="Ξ, the largest norm, taken for a bound on the L1 norm")
    holds: ClassVar[bool] = False

    def faults(self, privacy: PrivacySection, star: bool) -> Iterator[Fault]:
        """It is not for stars."""
        if star:
            yield Fault("as-printed is for agents on a graph; give clip, or empirical", "privacy.sensitivity")


Sensitivity = Annotated[
    Clip | Declared | Bounds | Empirical | AsPrinted, Field(discriminator="kind"), BY_NAME
]


class PrivacySection(Options):
    """What is released, and what it costs.

    Choices
    -------
    when_spent: silent
        the agent does nothing any more
    when_spent: coast
        the agent averages its neighbours' models
    when_spent: anchored
        the agent averages towards its own last model that touched its data
    """

    mechanism: AnyMechanism = Field(description="the noise")
    epsilon: PerAgent | None = Field(None, description="budget of each agent; .inf is no noise")
    delta: Annotated[Positive, Field(lt=1)] | None = Field(
        None, description="δ at which accountants report ε; Gaussian noise needs one"
    )
    sensitivity: Sensitivity | None = Field(
        None, description="where the bound on one record's gradient comes from"
    )
    allocation: AnyAllocation = Field(Horizon(), description="how a budget is spread over releases")
    when_spent: Literal["silent", "coast", "anchored"] = Field(
        "silent",
        description="what an agent does when it may release no more: nothing, average its neighbours' models, or do so "
        "towards its own last model that touched its data",
    )
    accountant: Annotated[list[AccountantName], AS_LIST] = Field(
        ["basic"], description="who adds up the losses, at δ where that is of use"
    )
    enforce: AccountantName | None = Field(
        None,
        description="whose budget stops releases before it would be exceeded; the first accountant when left out",
    )
    overlap: Overlap = Field(
        Overlap(), description="records that several owners of a star hold, and what that costs"
    )
    scale_records: Positive = Field(1.0, description="noise as if each record stood for this many")

    @property
    def enforcing(self) -> AccountantName:
        """The accountant whose budget stops releases."""
        return self.enforce or self.accountant[0]

    @property
    def accountants(self) -> list[str]:
        """All that are named, each once."""
        named = [*self.accountant, self.enforcing, self.allocation.composed_by]
        return list(dict.fromkeys(name for name in named if name is not None))


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

    def accounting(self, agent: int, mechanism: Mechanism, rate: float) -> dict[str, Any]:
        """What a search within an agent's budget is given: the noise of its releases, ε, δ, and its start's charges."""
        start = None if self.start is None else float(self.start[agent])
        return {
            "noise": sampled(mechanism.noise, float(rate)),
            "epsilon": float(self.epsilon[agent]),
            "delta": self.delta,
            # After a start that guarantees nothing there is nothing to keep within the budget.
            "before": None if start is None or start == np.inf else Charges.of(mechanism.noise, start),
        }


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
        searched = limit.accounting(agent, mechanism, rates[agent])
        equal, power = np.ones(int(releases[agent])), mechanism.power
        try:
            factor = largest_loss(ACCOUNTANTS[accountant], weights=equal, power=power, **searched)
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
    alike = np.array([keys.setdefault(stated.tobytes(), len(keys)) for stated in listed])

    def solve(agent: int) -> float:
        searched = limit.accounting(agent, mechanism, rates[agent])
        return float(most_releases(ACCOUNTANTS[limit.enforce], losses=listed[agent], **searched))

    most = _once_each(solve, limit, (alike, rates))
    return np.array([int(m) if np.isfinite(m) else end for m, end in zip(most, ends, strict=True)])


def _once_each(solve: Callable[[int], float], limit: Limit, others: tuple[np.ndarray, ...]) -> np.ndarray:
    """What is solved for each agent, once for all that are alike; infinite where the budget is."""
    columns = [limit.epsilon, np.zeros(limit.epsilon.size) if limit.start is None else limit.start, *others]
    table = np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)
    _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    values = np.array([solve(int(agent)) if limit.finite[agent] else np.inf for agent in first])
    return values[place.reshape(-1)]
