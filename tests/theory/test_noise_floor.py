"""Noise floors against a plain Monte Carlo of F Algorithm 1 and against Kronecker products."""

import numpy as np
import pytest
import theory_references as references
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import few

from p2psim.theory import noise_floor as floors
from p2psim.theory import star

pytestmark = pytest.mark.blas


def plain_star(X, y, scales, rho, horizon, l2, steps, replicas, seed):
    """F Algorithm 1, corrected form, squared loss, Θ = R^p, one row a replica: θ_L over the last steps.

    Written from the paper, for owners with records X[i], y[i]; selection is uniform.
    """
    rng = np.random.default_rng(seed)
    owners, p = len(X), X[0].shape[1]
    n = sum(map(len, y))
    sigma = 2 * l2
    alpha = rho / (horizon**2 * sigma)
    learner = np.zeros((replicas, p))
    models = np.zeros((replicas, owners, p))
    gram = np.array([2 * x.T @ x / len(x) for x in X])
    moment = np.array([2 * x.T @ t / len(x) for x, t in zip(X, y, strict=True)])
    share = np.array([len(t) / n for t in y])
    rows = np.arange(replicas)
    kept = []
    for k in range(steps):
        i = rng.integers(owners, size=replicas)
        mid = (learner + models[rows, i]) / 2
        noise = rng.laplace(size=(replicas, p)) * scales[i, None]
        answer = np.einsum("rab,rb->ra", gram[i], mid) - moment[i] + noise
        models[rows, i] = mid - owners * alpha * (sigma * mid / (2 * owners) + share[i, None] * answer)
        learner = mid - 0.5 * alpha * sigma * mid
        if k >= steps - 10:
            kept.append(learner.copy())
    return np.array(kept)


def excess(kept, X, y, l2):
    """Mean of f(θ_L) − f* over replicas and kept steps, and its standard error over replicas."""
    A = np.concatenate(X)
    b = np.concatenate(y)
    H = 2 * A.T @ A / len(A) + 2 * l2 * np.eye(A.shape[1])
    best = np.linalg.solve(H, 2 * A.T @ b / len(A))
    d = kept - best
    each = 0.5 * np.einsum("kra,ab,krb->kr", d, H, d).mean(axis=0)
    return each.mean(), each.std(ddof=1) / len(each) ** 0.5


@pytest.mark.parametrize(
    ("owners", "p", "h", "whitened"),
    few([(3, 1, 0.3, True), (1, 1, 1.0, True), (3, 2, 1.0, False), (3, 2, 1.0, True), (8, 2, 0.6, False)], 2),
)
def test_exact_floor_is_that_of_the_algorithm(owners, p, h, whitened) -> None:
    rng = np.random.default_rng(11)
    x = rng.normal(size=(40, p)) @ (np.eye(p) if p == 1 else np.array([[1.0, 0.4], [0.0, 0.5]]))
    if whitened:
        x = x @ np.linalg.inv(np.linalg.cholesky(x.T @ x / len(x))).T
    t = x @ np.arange(1.0, p + 1) + 0.1 * rng.normal(size=40)
    X, y = [x] * owners, [t] * owners
    l2, horizon, epsilon = 1e-5, 1000, 300.0
    eigenvalues = np.linalg.eigvalsh(2 * x.T @ x / len(x))
    rho = star.rho_for_h(h, horizon, l2, [40] * owners, [eigenvalues[-1]] * owners)
    step = star.step_sizes(rho, horizon, l2, [40] * owners)[0]
    scales = floors.horizon_scales(1.0, horizon, [40] * owners, epsilon)
    kept = plain_star(X, y, scales, rho, horizon, l2, int(25 * (owners + 1) / (step * eigenvalues[0])) + 50,
                      12_000, seed=3)  # fmt: skip
    measured, error = excess(kept, X, y, l2)
    assert error < 0.02 * measured
    assert floors.noise_floor(eigenvalues, step, scales[0], owners) == pytest.approx(measured, rel=0.05)
    # The second implementation in the package agrees, and can count the regulariser exactly.
    exact = floors.noise_floor_unequal(
        [eigenvalues] * owners, [step] * owners, scales, [40] * owners, l2,
        learner_decay=rho / (2 * horizon**2), owner_decay=rho / (2 * horizon**2),
    )  # fmt: skip
    assert exact == pytest.approx(measured, rel=0.05)


