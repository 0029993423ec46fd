"""Worst-case records reach the bound that is claimed, and never exceed it."""

import numpy as np
import pytest

from p2psim.audit.canaries import GradientLimits, Pair, gradients, pairs
from p2psim.learning.losses import Hinge, Logistic, Loss, Squared

BOUND = 1.7

#: Clipped; bounded by public bounds on records; declared: of a star's box or of no box.
REACHES = {
    "clipped": lambda loss, order, box: GradientLimits(loss, BOUND, BOUND, order, box),
    "bounds": lambda loss, order, box: GradientLimits(
        loss, np.inf, BOUND, order, box, *((0.4, 0.2) if loss.kind == "squared" else (BOUND, None))
    ),
    "declared": lambda loss, order, box: GradientLimits(loss, np.inf, BOUND, order, box),
}

CASES = [
    (loss, kind, order, box)
    for loss in (Squared(), Hinge(), Logistic())
    for kind in REACHES
    for order in (1, 2)
    for box in (4.8125, np.inf)
    # Squared losses have bounds in a box alone, and hinges are for stars.
    if not (np.isinf(box) and (loss.kind == "hinge" or (loss.kind == "squared" and kind == "bounds")))
]


def ends(reach: GradientLimits, pair: Pair) -> np.ndarray:
    return np.stack([gradients(reach, record.x, record.y, record.start) for record in pair])


@pytest.mark.parametrize("p", [1, 2, 5])
@pytest.mark.parametrize(("loss", "kind", "order", "box"), CASES)
def test_gradients_are_as_far_apart_as_the_claim_allows(
    loss: Loss, kind: str, order: int, box: float, p: int
) -> None:
    # 2(θ_max·B + y_max)·B is the bound of a squared loss: here 2(4.8125·.4 + .2)·.4 = 1.7.
    reach = REACHES[kind](loss, order, box)
    for name, pair in pairs(reach, p).items():
        both = ends(reach, pair)
        norms = np.linalg.norm(both, ord=order, axis=1)
        assert (norms <= BOUND * (1 + 1e-9)).all()
        if name == "dense" and loss.kind == "squared" and kind == "bounds" and order == 2:
            continue  # ‖x‖₁ is bounded: spread over coordinates, x is short in L2
        apart = float(np.linalg.norm(both[0] - both[1], ord=order))
        # Records in two directions are √2 of the bound apart in L2; one coordinate has but two labels.
        least = 2.0
        if kind != "clipped" and p > 1 and np.isfinite(box):
            least = np.sqrt(2) if order == 2 and loss.kind != "hinge" and kind == "bounds" else least
            least = np.sqrt(2) if order == 2 and loss.kind == "logistic" else least
        if p == 1 and kind != "clipped":
            least = {"squared": 0.09 * 2 if kind == "bounds" else 2.0, "hinge": 2.0, "logistic": 1.0}[
                loss.kind
            ]
        assert apart >= 0.98 * least * BOUND


@pytest.mark.parametrize("loss", [Squared(), Logistic()])
@pytest.mark.parametrize("order", [1, 2])
def test_the_dense_pair_differs_alike_in_all_coordinates(loss: Loss, order: int) -> None:
    reach = GradientLimits(loss, BOUND, BOUND, order, 3.0)
    both = ends(reach, pairs(reach, 6)["dense"])
    difference = np.abs(both[0] - both[1])
    assert np.allclose(difference, difference[0])
    # L2 hides √p in L1.
    assert difference.sum() == pytest.approx(2 * BOUND * (1 if order == 1 else np.sqrt(6)))


def test_clipping_is_that_of_the_definition() -> None:
    reach = GradientLimits(Squared(), 1.0, 1.0, 2)
    x, theta = np.array([3.0, 4.0]), np.zeros((1, 2))
    assert np.allclose(gradients(reach, x, -1.0, theta), [[0.6, 0.8]])
    assert np.allclose(gradients(reach, x / 100, -1.0, theta), [[0.06, 0.08]])
