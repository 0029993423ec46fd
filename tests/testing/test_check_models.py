"""`check_part` passes every model that is registered, and says what is wrong with bad ones."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from own_parts import let_in
from registered import registered

import p2psim
from p2psim.core import registry
from p2psim.testing import PartError, check_part


@pytest.fixture(autouse=True, scope="module")
def example_parts() -> Iterator[None]:
    with let_in("p2psim_example_parts"):
        yield


def test_registered_parts_pass() -> None:
    for part in registered("model"):
        check_part(part)
    check_part(p2psim.MLP(layers=[3]))


class _Good(p2psim.Model):
    """Least squares."""

    kind: Literal["good"] = "good"

    def size(self, features: int, classes: int) -> int:
        return features

    def losses(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return (X @ theta - y) ** 2

    def gradients(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 2 * (X @ theta - y)[:, None] * X

    def outputs(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        return (X @ theta)[:, None]


class HalfGradient(_Good):
    """Forgets a factor."""

    kind: Literal["half"] = "half"

    def gradients(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return super().gradients(theta, X, y) / 2


class FlatOutputs(_Good):
    """No second dimension."""

    kind: Literal["flat"] = "flat"

    def outputs(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
        return X @ theta


class Centred(_Good):
    """Subtracts the mean of the records that it is given."""

    kind: Literal["centred"] = "centred"

    def losses(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return super().losses(theta, X - X.mean(axis=0), y)

    def gradients(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return super().gradients(theta, X - X.mean(axis=0), y)


class Single(_Good):
    """Single precision."""

    kind: Literal["single"] = "single"

    def losses(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return super().losses(theta, X, y).astype(np.float32)


class Random(_Good):
    """Ignores the generator."""

    kind: Literal["random"] = "random"
    draws: ClassVar[np.random.Generator] = np.random.default_rng(0)

    def start(self, features: int, classes: int, generator: np.random.Generator) -> np.ndarray:
        return self.draws.standard_normal(features)


class InPlace(_Good):
    """Writes to θ."""

    kind: Literal["in-place"] = "in-place"

    def losses(self, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        theta += 1.0
        return super().losses(theta, X, y)


class Sums(_Good):
    """Sums that are not clipped."""

    kind: Literal["sums"] = "sums"

    def clipped_sums(self, thetas, X, y, batches, clip=np.inf, order=0):  # type: ignore[no-untyped-def]
        return super().clipped_sums(thetas, X, y, batches, np.inf, order)


class FewClasses(_Good):
    """Of classes, with the outputs of a number."""

    kind: Literal["few"] = "few"

    labels: ClassVar[str] = "classes"  # type: ignore[assignment]


BAD = [
    (HalfGradient, "gradients are not the derivative of losses"),
    (FlatOutputs, r"outputs gives an array of shape \(12,\), not \(12, 1\)"),
    (Centred, "losses of a record depend on the other records"),
    (Single, "losses gives float32, not an array of float64"),
    (Random, "start gives other parameters for the same generator"),
    (InPlace, "it changes its arguments"),
    (Sums, "clipped_sums of order 1 are not the sums"),
    (FewClasses, r"outputs gives an array of shape \(12, 1\), not \(12, 2\)"),
]


@pytest.mark.parametrize(
    ("part", "said"), [*BAD, (_Good, "")], ids=lambda value: getattr(value, "__name__", "")
)
def test_what_is_wrong_is_said(part: Any, said: str) -> None:
    registry.register(part)
    try:
        if said:
            with pytest.raises(PartError, match=said):
                check_part(part())
        else:
            check_part(part())
    finally:
        registry.forget("model", registry.name_of(part))
