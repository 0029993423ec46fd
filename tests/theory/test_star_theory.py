"""Stability, step sizes and limits of the star against theory by hand and an independent operator."""

import numpy as np
import pytest
import theory_references as references
from hypothesis import given
from hypothesis import strategies as st

from p2psim.theory import star

pytestmark = pytest.mark.blas


def second_moment_operator(owners: int, h: float) -> np.ndarray:
    """E[A_i ⊗ A_i], A_i the plain matrix of an answer of owner i for one eigenvalue (regulariser apart)."""
    size = owners + 1
    total = np.zeros((size**2, size**2))
    for i in range(1, size):
        A = np.eye(size)
        A[0] = 0
        A[0, [0, i]] = 0.5
        A[i] = 0
        A[i, [0, i]] = (1 - h) / 2
        total += np.kron(A, A) / owners
    return total


def radius(matrix: np.ndarray) -> float:
    return float(np.abs(np.linalg.eigvals(matrix)).max())


@pytest.mark.parametrize(
    ("owners", "value"), [(1, 4.00), (2, 3.39), (3, 3.17), (17, 2.81), (86, 2.75), (1000, 2.73)]
)
def test_stability_threshold_has_the_values_of_the_theory(owners: int, value: float) -> None:
    assert star.stability_threshold(owners) == pytest.approx(value, abs=0.005)


def test_stability_threshold_tends_to_one_plus_root_three() -> None:
    assert star.stability_threshold(10**7) == pytest.approx(1 + 3**0.5, rel=1e-6)
    with pytest.raises(ValueError, match="at least one owner"):
        star.stability_threshold(0)


@pytest.mark.parametrize("owners", [1, 2, 3, 17])
def test_second_moments_grow_above_the_threshold_and_shrink_below_it(owners: int) -> None:
    threshold = star.stability_threshold(owners)
    assert radius(second_moment_operator(owners, threshold)) == pytest.approx(1, abs=1e-6)
    assert radius(second_moment_operator(owners, threshold * 1.01)) > 1 + 1e-5
    assert radius(second_moment_operator(owners, threshold * 0.99)) < 1 - 1e-5


@pytest.mark.parametrize(("owners", "h"), [(2, 2.0), (3, 1.9), (5, 0.4)])
def test_sufficient_condition_and_verdicts(owners: int, h: float) -> None:
    assert star.surely_stable([h] * owners)
    assert star.stability([h] * owners) == "stable"


def test_verdicts_outside_the_sufficient_condition() -> None:
    assert star.stability([3.1] * 3) == "stable"
    assert star.stability([3.2] * 3) == "unstable"
    assert star.stability([3.1, 0.1, 0.1]) == "undecided"
    assert star.stability([0.5, 0.5], reweighting=[10, 1]) == "undecided"
    assert not star.surely_stable([0.5, 0.5], reweighting=[10, 1])


def test_contraction_is_the_rate_of_the_mean() -> None:
    # The mean of (x, average y) under the plain rule: its slow eigenvalue is 1 − h/(N+1) to first order.
    owners, h, horizon = 4, 1e-4, 1000
    mean = np.array([[0.5, 0.5], [(1 - h) / (2 * owners), 1 - 1 / owners + (1 - h) / (2 * owners)]])
    slow = np.linalg.eigvals(mean).real.max()
    l2 = 0.5
    curvature = 2.0
    rho = star.rho_for_h(h, horizon, l2, [7] * owners, [curvature] * owners)
    hessians = np.tile(np.diag([curvature, curvature]), (owners, 1, 1))
    figure = star.contraction(rho, horizon, l2, [7] * owners, hessians)
    assert figure == pytest.approx(-np.log(slow) * horizon, rel=1e-3)


def test_contraction_weighs_owners_by_records() -> None:
    hessians = np.array([np.diag([1.0, 0.0]), np.diag([0.0, 2.0])])
    # 30 and 10 records: the mean Hessian is diag(.75, .5).
    assert star.contraction(8.0, 2, 1.0, [30, 10], hessians) == pytest.approx(1.0 * 2 * 0.5 / 3)


def test_step_sizes_by_hand() -> None:
    # ρ/(T²σ) = 43/(10⁶·2e-5) = 2.15; three equal owners have n_i/n = 1/3 and N = 3.
    np.testing.assert_allclose(star.step_sizes(43, 1000, 1e-5, [3000] * 3), [2.15] * 3)
    np.testing.assert_allclose(star.step_sizes(8, 2, 1.0, [30, 10]), [1.5, 0.5])
    with pytest.raises(ValueError, match="must be positive"):
        star.step_sizes(1, 10, 0.0, [1, 2])


@given(
    h=st.floats(0.01, 3),
    horizon=st.integers(1, 10**5),
    l2=st.floats(1e-6, 10),
    records=st.lists(st.integers(1, 10**6), min_size=1, max_size=8),
    seed=st.integers(0, 2**31),
)
def test_rho_for_h_makes_the_steepest_owner_have_h(h, horizon, l2, records, seed) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(len(records), 5, 3))
    hessians = 2 * X.transpose(0, 2, 1) @ X / 5
    curvatures = references.largest_curvatures(hessians)
    np.testing.assert_allclose(curvatures, [2 * np.linalg.norm(x, 2) ** 2 / 5 for x in X])
    rho = star.rho_for_h(h, horizon, l2, records, curvatures)
    assert star.steepness(star.step_sizes(rho, horizon, l2, records), curvatures).max() == pytest.approx(h)


def test_rho_for_h_refuses_flat_losses() -> None:
    with pytest.raises(ValueError, match="largest curvature"):
        star.rho_for_h(1.0, 10, 1.0, [1, 1], [0.0, 0.0])


@pytest.mark.parametrize(("owners", "limit"), [(3, 1.3846), (5, 1.3043)])
def test_printed_form_tends_to_another_minimiser(owners: int, limit: float) -> None:
    # ℓ = (θ − 3)², l2 = 1.
    assert references.quadratic_limit(1.0, [[1.0]], [3.0], owners, "printed")[0] == pytest.approx(
        limit, abs=5e-5
    )
    assert references.quadratic_limit(1.0, [[1.0]], [3.0], owners, "corrected")[0] == pytest.approx(1.5)


@pytest.mark.parametrize("form", ["printed", "corrected"])
def test_limits_are_where_the_plain_algorithm_goes(form: star.Form) -> None:
    # Every owner has the same loss (θ − 3)²; plain loop of F Algorithm 1 with step .002 and N = 5.
    owners, step, l2, theta_max = 5, 0.002, 1.0, 10.0
    sigma = 2 * l2
    weight = {"printed": (owners - 1) / owners, "corrected": 0.5}[form]
    rng = np.random.default_rng(5)
    learner, models, tail = 0.0, [0.0] * owners, []
    for k, i in enumerate(rng.integers(owners, size=40_000)):
        mid = (learner + models[i]) / 2
        answer = 2 * (mid - 3)
        models[i] = mid - owners * step * (sigma * mid / (2 * owners) + answer / owners)
        learner = mid - weight * step * sigma * mid
        models[i] = min(max(models[i], -theta_max), theta_max)
        if k >= 20_000:
            tail.append(learner)
    expected = references.quadratic_limit(l2, [[1.0]], [3.0], owners, form)[0]
    # Owners' identical losses leave no noise; what remains is a bias of the order of the step.
    assert np.mean(tail) == pytest.approx(expected, abs=0.01)
