"""Owners that differ, and what the star does to them written out plainly."""

import itertools

import numpy as np

from p2psim.theory.forecasts.statistics import Statistics


def some_statistics(owners, dimension, seed=0, l2=0.1):
    """Second moments of normal records, 20 to 59 an owner."""
    random = np.random.default_rng(seed)
    records = random.integers(20, 60, owners)
    truth = random.normal(size=dimension)
    gram, moment, energy = [], [], []
    for n in records:
        X = random.normal(size=(n, dimension)) @ random.normal(size=(dimension, dimension))
        y = X @ truth + random.normal(size=n)
        gram.append(X.T @ X / n)
        moment.append(X.T @ y / n)
        energy.append(y @ y / n)
    return Statistics(records.astype(float), np.array(gram), np.array(moment), np.array(energy), l2)


def one_run(statistics, step, learner_weight, order, reweights, noise):
    """θ_L after each answer, from zero, as F Algorithm 1 prints it; noise is that of each answer, (T, p)."""
    N, p = statistics.owners, statistics.dimension
    theta_L, theta, found = np.zeros(p), np.zeros((N, p)), [np.zeros(p)]
    for i, w in zip(order, noise, strict=True):
        middle = (theta_L + theta[i]) / 2
        dg = 2 * statistics.l2 * middle
        Q = 2 * (statistics.gram[i] @ middle - statistics.moment[i]) + w
        theta[i] = middle - N * step * (dg / (2 * N) + statistics.shares[i] * reweights[i] * Q)
        theta_L = middle - learner_weight * step * dg
        found.append(theta_L)
    return np.array(found)


def all_orders(owners, steps, frequencies):
    """Every order of so many answers, and its probability."""
    for order in itertools.product(range(owners), repeat=steps):
        yield order, float(np.prod(frequencies[list(order)]))
