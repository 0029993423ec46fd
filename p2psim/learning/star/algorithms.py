"""Algorithms of a central learner: the asynchronous star (F Algorithm 1) and synchronous rounds (W Algorithms 1, 2).

The classes hold what a scenario says of these algorithms, and their step sizes. W is Wu, Farokhi, Smith, Kaafar, "The
Value of Collaboration in Convex Machine Learning with Differential Privacy" (IEEE Symposium on Security and Privacy,
2020). In round k = 1 … T − 1 the learner asks all owners for the gradient at θ[k] and steps against ∇g(θ[k]) + Σ_l
(n_l/n)·Q̄_l.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from p2psim.core.agent_names import AgentNames
from p2psim.core.options import ByKind, Count, Fraction, NumberOr, OneOf, Options, Positive, Step
from p2psim.core.randomness import generator
from p2psim.learning.batches import Batch, Whole
from p2psim.learning.step_sizes import NoDiscount, Staleness
from p2psim.learning.steps import LearningAlgorithm, Weighting


class RhoFromH(Options):
    """Choose ρ from the records, so that the steepest owner has the given h = lr·λ_max. Flagged: it depends on data."""

    h: Step = Field(description="h of the steepest owner; 1 is fastest")


class AsyncStar(LearningAlgorithm):
    """A central learner and N owners, one answer at a time (F Algorithm 1).

    Choices
    -------
    form: printed
        as the paper prints it, which minimises another objective
    form: corrected
        with the weight that minimises f
    stale: blend
        with the learner's present model
    stale: overwrite
        with the model that was sent with the query
    reweight: none
        every answer counts alike
    reweight: known
        by the inverse of how often owners answer, from clocks and availability: 1/(N·γ_i), or, in rounds, 1 over
        the chance to answer one in time, from availability, losses and the deadline
    reweight: estimated
        by the inverse of how often they have answered so far, of (count + 1)/(k + N) after k answers, or, in
        rounds, of (count + 1)/(k + 1) after k of them
    reweight_at: learner
        after the noise: free
    reweight_at: owner
        before the noise: the sensitivity is multiplied as well
    """

    kind: Literal["async-star"] = "async-star"
    adapter: ClassVar[str] = "star"
    star_exchanges: ClassVar[tuple[str, ...]] = ("request", "poll")
    forecast: ClassVar[str] = "forecast"
    objective: ClassVar[Literal["fitness", "personalised", "shared"]] = "fitness"
    audited_as: ClassVar[str] = "star"
    rejoins: ClassVar[bool] = True
    horizon: Count = Field(description="T, the number of answers to apply")
    rho: NumberOr[Step, RhoFromH] = Field(
        description="step parameter ρ, or {h: …} to choose it from the records"
    )
    theta_max: Positive = Field(description="Θ is the box |θ_j| ≤ theta_max")
    form: Literal["printed", "corrected"] = Field("corrected", description="the learner's weight on g")
    batch: Batch = Field(Whole(), description="which of an agent's records take part in a release")
    stale: Literal["blend", "overwrite"] = Field(
        "blend",
        description="what an answer to an older query is applied to: the current or the queried model",
    )
    reweight: Literal["none", "known", "estimated"] = Field(
        "none", description="whether gradients are divided by how often their owners answer (F, Remark 4)"
    )
    reweight_at: Literal["learner", "owner"] = Field("learner", description="which side does that")
    staleness: Staleness = Field(NoDiscount(), description="whether old answers count less")


@dataclass(frozen=True)
class StarMethod:
    """The numbers of F Algorithm 1.

    Attributes
    ----------
    step : float
        ρ/(T²σ), with σ = 2·l2.
    learner_weight : float
        c_L: the weight of ∇g in the learner's own update.
    overwrite : bool
        Whether an answer is applied to the model that was queried, not to the current one.
    weighting : Weighting, optional
        What answers are multiplied by; all count alike when left out.
    projects : bool
        Whether models stay in Θ.
    """

    projects: ClassVar[bool] = True

    step: float
    learner_weight: float
    overwrite: bool
    weighting: Weighting | None = None

    def still(self, commits: int, weighting: Weighting) -> StarMethod:
        """The same with a step of zero: the learner's model stays."""
        return replace(self, step=0.0, weighting=weighting)


def learner_weight(owners: int, form: Literal["printed", "corrected"]) -> float:
    """c_L, the learner's factor on ∇g: (N−1)/N as printed; 1/2 corrected, as F's derivation uses η = 1/(2N)."""
    return (owners - 1) / owners if form == "printed" else 0.5


def star_method(
    algorithm: AsyncStar, rho: float, l2: float, owners: int, weighting: Weighting | None = None
) -> StarMethod:
    """Numbers of F Algorithm 1 for N owners."""
    weight = learner_weight(owners, algorithm.form)
    return StarMethod(
        rho / (algorithm.horizon**2 * 2 * l2), weight, algorithm.stale == "overwrite", weighting
    )


