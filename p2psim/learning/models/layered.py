"""The models of p2psim: linear scores under any loss, and dense layers for classes, softmax regression and MLPs.

The parameters of a layer are its weights, an output's after another's, then its biases: the order of PyTorch's
``parameters()`` of a ``torch.nn.Sequential`` of ``torch.nn.Linear``.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, PrivateAttr

from p2psim.core.options import AS_TUPLE, Few
from p2psim.learning.losses import Loss
from p2psim.learning.models.protocol import Labels, Model

if TYPE_CHECKING:
    from numpy.random import Generator

    from p2psim.learning.models.kernels import LayeredModel, LinearModel


class Layered(Model):
    """Base of models of dense layers."""

    @property
    @abstractmethod
    def hidden(self) -> tuple[int, ...]:
        """Number of outputs of each hidden layer."""

    @property
    def hidden_layers(self) -> tuple[int, ...]:
        """See `Model.hidden_layers`."""
        return self.hidden

    @property
    def is_smooth(self) -> bool:
        """Whether hidden layers are followed by tanh, not by max(0, z)."""
        return False

    @property
    def is_convex(self) -> bool:
        """Without hidden layers."""
        return not self.hidden

    @property
    def labels(self) -> Labels:
        """Classes."""
        return "classes"

    def size(self, features: int, classes: int) -> int:
        """Weights and biases of all layers."""
        return sum((n + 1) * outputs for n, outputs in pairwise((features, *self.hidden, classes)))

    def losses(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Cross-entropy of each record, shape (m,)."""
        return self.losses_of(theta[None], X, y)[0]

    def losses_of(self, thetas: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """See `Model.losses_of`."""
        scores = self._scores(thetas, X)
        top = scores.max(axis=1)
        own = scores[:, y.astype(np.int64), np.arange(len(y))]
        scores -= top[:, None]
        return np.asarray(np.log(np.exp(scores, out=scores).sum(axis=1)) + top - own)

    def gradients(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Gradient of each record's cross-entropy, shape (m, p)."""
        layers = self._layers(theta, X.shape[1])
        values = self._values(layers, X)
        scores = values.pop()
        delta = np.exp(scores - scores.max(axis=1, keepdims=True))
        delta /= delta.sum(axis=1, keepdims=True)
        delta[np.arange(len(y)), y.astype(np.int64)] -= 1.0
        blocks: list[np.ndarray] = []
        for (weights, _), inputs in zip(reversed(layers), reversed(values), strict=True):
            outer = delta[:, :, None] * inputs[:, None, :]
            blocks[:0] = [outer.reshape(len(y), weights.size), delta]
            slopes = 1.0 - inputs**2 if self.is_smooth else inputs > 0
            delta = (delta @ weights) * slopes  # of the inputs themselves, at last: not used
        return np.concatenate(blocks, axis=1)

    def outputs(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        """A score per class, shape (m, C)."""
        return self._values(self._layers(theta, X.shape[1]), X)[-1]

    def outputs_of(self, thetas: np.ndarray, X: np.ndarray) -> np.ndarray:
        """See `Model.outputs_of`."""
        return self._scores(thetas, X).transpose(0, 2, 1)

    def _scores(self, thetas: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Scores at several parameters, shape (k, C, m): of the first layers of all by one matrix product.

        One row per class: sums over classes then run along records, which takes a third of the time.
        """
        layers = [self._layers(theta, X.shape[1]) for theta in thetas]
        values: np.ndarray = X.T
        for number, of_each in enumerate(zip(*layers, strict=True), 1):
            weights, biases = (np.array(parts) for parts in zip(*of_each, strict=True))
            if number == 1:
                values = (weights.reshape(-1, weights.shape[2]) @ values).reshape(*biases.shape, -1)
            else:
                values = weights @ values
            values += biases[:, :, None]
            if number < len(layers[0]):
                values = np.tanh(values) if self.is_smooth else np.maximum(values, 0.0)
        return values

    def _layers(self, theta: np.ndarray, features: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights, shape (outputs, inputs), and biases of each layer."""
        sizes = (features, *self.hidden)
        inner = sum((n + 1) * outputs for n, outputs in pairwise(sizes))
        classes, rest = divmod(theta.size - inner, sizes[-1] + 1)
        if rest or classes < 1:
            raise ValueError(f"{theta.size} parameters fit no number of classes with {features} features")
        layers, at = [], 0
        for n, outputs in pairwise((*sizes, classes)):
            weights = theta[at : at + n * outputs].reshape(outputs, n)
            layers.append((weights, theta[at + n * outputs : at + (n + 1) * outputs]))
            at += (n + 1) * outputs
        return layers

    def _values(self, layers: list[tuple[np.ndarray, np.ndarray]], X: np.ndarray) -> list[np.ndarray]:
        """Inputs, the values of each hidden layer, and scores."""
        values = [X]
        for number, (weights, biases) in enumerate(layers, 1):
            sums = values[-1] @ weights.T + biases
            if number < len(layers):
                sums = np.tanh(sums) if self.is_smooth else np.maximum(sums, 0.0)
            values.append(sums)
        return values

    def for_kernel(self, features: int, classes: int) -> LayeredModel:
        """See `Model.for_kernel`."""
        from p2psim.learning.models.kernels import RELU, TANH, LayeredModel

        return LayeredModel.of((features, *self.hidden, classes), TANH if self.is_smooth else RELU)


class Softmax(Layered):
    """Softmax regression: a score θ_cᵀx + b_c per class, with cross-entropy; starts from zeros."""

    kind: Literal["softmax"] = "softmax"

    @property
    def hidden(self) -> tuple[int, ...]:
        """None."""
        return ()


class MLP(Layered):
    """A multilayer perceptron with cross-entropy.

    It starts from weights and biases drawn uniformly within ±1/√(number of the layer's inputs), as PyTorch's layers do.

    Choices
    -------
    activation: relu
        max(0, z)
    activation: tanh
        tanh(z)
    """

    kind: Literal["mlp"] = "mlp"
    layers: Annotated[tuple[Few, ...], AS_TUPLE, Field(min_length=1)] = Field(
        description="number of outputs of each hidden layer, from the inputs on"
    )
    activation: Literal["relu", "tanh"] = Field("relu", description="function after each hidden layer")

    @property
    def hidden(self) -> tuple[int, ...]:
        """Number of outputs of each hidden layer."""
        return self.layers

    @property
    def is_smooth(self) -> bool:
        """Whether the activation is tanh."""
        return self.activation == "tanh"

    def start(self, features: int, classes: int, generator: Generator) -> np.ndarray:
        """Draw first parameters, layer by layer."""
        return np.concatenate([
            generator.uniform(-1.0, 1.0, (n + 1) * outputs) / np.sqrt(n)
            for n, outputs in pairwise((features, *self.hidden, classes))
        ])  # fmt: skip


class Linear(Model):
    """A score θᵀx; learning.loss is the loss of it, and says whether x has a feature that is always one."""

    kind: Literal["linear"] = "linear"

    uses_loss: ClassVar[bool] = True
    _loss: Loss | None = PrivateAttr(None)

    def with_loss(self, loss: Loss | None) -> Self:
        """The model with the loss of its score.

        X of its methods has the feature that is always one as a column, where the loss has an intercept.
        """
        model = self.model_copy()
        model._loss = loss
        return model

    @property
    def loss(self) -> Loss:
        """The loss of its score.

        Raises
        ------
        TypeError
            If it has none.
        """
        if self._loss is None:
            raise TypeError("a linear model does not contain a loss: use model.with_loss(loss)")
        return self._loss

    @property
    def hidden_layers(self) -> tuple[int, ...]:
        """None: the score is linear."""
        return ()

    @property
    def labels(self) -> Labels:
        """Which labels its loss takes."""
        return "signs" if self._loss is not None and self._loss.needs_classes else "numbers"

    @property
    def is_convex(self) -> bool:
        """Where its loss is smooth."""
        return bool(np.isfinite(self.loss.curvature))

    def size(self, features: int, classes: int) -> int:
        """One parameter per feature."""
        return features

    def losses(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of each record, shape (m,)."""
        return self.loss.values(X @ theta, y)

    def gradients(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Gradient of each record's loss, shape (m, p)."""
        return self.loss.slopes(X @ theta, y)[:, None] * X

    def outputs(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Scores, shape (m, 1)."""
        return (X @ theta)[:, None]

    def losses_of(self, thetas: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """See `Model.losses_of`: by one matrix product."""
        scores = thetas @ X.T
        return self.loss.values(scores.ravel(), np.tile(y, len(thetas))).reshape(scores.shape)

    def outputs_of(self, thetas: np.ndarray, X: np.ndarray) -> np.ndarray:
        """See `Model.outputs_of`: by one matrix product."""
        return (thetas @ X.T)[:, :, None]

    def for_kernel(self, features: int, classes: int) -> LinearModel:
        """See `Model.for_kernel`."""
        from p2psim.learning.models.kernels import LinearModel

        return LinearModel(self.loss.for_kernel())
