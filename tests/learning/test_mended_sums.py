"""Mean gradients from sums over records, mended for those that are clipped, beside the plain sum over records."""

import numpy as np
import pytest
from star_cases import random_problem

from p2psim.learning.losses import Squared
from p2psim.learning.star.algorithms import StarMethod
from p2psim.learning.star.owners import BLOCK, FROM_MENDED_SUMS, mean_gradient_from_mended_sums
from p2psim.learning.star.problem import gradient_rule, star_problem
from p2psim.learning.star.replay import StarReplay


def held(problem, clip, order=1):
    """What the kernel takes."""
    rule = gradient_rule(problem, clip, order=order)
    assert rule.how == FROM_MENDED_SUMS
    return StarReplay(problem, StarMethod(0.1, 0.5, False), rule)._held


def plain(problem, owner, theta, clip, order=1):
    """The sum over records, and the share of them that is clipped."""
    rows = slice(problem.offsets[owner], problem.offsets[owner + 1])
    gradients = 2 * (problem.X[rows] @ theta - problem.y[rows])[:, None] * problem.X[rows]
    lengths = np.linalg.norm(gradients, ord=order, axis=1)
    return (gradients * np.minimum(1, clip / lengths)[:, None]).mean(axis=0), (lengths > clip).mean()


@pytest.mark.parametrize("order", [1, 2])
def test_mended_sums_equal_the_plain_sum_near_the_optimum_and_far_from_it(order):
    """Owners' records begin and end within blocks; of a clipped record more is taken than is left, far away."""
    problem, clip = random_problem(Squared(intercept=True), [3, 50, 400], 3, seed=1, theta_max=5.0), 15.0
    taken, shares = held(problem, clip, order), []
    gradient = np.empty(problem.dimension)
    direction = np.random.default_rng(2).standard_normal(problem.dimension)
    for distance in (0.0, 0.1, 0.5, 1.0, 2.0):
        theta = problem.optimum + distance * direction
        for owner in range(3):
            expected, clipped = plain(problem, owner, theta, clip, order)
            shares.append(clipped)
            assert mean_gradient_from_mended_sums(taken, owner, theta, gradient)
            np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-12 * clip)
            assert np.abs(gradient - expected).max() <= 1e-12 * np.abs(expected).max()
    assert min(shares) == 0
    assert max(shares) > 0.5


@pytest.mark.parametrize("clip", [20.0, 1e-3])
def test_sums_whose_terms_are_far_above_the_clipping_norm_are_left_alone(clip):
    """A record of 1,000 times the length of the others is nearly all of the sums, and clipped to a small part of it."""
    random = np.random.default_rng(0)
    X, y = random.standard_normal((100, 2)), random.standard_normal(100)
    if clip > 1:
        X[7] *= 1e3
    taken, gradient = held(star_problem(X, y, np.array([0, 100]), Squared(), 0.1, 2.0), clip), np.empty(2)
    assert not mean_gradient_from_mended_sums(taken, 0, np.ones(2), gradient)


def test_blocks_within_whose_reach_a_model_lies_are_not_looked_at():
    """Records there are overwritten after the sums were taken; those of blocks beyond, when clipped, are needed."""
    random, n, clip = np.random.default_rng(4), 10 * BLOCK, 8.0
    X = random.standard_normal((n, 3)) * np.linspace(0.1, 2, n)[:, None]
    problem = star_problem(X, random.standard_normal(n), np.array([0, n]), Squared(), 0.1, 2.0)
    theta, gradient = problem.optimum + 0.4, np.empty(3)
    expected, clipped = plain(problem, 0, theta, clip)
    assert clipped > 0
    taken = held(problem, clip)
    within = np.repeat(taken.reaches > np.linalg.norm(theta - problem.optimum), BLOCK)
    assert within.any()
    gradients = 2 * np.abs(problem.X @ theta - problem.y) * np.abs(problem.X).sum(axis=1)
    assert (gradients[within] <= clip).all()
    problem.X[within] = np.nan
    assert mean_gradient_from_mended_sums(taken, 0, theta, gradient)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-12 * clip)
    problem.X[~within] = np.nan
    mean_gradient_from_mended_sums(taken, 0, theta, gradient)
    assert np.isnan(gradient).all()
