"""What algorithms have in common: when a run on a graph ends, where models start, steepness, and weights of answers.

`Smoothness` says how steep an agent's loss may be, which sets its steps on a graph. An answer is weighted by how often
its owner answers (F, Remark 4), and by how old it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, ValidationInfo, model_validator

from p2psim.core.files import DataPath, Seal, sealed
from p2psim.core.options import BY_NAME, Count, Options, Positive


class LearningAlgorithm(Options):
    """Base of all algorithms.

    Attributes
    ----------
    kind : str
        Its name.
    adapter : str
        Module of `p2psim.simulation.algorithms` that turns it into numbers.
    star_exchanges : tuple of str
        Of a central learner, the exchanges that it takes; empty for agents on a graph.
    by_edge : bool
        Whether links wake, and both their ends act.
    rejoins : bool
        Whether an agent that comes back may take another model than the one that it had.
    """

    # Algorithms declare them with a Literal and a description of their own.
    kind: Any

    part_kind: ClassVar[str] = "algorithm"
    adapter: ClassVar[str] = "graph"
    star_exchanges: ClassVar[tuple[str, ...]] = ()
    by_edge: ClassVar[bool] = False
    rejoins: ClassVar[bool] = False


class RunEnd(LearningAlgorithm):
    """What algorithms on a graph have in common: their ends, of which just one is given."""

    updates_per_agent: Positive | None = Field(
        None, description="end at the time at which clocks of the mean rate ticked so often, on average"
    )
    time: Positive | None = Field(None, description="end after what happens at this simulated time")
    commits: Count | None = Field(None, description="end with this many updates")

    @model_validator(mode="after")
    def _one_end(self):  # type: ignore[no-untyped-def]
        given = [key for key in ("updates_per_agent", "time", "commits") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of updates_per_agent, time and commits; got {given or 'none'}"
            )
        return self


Smoothness = Annotated[
    Literal["public", "data"],
    Field(
        description="where L_i^loc comes from, which sets the steps: public bounds on x if there are any, or "
        "the records (then ε does not cover the steps)"
    ),
]


class Fresh(Options):
    """Answers of any age count alike."""

    kind: Literal["none"] = "none"


class Inverse(Options):
    """An answer to a model that k newer ones have followed counts 1/(1 + rate·k)."""

    kind: Literal["inverse"] = "inverse"
    rate: Positive = Field(1.0, description="per newer version")


class Exponential(Options):
    """An answer to a model that k newer ones have followed counts exp(−rate·k)."""

    kind: Literal["exponential"] = "exponential"
    rate: Positive = Field(0.1, description="per newer version")


Staleness = Annotated[Fresh | Inverse | Exponential, Field(discriminator="kind"), BY_NAME]

#: Codes of the kinds in the kernel.
CODES = {"none": 0, "inverse": 1, "exponential": 2}


@dataclass(frozen=True)
class Weighting:
    """What answers are multiplied by.

    Attributes
    ----------
    at_learner : ndarray, shape (N,)
        By the learner when it arrives: free, since it is post-processing.
    at_owner : ndarray, shape (N,)
        By the owner, before noise: its sensitivity is multiplied as well.
    estimated : bool
        Whether the learner also divides by N times the frequency that it has counted, (count + 1)/(k + N) after k
        commits: never by raw counts, which begin at zero.
    staleness : Staleness
    """

    at_learner: np.ndarray
    at_owner: np.ndarray
    estimated: bool = False
    staleness: Fresh | Inverse | Exponential = field(default_factory=Fresh)

    @classmethod
    def equal(cls, owners: int) -> Weighting:
        """All answers count alike."""
        return cls(np.ones(owners), np.ones(owners))

    @property
    def rate(self) -> float:
        """Of the staleness; 0 where there is none."""
        return getattr(self.staleness, "rate", 0.0)

    def settled(self, frequencies: np.ndarray) -> Weighting:
        """The same with what estimates tend to in place of estimates; of the age of answers nothing is said.

        Parameters
        ----------
        frequencies : ndarray, shape (N,)
            γ_i, as in `inverse_frequencies`.
        """
        if not self.estimated:
            return self
        learner = self.at_learner * inverse_frequencies(frequencies)
        return replace(self, at_learner=learner, estimated=False)

    def of_answer(self, owner: int, age: int, counts: np.ndarray) -> float:
        """Weight of one answer at the learner: the plain form of what the kernel does.

        Parameters
        ----------
        owner : int
        age : int
            Commits since the model that it answers.
        counts : ndarray of int, shape (N,)
            Commits of each owner before this one.
        """
        weight = float(self.at_learner[owner])
        if self.estimated:
            weight *= (counts.sum() + counts.size) / (counts.size * (counts[owner] + 1))
        if self.staleness.kind == "inverse":
            weight /= 1 + self.rate * age
        elif self.staleness.kind == "exponential":
            weight *= math.exp(-self.rate * age)
        return weight


def inverse_frequencies(frequencies: np.ndarray) -> np.ndarray:
    """r_i = 1/(N·γ_i) of F, Remark 4, shape (N,): it removes the bias of unequal frequencies on the gradients.

    Parameters
    ----------
    frequencies : ndarray, shape (N,)
        γ_i > 0, the share of answers that is each owner's; they add up to one.
    """
    return 1.0 / (frequencies.size * frequencies)


class Zero(Options):
    """All models start at zero."""

    kind: Literal["zero"] = "zero"


class Local(Options):
    """Every agent starts at the minimiser of its own loss. With a privacy mechanism this costs an infinite ε."""

    kind: Literal["local"] = "local"
    reduction: Literal["mean", "sum"] = Field(
        "mean", description="whether λ_i‖θ‖² is added to the mean or to the sum of an agent's losses"
    )


class PrivateWarmStart(Options):
    """Every agent perturbs the minimiser of its own loss, once; these models are propagated at no further cost."""

    kind: Literal["private"] = "private"
    epsilon: Positive = Field(description="ε of this release; it adds to the total")
    propagate: bool = Field(True, description="whether they are propagated to their fixed point first")

    is_random: ClassVar[bool] = True


class Given(Options):
    """Models from a file; that they do not depend on the records is taken on trust."""

    kind: Literal["given"] = "given"
    path: DataPath = Field(description="a .npy file of shape (agents, p), or a CSV file without a header")
    sha256: Seal = ""

    @model_validator(mode="before")
    @classmethod
    def _seal(cls, value: Any, info: ValidationInfo) -> Any:
        return sealed(value, info)


Start = Annotated[Zero | Local | PrivateWarmStart | Given, Field(discriminator="kind"), BY_NAME]
