"""W Theorem 2: bounds of synchronous descent against its exact moments, and where the printed ones are broken."""

import numpy as np
import pytest
import theory_references as references
from forecast_cases import some_statistics
from hypothesis import given
from hypothesis import strategies as st

from p2psim.theory.bounds import shape, synchronous
from p2psim.theory.forecasts.synchronous import descent_steps, synchronous_forecast


def exact_gaps(hessian, start, steps, moment):
    """E (θ − θ*)ᵀH(θ − θ*) before and after each step, along eigenvectors: noise is the same in all directions."""
    values, basis = np.linalg.eigh(hessian)
    square = (basis.T @ start) ** 2
    gaps = [values @ square]
    for step in steps:
        square = (1 - 2 * step * values) ** 2 * square + step**2 * moment / len(values)
        gaps.append(values @ square)
    return np.array(gaps)


@st.composite
def problems(draw):
    """H, a start, steps up to 1/λ, and v."""
    p = draw(st.integers(1, 8))
    random = np.random.default_rng(draw(st.integers(0, 10**6)))
    A = random.normal(size=(p, p))
    H = A @ A.T / p + draw(st.floats(1e-4, 2)) * np.eye(p)
    _, lipschitz = synchronous.curvature_range(H)
    T = draw(st.integers(2, 200))
    kind = draw(st.sampled_from(["descent", "constant", "random", "decreasing"]))
    k = np.arange(1, T)
    steps = {
        "descent": 1 / (lipschitz * k),
        "constant": np.full(T - 1, draw(st.floats(0.01, 1)) / lipschitz),
        "random": random.uniform(0.01, 1, T - 1) / lipschitz,
        "decreasing": references.decreasing_steps(*synchronous.curvature_range(H), T),
    }[kind]
    epsilon = random.uniform(0.1, 10, draw(st.integers(1, 20)))
    moment = shape.noise_moment(draw(st.floats(0, 10)), T, draw(st.integers(10, 10**6)), epsilon, p)
    return H, draw(st.floats(0, 3)) * random.normal(size=p), steps, moment


@given(problems())
def test_corrected_bound_holds(problem):
    H, start, steps, moment = problem
    gaps = exact_gaps(H, start, steps, moment)
    bound = synchronous.descent_bound(gaps[0], *synchronous.curvature_range(H), steps, moment, len(H))
    assert (gaps <= bound * (1 + 1e-9)).all()


@given(problems())
def test_closed_form_holds_and_is_no_better_than_the_recursion(problem):
    H, start, _, moment = problem
    constants = synchronous.curvature_range(H)
    for T in (1, 2, 10, 100):
        steps = references.decreasing_steps(*constants, T)
        assert (steps * constants[1] <= 1 + 1e-12).all()
        gaps = exact_gaps(H, start, steps, moment)
        closed = synchronous.decreasing_descent_bound(gaps[0], *constants, T, moment)
        assert gaps[-1] <= closed * (1 + 1e-9)
        recursion = synchronous.descent_bound(gaps[0], *constants, steps, moment, len(H))[-1]
        assert recursion <= closed * (1 + 1e-9)


@given(
    owners=st.integers(1, 20),
    p=st.integers(1, 12),
    curvature=st.floats(0.05, 20),
    fraction=st.floats(0.05, 1),
    seed=st.integers(0, 10**6),
)
def test_one_round_from_the_minimiser_meets_the_corrected_bound_exactly(owners, p, curvature, fraction, seed):
    """H = (λ/2)·I: a_2 is (λ/2)·ρ²·v, which is λp/2 times what the printed inequality says."""
    random = np.random.default_rng(seed)
    H, lipschitz = curvature / 2 * np.eye(p), curvature
    moment = shape.noise_moment(1.0, 50, 1000, random.uniform(0.1, 10, owners), p)
    steps = np.array([fraction / lipschitz])
    gap = exact_gaps(H, np.zeros(p), steps, moment)[1]
    bounds = {
        form: synchronous.descent_bound(0.0, lipschitz, lipschitz, steps, moment, p, form)[1]
        for form in ("printed", "corrected")
    }
    assert bounds["corrected"] == pytest.approx(gap, rel=1e-12)
    assert bounds["printed"] * lipschitz * p / 2 == pytest.approx(gap, rel=1e-12)
    assert (gap > bounds["printed"] * (1 + 1e-9)) == (lipschitz * p > 2 * (1 + 1e-9))


def test_printed_limit_is_broken_since_the_model_freezes():
    """Exact E[ψ] of the printed steps against (9): for every constant, a large enough ε or T breaks it."""
    statistics = some_statistics(5, 3)
    strong, lipschitz = synchronous.curvature_range(statistics.hessian)
    rho, starts = 1 / lipschitz, statistics.excess(np.zeros(3))
    total = shape.inverse_square_sum(np.full(5, 1000.0))
    n = statistics.records.sum()
    promised = synchronous.printed_descent_limit(1.0, rho, strong, n, total)
    for T in (100, 1000):
        scales = 2 * 1.0 * T / (statistics.records * 1000.0)
        made = synchronous_forecast(
            "descent",
            statistics,
            statistics.minimum,
            rho,
            T,
            np.broadcast_to(2 * scales**2, (T - 1, 5)),
            "printed",
        ).model
        # (9) is of the best of all rounds.
        left = made.parts.psi.min() * statistics.minimum
        assert left > 0.99 * starts
        assert left > 1e5 * promised


