"""W Theorem 3: bounds of averaged projected subgradient steps against runs, and where the printed one is broken."""

import numpy as np
import pytest
import theory_references as references
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.theory.bounds import shape, synchronous

FORMS = ["printed", "corrected"]


def runs(gradient, theta_max, p, c1, T, average, deviation, replicas, random):
    """θ̄[T] of replicas of W Algorithm 2, from zero; noise is Laplace, of this deviation a coordinate."""
    e = 1 / np.sqrt(T)
    theta = mean = np.zeros((replicas, p))
    for k in range(1, T):
        noisy = gradient(theta) + random.laplace(scale=deviation / np.sqrt(2), size=theta.shape)
        new = np.clip(theta - c1 / np.sqrt(k) * noisy, -theta_max, theta_max)
        if average == "printed":
            mean = ((k - 1) * mean + (e + 1) * theta) / (e + k)
        else:
            mean = (k * mean + (e + 1) * new) / (k + 1 + e)
        theta = new
    return mean


@settings(max_examples=60, deadline=None)
@given(
    p=st.integers(1, 5),
    T=st.integers(2, 80),
    owners=st.integers(1, 10),
    scale=st.floats(0.01, 30),
    theta_max=st.floats(0.1, 3),
    average=st.sampled_from(FORMS),
    loss=st.sampled_from(["hinge", "absolute", "quadratic"]),
    seed=st.integers(0, 10**6),
)
def test_corrected_bound_holds(p, T, owners, scale, theta_max, average, loss, seed):
    """Convex losses with kinks and without. The mean of 200 runs is allowed five standard errors."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(20, p))
    y = np.where(random.random(20) < 0.5, 1.0, -1.0)

    def fitness(theta):
        at = theta @ X.T
        values = {"hinge": np.maximum(0, 1 - at * y), "absolute": np.abs(at - y), "quadratic": (at - y) ** 2}
        return values[loss].mean(axis=-1)

    def gradient(theta):
        at = theta @ X.T
        slope = {"hinge": -y * (at * y < 1), "absolute": np.sign(at - y), "quadratic": 2 * (at - y)}[loss]
        return slope @ X / 20

    reach = np.abs(X).sum(axis=1) * theta_max
    steep = {"hinge": 1.0, "absolute": 1.0, "quadratic": 2 * (reach + 1)}[loss]
    G = np.sqrt((((steep * np.ones(20))[:, None] * X) ** 2).sum(axis=1)).mean()
    epsilon = random.uniform(0.5, 5, owners)
    v = shape.noise_moment(1.0, T, 100, epsilon, p)
    D = shape.box_diameter(theta_max, p)
    c1 = scale * synchronous.best_c1(D, G, v, T, average)
    found = fitness(runs(gradient, theta_max, p, c1, T, average, np.sqrt(v / p), 200, random))
    # Any model of the box is at or above f*, so the least of these is a fair stand-in for f*, from above.
    best = np.clip(random.normal(size=(4000, p)) * theta_max, -theta_max, theta_max)
    least = min(fitness(best).min(), found.min())
    bound = synchronous.averaging_bound(D, G, v, c1, T, average)
    assert found.mean() - least <= bound + 5 * found.std() / np.sqrt(200)


@settings(max_examples=60, deadline=None)
@given(
    p=st.integers(1, 6),
    l2=st.floats(0, 3),
    theta_max=st.floats(0.1, 3),
    corner=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_gradients_in_the_box_stay_below_their_bound(p, l2, theta_max, corner, seed):
    """Squared loss; Ξ is the largest L1 norm that a record's gradient has anywhere in the box."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(8, p)), random.normal(size=8)
    reach = np.abs(X).sum(axis=1)
    sensitivity = float((2 * (theta_max * reach + np.abs(y)) * reach).max())
    theta = random.uniform(-theta_max, theta_max, (200, p))
    theta = theta_max * np.sign(theta) if corner else theta
    gradients = 2 * l2 * theta + 2 * (theta @ X.T - y) @ X / 8
    bound = references.box_gradient(sensitivity, l2, theta_max, p)
    assert np.linalg.norm(gradients, axis=1).max() <= bound
    # Without records' gradients a corner has the whole of it.
    at_corner = np.linalg.norm(2 * l2 * np.full(p, theta_max))
    assert references.box_gradient(0.0, l2, theta_max, p) == pytest.approx(at_corner)