#: What both algorithms have.
_HORIZON = Field(description="T: T − 1 rounds are held, and budgets are spread over T answers")
_THETA_MAX = Field(description="Θ is the box |θ_j| ≤ theta_max, in which the optimum is sought")
_REWEIGHT = Field(
    description="what makes up for owners that do not answer: nothing, their known or estimated frequencies, or the "
    "weight of those who answered in this round"
)

Reweight = Annotated[Literal["none", "known", "estimated", "answered"], _REWEIGHT]


def _as_names(value: object) -> object:
    """Numbers stand for the names of owners that have no others."""
    return list(map(str, value)) if isinstance(value, list) else value


class ClippedAnswers(Options):
    """Every answer is clipped to a norm before answers are summed."""

    kind: Literal["clip"] = "clip"
    norm: Positive = Field(description="largest L2 norm of an answer")

    trim: ClassVar[float] = 0.0


class TrimmedMean(Options):
    """In each coordinate the mean of the answers without the largest and the smallest, all owners alike."""

    kind: Literal["trimmed-mean"] = "trimmed-mean"
    trim: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        0.2, description="share of the answers that is left out at each end, rounded down"
    )

    norm: ClassVar[float] = math.inf


class MedianAnswer(Options):
    """In each coordinate the median of the answers, all owners alike."""

    kind: Literal["median"] = "median"

    norm: ClassVar[float] = math.inf
    trim: ClassVar[float] = 0.5


Aggregate = ByKind[ClippedAnswers | TrimmedMean | MedianAnswer]


class Liars(OneOf):
    """Owners that answer wrongly, in every round. Their noise is drawn and charged as if they did not.

    Choices
    -------
    how: flip
        −size times the answer
    how: scale
        size times the answer
    how: constant
        size in every coordinate
    how: random
        a vector that each draws once, normal with standard deviation size
    """

    owners: Annotated[list[str], BeforeValidator(_as_names)] | None = Field(
        None, description="their names, or names of their groups"
    )
    share: Fraction | None = Field(
        None, description="instead: this share of the owners, rounded to the nearest number; the first ones"
    )
    how: Literal["flip", "scale", "constant", "random"] = Field(description="what they answer")
    size: Positive = Field(1.0, description="how large it is")

    alternatives: ClassVar[tuple[str, ...]] = ("owners", "share")

    def lies(
        self, labels: Sequence[str], groups: Sequence[str] | None, dimension: int, key: np.ndarray
    ) -> Lies:
        """What each owner makes of its answer.

        Parameters
        ----------
        labels, groups : sequence of str
            Of the owners.
        dimension : int
            p.
        key : ndarray of uint64, shape (2,)
            Of the stream that random answers are drawn from.

        Raises
        ------
        MeaningError
            If a name is neither an owner's nor a group's.
        """
        named, groups = self.owners or [], groups or [""] * len(labels)
        single = [name for name in named if name not in groups]
        liars = np.array([group in named for group in groups])
        liars[list(AgentNames(labels).resolve(single, "learning.algorithm.liars.owners").values())] = True
        if self.share is not None:
            liars = np.arange(len(labels)) < math.floor(self.share * len(labels) + 0.5)
        factor = {"flip": -self.size, "scale": self.size}.get(self.how, 0.0)
        offsets = np.zeros((len(labels), dimension))
        if self.how == "constant":
            offsets[liars] = self.size
        elif self.how == "random":
            for owner in np.flatnonzero(liars):
                offsets[owner] = self.size * generator(key, int(owner)).standard_normal(dimension)
        return Lies(liars, np.where(liars, factor, 1.0), offsets)


@dataclass(frozen=True)
class Lies:
    """What owners make of their answers: ``factors[i]`` times the answer, plus ``offsets[i]``, if ``liars[i]``."""

    liars: np.ndarray
    factors: np.ndarray
    offsets: np.ndarray

    @classmethod
    def none(cls, owners: int, dimension: int) -> Lies:
        """Nobody lies."""
        return cls(np.zeros(owners, bool), np.ones(owners), np.zeros((owners, dimension)))

    def told(self, owner: int, answer: np.ndarray) -> np.ndarray:
        """What an owner answers in place of its answer."""
        return self.factors[owner] * answer + self.offsets[owner] if self.liars[owner] else answer