def test_distances_follow_from_gaps_with_half_of_what_is_printed():
    """(10) is 4/L times (9): 32Ξ²ρ/(L²n²)·Σ1/ε². At the least curvature, 2/L is attained; elsewhere it holds."""
    statistics = some_statistics(4, 3)
    strong, _ = synchronous.curvature_range(statistics.hessian)
    values, vectors = np.linalg.eigh(statistics.hessian)
    for direction, share in ((vectors[:, 0], 1.0), (vectors[:, -1], values[0] / values[-1])):
        gap = statistics.excess(statistics.optimum + 0.3 * direction)
        assert share * synchronous.distance_bound(gap, strong) == pytest.approx(0.3**2, rel=1e-9)
    printed = synchronous.distance_bound(
        synchronous.printed_descent_limit(3.0, 0.2, 0.7, 900.0, 5.0), 0.7, "printed"
    )
    assert printed == pytest.approx(32 * 9 * 0.2 / (0.7**2 * 900**2) * 5, rel=1e-12)


def test_the_printed_limit_is_the_noise_of_the_first_printed_step_over_its_contraction():
    """8Ξ²ρ/(L·n²)·Σ1/ε² = ρ_1·v/(p·L), ρ_1 = ρ/T²."""
    T, p, n, epsilon = 37, 4, 900.0, np.array([0.5, 2.0])
    v = shape.noise_moment(3.0, T, n, epsilon, p)
    first = descent_steps(0.2, T, "printed")[0]
    expected = first * v / (p * 0.7)
    got = synchronous.printed_descent_limit(3.0, 0.2, 0.7, n, shape.inverse_square_sum(epsilon))
    assert got == pytest.approx(expected, rel=1e-12)


@given(
    owners=st.integers(1, 6),
    p=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    form=st.sampled_from(["printed", "corrected"]),
)
def test_corrected_recursion_holds_for_the_algorithm_of_either_form(owners, p, seed, form):
    """From statistics to ψ by the forecast, which knows nothing of L, λ and v."""
    random = np.random.default_rng(seed)
    statistics, T = some_statistics(owners, p, seed=seed), int(random.integers(2, 60))
    constants = synchronous.curvature_range(statistics.hessian)
    epsilon, rho = random.uniform(0.5, 50, owners), 1 / constants[1]
    scales = 2 * 1.5 * T / (statistics.records * epsilon)
    variances = np.broadcast_to(2 * scales**2, (T - 1, owners))
    made = synchronous_forecast("descent", statistics, statistics.minimum, rho, T, variances, form).model
    v = shape.noise_moment(1.5, T, statistics.records.sum(), epsilon, p)
    bound = synchronous.descent_bound(
        statistics.excess(np.zeros(p)), *constants, descent_steps(rho, T, form), v, p
    )
    assert (made.parts.psi * statistics.minimum <= bound * (1 + 1e-9)).all()


def test_second_moment_of_noise_is_that_of_draws():
    """200,000 draws: the relative standard error of a mean square is at most √5/√(200,000·p) = .29 %; 5 of them."""
    random, p = np.random.default_rng(0), 3
    records, epsilon, T, sensitivity = np.array([10.0, 30.0]), np.array([1.0, 4.0]), 5, 2.0
    scales = 2 * sensitivity * T / (records * epsilon)
    draws = random.laplace(size=(200_000, 2, p)) * scales[:, None]
    measured = (np.tensordot(records / 40, draws, (0, 1)) ** 2).sum(axis=1).mean()
    v = shape.noise_moment(sensitivity, T, 40, epsilon, p)
    assert measured == pytest.approx(v, rel=5 * 0.0029)
    assert shape.noise_moment(sensitivity, T, 40, epsilon, p, "printed") == pytest.approx(v / p)
    assert shape.noise_moment(sensitivity, T, 40, [np.inf], p) == 0


def test_best_horizon_is_where_the_closed_form_is_least():
    gap, strong, lipschitz, one = 2.0, 0.3, 4.0, 1e-6
    best = synchronous.best_horizon(gap, strong, lipschitz, one)
    T = np.arange(1, 5000)
    values = [synchronous.decreasing_descent_bound(gap, strong, lipschitz, t, one * t**2) for t in T]
    assert abs(T[np.argmin(values)] - best) <= 1
    assert synchronous.best_horizon(gap, strong, lipschitz, 0.0) == np.inf


@pytest.mark.parametrize(
    ("constants", "steps", "match"),
    [((0.0, 1.0), [0.1], "0 < L"), ((2.0, 1.0), [0.1], "0 < L"), ((1.0, 2.0), [0.6], "at most 1/λ")],
)
def test_constants_that_cannot_be(constants, steps, match):
    with pytest.raises(ValueError, match=match):
        synchronous.descent_bound(1.0, *constants, steps, 1.0, 1)


def test_curvature_range_by_hand():
    assert synchronous.curvature_range(np.diag([0.5, 3.0])) == (1.0, 6.0)
