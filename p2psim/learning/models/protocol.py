"""What a model is: a function of a flat vector θ of parameters and a record, with a loss per record.

A model of one's own is a subclass of `Model` that gives its ``kind``, ``size``, ``losses``, ``gradients`` and
``outputs``; ``labels`` says which labels it takes. Parameters, outputs and losses have no unit. Arrays are of float64.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from p2psim.core.options import Options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from numpy.random import Generator

    from p2psim.learning.losses import Loss
    from p2psim.learning.models.kernels import LayeredModel, LinearModel

#: Labels that a model takes: any numbers, −1 and +1, or class numbers 0 … C − 1.
Labels = Literal["numbers", "signs", "classes"]


class Model(Options):
    """Base of all models.

    Attributes
    ----------
    kind : str
        Its name.
    uses_loss : bool
        Whether it is a score θᵀx whose loss ``learning.loss`` names: the linear model alone.

    Notes
    -----
    Methods take ``theta``, shape (p,), ``X``, shape (m, features), and ``y``, shape (m,), and do not write to them.
    """

    # Parts declare it with a Literal and a description of their own.
    kind: Any

    part_kind: ClassVar[str] = "model"
    uses_loss: ClassVar[bool] = False

    @property
    def is_convex(self) -> bool:
        """Whether its loss is smooth and convex in θ, so that where the slope vanishes is the minimum."""
        return False

    @property
    def labels(self) -> Labels:
        """Which labels it takes."""
        return "numbers"

    @property
    def hidden_layers(self) -> tuple[int, ...] | None:
        """Outputs of each hidden layer, where the model is fully connected layers; None for other models."""
        return None

    def with_loss(self, loss: Loss | None) -> Self:
        """The model with the loss of its score, where it uses one; else itself."""
        return self

    @abstractmethod
    def size(self, features: int, classes: int) -> int:
        """Number p of parameters.

        Parameters
        ----------
        features : int
            Columns of X.
        classes : int
            Number of classes; 0 where labels are numbers.
        """

    def start(self, features: int, classes: int, generator: Generator) -> np.ndarray:
        """First parameters, shape (p,); zeros unless a model says otherwise."""
        return np.zeros(self.size(features, classes))

    @abstractmethod
    def losses(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Loss of each record, shape (m,)."""

    @abstractmethod
    def gradients(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Gradient of each record's loss by θ, shape (m, p)."""

    @abstractmethod
    def outputs(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        """What it says of each record, shape (m, k): a score per class, or one number."""

    def losses_of(self, thetas: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Losses at several parameters, shape (k, p): shape (k, m)."""
        return np.array([self.losses(theta, X, y) for theta in thetas])

    def outputs_of(self, thetas: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Outputs at several parameters, shape (k, p): of shape (k, m, …)."""
        return np.array([self.outputs(theta, X) for theta in thetas])

    def predictions(self, outputs: np.ndarray) -> np.ndarray:
        """Labels that outputs stand for, shape (m,): the class of the largest, the sign (0: no class), or the number.

        Of classes with equal outputs the first is predicted.
        """
        if self.labels == "classes":
            return outputs.argmax(axis=1).astype(float)
        number: np.ndarray = outputs[:, 0]
        return np.sign(number) if self.labels == "signs" else number

    def clipped_sums(
        self,
        thetas: np.ndarray,
        X: np.ndarray,
        y: np.ndarray,
        batches: Sequence[np.ndarray],
        clip: float = np.inf,
        order: int = 0,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sum of a batch's clipped gradients at each of several parameters.

        Parameters
        ----------
        thetas : ndarray, shape (k, p)
        X : ndarray, shape (records, features)
        y : ndarray, shape (records,)
        batches : sequence of k ndarrays of int
            Rows of the records of each batch; a batch may be empty.
        clip : float
            Norm to which each record's gradient is clipped; infinite for none.
        order : int
            Order of that norm, 1 or 2; 0 if no norms are needed: nothing is clipped then.

        Returns
        -------
        sums : ndarray, shape (k, p)
        longest : ndarray, shape (k,)
            Largest norm of a gradient before clipping; 0 without records or norms.
        """
        sums, longest = np.zeros(thetas.shape), np.zeros(len(thetas))
        for i, (theta, rows) in enumerate(zip(thetas, batches, strict=True)):
            if rows.size:
                gradients = self.gradients(theta, X[rows], y[rows])
                if order:
                    norms = np.linalg.norm(gradients, order, axis=1)
                    longest[i] = norms.max()
                    if np.isfinite(clip):
                        gradients *= (clip / np.maximum(norms, clip))[:, None]
                sums[i] = gradients.sum(axis=0)
        return sums, longest

    def for_kernel(self, features: int, classes: int) -> LinearModel | LayeredModel | None:
        """Its form for compiled kernels; None if it is computed in Python (`clipped_sums`).

        Of a model that is built in. It holds room for intermediate results: what is computed at the same time needs
        one each.
        """
        return None
