"""What an algorithm is that trains one model: methods over flat parameter vectors.

The methods see no records. What an agent learns of its data are mean gradients, which p2psim clips record by record,
gives noise and accounts for: all else is post-processing of them. The same methods of built-in algorithms are the plain
form that `p2psim.learning.sgd.reference` replays, beside planners for compiled code.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from pydantic import model_validator

from p2psim.learning.steps import LearningAlgorithm
from p2psim.network.mixing import MomentWeights

if TYPE_CHECKING:
    from p2psim.learning.sgd.problem import Answer, Gradient, Heard, Memory, Receivers, TrainingTask
    from p2psim.learning.sgd.replay import ModelsReplay
    from p2psim.network.exchanges import Exchange
    from p2psim.network.graph import Graph

Order = Literal["gossip-then-gradient", "gradient-then-gossip", "together"]


class TrainingAlgorithm(LearningAlgorithm):
    """Base of algorithms that train one model; just one of their ends is given.

    Attributes
    ----------
    weighting : {"equal", "records"}
        What each agent's mean loss counts in f: all alike, or by its number of records.
    queries : int
        Gradients in a release, each of a batch of its own and with noise of its own.
    """

    adapter: ClassVar[str] = "training"
    trains_any_model: ClassVar[bool] = True
    objective: ClassVar[Literal["fitness", "personalised", "shared"]] = "shared"
    weighting: ClassVar[Literal["equal", "records"]] = "equal"

    @property
    def queries(self) -> int:
        """Gradients in a release."""
        return int(getattr(self, "local_steps", 1))

    def steps_of(self, records: np.ndarray) -> np.ndarray:
        """Gradients in a release of each agent that holds so many records, shape (n,)."""
        return np.full(records.size, self.queries)

    def with_steps(self, steps: int) -> Self:
        """The same for an agent with so many gradients in a release, for the plain replay."""
        return self

    def work(self, records: np.ndarray) -> np.ndarray:
        """See `LearningAlgorithm.work`: every local step takes a batch."""
        return super().work(records) * self.steps_of(records)

    @model_validator(mode="after")
    def _one_end(self):  # type: ignore[no-untyped-def]
        known = [name for name in ("updates_per_agent", "time", "commits") if name in type(self).model_fields]
        given = [name for name in known if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give exactly one of {', '.join(known)}; got {given or 'none'}")
        return self

    @abstractmethod
    def train(self, model: np.ndarray, gradient: Gradient, t: int, memory: Memory) -> np.ndarray:
        """What a release makes of a model.

        Parameters
        ----------
        model : ndarray, shape (p,)
            It may not be changed.
        gradient : callable
            ``gradient(at)`` is the mean gradient at a model, shape (p,): clipped and with noise as the scenario says,
            with 2·l2·at. It can be called `queries` times; each call is accounted for, whether it is made or not.
        t : int
            Of an owner: commits before the learner's model; on a graph: the agent's releases before this one.
        memory : dict
            The agent's.

        Returns
        -------
        ndarray, shape (p,)
        """

    @abstractmethod
    def replay(
        self, task: TrainingTask, links: Graph, exchange: Exchange, receivers: Receivers
    ) -> ModelsReplay:
        """Begin a replay of events."""

    @abstractmethod
    def reference(
        self, task: TrainingTask, links: Graph, exchange: Exchange, events: np.ndarray, noise: np.ndarray
    ) -> Iterator[np.ndarray]:
        """All measured models after every commit, shape (n, p) or (1, p); the start is the first.

        ``noise``, shape (queries, p), is ordered by agent, release and query; empty where nothing is added.
        """


class OfLearner(TrainingAlgorithm):
    """Base of those with a learner: an owner answers with what it makes of the learner's model."""

    weighting: ClassVar[Literal["equal", "records"]] = "records"

    @abstractmethod
    def use(self, model: np.ndarray, answers: Sequence[Answer], memory: Memory) -> np.ndarray:
        """The learner's new model, at each commit with answers.

        Parameters
        ----------
        model : ndarray, shape (p,)
            The learner's; it may not be changed.
        answers : sequence of Answer
            Of a round, ordered by owner; otherwise the one that has come.
        memory : dict
            The learner's.

        Returns
        -------
        ndarray, shape (p,)
        """

    def reference(
        self, task: TrainingTask, links: Graph, exchange: Exchange, events: np.ndarray, noise: np.ndarray
    ) -> Iterator[np.ndarray]:
        """See `TrainingAlgorithm.reference`."""
        from p2psim.learning.sgd.reference import reference_of_learner

        return reference_of_learner(self, task, exchange, events, noise)


class OnGraph(TrainingAlgorithm):
    """Base of those in which agents mix their models with those of neighbours, and train them.

    Attributes
    ----------
    order : {"gossip-then-gradient", "gradient-then-gossip", "together"}
        Whether an agent trains the mixed model, mixes what was trained before, or adds the change by training its own
        model to the mixed one.
    """

    takes_changes: ClassVar[bool] = True
    takes_rounds: ClassVar[bool] = True
    answerer_releases: ClassVar[bool] = False

    if TYPE_CHECKING:  # fields or class variables of those derived from it
        order: Any
        mixing: Any

    @model_validator(mode="after")
    def _known_order(self) -> Self:
        if self.order not in get_args(Order):
            raise ValueError(f"order must be one of {', '.join(get_args(Order))}, got {self.order!r}")
        return self

    def mix(self, model: np.ndarray, heard: Sequence[Heard], memory: Memory) -> np.ndarray:
        """An agent's model mixed with those of neighbours: Σ_j W_ij x_j unless an algorithm says otherwise.

        Parameters
        ----------
        model : ndarray, shape (p,)
            The agent's; it may not be changed.
        heard : sequence of Heard
            In rounds those of the round; in pairs the one that was heard, with weight ½; otherwise what each neighbour
            sent last. May be empty.
        memory : dict
            The agent's.

        Returns
        -------
        ndarray, shape (p,)
        """
        kept = 1.0 - sum(weight for _, weight, _ in heard)
        return np.asarray(sum((weight * other for _, weight, other in heard), kept * model))

    def updates_under(self, exchange: Exchange) -> Literal["wake", "hear"]:
        """See `LearningAlgorithm.updates_under`."""
        if exchange.in_rounds:
            return "wake" if self.order == "gradient-then-gossip" else "hear"
        if exchange.hearers == 2:
            return "hear" if self.order == "gossip-then-gradient" else "wake"
        return "hear" if exchange.hearers else "wake"

    def weights(self, task: TrainingTask, links: Graph) -> MomentWeights:
        """W of each moment."""
        return MomentWeights(links, self.mixing, task.end)

    def reference(
        self,
        task: TrainingTask,
        links: Graph,
        exchange: Exchange,
        events: np.ndarray,
        noise: np.ndarray,
        places: Sequence[int] | None = None,
    ) -> Iterator[np.ndarray]:
        """See `TrainingAlgorithm.reference`; if places are given, after so many events each, not after commits."""
        from p2psim.learning.sgd.reference import reference_on_graph

        return reference_on_graph(self, task, links, exchange, events, noise, places)
