"""Decentralised SGD in rounds: the reference, and what it is on a complete graph."""

import math

import numpy as np
import pytest
from training_cases import agree, play, problem, task

import p2psim
from p2psim.core.events import COMMIT
from p2psim.core.randomness import Streams
from p2psim.learning.batches import FixedBatch, PoissonBatch, sampling
from p2psim.learning.reference import drawn
from p2psim.learning.sgd.algorithms import DecentralisedSgd
from p2psim.learning.step_sizes import CosineStep, InverseStep

ORDERS = ("gossip-then-gradient", "gradient-then-gossip", "together")
COMPLETE = p2psim.Complete(agents=6)
ROUNDS = p2psim.Synchronous()


@pytest.mark.parametrize("away", [None, p2psim.Renewal(up=3.0, down=1.0)], ids=["present", "away"])
@pytest.mark.parametrize("order", ORDERS)
def test_rounds_with_losses_and_absences_are_what_the_reference_says(order, away):
    algorithm = DecentralisedSgd(step=0.1, order=order, momentum=0.5, commits=1)
    of = task(problem("softmax"), PoissonBatch(rate=0.5), private=True, clip=0.4)
    late = p2psim.Channel(latency={"uniform": (0.0, 0.8)}, loss=0.2)
    agree(
        play(
            algorithm,
            p2psim.Synchronous(deadline=0.6),
            p2psim.Ring(agents=6),
            of,
            channel=late,
            availability=away,
        )
    )


def mean_gradient(of, round_, theta):
    """Mean over the agents of their batches' mean gradients in a round, each at its row of ``theta``."""
    case, total = of.problem, 0.0
    for i in range(case.agents):
        rows = case.offsets[i] + np.array(drawn(of.sampling, i, round_, int(case.records[i])))
        total = total + case.model.gradients(theta[i], case.X[rows], case.y[rows]).mean(axis=0)
        total = total + 2 * case.l2 * theta[i]
    return total / case.agents


def after_rounds(order, **keys):
    """Models after every round on a complete graph, where mixing is the mean of all, and what they were made from."""
    of = task(problem("softmax", equal=True), FixedBatch(size=3))
    algorithm = DecentralisedSgd(**{"step": 0.3} | keys, order=order, mixing="metropolis", commits=1)
    played = play(algorithm, ROUNDS, COMPLETE, of, commits=60)
    assert (played.events["kind"] == COMMIT).sum() == 60
    return of, played.models[::6]


def sgd(of, rounds):
    """SGD on the mean gradient of all agents' batches."""
    theta = [of.start]
    for k in range(rounds):
        theta.append(theta[-1] - 0.3 * mean_gradient(of, k, [theta[-1]] * of.problem.agents))
    return np.array(theta)


def test_gradient_then_gossip_is_sgd_on_the_mean_gradient_for_every_agent():
    of, models = after_rounds("gradient-then-gossip")
    expected = sgd(of, len(models) - 1)
    for i in range(of.problem.agents):
        np.testing.assert_allclose(models[:, i], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("step", "size"),
    [
        (
            CosineStep(first=0.3, horizon=7, last=0.05),
            lambda t: 0.05 + 0.25 * (1 + math.cos(math.pi * min(t / 7, 1))) / 2,
        ),
        (InverseStep(first=0.3, decay=0.5), lambda t: 0.3 / (1 + 0.5 * t)),
    ],
    ids=["cosine", "inverse"],
)
def test_step_sizes_and_momentum_are_those_of_their_formulas(step, size):
    """v ← β·v + g, θ ← θ − η_t·v of the mean gradient, since agents' velocities have that mean."""
    of, models = after_rounds("gradient-then-gossip", step=step, momentum=0.5)
    theta, velocity = of.start.copy(), np.zeros_like(of.start)
    for k, found in enumerate(models[1:]):
        velocity = 0.5 * velocity + mean_gradient(of, k, [theta] * of.problem.agents)
        theta = theta - size(k) * velocity
        np.testing.assert_allclose(found, [theta] * of.problem.agents, rtol=1e-11, atol=1e-13)


def test_gossip_then_gradient_is_that_for_the_mean_model():
    """At the mixed point, which is the mean model."""
    of, models = after_rounds("gossip-then-gradient")
    means = models.mean(axis=1)
    np.testing.assert_allclose(means, sgd(of, len(models) - 1), rtol=1e-12, atol=1e-14)
    assert np.abs(models[-1] - means[-1]).max() > 1e-3


def test_together_is_neither():
    """Gradients are taken at the agents' own models, before these are mixed."""
    of, models = after_rounds("together")
    means = models.mean(axis=1)
    expected = means[1] - 0.3 * mean_gradient(of, 1, models[1])
    np.testing.assert_allclose(means[2], expected, rtol=1e-12, atol=1e-14)
    assert np.abs(means[-1] - sgd(of, len(models) - 1)[-1]).max() > 1e-6


def test_batches_are_those_of_the_round():
    """A batch is addressed by the agent and its release, whatever the order of events."""
    of, _ = after_rounds("together")
    again = sampling(FixedBatch(size=3), of.problem.records, Streams(0, 0).key("batches"))
    assert drawn(of.sampling, 2, 5, 6) == drawn(again, 2, 5, 6)
