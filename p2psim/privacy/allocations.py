"""Allocations: how an agent's budget is spread over its releases, and the most releases that it may make.

Weights are shares of what adds up: Σ ε for pure DP (power 1), Σ μ² for Gaussian noise (power 2). `Contraction` is B's
Proposition 2: it weighs a release by how much of its noise later steps contract away.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.errors import Fault, MeaningError
from p2psim.core.options import BY_NAME, Count, OneOf, Options, Positive
from p2psim.core.part_types import AnyOf
from p2psim.core.registry import register_all
from p2psim.privacy.accounting.accountants import AccountantName
from p2psim.privacy.shares import UNLIMITED, Releases, RunForecast


class Allocation(Options):
    """Base of all allocations.

    An allocation of your own is a subclass with a ``kind``, its own keys, ``weights``, and ``limit`` where it has
    one; one that states losses themselves is a subclass of `StatedLosses`.

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
    by_powers : bool
        Whether weights of releases are powers of one number, by the steps at which they are made.
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
    by_powers: ClassVar[bool] = False
    composed_by: ClassVar[str | None] = None

    @property
    def counts_answers(self) -> bool:
        """Whether its limit takes each answer to be any owner's, no matter which gave those before."""
        return False

    @property
    def falls_by(self) -> float | None:
        """Ratio of an agent's losses, each to the one before, where that is fixed."""
        return None

    @property
    def alike(self) -> bool:
        """Whether all releases of an agent have the same loss, known before the run or not."""
        return self.even

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent; any number, if the part does not say otherwise.

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
        return UNLIMITED

    @abstractmethod
    def weights(self, releases: Releases, limits: np.ndarray, run: RunForecast, power: int = 1) -> np.ndarray:
        """Share of its agent's budget that each release takes, shape (releases,); positive.

        Shares are of what adds up of losses: of Σ ε for pure DP, of Σ μ² for Gaussian noise.

        Parameters
        ----------
        releases : Releases
        limits : ndarray of int64, shape (releases,)
            The most releases that the agent of each may make.
        run : RunForecast
            What is known of the run beforehand.
        power : int
            The power of the losses that adds up.
        """

    def logarithms(self, releases: Releases, run: RunForecast, power: int = 1) -> np.ndarray:
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

    def weights(self, releases: Releases, limits: np.ndarray, run: RunForecast, power: int = 1) -> np.ndarray:
        """There are none."""
        raise NotImplementedError


class EqualShares(Allocation):
    """Base of allocations that divide a budget equally among as many releases as they allow."""

    sums_to_one: ClassVar[bool] = True
    even: ClassVar[bool] = True

    def weights(self, releases: Releases, limits: np.ndarray, run: RunForecast, power: int = 1) -> np.ndarray:
        """Share of its agent's budget that each release takes."""
        return 1.0 / limits


