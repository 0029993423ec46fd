"""Stability and noise floor of the star, simulated, against the exact formulas."""

import numpy as np
import pytest
from star_cases import replay_compiled, star_events

from p2psim.data.section import DataSection
from p2psim.data.sources import Arrays
from p2psim.learning.losses import Squared
from p2psim.learning.star.algorithms import StarMethod
from p2psim.learning.star.problem import star_problem
from p2psim.scenario.model import Scenario
from p2psim.simulation.simulate import simulate
from p2psim.simulation.workspace import Workspace

pytestmark = pytest.mark.verification


def star(eigenvalues, owners, horizon, h, every, privacy=None, seed=0):
    """Equal owners whose mean losses have a diagonal Hessian; two records an axis, so that f(θ*) is not zero."""
    p = len(eigenvalues)
    n = 2 * p
    x = np.repeat(np.diag(np.sqrt(np.asarray(eigenvalues) * n / 4)), 2, axis=0)
    y = x @ np.linspace(1.0, 2.0, p) + np.tile([1.0, -1.0], p)
    tree = {
        "name": "equal-owners",
        "seed": seed,
        "network": {"topology": "star", "exchange": "request"},
        "data": DataSection(source=Arrays.per_agent([x] * owners, [y] * owners)),
        "learning": {
            "algorithm": {"kind": "async-star", "horizon": horizon, "rho": {"h": h}, "theta_max": 1e60},
            "loss": "squared",
            "regularizer": {"l2": 1e-9},
        },
        "privacy": privacy or {"mechanism": "none"},
        "record": {"metrics": ["relative_fitness"], "every": every, "models": True},
    }
    return Scenario.from_dict(tree), n


THRESHOLDS = {3: 3.17, 17: 2.81}


@pytest.mark.parametrize(("owners", "horizon"), [(3, 1000), (17, 4000)])
def test_thresholds_of_stability(owners, horizon, tmp_path):
    """Below the threshold every replica converges; half a unit above, every one diverges.

    Typical paths diverge a little later than second moments do, which the next test looks at.
    """
    workspace = Workspace(tmp_path)
    below, _ = star([1.0, 1.0], owners, horizon, THRESHOLDS[owners] - 0.3, horizon)
    above, _ = star([1.0, 1.0], owners, horizon, THRESHOLDS[owners] + 0.5, horizon)
    for replica in range(8):
        assert simulate(below, replica, workspace).series[0].value[-1] < 1e-6
        diverged = simulate(above, replica, workspace)
        assert diverged.series[0].value[-1] > 1e6
        assert np.abs(diverged.models).max() < 1e60  # the box never acted


def second_moments(owners, h, steps):
    """E[zzᵀ] of z = (θ_L, θ_1 …) − θ* along one eigenvector, step by step, from z = −1."""
    moment, path = np.ones((owners + 1, owners + 1)), [1.0]
    for _ in range(steps):
        after = np.zeros_like(moment)
        for i in range(1, owners + 1):
            move = np.eye(owners + 1)
            move[0], move[i] = 0.0, 0.0
            move[0, [0, i]] = 0.5
            move[i, [0, i]] = 0.5 * (1 - h)
            after += move @ moment @ move.T / owners
        moment = after
        path.append(moment[0, 0])
    return np.array(path)


@pytest.mark.parametrize("owners", [3, 17])
def test_second_moments_shrink_below_the_threshold_and_grow_above(owners):
    """Simulated E[z_L²] equals the exact recursion, which shrinks .05 below the threshold and grows .05 above.

    Four standard errors at each of eight steps and two h: odds of a false alarm about 1e-3; the seeds are fixed.
    """
    steps, replicas = 8, 4000
    problem = star_problem(
        np.ones((owners, 1)), np.ones(owners), np.arange(owners + 1), Squared(), 1e-12, theta_max=1e60
    )
    orders = [star_events(owners, steps, seed) for seed in range(replicas)]
    for h, shrinks in ((THRESHOLDS[owners] - 0.05, True), (THRESHOLDS[owners] + 0.05, False)):
        exact = second_moments(owners, h, 3000)
        assert (exact[3000] < exact[1500]) == shrinks
        method = StarMethod(h / 2, 0.5, False)  # the Hessian is 2
        noise = np.zeros((steps, 1))
        z = np.array(
            [
                replay_compiled(problem, method, events, noise, every=1).recorded.theta[:, 0] - 1
                for events in orders
            ]
        )
        error = (z**2).std(axis=0) / np.sqrt(replicas)
        assert (np.abs((z**2).mean(axis=0) - exact[: steps + 1]) <= 4 * error + 1e-9).all()


@pytest.mark.parametrize(
    ("owners", "shape", "h"),
    [
        (3, [1.0] * 5, 1.0),
        (3, [1.0] * 5, 0.1),
        (3, [0.1, 0.2, 0.4, 0.8, 1.0], 1.2),
        (17, [0.2, 0.5, 1.0], 1.0),
    ],
    ids=["whitened", "whitened, small step", "not whitened", "many owners, not whitened"],
)
def test_noise_floor(owners, shape, h, tmp_path):
    """E[f(θ_L)] − f* = Σ_j lr·s²(1 + N·h_j)/(2(N+1) + (2N+1)h_j − N·h_j²), s = 2ΞT/(n_i·ε), within 5 %.

    A time average over replicas, whose standard error, from means of long batches, is below 2 %.
    """
    horizon, burn, epsilon, bound, N = 200_000, 20_000, 1e6, 1.0, owners
    privacy = {
        "mechanism": "laplace",
        "epsilon": epsilon,
        "sensitivity": {"kind": "declared", "bound": bound},
    }
    one, n = star(shape, owners, horizon, h, 10, privacy)
    step, scale = h / max(shape), 2 * bound * horizon / (n * epsilon)
    steep = step * np.array(shape)
    floor = np.sum(step * scale**2 * (1 + N * steep) / (2 * (N + 1) + (2 * N + 1) * steep - N * steep**2))
    workspace, batches = Workspace(tmp_path), []
    for replica in range(6):
        outcome = simulate(one, replica, workspace)
        series = outcome.series[0]
        excess = series.value[series.step > burn] * float(workspace.case(one, replica).arrays["minimum"])
        batches += [batch.mean() for batch in np.array_split(excess, 10)]
        assert np.abs(outcome.models).max() < 1e3  # far inside the box
    error = np.std(batches, ddof=1) / np.sqrt(len(batches))
    assert error < 0.02 * floor
    assert np.mean(batches) == pytest.approx(floor, rel=0.05)
