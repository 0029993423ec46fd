"""What an owner answers, as it is on its way to the learner, and where a star may begin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from star_cases import LOSSES, random_problem, star_events

from p2psim.core.events import COMMIT, LEARNER, SEND
from p2psim.core.randomness import Streams
from p2psim.learning.batches import FixedBatch, PoissonBatch, Whole, sampling
from p2psim.learning.losses import Squared
from p2psim.learning.star.algorithms import StarMethod, SynchronousDescent
from p2psim.learning.star.problem import gradient_rule
from p2psim.learning.star.replay import StarReplay
from p2psim.learning.star.rounds import RoundsReplay
from p2psim.learning.steps import Weighting
from p2psim.network.exchanges import Round

START = np.array([0.3, -0.2])


def test_an_answer_on_its_way_is_the_gradient_where_the_star_began_and_its_noise():
    problem = random_problem(Squared(), [3, 5], 2, seed=1)
    replay = StarReplay(problem, StarMethod(0.0, 0.5, False), gradient_rule(problem), start=START)
    noise = np.random.default_rng(1).laplace(size=(20, 2))
    events, made = star_events(2, 12, seed=1), 0
    for at, event in enumerate(events):
        sent = event["kind"] == SEND and event["agent"] != LEARNER
        replay.feed(events[at : at + 1], noise[made : made + int(sent)])
        if sent:
            i = int(event["agent"])
            expected = 2 * (problem.gram[i] @ START - problem.moment[i]) + noise[made]
            assert np.allclose(replay.answers(np.array([event["seq"]]))[0], expected, rtol=1e-12)
            made += 1
    assert made == 12
    assert (replay.model == START).all()  # a step of zero moves nothing


def test_an_answer_that_has_arrived_is_not_on_its_way():
    problem = random_problem(Squared(), [3, 5], 2, seed=1)
    replay = StarReplay(problem, StarMethod(0.0, 0.5, False), gradient_rule(problem))
    events = star_events(2, 1, seed=1)
    replay.feed(events, np.zeros((1, 2)))
    sent = events[(events["kind"] == SEND) & (events["agent"] != LEARNER)]
    with pytest.raises(KeyError, match="on its way"):
        replay.answers(sent["seq"])


def first_answers(replay, events, problem):
    """The first answer of each owner, taken from the replay while it is on its way: shape (N, p)."""
    found = np.full((problem.owners, problem.dimension), np.nan)
    for at, event in enumerate(events):
        sent = event["kind"] == SEND and event["agent"] != LEARNER
        replay.feed(events[at : at + 1], np.zeros((int(sent), problem.dimension)))
        if sent and event["release"] == 0:
            found[event["agent"]] = replay.answers(np.array([event["seq"]]))[0]
    return found


@given(
    loss=st.sampled_from(sorted(LOSSES)),
    sizes=st.lists(st.integers(2, 8), min_size=1, max_size=5),
    batch=st.sampled_from([Whole(), PoissonBatch(rate=0.5), FixedBatch(size=2)]),
    clip=st.sampled_from([np.inf, 0.3]),
    order=st.sampled_from([1, 2]),
    grid=st.sampled_from([None, 0.05]),
    seed=st.integers(0, 10_000),
)
def test_owners_answer_a_round_as_they_answer_a_query_of_their_own(
    loss, sizes, batch, clip, order, grid, seed
):
    """Bit for bit, with what is noted of a claimed bound: the star's kernel writes out what the rounds' one calls."""
    problem, owners = random_problem(LOSSES[loss](), sizes, 3, seed), len(sizes)
    rule = gradient_rule(problem, clip, 0.5, order, grid)
    start = np.random.default_rng(seed).uniform(-1, 1, problem.dimension)
    drawn = sampling(batch, problem.records, Streams(seed).key("batches"))
    star = StarReplay(problem, StarMethod(0.0, 0.5, False), rule, sampling=drawn, start=start)
    single = first_answers(star, star_events(owners, 30, seed), problem)
    method = SynchronousDescent(horizon=3, rho=0.1, theta_max=2.0).method(Weighting.equal(owners))
    rounds = RoundsReplay(problem, method, rule, sampling=drawn, start=start)
    asked = star_events(owners, 1, seed, Round())
    together = first_answers(rounds, asked[asked["kind"] != COMMIT], problem)
    has = np.isfinite(single).all(axis=1)  # by chance an owner may not have been asked
    assert has.any()
    assert single[has].tobytes() == together[has].tobytes()
    assert star.violations.sizes[has].tobytes() == rounds.violations.sizes[has].tobytes()
    assert ((star.violations.counts > 0) == (rounds.violations.counts > 0))[has].all()
