"""What each agent may release and with how much noise: fixed before a run, from public numbers alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from p2psim.errors import MeaningError
from p2psim.privacy.allocations import UNLIMITED, Allocation, Releases
from p2psim.privacy.mechanisms import Laplace, NoNoise

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
        L1 sensitivity of one release, 2Ξ/n_i, for the real records.
    scale_records : float
        Noise as if each record stood for this many.
    """

    mechanism: NoNoise | Laplace
    allocation: Allocation
    budget: np.ndarray
    releases: np.ndarray
    sensitivity: np.ndarray
    scale_records: float

    @property
    def limits(self) -> np.ndarray | None:
        """The one number an agent that privacy tells the network; None where nobody is limited."""
        return None if (self.releases == UNLIMITED).all() else self.releases

    def claimed(self, releases: Releases, totals: np.ndarray | None = None) -> np.ndarray:
        """ε that releases are claimed to cost, as the records are scaled, shape (releases,); infinite without noise.

        Parameters
        ----------
        releases : Releases
        totals : ndarray, shape (N,), optional
            Sum of each agent's weights over all releases that it will make: for clairvoyant allocations.
        """
        if not self.mechanism.is_private:
            return np.full(releases.agents.size, np.inf)
        weights = self.allocation.weights(releases, self.releases[releases.agents])
        if totals is not None:
            weights = weights / totals[releases.agents]
        budget = self.budget[releases.agents]
        return np.where(np.isinf(budget), np.inf, budget * weights)

    def scales(self, releases: Releases, totals: np.ndarray | None = None) -> np.ndarray:
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
                f"the noise of release {number} of agent {agent} overflows; its budget is used up",
            )
        return scales


def plan(
    mechanism: NoNoise | Laplace,
    allocation: Allocation,
    budget: np.ndarray,
    bound: float,
    records: np.ndarray,
    horizon: int,
    shares: np.ndarray,
    scale_records: float = 1.0,
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
    records : ndarray of int, shape (N,)
        n_i.
    horizon : int
        T.
    shares : ndarray, shape (N,)
        Probability that a query goes to each agent.
    scale_records : float
        Noise as if each record stood for this many.
    """
    # An infinite budget cannot be spent, so it limits nobody: such a run is the noiseless one.
    limited = mechanism.is_private & np.isfinite(budget)
    releases = np.array(
        [
            allocation.limit(horizon, float(share)) if is_limited else UNLIMITED
            for share, is_limited in zip(shares, limited, strict=True)
        ],
        dtype=np.int64,
    )
    return Plan(mechanism, allocation, budget, releases, 2 * bound / records, scale_records)
