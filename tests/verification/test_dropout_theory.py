"""Reweighting under unequal frequencies of answers against its theory: exact means of the stationary star.

Means over time are compared with theory by batch means: |z| < 4.5 in each of p coordinates, which a t law with 39
degrees of freedom exceeds in 6 of 100,000 cases; 24 comparisons make 1.5e-3 for other seeds. Seeds are fixed.
"""

import numpy as np
import pytest
from star_cases import random_problem, releases_of, replay_compiled
from theory_references import stationary_mean

from p2psim.core.randomness import Streams
from p2psim.learning.losses import Squared
from p2psim.learning.star.algorithms import StarMethod
from p2psim.learning.star.problem import StarProblem
from p2psim.learning.steps import Weighting, inverse_frequencies
from p2psim.network.availability import Bernoulli
from p2psim.network.exchanges import Request
from p2psim.network.graph import TopologyInputs
from p2psim.network.members import Members
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import Star, draw_links
from p2psim.theory.star import answer_frequencies, noise_moment, weighted_optimum

pytestmark = pytest.mark.verification

N, P, L2, COMMITS = 3, 2, 0.05, 240_000


@pytest.fixture(scope="module")
def problem() -> StarProblem:
    """Three unlike owners, far from the box."""
    return random_problem(Squared(), [40, 25, 60], P, 4, l2=L2, theta_max=1e6)


def moments(problem: StarProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A_i, b_i and n_i from the records."""
    parts = [slice(a, b) for a, b in zip(problem.offsets[:-1], problem.offsets[1:], strict=True)]
    gram = np.array([problem.X[s].T @ problem.X[s] / len(problem.y[s]) for s in parts])
    moment = np.array([problem.X[s].T @ problem.y[s] / len(problem.y[s]) for s in parts])
    return gram, moment, problem.records.astype(float)


def play(network: Network, problem: StarProblem, method: StarMethod, noise: float, seed: int) -> np.ndarray:
    events = simulate_events(network, Streams(seed), commits=COMMITS).read()
    random = np.random.default_rng(seed)
    drawn = noise * random.standard_normal((int(releases_of(events, N).sum()), P))
    return replay_compiled(problem, method, events, drawn, every=1).recorded.theta[COMMITS // 6 :]


def far(path: np.ndarray, expected: np.ndarray) -> float:
    """Largest |z| of the mean over time."""
    means = np.array([part.mean(axis=0) for part in np.array_split(path, 40)])
    return float(np.abs((means.mean(axis=0) - expected) / (means.std(axis=0, ddof=1) / np.sqrt(40))).max())


@pytest.mark.parametrize("gamma", [(0.8, 0.19, 0.01), (0.5, 0.3, 0.2)])
@pytest.mark.parametrize("reweighted", [False, True])
@pytest.mark.parametrize("step", [0.002, 0.02])
def test_stationary_mean_is_exact_at_any_step(
    problem: StarProblem, gamma: tuple[float, ...], reweighted: bool, step: float
) -> None:
    frequencies = np.array(gamma)
    r = inverse_frequencies(frequencies) if reweighted else np.ones(N)
    network = Network(draw_links(Star(), TopologyInputs(N), learner=True), Request(), rates=frequencies)
    method = StarMethod(step, 0.5, False, Weighting(r, np.ones(N)))
    expected = stationary_mean(*moments(problem), L2, step, frequencies, r)
    assert far(play(network, problem, method, 0.3, 1), expected) < 4.5


def test_as_the_step_vanishes_the_mean_is_a_weighted_optimum(problem: StarProblem) -> None:
    gram, moment, records = moments(problem)
    gamma = np.array([0.6, 0.3, 0.1])
    for r, weights in ((np.ones(N), N * gamma), (inverse_frequencies(gamma), np.ones(N))):
        limit = weighted_optimum(gram, moment, records, L2, weights)
        gaps = [
            np.abs(stationary_mean(gram, moment, records, L2, step, gamma, r) - limit).max()
            for step in (1e-3, 1e-4, 1e-5)
        ]
        assert gaps[1] == pytest.approx(gaps[0] / 10, rel=0.2)  # of the order of the step
        assert gaps[2] == pytest.approx(gaps[1] / 10, rel=0.2)
    # Reweighted, it is θ* itself.
    assert weighted_optimum(gram, moment, records, L2, np.ones(N)) == pytest.approx(problem.optimum, rel=1e-9)


def test_bernoulli_dropouts_have_the_frequencies_that_are_taken_for_known(problem: StarProblem) -> None:
    drops = {"0": 0.0, "1": 0.5, "2": 0.9}
    availability = Bernoulli(drop=drops)
    links = draw_links(Star(), TopologyInputs(N), learner=True)
    network = Network(links, Request(), availability=availability, members=Members.unnamed(N))
    gamma = answer_frequencies(np.ones(N), availability.shares(Members.unnamed(N), links))
    assert gamma == pytest.approx(np.array([1, 0.5, 0.1]) / 1.6)
    r = inverse_frequencies(gamma)
    method = StarMethod(0.005, 0.5, False, Weighting(r, np.ones(N)))
    expected = stationary_mean(*moments(problem), L2, 0.005, gamma, r)
    assert far(play(network, problem, method, 0.0, 2), expected) < 4.5


def test_counted_frequencies_end_where_known_ones_are(problem: StarProblem) -> None:
    gamma = np.array([0.7, 0.2, 0.1])
    network = Network(draw_links(Star(), TopologyInputs(N), learner=True), Request(), rates=gamma)
    method = StarMethod(0.002, 0.5, False, Weighting(np.ones(N), np.ones(N), estimated=True))
    expected = stationary_mean(*moments(problem), L2, 0.002, gamma, inverse_frequencies(gamma))
    path = play(network, problem, method, 0.0, 3)[COMMITS // 2 :]
    assert far(path, expected) < 4.5


def test_second_moment_of_the_noise_grows_with_unequal_frequencies() -> None:
    gamma, v = np.array([0.8, 0.19, 0.01]), np.ones(3)
    reweighted = noise_moment(v, gamma, inverse_frequencies(gamma))
    assert reweighted == pytest.approx((v / (9 * gamma)).sum())
    assert reweighted / noise_moment(v, np.full(3, 1 / 3), np.ones(3)) == pytest.approx(11.8, abs=0.05)
    # By drawing who answers, and noise of unit second moment.
    random = np.random.default_rng(5)
    who = random.choice(3, size=400_000, p=gamma)
    squares = (inverse_frequencies(gamma)[who] * random.standard_normal(400_000)) ** 2
    assert abs(squares.mean() - reweighted) < 4.5 * squares.std() / np.sqrt(400_000)
