"""How far a record moves a minimiser, and which bounds may stand beside which noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from star_cases import scenario

from p2psim.core.errors import InputError
from p2psim.privacy.mechanisms import minimiser_sensitivity
from p2psim.privacy.section import AsPrinted, Bounds, Clip, Declared, Empirical


def minimiser(X, y, ridge):
    """Of the mean logistic loss + λ‖θ‖², by a general optimiser."""

    def objective(theta):
        z = y * (X @ theta)
        slopes = -y / (1 + np.exp(z))
        value = np.logaddexp(0, -z).mean() + ridge * theta @ theta
        return value, X.T @ slopes / len(y) + 2 * ridge * theta

    found = minimize(objective, np.zeros(X.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.x


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 8),
    p=st.integers(1, 6),
    ridge=st.floats(0.01, 2.0),
    norm=st.sampled_from(["l1", "l2"]),
)
def test_no_replaced_record_moves_the_minimiser_further(seed, m, p, ridge, norm):
    """Logistic loss with ‖x‖ ≤ 1 in the norm, so that a gradient is at most 1 in it."""
    random = np.random.default_rng(seed)
    order = 1 if norm == "l1" else 2
    X = random.normal(size=(m + 1, p)) * (random.random((m + 1, p)) < 0.6)
    X /= np.maximum(np.linalg.norm(X, ord=order, axis=1, keepdims=True), 1e-9)
    y = random.choice([-1.0, 1.0], m + 1)
    one, other = minimiser(X[:m], y[:m], ridge), minimiser(X[1:], y[1:], ridge)
    assert np.abs(one - other).sum() <= minimiser_sensitivity(1.0, m, ridge, p, norm) + 1e-6


@pytest.mark.parametrize(("m", "ridge"), [(1, 0.5), (4, 0.1)])
def test_a_linear_loss_meets_the_bound_exactly(m, ridge):
    """ℓ = ±θ: the minimiser is ∓(mean sign)/(2λ); a sign changed moves it by 2/(m·2λ)."""
    assert minimiser_sensitivity(1.0, m, ridge, 1) == pytest.approx(2 / (m * 2 * ridge), rel=1e-15)
    # In more coordinates, ℓ = ±(1, …, 1)ᵀθ/√p has gradients of L2 norm 1, and its minimiser moves by √p·2/(m·2λ) in L1.
    assert minimiser_sensitivity(1.0, m, ridge, 9, "l2") == pytest.approx(3 * 2 / (m * 2 * ridge), rel=1e-15)


@pytest.mark.parametrize("p", [2, 5, 100])
def test_a_loss_with_another_curvature_meets_the_bound_of_the_l1_norm_too(p):
    """ℓ = ½θᵀKθ ± e₁ᵀθ, K ⪰ 0: the minimiser moves by 2(K + 2λI)⁻¹e₁ for m = 1.

    With (K + 2λI)⁻¹ of eigenvalues 1/(2λ), along v, and almost 0, the move is 2·v₁·v/(2λ); with v₁ = cos(φ/2) and its
    other coordinates equal, where tan φ = √(p − 1), its L1 norm is (1 + √p)/(2λ).
    """
    ridge = 0.3
    half = np.arctan(np.sqrt(p - 1)) / 2
    v = np.r_[np.cos(half), np.full(p - 1, np.sin(half) / np.sqrt(p - 1))]
    K = 1e9 * (np.eye(p) - np.outer(v, v))
    moved = np.linalg.solve(K + 2 * ridge * np.eye(p), 2 * np.eye(p)[0])
    # ∇ℓ is not bounded by 1 away from θ = b; in the proof only the difference of two records' gradients there counts.
    assert np.abs(moved).sum() == pytest.approx(float(minimiser_sensitivity(1.0, 1, ridge, p)), rel=1e-6)


def test_sensitivity_of_many_agents():
    found = minimiser_sensitivity(2.0, [0, 10, 20], [0.1, 0.1, 0.05], 4)
    np.testing.assert_allclose(found, [0.0, 3 * 2 / (10 * 0.2), 3 * 2 / (20 * 0.1)], rtol=1e-15)
    with pytest.raises(ValueError, match=r"the ridge must be positive, got 0\.0"):
        minimiser_sensitivity(2.0, [1, 2], [0.1, 0.0], 4)


def test_which_bounds_hold():
    assert [part.holds for part in (Clip, Declared, Bounds, Empirical, AsPrinted)] == [True] * 3 + [False] * 2


@pytest.mark.parametrize(
    ("privacy", "key", "message"),
    [
        (
            {"sensitivity": {"kind": "as-printed", "bound": 1.0}},
            "privacy.sensitivity",
            "as-printed is for agents on",
        ),
        (
            {"sensitivity": {"kind": "clip", "norm": "l2", "bound": 1.0}},
            "privacy.sensitivity.norm",
            "Laplace noise needs l1: beside l2 clipping the loss is up to √p times the claim, or give gaussian",
        ),
        ({"allocation": "contraction"}, "privacy.allocation.rate", "auto is for agents on a graph"),
        (
            {"allocation": {"kind": "contraction", "rate": 0.9, "wakes": "known", "releases": 3}},
            "privacy.allocation.releases",
            "known ones are all used",
        ),
    ],
)
def test_a_star_refuses_what_is_for_graphs(privacy, key, message):
    with pytest.raises(InputError) as error:
        scenario({f"privacy.{name}": value for name, value in privacy.items()})
    (fault,) = error.value.faults
    assert fault.key == key
    assert message in fault.message
