"""Answers that count more or less: the compiled replay against the plain one, and weights against their definitions."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from star_cases import random_problem, releases_of, replay_compiled

from p2psim.core.distributions import Distribution
from p2psim.core.events import COMMIT, JOIN
from p2psim.core.randomness import Streams
from p2psim.learning.losses import Squared
from p2psim.learning.sgd.learner import discounted
from p2psim.learning.star.algorithms import StarMethod
from p2psim.learning.star.reference import reference_replay
from p2psim.learning.step_sizes import (
    ExponentialDiscount,
    HingeDiscount,
    InverseDiscount,
    NoDiscount,
    PolynomialDiscount,
)
from p2psim.learning.steps import Weighting, inverse_frequencies
from p2psim.network.availability import Renewal
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Poll, Request
from p2psim.network.graph import TopologyInputs
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import Star, draw_links

OWNERS = 4


def churned(seed: int, rejoin: Any, exchange: Any) -> np.ndarray:
    """Events of a star with late messages whose owners come and go."""
    network = Network(
        draw_links(Star(), TopologyInputs(OWNERS), learner=True),
        exchange,
        Channel(latency=Distribution(exponential=0.5), loss=0.1),
        Renewal(up=2.0, down=2.0, rejoin=rejoin),
    )
    return simulate_events(network, Streams(seed), time=40.0).read()


@settings(max_examples=15)
@given(
    st.integers(0, 1000),
    st.sampled_from(["stale", "reset", "fetch"]),
    st.sampled_from([Poll(response=Distribution(exponential=0.6)), Request(service=0.1)]),
    st.booleans(),
    st.sampled_from([NoDiscount(), InverseDiscount(rate=0.7), ExponentialDiscount(rate=0.3)]),
)
def test_compiled_equals_plain(
    seed: int, rejoin: str, exchange: Any, estimated: bool, staleness: Any
) -> None:
    random = np.random.default_rng(seed)
    problem = random_problem(Squared(), [5, 3, 8, 4], 3, seed)
    events = churned(seed, rejoin, exchange)
    if not (events["kind"] == COMMIT).any():
        return
    weighting = Weighting(
        random.uniform(0.2, 2, OWNERS), random.uniform(0.2, 2, OWNERS), estimated, staleness
    )
    method = StarMethod(0.02, 0.5, False, weighting)
    noise = 0.1 * random.laplace(size=(int(releases_of(events, OWNERS).sum()), 3))
    plain = reference_replay(problem, method, events, noise)
    found = replay_compiled(problem, method, events, noise, chunk=37, every=1).recorded
    assert np.abs(found.theta - plain[: len(found.theta)]).max() <= 1e-12 * max(1.0, np.abs(plain).max())


def test_equal_weights_change_not_a_bit() -> None:
    problem = random_problem(Squared(), [5, 3, 8, 4], 3, 1)
    events = churned(1, "stale", Request())
    noise = np.random.default_rng(1).laplace(size=(int(releases_of(events, OWNERS).sum()), 3))
    one, other = (
        replay_compiled(
            problem, StarMethod(0.02, 0.5, False, weighting), events, noise, every=1
        ).recorded.theta
        for weighting in (None, Weighting.equal(OWNERS))
    )
    assert one.tobytes() == other.tobytes()


def test_an_owner_comes_back_with_what_the_event_says() -> None:
    """After a reset its model is zero, after a fetch the learner's; its next answer shows which."""
    problem = random_problem(Squared(), [5, 3, 8, 4], 3, 2)
    paths = {}
    for rejoin in ("stale", "reset", "fetch"):
        events = churned(2, rejoin, Request())
        assert (events["kind"] == JOIN).any()
        noise = np.zeros((int(releases_of(events, OWNERS).sum()), 3))
        paths[rejoin] = reference_replay(problem, StarMethod(0.05, 0.5, False), events, noise)
    # The network is the same, so that only the models of those who came back differ.
    assert len({len(path) for path in paths.values()}) == 1
    assert not np.allclose(paths["stale"], paths["reset"])
    assert not np.allclose(paths["stale"], paths["fetch"])


class TestWeights:
    def test_known_frequencies_average_to_one(self) -> None:
        gamma = np.array([0.8, 0.19, 0.01])
        assert (gamma * inverse_frequencies(gamma)).sum() == pytest.approx(1)
        assert inverse_frequencies(np.full(5, 0.2)) == pytest.approx(1)

    def test_counts_begin_as_if_each_had_answered_once(self) -> None:
        weighting = Weighting(np.ones(3), np.ones(3), estimated=True)
        assert weighting.of_answer(1, 0, np.zeros(3, int)) == 1
        # After 7 commits, 5 of them its own: γ = (5 + 1)/(7 + 3), r = 1/(3γ).
        assert weighting.of_answer(0, 0, np.array([5, 2, 0])) == pytest.approx(10 / (3 * 6))
        assert weighting.of_answer(2, 0, np.array([5, 2, 0])) == pytest.approx(10 / 3)

    def test_old_answers_count_less(self) -> None:
        ones = np.ones(2)
        none = np.zeros(2, int)
        assert Weighting(ones, ones, staleness=InverseDiscount(rate=0.5)).of_answer(
            0, 4, none
        ) == pytest.approx(1 / 3)
        assert Weighting(ones, ones, staleness=ExponentialDiscount(rate=0.5)).of_answer(
            0, 4, none
        ) == pytest.approx(math.exp(-2))
        assert Weighting(ones, ones).of_answer(0, 400, none) == 1


@pytest.mark.parametrize(
    ("discount", "weight"),
    [
        (NoDiscount(), lambda k: 1.0),
        (InverseDiscount(rate=0.7), lambda k: 1 / (1 + 0.7 * k)),
        (ExponentialDiscount(rate=0.3), lambda k: math.exp(-0.3 * k)),
        (PolynomialDiscount(power=0.4), lambda k: (1 + k) ** -0.4),
        (HingeDiscount(rate=2.0, age=3), lambda k: 1.0 if k <= 3 else 1 / (1 + 2 * (k - 3))),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_discounts_follow_their_formulas_in_both_replays(discount: Any, weight: Any) -> None:
    for age in range(8):
        assert discount.weight(age) == pytest.approx(weight(age), rel=1e-14)
        assert discounted(discount.code, *discount.numbers, age) == pytest.approx(weight(age), rel=1e-14)
