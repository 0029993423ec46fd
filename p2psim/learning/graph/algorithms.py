"""Algorithms on a graph: coordinate descent, model propagation, gossip ADMM, gossip averaging, push-sum, and your own.

Coordinate descent is that of B, section 3, and model propagation that of B, appendix C. Gossip averaging is that of
Boyd, Ghosh, Prabhakar, Shah 2006. Push-sum (Kempe, Dobra, Gehrke 2003) averages by messages that need no answer. Your
own algorithm is a `GossipAlgorithm`. The rest of this text is about gossip ADMM.

**Gossip ADMM** minimises Q_L (Vanhaesebrouck, Bellet, Tommasi 2017, section 4).

Q_L = Σ_i Q_i with Q_i = ¼ Σ_j W_ij‖θ_i − θ_ij‖² + μD_ii·c_i·L_i(θ_i), where agent i holds its own model θ_i and a
copy θ_ij of each neighbour's; every link e = (i, j) demands θ_i = θ_ji and θ_j = θ_ij. Each end of a link has a
secondary variable and a multiplier for its own model and for its copy, four and four a link: z_i, z_ij and λ_i, λ_ij at
the end of i. With u = λ/ρ agent i's part of the augmented Lagrangian is, up to a constant,

    Q_i + (ρ/2) Σ_e (‖θ_i − z_i^e + u_i^e‖² + ‖θ_ij − z_ij^e + u_ij^e‖²).

**Local steps.** The copies are eliminated: for any θ_i the best is θ_ij = (w·θ_i + ρ(z_ij − u_ij))/(w + ρ), w = W_ij/2,
which leaves μD_ii·c_i·L_i(θ_i) + ½ Σ_e (ρ‖θ_i − (z_i − u_i)‖² + h_e‖θ_i − (z_ij − u_ij)‖²), h_e = wρ/(w + ρ). On this
``inner`` gradient steps of length 1/(Σ_e(ρ + h_e) + μD_ii·c_i·L_i^loc) are made, from the agent's present model.

**A link wakes.** Both ends make local steps and send s_i = θ_i + u_i and s_ij = θ_ij + u_ij: two p-vectors each way,
four a link (the paper sends models and multipliers apart, eight). Then z_i = (s_i + s_ji)/2 at both ends, and each
multiplier becomes u_i ← u_i + θ_i − z_i = s_i − z_i; in the same way for the model of j. So z_i − u_i = s_ji, what the
other end sent last, is all that local steps need of z. Once both ends have been set by the same exchange their
multipliers sum to zero, whatever went before; an exchange that is lost half-way is mended by the next one.

The fixed point is the minimiser of Q_L for any ρ and any ``inner``. At the start every end knows the starts of both
ends, and multipliers are zero.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from p2psim.core.options import Count, NumberOr, Options, Positive, Step
from p2psim.learning.batches import Batch, Whole
from p2psim.learning.steps import LearningAlgorithm, Local, Smoothness, Start, Zero

if TYPE_CHECKING:
    from p2psim.learning.graph.admm import AdmmRule
    from p2psim.learning.graph.gossip import ForKernel
    from p2psim.learning.graph.models import ModelReplay
    from p2psim.learning.graph.problem import GraphProblem, GraphRule, GraphTask


class GraphAlgorithm(LearningAlgorithm):
    """Base of algorithms on a graph; just one of their ends is given.

    Attributes
    ----------
    mu : float
        μ of Q_L, which ``objective`` measures; a field or a class variable.
    """

    updates_per_agent: Positive | None = Field(
        None, description="end at the time at which clocks of the mean rate ticked so often, on average"
    )
    time: Positive | None = Field(None, description="end after what happens at this simulated time")
    commits: Count | None = Field(None, description="end with this many updates")

    if TYPE_CHECKING:
        start: Start

    @property
    def first_models(self) -> Start:
        """The key ``start``."""
        return self.start

    @model_validator(mode="after")
    def _one_end(self):  # type: ignore[no-untyped-def]
        given = [key for key in ("updates_per_agent", "time", "commits") if getattr(self, key) is not None]
        if len(given) != 1:
            raise ValueError(
                f"give exactly one of updates_per_agent, time and commits; got {given or 'none'}"
            )
        return self

    def replay(self, task: GraphTask, track: bool) -> ModelReplay:
        """Begin a replay of events, which keeps Q_L up to date if asked to ``track`` it."""
        from p2psim.learning.graph.replay import GraphReplay

        return GraphReplay(task, track)

    def reference(
        self, task: GraphTask, events: np.ndarray, noise: np.ndarray, places: Sequence[int] | None = None
    ) -> Iterator[np.ndarray]:
        """All models at the start and after every commit or, if places are given, after so many events each.

        Noise is ordered by (agent, release).
        """
        from p2psim.learning.reference import reference_replay

        return reference_replay(task, events, noise, places)


class CoordinateDescent(GraphAlgorithm):
    """On waking, an agent steps down its own loss and towards its neighbours' models (B, section 3).

    Choices
    -------
    smoothness: public
        from public bounds on x where there are any, otherwise from the records
    smoothness: data
        from the records: then ε does not cover the steps
    """

    kind: Literal["coordinate-descent"] = "coordinate-descent"
    mu: Step = Field(description="μ, the weight of the agents' own losses")
    start: Start = Field(Zero(), description="the agents' first models")
    batch: Batch = Field(Whole(), description="which of an agent's records take part in a release")
    smoothness: Smoothness = "public"

    rejoins: ClassVar[bool] = True
    forecast: ClassVar[str] = "graph_descent"
    audited_as: ClassVar[str] = "graph"


class RelativePenalty(Options):
    """ρ as a multiple of the mean weight of a link."""

    mean_weight: Step = Field(description="ρ over the mean of W_ij over the links")


#: ρ in a scenario: a number, or ``{mean_weight: …}``.
Penalty = NumberOr[Step, RelativePenalty]


class GossipAdmm(GraphAlgorithm):
    """Links wake; both ends make local steps and agree a little more (Vanhaesebrouck, Bellet, Tommasi 2017)."""

    kind: Literal["gossip-admm"] = "gossip-admm"
    mu: Step = Field(description="μ, the weight of the agents' own losses")
    rho: Penalty = Field(RelativePenalty(mean_weight=0.3), description="penalty ρ, or {mean_weight: …}")
    inner: Count = Field(10, description="gradient steps of each local problem")
    batch: Batch = Field(Whole(), description="which of an agent's records take part in a release")
    start: Start = Field(Zero(), description="the agents' first models")
    smoothness: Smoothness = "public"

    by_edge: ClassVar[bool] = True
    vectors: ClassVar[int] = 2  # an own model and a copy
    computes: ClassVar[bool] = False
    audited_as: ClassVar[str] = "admm"

    def admm_rule(self, problem: GraphProblem, rule: GraphRule) -> AdmmRule:
        """How agents make their local steps, beside what holds for all algorithms."""
        from p2psim.learning.graph.admm import AdmmRule

        return AdmmRule(**vars(rule), rho=penalty(self.rho, problem.weights), inner=self.inner)

    def replay(self, task: GraphTask, track: bool) -> ModelReplay:
        """See `GraphAlgorithm.replay`."""
        from p2psim.learning.graph.admm import AdmmReplay

        return AdmmReplay(replace(task, rule=self.admm_rule(task.problem, task.rule)), track)

    def reference(
        self, task: GraphTask, events: np.ndarray, noise: np.ndarray, places: Sequence[int] | None = None
    ) -> Iterator[np.ndarray]:
        """See `GraphAlgorithm.reference`."""
        from p2psim.learning.reference import reference_replay_admm

        task = replace(task, rule=self.admm_rule(task.problem, task.rule))
        return reference_replay_admm(task, events, noise, places)


def penalty(rho: float | RelativePenalty, weights: np.ndarray) -> float:
    """ρ as a number.

    Parameters
    ----------
    rho : float or RelativePenalty
    weights : ndarray, shape (m,)
        W_ij of all links; it does not matter whether each is there once or twice.
    """
    return rho.mean_weight * float(weights.mean()) if isinstance(rho, RelativePenalty) else float(rho)


class _Averages(GraphAlgorithm):
    start: Start = Field(Local(), description="what is averaged")

    mu: ClassVar[float] = 1.0
    touches_data: ClassVar[bool] = False
    updates: ClassVar[Literal["wake", "hear"]] = "hear"
    takes_changes: ClassVar[bool] = True


class Averaging(_Averages):
    """Agents that meet take the mean of their models."""

    kind: Literal["averaging"] = "averaging"
    forecast: ClassVar[str] = "graph_averaging"

    def replay(self, task: GraphTask, track: bool) -> ModelReplay:
        """See `GraphAlgorithm.replay`."""
        from p2psim.learning.graph.averaging import AveragingReplay

        return AveragingReplay(task.start)

    def reference(
        self, task: GraphTask, events: np.ndarray, noise: np.ndarray, places: Sequence[int] | None = None
    ) -> Iterator[np.ndarray]:
        """See `GraphAlgorithm.reference`."""
        from p2psim.learning.reference import reference_average

        return reference_average(task.start, events, places)


class ModelPropagation(GraphAlgorithm):
    """On waking, an agent averages its neighbours' models with its own local one (B, appendix C)."""

    kind: Literal["model-propagation"] = "model-propagation"
    mu: Step = Field(description="μ, the weight of the agents' local models")
    start: Start = Field(Local(), description="the local models, which are also the agents' first ones")

    rejoins: ClassVar[bool] = True
    touches_data: ClassVar[bool] = False