class RoundsAlgorithm(LearningAlgorithm):
    """Base of algorithms in rounds."""

    unsaid: ClassVar[tuple[str, ...]] = ("aggregate", "liars")

    aggregate: Aggregate | None = Field(
        None, description="what the learner makes of the answers of a round; left out, their sum by records"
    )
    liars: Liars | None = Field(None, description="owners that answer wrongly; left out, nobody")

    adapter: ClassVar[str] = "rounds"
    star_exchanges: ClassVar[tuple[str, ...]] = ("round",)
    forecast: ClassVar[str] = "forecast"
    objective: ClassVar[Literal["fitness", "personalised", "shared"]] = "fitness"
    audited_as: ClassVar[str] = "star"

    @abstractmethod
    def method(self, weighting: Weighting) -> RoundMethod:
        """Its numbers."""


class SynchronousDescent(RoundsAlgorithm):
    """Gradient descent in rounds (W Algorithm 1); its models are not projected.

    Choices
    -------
    reweight: answered
        by the inverse of the share of the records whose owners have answered in this round
    """

    kind: Literal["synchronous-descent"] = "synchronous-descent"
    horizon: Annotated[Count, Field(ge=2)] = _HORIZON
    rho: Step = Field(description="step parameter ρ")
    theta_max: Positive = _THETA_MAX
    form: Literal["printed", "corrected"] = Field(
        "corrected", description="steps ρ/(T²k), which vanish as T grows, or ρ/k"
    )
    batch: Batch = Field(Whole(), description="which of an owner's records take part in a release")
    reweight: Reweight = "none"

    def method(self, weighting: Weighting) -> RoundMethod:
        """Numbers of W Algorithm 1.

        It prints steps ρ/(T²k); all of them together move the model by about ρ·ln T/T², so that it freezes as T grows.
        The corrected form takes ρ/k.
        """
        T, k = self.horizon, np.arange(1, self.horizon, dtype=float)
        steps = self.rho / k if self.form == "corrected" else self.rho / (T**2 * k)
        return RoundMethod(steps, False, False, k * 0, k * 0, True, weighting, self.reweight == "answered")


class SynchronousAveraging(RoundsAlgorithm):
    """Projected subgradient descent in rounds, whose model is an average of the iterates (W Algorithm 2)."""

    kind: Literal["synchronous-averaging"] = "synchronous-averaging"
    horizon: Annotated[Count, Field(ge=2)] = _HORIZON
    c1: Step = Field(description="c₁: the step of round k is c₁/√k")
    theta_max: Positive = Field(description="Θ is the box |θ_j| ≤ theta_max")
    form: Literal["printed", "corrected"] = Field(
        "corrected", description="whether the average of a round leaves out the newest iterate, as printed"
    )
    batch: Batch = Field(Whole(), description="which of an owner's records take part in a release")
    reweight: Reweight = "none"

    def method(self, weighting: Weighting) -> RoundMethod:
        """Numbers of W Algorithm 2.

        It averages θ̄[k+1] = ((k−1)/(e+k))·θ̄[k] + ((e+1)/(e+k))·θ[k] with e = 1/√T, so that θ[T] is in no average.
        The corrected form takes in the newest iterate, θ̄[k+1] = (k/(k+1+e))·θ̄[k] + ((e+1)/(k+1+e))·θ[k+1]: the
        polynomial-decay averaging of Shamir and Zhang, "Stochastic gradient descent for non-smooth optimization" (ICML
        2013), section 4.
        """
        corrected, k = self.form == "corrected", np.arange(1, self.horizon, dtype=float)
        e, at = 1 / np.sqrt(self.horizon), k + 1 if corrected else k
        steps, keep, take = self.c1 / np.sqrt(k), (at - 1) / (e + at), (e + 1) / (e + at)
        return RoundMethod(steps, True, True, keep, take, corrected, weighting, self.reweight == "answered")


@dataclass(frozen=True)
class RoundMethod:
    """The numbers of an algorithm in rounds.

    Attributes
    ----------
    steps : ndarray, shape (T − 1,)
        Step of each round.
    projects : bool
        Whether iterates stay in Θ.
    averages : bool
        Whether the model is the average of the iterates.
    keep, take : ndarray, shape (T − 1,)
        Weights of the average so far, and of an iterate.
    newest : bool
        Whether that is the iterate after the round's step, not before it.
    weighting : Weighting
        What answers are multiplied by.
    by_answered : bool
        Whether their sum is divided by the share of the records of those who answered.
    clip : float
        L2 norm to which the learner clips answers.
    trim : float
        Share of the answers left out at each end of each coordinate; 0 for the sum by records, .5 for the median.
    lies : Lies or None
        Who answers wrongly.
    """

    steps: np.ndarray
    projects: bool
    averages: bool
    keep: np.ndarray
    take: np.ndarray
    newest: bool
    weighting: Weighting
    by_answered: bool
    clip: float = math.inf
    trim: float = 0.0
    lies: Lies | None = None

    def still(self, commits: int, weighting: Weighting) -> RoundMethod:
        """So many rounds with steps of zero: the learner's model stays."""
        none = np.zeros(commits)
        return RoundMethod(none, self.projects, False, none, none, self.newest, weighting, False)