@pytest.mark.parametrize("average", FORMS)
@pytest.mark.parametrize("T", [2, 3, 10, 400])
def test_weights_are_those_of_the_running_average(average, T):
    """The coefficients of models in θ̄[T], by running the rule on a stand-in for each model."""
    e = 1 / np.sqrt(T)
    K = T if average == "corrected" else T - 1
    mean = np.eye(T)[0] if average == "corrected" else np.zeros(T)
    for k in range(1, T):
        if average == "printed":
            mean = ((k - 1) * mean + (e + 1) * np.eye(T)[k - 1]) / (e + k)
        else:
            mean = (k * mean + (e + 1) * np.eye(T)[k]) / (k + 1 + e)
    weights = mean[:K]
    assert weights.sum() == pytest.approx(1)
    assert (np.diff(weights) >= -1e-15).all()
    s = 1 / np.sqrt(np.arange(1, K + 1))
    expected = 3.0**2 * weights[-1] / (2 * 0.7 * s[-1]) + (4.0 + 5.0) / 2 * 0.7 * (weights @ s)
    assert synchronous.averaging_bound(3.0, 2.0, 5.0, 0.7, T, average) == pytest.approx(expected, rel=1e-12)


@given(D=st.floats(0.1, 10), G=st.floats(0.1, 10), v=st.floats(0, 100), T=st.integers(2, 1000))
def test_best_c1_is_best(D, G, v, T):
    c1 = synchronous.best_c1(D, G, v, T)
    best = synchronous.averaging_bound(D, G, v, c1, T)
    assert best == pytest.approx(synchronous.best_averaging_bound(D, G, v, T), rel=1e-12)
    for factor in (0.9, 1.1):
        assert synchronous.averaging_bound(D, G, v, factor * c1, T) > best


def test_bound_tends_to_its_large_horizon_form():
    D, G, v, c1, T = 2.0, 3.0, 4.0, 0.3, 10**6
    limit = (D**2 / (2 * c1) + c1 * (G**2 + v)) / np.sqrt(T)
    assert synchronous.averaging_bound(D, G, v, c1, T) == pytest.approx(limit, rel=5e-3)


@pytest.mark.parametrize("average", FORMS)
def test_printed_bound_is_broken_without_noise_or_with_little(average):
    """|θ − 1/3| in [−1, 1]: the rounds made are too few, and (11) promises 0, whatever its constant, as ε grows."""
    T, D, G = 20, shape.box_diameter(1.0, 1), 1.0

    def gap(epsilon):
        v = shape.noise_moment(1.0, T, 1000, [epsilon], 1)
        c1 = synchronous.best_c1(D, G, v, T, average)
        found = runs(
            lambda theta: np.sign(theta - 1 / 3),
            1.0,
            1,
            c1,
            T,
            average,
            np.sqrt(v),
            500,
            np.random.default_rng(0),
        )
        held = synchronous.best_averaging_bound(D, G, v, T, average)
        printed = synchronous.best_averaging_bound(
            D, G, shape.noise_moment(1.0, T, 1000, [epsilon], 1, "printed"), T, average, "printed"
        )
        return np.abs(found - 1 / 3).mean(), held, printed

    for epsilon in (1e3, 1e6, np.inf):
        measured, held, printed = gap(epsilon)
        assert printed < measured < held
    measured, _, printed = gap(np.inf)
    assert printed == 0
    assert measured > 0.01


def test_printed_shape_is_one_over_n_times_the_root_of_the_sum():
    def printed(n, epsilon):
        moment = shape.noise_moment(2.0, 50, n, epsilon, 7, "printed")
        return synchronous.best_averaging_bound(3.0, 1.0, moment, 50, form="printed")

    assert printed(1000, [1.0, 2.0]) / printed(4000, [1.0, 2.0]) == pytest.approx(4)
    assert printed(1000, [1.0]) / printed(1000, [10.0]) == pytest.approx(10)


def test_what_cannot_be():
    with pytest.raises(ValueError, match="c1 must be positive"):
        synchronous.averaging_bound(1.0, 1.0, 1.0, 0.0, 10)
    with pytest.raises(ValueError, match="a model to average"):
        synchronous.averaging_bound(1.0, 1.0, 1.0, 1.0, 1, "printed")
    with pytest.raises(ValueError, match="every c1"):
        synchronous.best_c1(1.0, 0.0, 0.0, 10)


@pytest.mark.parametrize(
    ("T", "times"),
    [(3, 1.30), (5, 1.76), (10, 3.07), (100, 33.3), (1000, 408)],
    ids=lambda value: f"{value:g}",
)
def test_weights_of_the_printed_average_differ_by_more_than_appendix_c_claims(T, times):
    """W: ζ_k − ζ_{k−1} ≤ 2/(√T·T(T + 1)), ζ_k the weight of θ[k]: the largest difference exceeds it this many times."""
    e, k = 1 / np.sqrt(T), np.arange(1, T + 1)
    zeta = [(e + 1) / (e + j) * np.prod((k[j:] - 1) / (e + k[j:])) for j in k]
    assert sum(zeta) == pytest.approx(1)
    assert np.diff(zeta).max() / (2 * e / (T * (T + 1))) == pytest.approx(times, rel=5e-3)
