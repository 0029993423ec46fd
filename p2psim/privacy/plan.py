"""What each agent may release and with how much noise: fixed before a run, from public numbers alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from p2psim.errors import MeaningError
from p2psim.privacy.allocations import Allocation, Contraction, Uniform
from p2psim.privacy.mechanisms import Laplace, NoNoise
from p2psim.privacy.shares import UNLIMITED, Outlook, Releases, Totals

#: Largest scale of noise: a draw, which can be 37 times as large, must be a number.
LARGEST = 1e300


@dataclass(frozen=True)
class Plan:
    """Releases of all agents: the budgets, the noise, and what may be claimed.

    Attributes
    ----------
    mechanism
        The noise.
    allocation
        How a budget is spread.
    budget : ndarray, shape (N,)
        ε of each agent, for the records as scaled; infinite for no noise.
    releases : ndarray of int64, shape (N,)
        The most releases that each agent may make (`UNLIMITED` for any number).
    sensitivity : ndarray, shape (N,)
        L1 sensitivity of one release, for the real records: 2Ξ over what a sum of gradients is divided by: n_i, or
        q·n_i or b for batches; 0 without records.
    rates : ndarray, shape (N,)
        Chance of each agent's records to take part in a release; 1 where there are no batches.
    scale_records : float
        Noise as if each record stood for this many.
    outlook : Outlook
        What is known of the run beforehand.
    """

    mechanism: NoNoise | Laplace
    allocation: Allocation
    budget: np.ndarray
    releases: np.ndarray
    sensitivity: np.ndarray
    rates: np.ndarray
    scale_records: float
    outlook: Outlook

    @property
    def limits(self) -> np.ndarray | None:
        """The one number an agent that privacy tells the network; None where nobody is limited."""
        return None if (self.releases == UNLIMITED).all() else self.releases

    @property
    def clairvoyant(self) -> bool:
        """Whether the noise depends on the releases that will happen, which nobody could know."""
        return self.mechanism.is_private and self.allocation.clairvoyant

    def totals(self, parts: Iterable[Releases]) -> Totals | None:
        """Sums of weights that a clairvoyant allocation divides by; None, and nothing is read, for any other.

        Parameters
        ----------
        parts : iterable of Releases
            All of the run.
        """
        if not self.clairvoyant:
            return None
        totals = Totals.empty(self.budget.size)
        for part in parts:
            totals = totals.add(part.agents, self._logarithms(part))
        return totals

    def claimed(self, releases: Releases, totals: Totals | None = None) -> np.ndarray:
        """ε that releases are claimed to cost, as the records are scaled, shape (releases,); infinite without noise.

        Parameters
        ----------
        releases : Releases
        totals : Totals, optional
            From `totals`. When left out, a clairvoyant allocation's releases cost what is expected before the run.
        """
        if not self.mechanism.is_private:
            return np.full(releases.agents.size, np.inf)
        if totals is None:
            weights = self.allocation.weights(releases, self.releases[releases.agents], self.outlook)
        else:
            weights = totals.shares(releases.agents, self._logarithms(releases))
        budget = self.budget[releases.agents]
        endless = np.isinf(budget)
        return np.where(endless, np.inf, np.where(endless, 1.0, budget) * weights)

    def _logarithms(self, releases: Releases) -> np.ndarray:
        assert isinstance(self.allocation, Uniform | Contraction)
        return self.allocation.logarithms(releases, self.outlook)

    def scales(self, releases: Releases, totals: Totals | None = None) -> np.ndarray:
        """Scale of the noise of releases, shape (releases,); parameters as in `claimed`.

        Raises
        ------
        MeaningError
            If a scale is too large for its draws to be numbers.
        """
        sensitivity = self.sensitivity[releases.agents] / self.scale_records
        scales = self.mechanism.scales(sensitivity, self.claimed(releases, totals))
        lost = ~(scales <= LARGEST)
        if lost.any():
            agent, number = releases.agents[lost][0], releases.numbers[lost][0]
            raise MeaningError(
                "privacy.allocation",
                f"the noise of release {number} of agent {agent} overflows; its share of the budget is too small",
            )
        return scales


def plan(
    mechanism: NoNoise | Laplace,
    allocation: Allocation,
    budget: np.ndarray,
    bound: float,
    divisors: np.ndarray,
    horizon: int,
    shares: np.ndarray,
    scale_records: float = 1.0,
    never: bool = False,
    expected: np.ndarray | None = None,
    contraction: float | None = None,
    rates: np.ndarray | None = None,
) -> Plan:
    """Plan the releases of all agents.

    Parameters
    ----------
    mechanism, allocation
        Parts of the privacy section.
    budget : ndarray, shape (N,)
        ε of each agent, positive, possibly infinite.
    bound : float
        Ξ, the bound on the L1 norm of one record's gradient.
    divisors : ndarray, shape (N,)
        What each agent's sum of gradients is divided by, n_i where all records take part; 0 without records.
    horizon : int
        T, the most releases that allocation ``horizon`` prepares for.
    shares : ndarray, shape (N,)
        Probability that a commit is each agent's.
    scale_records : float
        Noise as if each record stood for this many.
    never : bool
        Whether no update ever touches data.
    expected : ndarray, shape (N,), optional
        Releases that each agent is expected to make when nothing limits it and no wake is missed; T·share when left
        out.
    contraction : float, optional
        C of `p2psim.theory.graph.contraction_rate`, for allocation ``contraction`` with rate auto.
    rates : ndarray, shape (N,), optional
        Chance of each agent's records to take part in a release; 1 when left out.
    """
    shares = np.asarray(shares, dtype=float)
    expected = np.maximum(1.0, np.rint(horizon * shares if expected is None else expected))
    # An infinite budget cannot be spent, so it limits nobody: such a run is the noiseless one.
    limited = mechanism.is_private & np.isfinite(budget)
    releases = np.array(
        [
            allocation.limit(horizon, float(share), float(mean)) if is_limited else UNLIMITED
            for share, mean, is_limited in zip(shares, expected, limited, strict=True)
        ],
        dtype=np.int64,
    )
    if never:
        releases[:] = 0
    held = divisors > 0
    sensitivity = np.where(held, 2 * bound / np.where(held, divisors, 1.0), 0.0)
    return Plan(
        mechanism,
        allocation,
        budget,
        releases,
        sensitivity,
        np.ones(budget.size) if rates is None else rates,
        scale_records,
        Outlook(expected, 1.0 / shares, contraction),
    )