def test_floor_of_unequal_owners_is_that_of_the_algorithm() -> None:
    # All owners fit the same line exactly, so that only noise keeps θ_L from θ*; n_i, ε_i and scales differ.
    rng = np.random.default_rng(2)
    sizes, epsilon = [20, 60, 40], np.array([500.0, 100.0, 1000.0])
    X = [rng.normal(size=(m, 1)) * width for m, width in zip(sizes, (1.0, 0.7, 1.5), strict=True)]
    y = [2.0 * x[:, 0] for x in X]
    l2, horizon = 1e-6, 1000
    eigenvalues = np.array([[2 * np.mean(x**2)] for x in X])
    rho = star.rho_for_h(0.8, horizon, l2, sizes, eigenvalues[:, 0])
    steps = star.step_sizes(rho, horizon, l2, sizes)
    scales = floors.horizon_scales(1.0, horizon, sizes, epsilon)
    kept = plain_star(X, y, scales, rho, horizon, l2, 400, 20_000, seed=4)
    measured, error = excess(kept, X, y, l2)
    assert error < 0.02 * measured
    assert floors.noise_floor_unequal(eigenvalues, steps, scales, sizes, l2) == pytest.approx(
        measured, rel=0.05
    )


def by_kronecker(h, variance, gamma, learner_decay, owner_decay):
    """Stationary covariance of (x, y_1..y_N) from the whole second-moment operator."""
    owners = len(h)
    size = owners + 1
    operator, noise = np.zeros((size**2, size**2)), np.zeros((size, size))
    for i in range(owners):
        A = np.eye(size)
        A[0] = A[i + 1] = 0
        A[0, [0, i + 1]] = (1 - learner_decay) / 2
        A[i + 1, [0, i + 1]] = (1 - owner_decay - h[i]) / 2
        operator += gamma[i] * np.kron(A, A)
        noise[i + 1, i + 1] = gamma[i] * variance[i]
    solved = np.linalg.solve(np.eye(size**2) - operator, noise.ravel()).reshape(size, size)
    return solved, float(np.abs(np.linalg.eigvals(operator)).max())


@settings(max_examples=60, deadline=None)
@given(owners=st.integers(1, 5), seed=st.integers(0, 2**31), top=st.floats(0.1, 6))
def test_stationary_moments_solve_the_whole_operator(owners: int, seed: int, top: float) -> None:
    rng = np.random.default_rng(seed)
    h, variance = rng.uniform(0.02, top, owners), rng.uniform(0.1, 2, owners)
    gamma = rng.dirichlet(np.full(owners, 5.0))
    decays = rng.uniform(0, 0.05, 2)
    whole, spectral = by_kronecker(h, variance, gamma, *decays)
    found = floors.stationary_moments(h, variance, gamma, *decays)
    if spectral < 1 - 1e-6:
        np.testing.assert_allclose(found.learner[0], whole[0, 0], rtol=1e-8)
        np.testing.assert_allclose(found.owners[0], np.diag(whole)[1:], rtol=1e-8)
        np.testing.assert_allclose(found.cross[0], whole[0, 1:], rtol=1e-6, atol=1e-8 * whole.max())
    elif spectral > 1 + 1e-6:
        assert np.isinf(found.learner[0])


@given(owners=st.integers(1, 40), fraction=st.floats(0.01, 0.99), scale=st.floats(0.01, 10))
def test_the_two_floors_agree_for_equal_owners(owners: int, fraction: float, scale: float) -> None:
    lam = np.array([0.3, 1.0]) * fraction * star.stability_threshold(owners)
    closed = floors.noise_floor(lam, 1.0, scale, owners)
    solved = floors.noise_floor_unequal([lam] * owners, [1.0] * owners, [scale] * owners, [9] * owners)
    assert solved == pytest.approx(closed, rel=1e-6)


def test_floor_is_infinite_from_the_threshold_on() -> None:
    threshold = star.stability_threshold(3)
    assert np.isfinite(floors.noise_floor([threshold * 0.999], 1.0, 1.0, 3))
    assert floors.noise_floor([threshold * 1.001, 0.1], 1.0, 1.0, 3) == np.inf
    assert floors.noise_floor_unequal([[threshold * 1.001]] * 3, [1.0] * 3, [1.0] * 3, [5] * 3) == np.inf


def test_small_step_forms() -> None:
    # theory.md: at N = 86 and h = 1 the small-step form is 58 times too low.
    ratio = floors.noise_floor([1.0], 1.0, 1.0, 86) / references.noise_floor_small_step(1, 1.0, 1.0, 86)
    assert ratio == pytest.approx(58, abs=0.5)
    # Within 25 % at h(N − 1) = .25, and exact as h vanishes.
    for owners in (2, 10, 86):
        lam = np.array([0.25 / (owners - 1)])
        small = references.noise_floor_small_step(1, 1.0, 1.0, owners)
        assert 0.75 < small / floors.noise_floor(lam, 1.0, 1.0, owners) < 1.25
        assert floors.noise_floor(lam * 1e-6, 1.0, 1.0, owners) == pytest.approx(small, rel=1e-5)


def test_measured_floor_of_the_data_notes() -> None:
    # N = 3, p = 10, Ξ = 8, n_i = 250,000, T = 1000, ε = 10, lr/f(θ*) = 250: ψ predicted .0128.
    scale = floors.horizon_scales(8.0, 1000, [250_000], 10.0)[0]
    assert references.noise_floor_small_step(10, 250.0, scale, 3) == pytest.approx(0.0128, abs=5e-5)


