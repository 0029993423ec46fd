"""What an owner answers, as it is on its way to the learner, and where a star may begin."""

import numpy as np
import pytest
from star_cases import random_problem, star_events

from p2psim.learning.async_star import StarMethod
from p2psim.learning.losses import Squared
from p2psim.learning.star_replay import StarReplay, gradient_rule
from p2psim.network.events import LEARNER, SEND

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
    assert (replay.result().theta == START).all()  # a step of zero moves nothing


def test_an_answer_that_has_arrived_is_not_on_its_way():
    problem = random_problem(Squared(), [3, 5], 2, seed=1)
    replay = StarReplay(problem, StarMethod(0.0, 0.5, False), gradient_rule(problem))
    events = star_events(2, 1, seed=1)
    replay.feed(events, np.zeros((1, 2)))
    sent = events[(events["kind"] == SEND) & (events["agent"] != LEARNER)]
    with pytest.raises(KeyError, match="on its way"):
        replay.answers(sent["seq"])