class Contraction(Allocation):
    """Losses ∝ C^{(T−1−t)/3} for a release at step t (B, Proposition 2): late releases get more, as their noise stays.

    The noise of step t is contracted by C^{T−1−t} until the end, so Σ C^{T−1−t}/ε(t)² is least under a given Σ ε(t)
    for the corrected form. The printed one, ε ∝ C^{t/3}, gives late releases less. Where Σ ε² is what is limited, as
    for Gaussian noise, the exponent is 1/4. T cancels in the shares: a run that ends by time needs no T.

    Choices
    -------
    form: printed
        ∝ C^{t/3}, as in the paper: late releases get less
    form: corrected
        ∝ C^{(T−1−t)/3}: late releases get more
    wakes: known
        shares of the releases that will happen; flagged clairvoyant
    wakes: expected
        shares of the releases that are expected; then the agent stops
    exponent: auto
        by the mechanism: third for pure DP, quarter for Gaussian noise
    exponent: third
        where Σ ε is what is limited
    exponent: quarter
        where Σ ε² is what is limited, as under zCDP
    """

    kind: Literal["contraction"] = "contraction"
    sums_to_one: ClassVar[bool] = True
    by_powers: ClassVar[bool] = True
    form: Literal["printed", "corrected"] = Field(
        "corrected", description="printed: ∝ C^{t/3}, as in the paper; corrected: ∝ C^{(T−1−t)/3}"
    )
    wakes: Literal["known", "expected"] = Field(
        "expected",
        description="known: shares of the releases that will happen, flagged clairvoyant; expected: an agent takes "
        "k·n, the expected global time of its k-th wake, spreads its budget over as many as it expects, then stops",
    )
    rate: Literal["auto"] | Annotated[float, Field(gt=0, lt=1)] = Field(
        "auto", description="C; auto: 1 − σ/(n·L_max), from public constants of the graph and the losses"
    )
    exponent: Literal["auto", "third", "quarter"] = Field(
        "auto",
        description="third where Σ ε is what is limited; quarter where it is Σ ε², as under zCDP or advanced "
        "composition; auto: by the mechanism",
    )
    releases: Count | None = Field(
        None, description="wakes: expected alone: the most releases; as many as are expected when left out"
    )

    def faults(self, star: bool) -> Iterator[Fault]:
        """Only on graphs does theory say by how much a commit contracts."""
        if self.rate == "auto" and star:
            message = "auto is for agents on a graph; give a number between 0 and 1, both excluded"
            yield Fault(message, "privacy.allocation.rate")
        if self.wakes == "known" and self.releases is not None:
            message = "limits what is made at expected wakes; known ones are all used"
            yield Fault(message, "privacy.allocation.releases")

    @property
    def clairvoyant(self) -> bool:  # type: ignore[override]
        """Whether it knows the wakes that will happen."""
        return self.wakes == "known"

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent."""
        if self.clairvoyant:
            return UNLIMITED
        return self.releases if self.releases is not None else round(expected)

    def weights(self, releases: Releases, limits: np.ndarray, run: RunForecast, power: int = 1) -> np.ndarray:
        """Share of its agent's budget that each release takes at expected wakes, C^{(K−1−k)n/3} over its sum.

        For K releases k = 0 … K − 1; C^{kn/3} in the printed form. For known wakes, what is expected before the run.
        """
        count = run.expected[releases.agents] if self.clairvoyant else limits
        fall = self._fall(run, power) * run.periods[releases.agents]
        # Away from the release with the largest share, so that only what is negligible beside it can underflow.
        away = count - 1 - releases.numbers if self.form == "corrected" else releases.numbers
        return np.asarray(np.exp(-fall * away) * (np.expm1(-fall) / np.expm1(-fall * count)))

    def logarithms(self, releases: Releases, run: RunForecast, power: int = 1) -> np.ndarray:
        """Logarithm of each release's weight before it is divided by their sum."""
        fall = self._fall(run, power)
        return releases.steps * (fall if self.form == "corrected" else -fall)

    def _fall(self, run: RunForecast, power: int) -> float:
        """−ln C times the exponent of a loss to the power that adds up."""
        rate = run.contraction if self.rate == "auto" else self.rate
        if rate is None:
            message = "auto has no theory for this algorithm; give a number between 0 and 1"
            raise MeaningError("privacy.allocation.rate", message)
        if not 0 < rate < 1:
            what = f"auto found C = {rate}, but needs an objective that is strongly convex"
            raise MeaningError("privacy.allocation.rate", f"{what}: give a number between 0 and 1")
        # The best exponent where this power of the losses is what adds up.
        exponents = {"third": 1 / 3, "quarter": 1 / 4, "auto": {1: 1 / 3, 2: 1 / 4}[power]}
        return -math.log(rate) * exponents[self.exponent] * power


class Horizon(EqualShares):
    """ε/T for each of at most T releases, T the horizon: a worst case, since an owner of N answers about T/N times."""

    kind: Literal["horizon"] = "horizon"
    for_stars: ClassVar[bool] = True

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent."""
        return horizon


class Cap(EqualShares, OneOf):
    """m releases of equal loss, then none: ε/m each, or what composition by an accountant permits."""

    kind: Literal["cap"] = "cap"
    alternatives: ClassVar[tuple[str, ...]] = ("releases", "tail")
    releases: Count | None = Field(None, description="m")
    tail: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None,
        description="instead of m: m is the least number that an owner's answers exceed with at most this "
        "probability; for a lossless, always-on request star",
    )
    compose: AccountantName | None = Field(
        None,
        description="the accountant by which m releases of the largest equal loss stay within ε at δ; it must be the "
        "one that enforces the budget",
    )

    @property
    def composed_by(self) -> str | None:  # type: ignore[override]
        """The accountant, where one is named."""
        return self.compose

    @property
    def counts_answers(self) -> bool:
        """Whether the limit is that of a binomial."""
        return self.tail is not None

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent, which answers a share of the horizon's queries."""
        if self.releases is not None:
            return self.releases
        assert self.tail is not None
        return binomial_cap(horizon, share, self.tail)


