"""What algorithms have in common: where models start, steepness, and weights of answers.

`Smoothness` says how steep an agent's loss may be, which sets its steps on a graph. An answer is weighted by how often
its owner answers (F, Remark 4), and by how old it is.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, ValidationInfo, model_validator

from p2psim.core.errors import MeaningError, first_line
from p2psim.core.files import DataPath, Seal, checked, sealed
from p2psim.core.options import ByKind, Options, Positive
from p2psim.core.text_tables import matrix_of
from p2psim.learning.batches import batch_of
from p2psim.learning.step_sizes import AnswerDiscount, NoDiscount

if TYPE_CHECKING:
    from p2psim.learning.graph.problem import GraphProblem
    from p2psim.network.exchanges import Exchange


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
    trains_any_model : bool
        Whether it trains any model; else linear ones alone.
    rejoins : bool
        Whether an agent that comes back may take another model than the one that it had.
    touches_data : bool
        Whether updates use records, and so make releases.
    forecast : str
        Module of `p2psim.analysis.forecasts` that says what runs will reach; empty where none does.
    audited_as : {"star", "graph", "admm", "training", "owners-training", ""}
        System of `p2psim.audit.algorithms` in which its releases are attacked; empty where they are not audited.
    updates : {"wake", "hear"}
        When an agent updates its model.
    answerer_releases : bool
        Whether in push-pull also who answers touches its data as it updates, and not only who woke.
    takes_rounds : bool
        Whether agents on a graph can act in rounds (exchange ``synchronous``), and not only each for itself.
    has_anchor : bool
        Whether agents on a graph that go on without their data can do so towards their last model that touched it.
    objective : {"fitness", "personalised", "shared"}
        What is minimised: the fitness of a star, models of their own for agents on a graph, or one model for all.
    vectors : int
        p-vectors in a message.
    takes_changes : bool
        Whether it runs on a graph whose links come and go: it then needs no weights, or those of each moment.
    computes : bool
        Whether its replay knows of the time that agents take to compute: that an update follows a beginning
        (`p2psim.core.events.BEGIN`), and not a wake or a delivery.
    takes_answers : bool
        Whether who hears a message may send one back.
    """

    # Algorithms declare them with a Literal and a description of their own.
    kind: Any

    part_kind: ClassVar[str] = "algorithm"
    adapter: ClassVar[str] = "graph"
    touches_data: ClassVar[bool] = True
    updates: ClassVar[Literal["wake", "hear"]] = "wake"
    answerer_releases: ClassVar[bool] = True
    takes_rounds: ClassVar[bool] = False
    vectors: ClassVar[int] = 1
    has_anchor: ClassVar[bool] = True
    star_exchanges: ClassVar[tuple[str, ...]] = ()
    by_edge: ClassVar[bool] = False
    trains_any_model: ClassVar[bool] = False
    rejoins: ClassVar[bool] = False
    takes_changes: ClassVar[bool] = False
    forecast: ClassVar[str] = ""
    audited_as: ClassVar[str] = ""
    objective: ClassVar[Literal["fitness", "personalised", "shared"]] = "personalised"
    computes: ClassVar[bool] = True
    takes_answers: ClassVar[bool] = True

    @property
    def is_printed(self) -> bool:
        """Whether it takes the form that its paper prints, not the corrected one; of those with a key ``form``."""
        return getattr(self, "form", "corrected") == "printed"

    @property
    def first_models(self) -> Start | None:
        """Where agents' models start, of those for which a scenario says it."""
        return None

    def updates_under(self, exchange: Exchange) -> Literal["wake", "hear"]:
        """When an agent updates its model, where that depends on the exchange."""
        return self.updates

    def work(self, records: np.ndarray) -> np.ndarray:
        """Records that an update of each agent takes, on average, shape (n,); each local step takes a batch.

        Parameters
        ----------
        records : ndarray of int, shape (n,)
            What each agent holds.
        """
        if not self.touches_data:
            return np.zeros(records.size)
        return np.where(records > 0, batch_of(self).divisors(records), 0.0)


