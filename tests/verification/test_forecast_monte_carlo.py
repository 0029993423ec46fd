"""Forecasts of the star against 1,000 replicas of the production replay, in which owners and budgets differ."""

import numpy as np
import pytest
from star_cases import random_problem, releases_of, replay_compiled, star_events

from p2psim.learning.losses import Squared
from p2psim.learning.star.algorithms import StarMethod, learner_weight
from p2psim.learning.steps import Weighting
from p2psim.theory.forecasts.linear_star import linear_star
from p2psim.theory.forecasts.split import split
from p2psim.theory.forecasts.star_path import path
from p2psim.theory.forecasts.statistics import Statistics

REPLICAS = 1000


def agrees(owners, form, answers, every, reweighted=False):
    """|z| < 4 at every recorded k. Up to 12 of them a case: odds of a false alarm 8e-4; seeds are fixed."""
    random = np.random.default_rng(owners)
    sizes = random.integers(5, 40, owners)
    problem = random_problem(Squared(), list(sizes), 3, seed=owners, theta_max=1e9)
    statistics = Statistics(
        problem.records.astype(float), problem.gram, problem.moment, problem.energy, problem.l2
    )
    r = random.uniform(0.5, 1.5, owners) if reweighted else np.ones(owners)
    step = 0.25 / max(problem.hessian_peaks() * problem.shares * owners * r)
    scales = 2.0 / (sizes * random.uniform(0.005, 0.05, owners))
    method = StarMethod(step, learner_weight(owners, form), False, Weighting(r, np.ones(owners)))
    psi = []
    for replica in range(REPLICAS):
        events = star_events(owners, answers, replica)
        scale = np.repeat(scales, releases_of(events, owners))
        noise = random.laplace(size=(scale.size, 3)) * scale[:, None]
        theta = replay_compiled(problem, method, events, noise, every=every).recorded.theta
        psi.append(problem.relative_fitness(theta))
    mean, error = np.mean(psi, axis=0), np.std(psi, axis=0, ddof=1) / np.sqrt(REPLICAS)
    star = linear_star(statistics, step, form, reweights=r)
    parts = split(path(star, answers), np.broadcast_to(2 * scales**2, (answers, owners)), statistics.minimum)
    exact = parts.psi[::every]
    assert parts.noise[-1].sum() > 0.1 * exact[-1]  # noise matters here
    assert exact[0] == pytest.approx(mean[0], rel=1e-9)
    z = (mean[1:] - exact[1:]) / error[1:]
    assert np.abs(z).max() < 4, z


@pytest.mark.parametrize("form", ["printed", "corrected"])
@pytest.mark.parametrize(("owners", "answers"), [(1, 24), (3, 48), (17, 120)])
def test_forecast_is_the_mean_of_replicas(owners, answers, form):
    agrees(owners, form, answers, answers // 12, reweighted=form == "corrected")


@pytest.mark.verification
@pytest.mark.parametrize("form", ["printed", "corrected"])
def test_forecast_is_the_mean_of_replicas_of_many_owners(form):
    agrees(86, form, 400, 100)
