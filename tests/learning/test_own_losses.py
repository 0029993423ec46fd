"""A loss of one's own: its minimiser is checked, its kernels are compiled once, and no model beats the optimum."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import graph_cases
import numpy as np
import pytest
import star_cases
from hypothesis import example, given, settings
from hypothesis import strategies as st
from own_losses import Huber
from scipy.optimize import minimize

from p2psim.core.errors import SimulationError
from p2psim.learning.graph.metrics import GRAPH_METRICS, Snapshot
from p2psim.learning.graph.optimum import minimise_alone, minimise_together
from p2psim.learning.losses import Hinge, Logistic, Loss, Squared
from p2psim.learning.optimum import minimise
from p2psim.learning.star.algorithms import StarMethod
from p2psim.learning.star.problem import LOWEST, StarProblem, star_problem

deltas = st.floats(0.01, 30.0)
smooth = st.one_of(st.just(Squared()), st.just(Logistic()), deltas.map(lambda delta: Huber(delta=delta)))
losses = st.one_of(smooth, st.just(Hinge()))


def star_of(loss: Loss, seed: int, l2: float, theta_max: float, scale: float) -> StarProblem:
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 12, random.integers(1, 5))
    X = scale * random.standard_normal((sizes.sum(), random.integers(1, 5)))
    y = X @ random.standard_normal(X.shape[1]) / scale + random.standard_cauchy(len(X))
    y = np.where(y >= 0, 1.0, -1.0) if loss.needs_classes else y
    return star_problem(X, y, np.concatenate([[0], np.cumsum(sizes)]), loss, l2, theta_max)


STARS = {
    "loss": losses,
    "seed": st.integers(0, 10_000),
    "l2": st.sampled_from([1e-6, 1e-3, 0.3]),
    "theta_max": st.sampled_from([0.1, 1.0, 50.0]),
    "scale": st.sampled_from([0.01, 1.0, 30.0]),
}


@settings(max_examples=150)
@given(**STARS)
@example(loss=Hinge(), seed=866, l2=1e-6, theta_max=1.0, scale=1.0)
@example(loss=Hinge(), seed=20, l2=1e-6, theta_max=1.0, scale=1.0)
@example(loss=Hinge(), seed=22, l2=1e-6, theta_max=0.1, scale=30.0)
def test_no_model_of_a_star_beats_the_optimum(
    loss: Loss, seed: int, l2: float, theta_max: float, scale: float
) -> None:
    """Models everywhere in Θ, near θ*, and on a grid of every axis through it; and the optima of owners alone."""
    problem = star_of(loss, seed, l2, theta_max, scale)
    random, p = np.random.default_rng(seed), problem.dimension
    near = 10 ** random.uniform(-9, 0, (40, 1)) * random.standard_normal((40, p))
    axes = np.concatenate([np.outer(np.linspace(-1, 1, 21), axis) for axis in np.eye(p)])
    models = np.concatenate(
        [random.uniform(-theta_max, theta_max, (40, p)), problem.optimum + near, problem.optimum + axes]
    )
    models = np.clip(models, -theta_max, theta_max)
    plain = problem.fitness(models) / problem.minimum - 1
    assert (plain >= -LOWEST).all()
    assert (problem.relative_fitness(models) >= -LOWEST).all()
    assert (problem.relative_fitness(problem.isolated_optima) >= -LOWEST).all()
    problem.check()


@settings(max_examples=60)
@given(
    loss=smooth, seed=st.integers(0, 10_000), mu=st.sampled_from([0.01, 1.0, 100.0]),
    sizes=st.lists(st.integers(1, 20), min_size=2, max_size=6),
)  # fmt: skip
def test_no_models_on_a_graph_beat_the_optimum(loss: Loss, seed: int, mu: float, sizes: list[int]) -> None:
    problem = graph_cases.problem_of(loss, graph_cases.random_links(len(sizes), seed, 3), sizes, 3, mu, seed)
    best, random = minimise_together(problem), np.random.default_rng(seed)
    gap = GRAPH_METRICS["objective_gap"].measure
    for size in 10 ** random.uniform(-9, 1, 30):
        theta = best + size * random.standard_normal(best.shape)
        seen = Snapshot(
            problem, theta, lambda t=theta: problem.objective(t), lambda: problem.objective(best), 0
        )
        assert gap(seen) >= -LOWEST * problem.objective(best)
    assert np.isfinite(minimise_alone(problem)).all()


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), delta=deltas, theta_max=st.sampled_from([0.2, 50.0]))
def test_the_general_minimiser_is_a_general_solvers(seed: int, delta: float, theta_max: float) -> None:
    """L-BFGS-B stops at a gradient of 1e-10 or so; with l2 = 0.1 it is within 1e-8 of the minimiser."""
    random, loss = np.random.default_rng(seed), Huber(delta=delta)
    X, y = random.standard_normal((20, 3)), random.standard_cauchy(20)
    found = minimize(
        lambda t: loss.values(X @ t, y).mean() + 0.1 * t @ t,
        np.zeros(3),
        jac=lambda t: X.T @ loss.slopes(X @ t, y) / 20 + 0.2 * t,
        method="L-BFGS-B",
        bounds=[(-theta_max, theta_max)] * 3,
        options={"ftol": 0.0, "gtol": 1e-10, "maxiter": 1000},
    )
    np.testing.assert_allclose(minimise(loss, X, y, 0.1, theta_max), found.x, atol=1e-6)


def test_huber_loss_with_a_large_delta_is_squared_loss() -> None:
    """The same optimum, and the same path of the star's kernel, by another way through it."""
    events = star_cases.star_events(3, 80, seed=2)
    noise = np.random.default_rng(0).laplace(size=(80, 3))
    made = []
    for loss in (Squared(), Huber(delta=1e9)):
        problem = star_cases.random_problem(loss, [5, 9, 20], 3, seed=1)
        method = StarMethod(0.05, 0.5, False)
        recorded = star_cases.replay_compiled(problem, method, events, noise, every=1).recorded
        made.append((problem.optimum, problem.relative_fitness(recorded.theta), recorded.theta))
    for one, other in zip(*made, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


class Lazy(Huber):
    """Its minimiser gives up at once."""

    def minimise(self, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
        return np.zeros(X.shape[1])


class Misled(Huber):
    """Its minimiser is that of another loss, as where a ladder of ifs falls through."""

    def minimise(self, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
        return minimise(Logistic(), X, np.sign(y), l2, theta_max)


class Outside(Huber):
    """Its minimiser does not know the box."""

    def minimise(self, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
        return super().minimise(X, y, l2, np.inf)


class Undefined(Huber):
    """Its minimiser gives numbers that are none."""

    def minimise(self, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
        return np.full(X.shape[1], np.nan)


class LazyHinge(Hinge):
    """A kink, and a minimiser that gives up at once."""

    def minimise(self, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
        return np.zeros(X.shape[1])


class Kinked(Huber):
    """A kink, and no minimiser of its own."""

    curvature: ClassVar[float] = np.inf


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (Lazy(), "is not optimal: its KKT residual is"),
        (Misled(), "is not optimal: its KKT residual is"),
        (Outside(), "gives no model in Θ"),
        (Undefined(), "gives no model in Θ"),
        (LazyHinge(), "is not optimal"),
        (Kinked(), "must define its own method minimise"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_wrong_minimiser_is_an_error_wherever_it_is_used(loss: Loss, said: str) -> None:
    with pytest.raises(SimulationError, match=said):
        star_cases.random_problem(loss, [20, 30], 3, seed=0, theta_max=0.1)


@pytest.mark.parametrize("loss", [Lazy(), Misled(), Undefined()], ids=lambda loss: type(loss).__name__)
def test_a_wrong_minimiser_is_an_error_on_graphs(loss: Loss) -> None:
    problem = graph_cases.problem_of(loss, graph_cases.random_links(3, 0), [5, 9, 3], 3, 1.0)
    with pytest.raises(SimulationError, match="the minimiser of the huber loss"):
        minimise_alone(problem)


@settings(max_examples=60)
@given(**STARS)
def test_a_better_model_than_the_optimum_is_an_error(
    loss: Loss, seed: int, l2: float, theta_max: float, scale: float
) -> None:
    """An optimum that is none: of zero, where that is not it; said when ψ is asked for, and by the check of a run."""
    problem = star_of(loss, seed, l2, theta_max, scale)
    zero = np.zeros(problem.dimension)
    at_zero = float(problem.fitness(zero)[0])
    if at_zero <= problem.minimum * (1 + 1e-6):
        return
    wrong = replace(problem, optimum=zero, minimum=at_zero)
    with pytest.raises(SimulationError, match="not optimal"):
        wrong.check()
    if not loss.is_squared_error:
        with pytest.raises(SimulationError, match="a model is better than θ"):
            wrong.relative_fitness(problem.optimum)
    with pytest.raises(SimulationError, match="a model is better than θ"):
        wrong.checked(problem.fitness(problem.optimum) / at_zero - 1, problem.optimum[None])


def test_rounding_below_zero_stays_and_models_outside_may_be_better() -> None:
    problem = star_cases.random_problem(Logistic(), [20, 30], 3, seed=0, theta_max=0.1)
    at = problem.optimum[None]
    assert problem.box_is_active
    assert problem.checked(np.array([-1e-12]), at)[0] == -1e-12
    assert problem.relative_fitness(2 * problem.optimum)[0] < -0.01
    with pytest.raises(SimulationError, match=r"ψ is -1e-08"):
        problem.checked(np.array([-1e-8]), at)


def test_gaps_below_zero_are_an_error_on_graphs() -> None:
    """What was tracked by differences is summed afresh before it is called wrong."""
    problem = graph_cases.problem_of(Squared(), graph_cases.random_links(3, 0), [5, 9, 3], 3, 1.0)
    best = minimise_together(problem)
    low = problem.objective(best)
    gap: Callable[[Snapshot], object] = GRAPH_METRICS["objective_gap"].measure
    assert gap(Snapshot(problem, best, lambda: low * (1 - 1e-6), lambda: low, 0)) == 0.0
    with pytest.raises(SimulationError, match="models are better"):
        gap(Snapshot(problem, best, lambda: low, lambda: low * (1 + 1e-6), 0))


_PROCESS = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np
import star_cases
from own_losses import Huber, _slope, _value
from p2psim.core.compiled import first_class
from p2psim.learning.star.algorithms import StarMethod
from p2psim.learning.star.replay import replay
for delta in (0.3, 2.0):
    problem = star_cases.random_problem(Huber(delta=delta), [5, 9], 3, seed=1)
    events = star_cases.star_events(2, 20)
    made = star_cases.replay_compiled(problem, StarMethod(0.05, 0.5, False), events, np.zeros((20, 3)), every=1)
    print(made.recorded.theta.tobytes().hex())
misses = sum(replay.of_python.stats.cache_misses.values()), sum(replay.of_python.stats.cache_hits.values())
print(*misses, first_class(_slope).cache_hits, first_class(_value).cache_hits)
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    """One signature for all δ; the kernel, and the functions that it calls, are kept."""
    script = tmp_path / "script.py"
    script.write_text(_PROCESS.format(tests=str(Path(__file__).parents[1])))
    said = [
        subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    *first, _ = said[0].split("\n")[:-1]
    *second, counts = said[1].split("\n")[:-1]
    assert first == second
    assert first[0] != first[1]
    assert counts == "0 1 1 1"
