"""The compiled rounds against the plain reference, and that against what is known of W's algorithms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from star_cases import LOSSES, random_problem, record, releases_of

from p2psim.core.distributions import Distribution
from p2psim.core.randomness import Streams
from p2psim.learning.batches import FixedBatch, GradientRule, PoissonBatch, Whole, sampling
from p2psim.learning.losses import Squared
from p2psim.learning.star.algorithms import SynchronousAveraging, SynchronousDescent
from p2psim.learning.star.problem import gradient_rule
from p2psim.learning.star.reference import reference_replay_rounds
from p2psim.learning.star.rounds import RoundsReplay
from p2psim.learning.steps import Weighting
from p2psim.network.availability import Always, Bernoulli
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Round
from p2psim.network.graph import TopologyInputs
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import Star, draw_links

NETWORKS = [
    (Round(), Channel(), Always()),
    (Round(), Channel(loss=0.3), Bernoulli(drop=0.2)),
    (Round(interval=0.2, response=Distribution(exponential=0.4), deadline=0.3), Channel(loss=0.2), Always()),
    (Round(deadline=1.0), Channel(latency=Distribution(exponential=0.8)), Bernoulli(drop=0.3)),
]


def rounds_of(owners, rounds, seed, network):
    exchange, channel, availability = network
    links = draw_links(Star(), TopologyInputs(owners), learner=True)
    return simulate_events(
        Network(links, exchange, channel, availability), Streams(seed), commits=rounds, chunk=64
    ).read()


def compiled(problem, method, events, noise, clip=np.inf, chunk=None, drawn=None, order=1, grid=None):
    replay = RoundsReplay(
        problem, method, gradient_rule(problem, clip, order=order, grid=grid), sampling=drawn
    )
    return record(replay, events, noise, problem.owners, chunk=chunk)


@given(
    loss=st.sampled_from(sorted(LOSSES)),
    kind=st.sampled_from([SynchronousDescent, SynchronousAveraging]),
    form=st.sampled_from(["printed", "corrected"]),
    reweight=st.sampled_from(["none", "known", "estimated", "answered"]),
    sizes=st.lists(st.integers(2, 8), min_size=1, max_size=5),
    network=st.sampled_from(NETWORKS),
    batch=st.sampled_from([Whole(), PoissonBatch(rate=0.5), FixedBatch(size=2)]),
    clip=st.sampled_from([np.inf, 0.3]),
    order=st.sampled_from([1, 2]),
    grid=st.sampled_from([None, 0.05]),
    chunk=st.integers(1, 60),
    seed=st.integers(0, 10_000),
)
def test_compiled_equals_plain_for_chunks_of_any_size(
    loss, kind, form, reweight, sizes, network, batch, clip, order, grid, chunk, seed
):
    problem = random_problem(LOSSES[loss](), sizes, 3, seed, theta_max=0.7)
    step = {"rho": 0.2} if kind is SynchronousDescent else {"c1": 0.3}
    algorithm = kind(horizon=15, theta_max=0.7, form=form, reweight=reweight, **step)
    owners = len(sizes)
    random = np.random.default_rng(seed)
    factors = random.uniform(0.5, 2.0, owners) if reweight == "known" else np.ones(owners)
    method = algorithm.method(Weighting(factors, np.ones(owners), reweight == "estimated"))
    events = rounds_of(owners, 14, seed, network)
    noise = 0.1 * random.laplace(size=(int(releases_of(events, owners).sum()), problem.dimension))
    drawn = sampling(batch, problem.records, Streams(seed).key("batches"))
    plain = reference_replay_rounds(
        problem, method, events, noise, GradientRule(clip, order, grid=grid), drawn
    )
    whole = compiled(problem, method, events, noise, clip, None, drawn, order, grid)
    assert whole.step.tolist() == list(range(15))
    assert np.abs(whole.theta - plain).max() <= 1e-12 * max(np.abs(plain).max(), 1e-3)
    pieces = compiled(problem, method, events, noise, clip, chunk, drawn, order, grid)
    for name in ("step", "time", "theta"):
        assert getattr(pieces, name).tobytes() == getattr(whole, name).tobytes()


def full_gradient(problem, theta):
    """∇f by hand, for the squared loss."""
    return 2 * problem.l2 * theta + 2 * problem.X.T @ (problem.X @ theta - problem.y) / problem.y.size


@pytest.mark.parametrize("form", ["printed", "corrected"])
def test_algorithm_1_is_gradient_descent_on_the_fitness(form: str) -> None:
    """All answer, without noise: θ ← θ − ρ_k∇f(θ), written down from the records at once."""
    problem, T = random_problem(Squared(), [5, 8, 20], 3, 1), 30
    rho = 40.0 if form == "printed" else 0.2
    method = SynchronousDescent(horizon=T, rho=rho, theta_max=2.0, form=form).method(Weighting.equal(3))
    events = rounds_of(3, T - 1, 0, NETWORKS[0])
    theta = reference_replay_rounds(problem, method, events, np.zeros((3 * (T - 1), 3)))
    expected = np.zeros(3)
    for k in range(1, T):
        expected = expected - (rho / (T**2 * k) if form == "printed" else rho / k) * full_gradient(
            problem, expected
        )
        np.testing.assert_allclose(theta[k], expected, rtol=1e-12)


def test_algorithm_1_as_printed_freezes_and_corrected_does_not() -> None:
    """The steps add up to ρ·H_{T−1}/T²: a hundred times the rounds leave less than a thousandth of the movement."""
    moved = {}
    for form in ("printed", "corrected"):
        for T in (10, 1000):
            algorithm = SynchronousDescent(horizon=T, rho=1.0, theta_max=1.0, form=form)
            moved[form, T] = algorithm.method(Weighting.equal(1)).steps.sum()
    assert moved["printed", 1000] < 1e-3 * moved["printed", 10]
    assert moved["corrected", 1000] > 2 * moved["corrected", 10]
    harmonic = (1.0 / np.arange(1, 1000)).sum()
    assert moved["printed", 1000] == pytest.approx(harmonic / 1000**2, rel=1e-12)


@pytest.mark.parametrize("form", ["printed", "corrected"])
@pytest.mark.parametrize("T", [2, 3, 10, 500])
def test_averages_are_weighted_means_of_the_iterates(form: str, T: int) -> None:
    """Weights are positive and add up to one; printed: θ[1] … θ[T−1], corrected: to θ[T], with as good as no θ[1]."""
    method = SynchronousAveraging(horizon=T, c1=1.0, theta_max=1.0, form=form).method(Weighting.equal(1))
    weights = np.zeros(T)
    if form == "corrected":
        weights[0] = 1.0
    for k in range(T - 1):
        weights *= method.keep[k]
        weights[k + method.newest] += method.take[k]
    assert weights.sum() == pytest.approx(1.0, rel=1e-12)
    used = weights[:-1] if form == "printed" else weights
    assert (used > 0).all()
    assert (np.diff(used[1:]) >= 0).all()  # later iterates count no less
    assert (weights[-1] == 0) == (form == "printed")


def test_algorithm_2_by_hand() -> None:
    """Two owners and four rounds on a line: ℓ = (θ − 3)², f = l2·θ² + (θ − 3)², every step written out."""
    from p2psim.learning.star.problem import star_problem

    problem = star_problem(np.ones((2, 1)), np.full(2, 3.0), np.array([0, 1, 2]), Squared(), 1.0, 1.0)
    method = SynchronousAveraging(horizon=5, c1=0.1, theta_max=1.0, form="printed").method(Weighting.equal(2))
    theta = reference_replay_rounds(problem, method, rounds_of(2, 4, 0, NETWORKS[0]), np.zeros((8, 1)))
    e, at, average, made = 5**-0.5, 0.0, 0.0, [0.0]
    for k in range(1, 5):
        average = (k - 1) / (e + k) * average + (e + 1) / (e + k) * at
        at = min(max(at - 0.1 / k**0.5 * (2 * at + 2 * (at - 3)), -1.0), 1.0)
        made.append(average)
    np.testing.assert_allclose(theta[:, 0], made, rtol=1e-12)


@pytest.mark.parametrize("reweight", ["none", "known", "answered"])
def test_a_missing_answer_is_missing_and_reweighting_makes_up_for_it(reweight: str) -> None:
    """One round: the step is the sum over those who answered, as it is, over q, or over their share of the records."""
    problem = random_problem(Squared(), [5, 8, 20], 3, 1)
    known = np.full(3, 1 / 0.6)
    weighting = Weighting(known if reweight == "known" else np.ones(3), np.ones(3))
    algorithm = SynchronousDescent(horizon=2, rho=1.0, theta_max=2.0, reweight=reweight)
    method, steps = algorithm.method(weighting), []
    for seed in range(400):
        events = rounds_of(3, 1, seed, (Round(), Channel(), Bernoulli(drop=0.4)))
        answered = np.flatnonzero(releases_of(events, 3))
        theta = reference_replay_rounds(problem, method, events, np.zeros((answered.size, 3)))[1]
        own = [-2 * problem.shares[i] * problem.moment[i] for i in answered]
        expected = -sum(own, np.zeros(3))
        if reweight == "known":
            expected = expected / 0.6
        if reweight == "answered" and answered.size:
            expected = expected / problem.shares[answered].sum()
        np.testing.assert_allclose(theta, expected, rtol=1e-12)
        steps.append(theta)
    if reweight == "known":
        # In the mean it is the step of all: five standard errors, three coordinates: 2e-6.
        mean, error = np.mean(steps, axis=0), np.std(steps, axis=0) / 20
        assert (np.abs(mean + full_gradient(problem, np.zeros(3))) < 5 * error).all()


def test_an_answer_to_an_older_round_changes_nothing() -> None:
    """Models are those of the events from which late answers, and what happens to them, are left out of the sums."""
    problem = random_problem(Squared(), [4, 4], 2, 3)
    exchange = Round(interval=3.0, response=Distribution(uniform=(0.5, 3.0)), deadline=1.0)
    events = rounds_of(2, 30, 5, (exchange, Channel(), Always()))
    method = SynchronousDescent(horizon=31, rho=0.2, theta_max=2.0).method(Weighting.equal(2))
    made = int(releases_of(events, 2).sum())
    noise = np.random.default_rng(0).normal(size=(made, 2))
    theta = compiled(problem, method, events, noise).theta
    from p2psim.core.events import COMMIT, DELIVER, LEARNER

    # Which releases were in time.
    versions = np.cumsum(events["kind"] == COMMIT)
    arrived = events[(events["kind"] == DELIVER) & (events["agent"] == LEARNER)]
    late = arrived[versions[arrived["seq"]] > arrived["version"]]
    assert 3 < late.size < arrived.size
    first = np.cumsum([0, releases_of(events, 2)[0]])
    noise[first[late["peer"]] + late["release"]] += 1e6
    assert compiled(problem, method, events, noise).theta.tobytes() == theta.tobytes()