class PushSum(_Averages):
    """Each agent keeps a sum and a weight, and sends half of both; its model is sum by weight.

    Sums and weights are conserved as long as every message arrives, whatever its delay: then all models tend to the
    mean of the start. A message that is lost takes its sum and weight along: models still agree in the end, elsewhere.
    """

    kind: Literal["push-sum"] = "push-sum"
    takes_answers: ClassVar[bool] = False

    def replay(self, task: GraphTask, track: bool) -> ModelReplay:
        """See `GraphAlgorithm.replay`."""
        from p2psim.learning.graph.averaging import PushSumReplay

        return PushSumReplay(task.start)

    def reference(
        self, task: GraphTask, events: np.ndarray, noise: np.ndarray, places: Sequence[int] | None = None
    ) -> Iterator[np.ndarray]:
        """See `GraphAlgorithm.reference`."""
        from p2psim.learning.reference import reference_push_sum

        return reference_push_sum(task.start, events, places)


class GossipAlgorithm(GraphAlgorithm):
    """Base of an algorithm of your own, in which agents on a graph send each other their models.

    The exchange is ``gossip``, with ``push``, ``pull`` or ``push-pull``. An agent that hears another's model updates
    its own: it goes to `mix`, takes there the mean gradient of its records, and goes to `step`. The sender's model is
    that of the moment in which it was sent. Keys of the algorithm are fields, each with a description.

    The methods see no records. What an agent learns from its data is the mean gradient alone: p2psim computes it, clips
    each record's gradient where the scenario says so, adds the noise of the release, and accounts for it, with the
    sensitivity of ``privacy.sensitivity`` over the records of the agent or of its batch. So an update is
    post-processing of releases, whatever the methods do. They must be functions of their arguments:
    models of different agents and replicas go through them in any order.

    Attributes
    ----------
    mu : float
        μ of Q_L, which ``objective`` measures; a field or a class variable.
    """

    start: Start = Field(Zero(), description="the agents' first models")
    batch: Batch = Field(Whole(), description="which of an agent's records take part in a release")

    mu: ClassVar[float] = 1.0
    updates: ClassVar[Literal["wake", "hear"]] = "hear"
    takes_changes: ClassVar[bool] = True
    has_anchor: ClassVar[bool] = False

    def replay(self, task: GraphTask, track: bool) -> ModelReplay:
        """See `GraphAlgorithm.replay`."""
        from p2psim.learning.graph.gossip import CompiledGossipReplay, GossipReplay

        form = self.for_kernel()
        return GossipReplay(self, task) if form is None else CompiledGossipReplay(self.kind, form, task)

    def reference(
        self, task: GraphTask, events: np.ndarray, noise: np.ndarray, places: Sequence[int] | None = None
    ) -> Iterator[np.ndarray]:
        """See `GraphAlgorithm.reference`."""
        from p2psim.learning.reference import reference_gossip

        return reference_gossip(self, task, events, noise, places)

    def for_kernel(self) -> ForKernel | None:
        """Its form for a compiled kernel: see `p2psim.learning.graph.gossip.compiled_form`.

        None, as here, where its methods run in Python. They stay the reference, which ``verify`` compares it with.
        """
        return None

    @abstractmethod
    def mix(self, own: np.ndarray, received: np.ndarray) -> np.ndarray:
        """Model at which the gradient is taken.

        Parameters
        ----------
        own, received : ndarray, shape (p,)
            The agent's model, and the one that it has heard. Neither may be changed.

        Returns
        -------
        ndarray, shape (p,)
            It is the agent's new model where it may make no more releases and goes on without its data.
        """

    @abstractmethod
    def step(self, at: np.ndarray, gradient: np.ndarray, updates: int) -> np.ndarray:
        """The agent's new model.

        Parameters
        ----------
        at : ndarray, shape (p,)
            Where the gradient was taken. It may not be changed.
        gradient : ndarray, shape (p,)
            Mean gradient of the agent's records or its batch, clipped, with noise, and the exact gradient of its
            regulariser, 2·λ_i·at.
        updates : int
            Updates of this agent with a gradient so far, from 0.

        Returns
        -------
        ndarray, shape (p,)
        """
