"""Linear models: a score θᵀx, and the loss of it that ``learning.loss`` names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from pydantic import PrivateAttr

from p2psim.learning.losses.protocol import Loss
from p2psim.learning.models.protocol import Labels, Model

if TYPE_CHECKING:
    from p2psim.learning.models.kernels import LinearModel


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
            raise TypeError("a linear model has no loss of its own: use model.with_loss(loss)")
        return self._loss

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