def test_unequal_small_step_form() -> None:
    records, epsilon = np.array([100, 300, 50]), np.array([1.0, 2.0, 0.5])
    rho, l2, p = 1e-6, 0.5, 2
    small = references.noise_floor_small_step_unequal(p, rho, l2, records, 1.5, epsilon)
    # 2·2·3·ρ·2.25/(4·1·450²)·(1 + 1/4 + 4)
    assert small == pytest.approx(2 * 2 * 3 * rho * 2.25 / (4 * 450**2) * 5.25)
    # It is the limit of the exact floor and does not depend on T. (Equal curvatures.)
    for horizon in (10, 100):
        exact = floors.noise_floor_unequal(
            np.ones((3, p)),
            star.step_sizes(rho, horizon, l2, records),
            floors.horizon_scales(1.5, horizon, records, epsilon),
            records,
        )
        assert exact == pytest.approx(small, rel=1e-3)
    equal = references.noise_floor_small_step_unequal(p, rho, l2, [100] * 3, 1.5, 2.0)
    step = star.step_sizes(rho, 10, l2, [100] * 3)[0]
    scale = floors.horizon_scales(1.5, 10, [100] * 3, 2.0)[0]
    assert equal == pytest.approx(references.noise_floor_small_step(p, step, scale, 3))


def test_box_filling() -> None:
    # One eigenvalue: floor = ½·λ·spread².
    spread = references.learner_spread([0.5, 2.0], 0.4, 1.3, 3)
    floor = floors.noise_floor([0.5, 2.0], 0.4, 1.3, 3)
    assert 0.5 * (0.5 * spread[0] ** 2 + 2.0 * spread[1] ** 2) == pytest.approx(floor)
    turn = np.array([[1.0, -1.0], [1.0, 1.0]]) / 2**0.5
    assert floors.box_filling([3.0, 4.0], 10.0) == pytest.approx(0.4)
    assert floors.box_filling([3.0, 4.0], 10.0, turn) == pytest.approx((12.5**0.5) / 10)
    assert floors.box_filling([0.0, np.inf], 10.0, turn) == np.inf
    np.testing.assert_array_equal(references.learner_spread([1.0, 0.0], 1.0, 0.0, 3), [0, 0])
    assert np.isinf(references.learner_spread([1.0, 0.0], 1.0, 1.0, 3)[1])
    uniform = np.random.default_rng(0).uniform(-1, 1, 200_000)
    assert uniform.std() == pytest.approx(floors.FILLS, rel=0.01)


def test_box_filling_tells_the_budgets_of_three_banks_apart() -> None:
    # data.md: ρ = 43, h = .03, θ_max = 3, C = 1, n_i = 3,000: ψ is 20.5 and 16.8 at ε = .1 and 1 (saturated),
    # 1.30 at ε = 10 and .014 at 100.
    step = star.step_sizes(43, 1000, 1e-5, [3000] * 3)[0]
    lam = np.full(10, 0.03 / step)
    filling = {
        eps: floors.box_filling(
            references.learner_spread(lam, step, floors.horizon_scales(1.0, 1000, [3000], eps)[0], 3), 3.0
        )
        for eps in (0.1, 1.0, 10.0, 100.0)
    }
    assert filling[0.1] > filling[1.0] > floors.FILLS
    assert filling[100.0] < filling[10.0] < 0.2


def test_infinite_budget_has_no_noise() -> None:
    np.testing.assert_array_equal(floors.horizon_scales(1.0, 10, [5, 5], [np.inf, 1.0]), [0.0, 4.0])
    assert floors.noise_floor([1.0], 1.0, 0.0, 3) == 0


def test_reweighting_multiplies_the_noise_of_small_steps():
    """F, Remark 4: the second moment of a commit's noise becomes Σ v_i/(N²γ_i).

    As the step vanishes the floor is proportional to it: θ_L + Σθ_i moves by noise and drift alone, and r_i = 1/(Nγ_i)
    leaves the drift as it is. 11.835 times for γ = (.8, .19, .01), from pencil and paper.
    """
    gamma, h = np.array([0.8, 0.19, 0.01]), 1e-7
    equal = floors.noise_floor_unequal(np.ones((3, 1)), [h] * 3, [1.0] * 3, [10] * 3)
    assert equal == pytest.approx(references.noise_floor_small_step(1, h, 1.0, 3), rel=1e-4)
    reweighted = floors.noise_floor_unequal(
        np.ones((3, 1)), [h] * 3, [1.0] * 3, [10] * 3, wake_shares=gamma, reweights=1 / (3 * gamma)
    )
    assert reweighted / equal == pytest.approx((1 / 0.8 + 1 / 0.19 + 1 / 0.01) / 9, rel=1e-4)
