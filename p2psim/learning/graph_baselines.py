"""The models of the baselines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from p2psim.learning.graph_optimum import minimise_alone, minimise_together
from p2psim.learning.graph_problem import GraphProblem
from p2psim.learning.graph_shared import once_a_problem
from p2psim.learning.optimum import minimise


@once_a_problem
def global_model(problem: GraphProblem) -> np.ndarray:
    """Minimiser of the mean loss of all records plus ‖θ‖²/records, for every agent: shape (n, p)."""
    theta = minimise(problem.loss, problem.X, problem.y, 1 / problem.y.size, np.inf)
    return np.tile(theta, (problem.agents, 1))


def local_models(problem: GraphProblem, reduction: str) -> np.ndarray:
    """Minimisers of the agents' own losses, shape (n, p)."""
    return minimise_alone(problem, reduction)


def from_private_records(
    problem: GraphProblem,
    epsilon: np.ndarray,
    x_l1: float,
    y_max: float,
    random: np.random.Generator,
) -> np.ndarray:
    """Minimiser of Q_L on records that are each ε-DP by themselves, shape (n, p).

    Half of ε goes to x, by Laplace noise of scale 2B/(ε/2) in each coordinate (two records are at most 2B apart in
    L1), half to y: by randomised response where y = ±1, by Laplace noise of scale 2·y_max/(ε/2) otherwise. An
    intercept carries no information and no noise.

    Parameters
    ----------
    problem : GraphProblem
    epsilon : ndarray, shape (n,)
    x_l1, y_max : float
        Public bounds on ‖x‖₁, the intercept not counted, and on |y|.
    random : numpy.random.Generator
    """
    half = np.repeat(epsilon, problem.records) / 2
    features = problem.dimension - problem.loss.intercept
    X = problem.X.copy()
    X[:, :features] += random.laplace(size=(len(X), features)) * (2 * x_l1 / half)[:, None]
    if problem.loss.needs_classes:
        keeps = 1 / (1 + np.exp(-half))
        y = np.where(random.random(problem.y.size) < keeps, problem.y, -problem.y)
    else:
        y = problem.y + random.laplace(size=problem.y.size) * (2 * y_max / half)
    return minimise_together(replace(problem, X=X, y=y))
