"""What is minimised where one model is trained: f(θ) = Σ_i w_i·(mean loss of agent i's records) + l2·‖θ‖².

Also its minimum, for models of which it is known that a stationary point is one, and what algorithms that train it take
and are given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from p2psim.core.errors import MeaningError, SimulationError
from p2psim.learning.batches import Sampling

if TYPE_CHECKING:
    from p2psim.learning.losses import Loss
    from p2psim.learning.models.protocol import Model


#: Largest norm of ∇f at what is taken for the minimum, relative to that at the start plus one.
TOLERANCE = 1e-8

#: Records times models that are measured at a time, about.
_TOGETHER = 8192


def _blocks(records: int, models: int) -> Iterator[slice]:
    """Records that are measured together, so that what is computed of them stays in the processor's caches."""
    block = max(64, _TOGETHER // models)
    return (slice(first, first + block) for first in range(0, records, block))


@dataclass(frozen=True)
class SharedProblem:
    """Records of all agents, and the model that they train.

    Attributes
    ----------
    model : Model
    X, y, offsets : ndarray
        Agent i holds rows ``offsets[i]`` to ``offsets[i + 1]``.
    test_X, test_y, test_offsets : ndarray
        Records held out, agent by agent.
    classes : int
        Number of classes; 0 where labels are numbers.
    l2 : float
        Weight of ‖θ‖².
    weights : ndarray, shape (n,)
        w_i, which add up to one.
    """

    model: Model
    X: np.ndarray
    y: np.ndarray
    offsets: np.ndarray
    test_X: np.ndarray
    test_y: np.ndarray
    test_offsets: np.ndarray
    classes: int
    l2: float
    weights: np.ndarray

    @property
    def agents(self) -> int:
        """N."""
        return self.offsets.size - 1

    @property
    def loss(self) -> Loss:
        """The loss of a linear model's score; other models have none."""
        loss: Loss = self.model.loss  # type: ignore[attr-defined]
        return loss

    @property
    def features(self) -> int:
        """Columns of X."""
        return int(self.X.shape[1])

    @cached_property
    def dimension(self) -> int:
        """p, the number of parameters."""
        return self.model.size(self.features, self.classes)

    @property
    def records(self) -> np.ndarray:
        """Records of each agent, shape (n,)."""
        return np.diff(self.offsets)

    @property
    def bytes_of_data(self) -> int:
        """Bytes of the records."""
        return self.X.nbytes + self.y.nbytes + self.test_X.nbytes + self.test_y.nbytes

    @cached_property
    def record_weights(self) -> np.ndarray:
        """Weight of each record in f, shape (records,)."""
        records = self.records
        return np.repeat(self.weights / np.maximum(records, 1), records)

    def value(self, theta: np.ndarray) -> float:
        """F at one model, shape (p,)."""
        losses = self.model.losses(theta, self.X, self.y)
        return float(self.record_weights @ losses + self.l2 * (theta @ theta))

    def values(self, models: np.ndarray) -> np.ndarray:
        """F at several models, shape (n, p): shape (n,)."""

        def measure() -> np.ndarray:
            sums = self.l2 * (models**2).sum(axis=1)
            for rows in _blocks(self.y.size, len(models)):
                losses = self.model.losses_of(models, self.X[rows], self.y[rows])
                sums += losses @ self.record_weights[rows]
            return np.asarray(sums)

        return self._once("values", models, measure)

    def objective(self, models: np.ndarray) -> float:
        """F at the mean of models, shape (n, p)."""
        return float(self.values(models.mean(axis=0)[None])[0])

    def mean_objective(self, models: np.ndarray) -> float:
        """Mean of f over models, shape (n, p)."""
        return float(self.values(models).mean())

    def _once(self, what: str, models: np.ndarray, measure: Callable[[], np.ndarray]) -> np.ndarray:
        """What is measured of models: several metrics of one moment ask for the same."""
        for name, known, measured in self._measured:
            if name == what and np.array_equal(known, models):
                return measured
        self._measured.append((what, models.copy(), measure()))
        return self._measured[-1][2]

    @cached_property
    def _measured(self) -> deque[tuple[str, np.ndarray, np.ndarray]]:
        """What was measured last, at most: of all models and of their mean, each on two sets of records."""
        return deque(maxlen=4)

    def largest_gradients(self, order: int) -> np.ndarray:
        """Nothing bounds them before training.

        Raises
        ------
        MeaningError
            Always.
        """
        raise MeaningError(
            "privacy.sensitivity",
            "empirical is not known of algorithms that train a model: clip, or declare a bound",
        )

    def test_accuracy(self, models: np.ndarray) -> np.ndarray:
        """Share of right classes among all records held out, of each agent's model or the learner's, shape (n,)."""
        return self._tested(models, self._is_right)

    def test_rmse(self, models: np.ndarray) -> np.ndarray:
        """Root mean squared error on all records held out, of each agent's model or the learner's, shape (n,)."""
        return np.sqrt(self._tested(models, self._square_error))

    def local_accuracy(self, models: np.ndarray) -> np.ndarray:
        """Share of right classes among each agent's own records held out, shape (agents,); NaN without such.

        Of its own model, or of the learner's.
        """
        of_one = self._predictions(models)[0] if len(models) == 1 else None

        def right(theta: np.ndarray, own: slice) -> np.ndarray:
            if of_one is None:
                predicted = self.model.predictions(self.model.outputs(theta, self.test_X[own]))
            else:
                predicted = of_one[own]
            return self._is_right(predicted, self.test_y[own])

        return self._on_own(models, right)

    def local_loss(self, models: np.ndarray) -> np.ndarray:
        """Mean loss of each agent's own records held out, shape (agents,); models and NaN as of `local_accuracy`."""
        return self._on_own(
            models, lambda theta, own: self.model.losses(theta, self.test_X[own], self.test_y[own])
        )

    def _on_own(self, models: np.ndarray, judge: Callable[[np.ndarray, slice], np.ndarray]) -> np.ndarray:
        """Mean of what ``judge`` says of each agent's own records held out, by its model or the learner's."""
        values = np.full(self.agents, np.nan)
        for i in np.flatnonzero(np.diff(self.test_offsets)):
            own = slice(int(self.test_offsets[i]), int(self.test_offsets[i + 1]))
            values[i] = judge(models[i if len(models) > 1 else 0], own).mean()
        return values

    def _predictions(self, models: np.ndarray) -> np.ndarray:
        """What each model says of all records held out, shape (n, records)."""

        def measure() -> np.ndarray:
            predicted = np.empty((len(models), self.test_y.size))
            for rows in _blocks(self.test_y.size, len(models)):
                outputs = self.model.outputs_of(models, self.test_X[rows])
                flat = outputs.reshape(-1, outputs.shape[2])
                predicted[:, rows] = self.model.predictions(flat).reshape(len(models), -1)
            return predicted

        return self._once("predictions", models, measure)

    def _tested(
        self, models: np.ndarray, judge: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Mean over records held out of what is judged of each prediction, of each model."""
        values = judge(self._predictions(models), self.test_y).mean(axis=1)
        return np.repeat(values, self.agents) if len(values) == 1 else values

    def _is_right(self, predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 or 0; half for a sign that is not told."""
        right = (predicted == y).astype(float)
        return np.where(predicted == 0, 0.5, right) if self.model.labels == "signs" else right

    @staticmethod
    def _square_error(predicted: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (predicted - y) ** 2

    def slope(self, theta: np.ndarray) -> np.ndarray:
        """∇f at one model, shape (p,)."""
        total = 2 * self.l2 * theta
        # A block of records at a time: per-record gradients take p numbers each.
        block = max(1, 4_000_000 // theta.size)
        for first in range(0, self.y.size, block):
            rows = slice(first, first + block)
            total += self.record_weights[rows] @ self.model.gradients(theta, self.X[rows], self.y[rows])
        return np.asarray(total)


def minimiser(problem: SharedProblem) -> np.ndarray:
    """A θ with ∇f(θ) = 0 to within `TOLERANCE`, shape (p,), of a smooth convex f.

    By BFGS with limited memory (Liu and Nocedal 1989), then by Newton steps with conjugate gradients.

    Raises
    ------
    SimulationError
        If it is not found.
    """
    from scipy.optimize import minimize

    theta = np.zeros(problem.dimension)
    slope = problem.slope(theta)
    unit = 1 + float(np.linalg.norm(slope))
    for method, options in (
        ("L-BFGS-B", {"maxiter": 20_000, "maxfun": 40_000, "ftol": 0.0, "gtol": 1e-10, "maxcor": 50}),
        ("Newton-CG", {"maxiter": 200, "xtol": 1e-14}),
    ):
        theta = minimize(problem.value, theta, jac=problem.slope, method=method, options=options).x
        if np.linalg.norm(problem.slope(theta)) <= TOLERANCE * unit:
            return np.asarray(theta)
    found = float(np.linalg.norm(problem.slope(theta)))
    raise SimulationError(
        f"the minimum of the objective was not found: its slope there is {found:.2g}; objective_gap needs it, "
        "objective does not (a larger learning.regularizer.l2 makes it easier)"
    )


@dataclass(frozen=True)
class TrainingTask:
    """What a replay needs beside the algorithm.

    Attributes
    ----------
    problem : SharedProblem
    clip : float
        Norm to which each record's gradient is clipped; infinite for none.
    order : int
        Order of that norm, 1 or 2.
    grid : float or None
        What noisy gradients are rounded to multiples of.
    private : bool
        Whether releases have noise.
    sampling : Sampling or None
        How batches are drawn; None where all records take part.
    start : ndarray, shape (p,)
        The first model, of all agents.
    end : float or None
        When the run ends, if at a time.
    """

    problem: SharedProblem
    clip: float
    order: int
    grid: float | None
    private: bool
    sampling: Sampling | None
    start: np.ndarray
    end: float | None = None

    @property
    def norm(self) -> int:
        """Order of the norm that kernels compute: 0 where nothing is clipped."""
        return self.order if np.isfinite(self.clip) else 0

    def batch(self) -> tuple[Any, ...] | None:
        """What kernels draw batches by."""
        return None if self.sampling is None else self.sampling.for_kernel(self.problem.records)


#: Gives the mean gradient, shape (p,), of a batch at a model, with its noise and the regulariser's.
Gradient = Callable[[np.ndarray], np.ndarray]

#: What an agent or the learner remembers, by names of its choice; empty at first.
Memory = dict[str, Any]

#: Gives of events to how many each is sent, shape (events,).
Receivers = Callable[[np.ndarray], np.ndarray]


class Answer(NamedTuple):
    """What an owner has answered to the learner.

    Attributes
    ----------
    owner : int
    records : int
        How many it holds.
    model : ndarray, shape (p,)
        What its `TrainingAlgorithm.train` gave.
    start : ndarray, shape (p,)
        The learner's model that it began with.
    version : int
        Commits before that model.
    age : int
        Commits since.
    """

    owner: int
    records: int
    model: np.ndarray
    start: np.ndarray
    version: int
    age: int


class Heard(NamedTuple):
    """A model that an agent has heard from a neighbour, and its weight W_ij."""

    agent: int
    weight: float
    model: np.ndarray
