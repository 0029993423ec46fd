"""A model that is not linear in its parameters: a factorisation machine (Rendle 2010)."""

from typing import Literal

import numpy as np
from pydantic import Field

import p2psim


@p2psim.register
class FactorisationMachine(p2psim.Model):
    """Regression on features and on products of two of them, whose weights have a low rank; squared error.

    θ is the constant, the weights w of the features, and the rows of V, shape (rank, features): the output is
    c + wᵀx + Σ_{a<b} (V_aᵀV_b)·x_a·x_b, V_a a column of V.
    """

    kind: Literal["factorisation-machine"] = "factorisation-machine"
    rank: int = Field(2, ge=1, description="rank of the weights of products")
    spread: float = Field(0.1, gt=0, description="standard deviation of the first factors")

    def size(self, features: int, classes: int) -> int:
        return 1 + features + self.rank * features

    def start(self, features: int, classes: int, generator: np.random.Generator) -> np.ndarray:
        factors = self.spread * generator.standard_normal(self.rank * features)
        return np.concatenate([np.zeros(1 + features), factors])

    def losses(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (self.outputs(theta, X)[:, 0] - y) ** 2

    def gradients(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        factors = self._factors(theta, X)
        by_factors = (X @ factors.T)[:, :, None] * X[:, None, :] - factors * (X**2)[:, None, :]
        by_theta = np.concatenate([np.ones((len(X), 1)), X, by_factors.reshape(len(X), -1)], axis=1)
        return 2 * (self.outputs(theta, X) - y[:, None]) * by_theta

    def outputs(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        factors = self._factors(theta, X)
        products = ((X @ factors.T) ** 2 - X**2 @ (factors**2).T).sum(axis=1) / 2
        return (theta[0] + X @ theta[1 : 1 + X.shape[1]] + products)[:, None]

    def _factors(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        return theta[1 + X.shape[1] :].reshape(self.rank, X.shape[1])