Smoothness = Annotated[
    Literal["public", "data"],
    Field(
        description="where L_i^loc comes from, which sets the steps: public bounds on x if there are any, or "
        "the records (then ε does not cover the steps)"
    ),
]


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
    staleness : AnswerDiscount
    """

    at_learner: np.ndarray
    at_owner: np.ndarray
    estimated: bool = False
    staleness: AnswerDiscount = field(default_factory=NoDiscount)

    @classmethod
    def equal(cls, owners: int) -> Weighting:
        """All answers count alike."""
        return cls(np.ones(owners), np.ones(owners))

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
        return weight * self.staleness.weight(age)


def inverse_frequencies(frequencies: np.ndarray) -> np.ndarray:
    """r_i = 1/(N·γ_i) of F, Remark 4, shape (N,): it removes the bias of unequal frequencies on the gradients.

    Parameters
    ----------
    frequencies : ndarray, shape (N,)
        γ_i > 0, the share of answers that is each owner's; they add up to one.
    """
    return 1.0 / (frequencies.size * frequencies)


class FirstModels(Options):
    """Base of starts of agents on a graph.

    Attributes
    ----------
    touches_data : bool
        Whether the models depend on the records, so that they cost privacy.
    epsilon : float or None
        What they cost, by noise; None where there is none.
    needs_l2 : bool
        Whether each agent minimises its own loss alone, which needs a regulariser.
    """

    touches_data: ClassVar[bool] = False
    needs_l2: ClassVar[bool] = False

    @property
    def perturbed_by(self) -> str:
        """What makes them private, in a word; empty where nothing does."""
        return ""

    @abstractmethod
    def models(self, problem: GraphProblem) -> np.ndarray:
        """Models without noise, shape (n, p)."""

    def propagated(self, problem: GraphProblem, models: np.ndarray) -> np.ndarray:
        """What agents make of these models before they start, shape (n, p)."""
        return models


class Zero(FirstModels):
    """All models start at zero."""

    kind: Literal["zero"] = "zero"

    epsilon: ClassVar[float | None] = None

    def models(self, problem: GraphProblem) -> np.ndarray:
        """See `FirstModels.models`."""
        return np.zeros((problem.agents, problem.dimension))


class Local(FirstModels):
    """Every agent starts at the minimiser of its own loss. With a privacy mechanism this costs an infinite ε.

    Choices
    -------
    reduction: mean
        λ_i‖θ‖² is added to the mean of an agent's losses
    reduction: sum
        λ_i‖θ‖² is added to the sum of an agent's losses
    """

    kind: Literal["local"] = "local"
    reduction: Literal["mean", "sum"] = Field(
        "mean", description="whether λ_i‖θ‖² is added to the mean or to the sum of an agent's losses"
    )

    touches_data: ClassVar[bool] = True
    needs_l2: ClassVar[bool] = True
    epsilon: ClassVar[float | None] = None

    def models(self, problem: GraphProblem) -> np.ndarray:
        """See `FirstModels.models`."""
        from p2psim.learning.graph.optimum import minimise_alone

        return minimise_alone(problem, self.reduction)


class PrivateWarmStart(FirstModels):
    """Every agent perturbs the minimiser of its own loss, once; these models are propagated at no further cost.

    Output and objective perturbation need a loss with slopes of at most 1, such as logistic, and public bounds that
    keep ‖x‖₂ within 1, the intercept counted. The sum of losses has m_i times the noise of their mean.

    Choices
    -------
    perturbation: mechanism
        noise of the scenario's mechanism on the minimiser
    perturbation: output
        noise on the minimiser with a density that falls with its Euclidean norm (Chaudhuri, Monteleoni, Sarwate 2011)
    perturbation: objective
        the same noise, as a linear term of what is minimised
    reduction: mean
        λ_i‖θ‖² is added to the mean of an agent's losses
    reduction: sum
        λ_i‖θ‖² is added to the sum of an agent's losses
    """

    kind: Literal["private"] = "private"
    epsilon: Positive = Field(description="ε of this release; it adds to the total")
    perturbation: Literal["mechanism", "output", "objective"] = Field(
        "mechanism", description="how the minimiser is made private"
    )
    reduction: Literal["mean", "sum"] = Field(
        "mean", description="whether λ_i‖θ‖² is added to the mean or to the sum of an agent's losses"
    )
    propagate: bool = Field(True, description="whether they are propagated to their fixed point first")

    touches_data: ClassVar[bool] = True
    is_random: ClassVar[bool] = True
    needs_l2: ClassVar[bool] = True

    @property
    def perturbed_by(self) -> str:
        """The key ``perturbation``."""
        return self.perturbation

    def models(self, problem: GraphProblem) -> np.ndarray:
        """See `FirstModels.models`."""
        from p2psim.learning.graph.optimum import minimise_alone

        return minimise_alone(problem, self.reduction)

    def ridge(self, problem: GraphProblem) -> np.ndarray:
        """Weight of ‖θ‖² beside the mean of each agent's losses, shape (n,)."""
        return problem.ridge / (np.maximum(problem.records, 1) if self.reduction == "sum" else 1)

    def propagated(self, problem: GraphProblem, models: np.ndarray) -> np.ndarray:
        """See `FirstModels.propagated`."""
        from p2psim.learning.graph.optimum import propagate

        return propagate(problem, models) if self.propagate else models


class GivenModels(FirstModels):
    """Models from a file; that they do not depend on the records is taken on trust."""

    kind: Literal["given"] = "given"
    path: DataPath = Field(description="a .npy file of shape (agents, p), or a CSV file without a header")
    sha256: Seal = ""

    epsilon: ClassVar[float | None] = None

    @model_validator(mode="before")
    @classmethod
    def _seal(cls, value: Any, info: ValidationInfo) -> Any:
        return sealed(value, info)

    def models(self, problem: GraphProblem) -> np.ndarray:
        """See `FirstModels.models`.

        Raises
        ------
        MeaningError
            If they have another shape, or are not finite numbers.
        MissingSourceError
            If there is no such file.
        """
        key, shape = "learning.algorithm.start.path", (problem.agents, problem.dimension)
        place = checked(self.path, key)
        try:
            # Mapped: of a file that is shorter than it says, no memory is taken.
            models = (
                np.lib.format.open_memmap(place, "r") if place.suffix == ".npy" else matrix_of(place, key)
            )
        except (ValueError, OSError, EOFError) as error:
            raise MeaningError(key, f"{self.path} cannot be read as an array: {first_line(error)}") from None
        if models.shape != shape or models.dtype.kind not in "fiu" or not np.isfinite(models).all():
            raise MeaningError(
                key, f"{self.path} must hold finite numbers of shape {shape}, got shape {models.shape}"
            )
        return models.astype(np.float64)


Start = ByKind[Zero | Local | PrivateWarmStart | GivenModels]
