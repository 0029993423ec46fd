"""What an allocation is: how an agent's budget is spread over its releases, and the most releases that it may make."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from p2psim.errors import Fault
from p2psim.options import Options
from p2psim.privacy.shares import Outlook, Releases


class Allocation(Options):
    """Base of all allocations.

    An allocation of your own is a subclass with a ``kind``, keys of its own, ``limit`` and ``weights``; one that states
    losses themselves is a subclass of `StatedLosses`.

    Attributes
    ----------
    kind : str
        Its name, as ``kind: Literal["halving"] = "halving"``.
    clairvoyant : bool
        Whether shares are known only after a run's releases are: then it also has ``logarithms``, and its ``weights``
        are what is expected beforehand. Ledgers flag it.
    even : bool
        Whether all releases of an agent have the same loss, which is known before the run.
    alike : bool
        Whether all releases of an agent have the same loss, known before the run or not.
    sums_to_one : bool
        Whether weights of an agent's first ``limit`` releases are proved to sum to 1 at most. Where not, an agent makes
        as many releases as the accountant that enforces its budget permits.
    for_stars : bool
        Whether it divides by the horizon, which only a star has.
    composed_by : str or None
        The accountant by which ``limit`` releases of the largest equal loss stay within the budget; then there are
        no weights.
    """

    part_kind: ClassVar[str] = "allocation"

    # Subclasses declare it with a Literal.
    kind: Any

    clairvoyant: ClassVar[bool] = False
    even: ClassVar[bool] = False
    sums_to_one: ClassVar[bool] = False
    for_stars: ClassVar[bool] = False

    @property
    def alike(self) -> bool:
        """Whether all releases of an agent have the same loss, known before the run or not."""
        return self.even

    @property
    def composed_by(self) -> str | None:
        """The accountant by which releases of equal loss stay within the budget; None for shares."""
        return None

    @abstractmethod
    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent.

        Parameters
        ----------
        horizon : int
            T, the commits of the run.
        share : float
            Probability that a commit is the agent's.
        expected : float
            T·share, rounded, and at least 1.

        Returns
        -------
        int
            `p2psim.privacy.shares.UNLIMITED` for no limit.
        """

    @abstractmethod
    def weights(self, releases: Releases, limits: np.ndarray, outlook: Outlook, power: int = 1) -> np.ndarray:
        """Share of its agent's budget that each release takes, shape (releases,); positive.

        Shares are of what adds up of losses: of Σ ε for pure DP, of Σ μ² for Gaussian noise.

        Parameters
        ----------
        releases : Releases
        limits : ndarray of int64, shape (releases,)
            The most releases that the agent of each may make.
        outlook : Outlook
        power : int
            The power of the losses that adds up.
        """

    def logarithms(self, releases: Releases, outlook: Outlook, power: int = 1) -> np.ndarray:
        """Logarithm of each release's weight, before it is divided by their sum, of one that is clairvoyant."""
        raise NotImplementedError

    def faults(self, star: bool) -> Iterator[Fault]:
        """What of its keys means nothing, with the keys, for a star or for agents on a graph."""
        return iter(())


class StatedLosses(Allocation):
    """Base of allocations that state losses, of which an agent makes as many as its budget allows."""

    @abstractmethod
    def stated_losses(self, numbers: np.ndarray) -> np.ndarray:
        """Loss of an agent's numbered releases, shape (releases,): sensitivity over scale of the noise; positive."""

    def weights(self, releases: Releases, limits: np.ndarray, outlook: Outlook, power: int = 1) -> np.ndarray:
        """There are none."""
        raise NotImplementedError