class Geometric(Allocation):
    """ε(1 − r)r^j for release j = 0, 1, …: any number of releases, each with more noise than the one before."""

    kind: Literal["geometric"] = "geometric"
    sums_to_one: ClassVar[bool] = True
    ratio: Annotated[float, Field(gt=0, lt=1)] = Field(0.99, description="r")

    @property
    def falls_by(self) -> float:
        """The key ``ratio``."""
        return self.ratio

    def weights(self, releases: Releases, limits: np.ndarray, run: RunForecast, power: int = 1) -> np.ndarray:
        """Share of its agent's budget that each release takes."""
        return (1 - self.ratio) * self.ratio**releases.numbers


class Uniform(Allocation):
    """Equal parts for all releases that will happen: the budget is spent exactly, as all wakes are known beforehand."""

    kind: Literal["uniform"] = "uniform"
    sums_to_one: ClassVar[bool] = True
    clairvoyant: ClassVar[bool] = True
    alike: ClassVar[bool] = True
    by_powers: ClassVar[bool] = True

    def weights(self, releases: Releases, limits: np.ndarray, run: RunForecast, power: int = 1) -> np.ndarray:
        """Share of its agent's budget that each release is expected to take, before the run."""
        return 1.0 / run.expected[releases.agents]

    def logarithms(self, releases: Releases, run: RunForecast, power: int = 1) -> np.ndarray:
        """Logarithm of each release's weight, before it is divided by their sum."""
        return np.zeros(releases.agents.size)


class Listed(StatedLosses):
    """Losses one by one, for as many releases as the list is long and the budget allows, then none."""

    kind: Literal["list"] = "list"
    losses: Annotated[list[Positive], Field(min_length=1)] = Field(
        description="loss of each release, sensitivity over scale of the noise: ε₀ for Laplace noise, μ for Gaussian"
    )

    def limit(self, horizon: int, share: float, expected: float) -> int:
        """Most releases of one agent."""
        return len(self.losses)

    def stated_losses(self, numbers: np.ndarray) -> np.ndarray:
        """Loss of an agent's numbered releases, shape (releases,)."""
        # An agent whose budget is infinite goes on without noise; what is looked up for it is not used.
        return np.array(self.losses)[np.minimum(numbers, len(self.losses) - 1)]


class Constant(StatedLosses):
    """The same loss for each release, as many as the budget allows, then none."""

    kind: Literal["constant"] = "constant"
    loss: Positive = Field(
        description="of each release, sensitivity over scale of the noise: ε₀ for Laplace noise, μ for Gaussian noise"
    )
    even: ClassVar[bool] = True

    def stated_losses(self, numbers: np.ndarray) -> np.ndarray:
        """Loss of an agent's numbered releases, shape (releases,)."""
        return np.full(numbers.size, self.loss)


register_all([Horizon, Cap, Geometric, Uniform, Contraction, Listed, Constant])

#: Any allocation that is registered.
AnyAllocation = Annotated[Allocation, AnyOf("allocation"), BY_NAME]


def binomial_cap(horizon: int, share: float, tail: float) -> int:
    """Least m with P(Bin(T, share) > m) ≤ tail: T answers, of which an owner gives each with probability ``share``.

    Parameters
    ----------
    horizon : int
        T.
    share : float
        In (0, 1].
    tail : float
        In (0, 1).
    """
    # `scipy.stats` has the same, and takes a second to load.
    from scipy.special import bdtrc

    below, enough = 0, horizon
    while enough - below > 1:
        middle = (below + enough) // 2
        if bdtrc(middle, horizon, share) > tail:
            below = middle
        else:
            enough = middle
    return enough
