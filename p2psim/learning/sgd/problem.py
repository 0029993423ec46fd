"""What is minimised where one model is trained: f(θ) = Σ_i w_i·(mean loss of agent i's records) + l2·‖θ‖²."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.learning.batches import Sampling

if TYPE_CHECKING:
    from p2psim.learning.losses import Loss
    from p2psim.learning.models.protocol import Model


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

    def objective(self, models: np.ndarray) -> float:
        """F at the mean of models, shape (n, p)."""
        return self.value(models.mean(axis=0))

    def mean_objective(self, models: np.ndarray) -> float:
        """Mean of f over models, shape (n, p)."""
        return float(np.mean([self.value(theta) for theta in models]))

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
        return self._tested(models, self._is_right, slice(None))

    def test_rmse(self, models: np.ndarray) -> np.ndarray:
        """Root mean squared error on all records held out, of each agent's model or the learner's, shape (n,)."""
        return np.sqrt(self._tested(models, self._square_error, slice(None)))

    def local_accuracy(self, models: np.ndarray) -> np.ndarray:
        """Share of right classes among each agent's own records held out, shape (agents,); NaN without such.

        Of its own model, or of the learner's.
        """
        each = models if len(models) == self.agents else np.repeat(models, self.agents, axis=0)
        values = np.full(self.agents, np.nan)
        for i in np.flatnonzero(np.diff(self.test_offsets)):
            own = slice(int(self.test_offsets[i]), int(self.test_offsets[i + 1]))
            values[i] = self._tested(each[i : i + 1], self._is_right, own)[0]
        return values

    def _tested(
        self, models: np.ndarray, judge: Callable[[np.ndarray, np.ndarray], np.ndarray], rows: slice
    ) -> np.ndarray:
        """Mean over records held out of what is judged of each prediction, of each model."""
        X, y = self.test_X[rows], self.test_y[rows]
        values = [judge(self.model.predictions(self.model.outputs(theta, X)), y).mean() for theta in models]
        return np.array(values * self.agents if len(values) == 1 else values)

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
