"""Algorithms that train one model: planners and executors beside the plain references, and beside mathematics."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from pairs import few
from training_cases import MODELS, agree, play, problem, task

import p2psim
from p2psim.core.events import BEGIN
from p2psim.learning.batches import FixedBatch, PoissonBatch
from p2psim.learning.sgd.algorithms import DecentralisedSgd, FedAsync, FedAvg, FedBuff, GossipLearning

RING, STAR = p2psim.Ring(agents=6), p2psim.Star(agents=6)
LATE = p2psim.Channel(latency={"uniform": (0.0, 1.0)}, loss=0.2)
AWAY = p2psim.Renewal(up=3.0, down=1.0)
BATCHES = {"whole": None, "poisson": PoissonBatch(rate=0.4), "fixed": FixedBatch(size=2)}
SLOW = {"kind": "inverse", "first": 0.2, "decay": 0.3}

GRAPHS = {
    f"{order} {exchange.kind} {'blocking ' * getattr(exchange, 'blocking', False)}"
    f"{getattr(exchange, 'mode', getattr(exchange, 'deadline', ''))}": (
        DecentralisedSgd(step=SLOW, order=order, momentum=0.5, commits=1),
        exchange,
    )
    for order in ("gossip-then-gradient", "gradient-then-gossip", "together")
    for exchange in (
        p2psim.Gossip(mode="push"),
        p2psim.Gossip(mode="pull"),
        p2psim.Gossip(mode="push-pull"),
        p2psim.Broadcast(),
        p2psim.Synchronous(interval=0.5),
        p2psim.Synchronous(interval=0.5, deadline=0.7),
        p2psim.Gossip(mode="push-pull", blocking=True),
    )
} | {
    f"gossip learning {merge} {weights}": (
        GossipLearning(step=SLOW, merge=merge, merge_weights=weights, local_steps=2, momentum=0.3, commits=1),
        p2psim.Gossip(mode="push"),
    )
    for merge in ("walk", "merge-update", "update-merge")
    for weights in ("equal", "age")
}
STARS = {
    "fedavg": (FedAvg(step=0.1, local_steps=3, momentum=0.4, proximal=0.2, commits=1), p2psim.Round()),
    "fedavg with a deadline": (
        FedAvg(step=SLOW, server_step=0.7, server_momentum=0.5, answers="equal", commits=1),
        p2psim.Round(deadline=0.9),
    ),
    "fedasync": (
        FedAsync(step=0.1, local_steps=2, staleness={"kind": "hinge", "age": 1, "rate": 2.0}, commits=1),
        p2psim.Poll(interval=0.3, response={"uniform": (0, 1.0)}),
    ),
    "fedasync whose queries overtake each other": (
        FedAsync(step=0.1, commits=1),
        p2psim.Poll(interval=0.1, response={"uniform": (0, 0.3)}),
    ),
    "fedbuff": (
        FedBuff(step=0.1, local_steps=2, buffer=3, server_momentum=0.2, commits=1),
        p2psim.Poll(interval=0.3, response={"uniform": (0, 1.0)}),
    ),
    "fedbuff of one": (FedBuff(step=0.1, buffer=1, commits=1), p2psim.Request(service=0.2)),
}


@pytest.mark.parametrize(
    ("case", "batch", "away"), few(product([*GRAPHS, *STARS], BATCHES, [False, True]), 70)
)
def test_planner_and_executor_do_what_the_reference_says(case, batch, away):
    algorithm, exchange = (GRAPHS | STARS)[case]
    topology = STAR if case in STARS else RING
    of = task(problem("logistic"), BATCHES[batch], private=True, clip=0.5)
    agree(play(algorithm, exchange, topology, of, channel=LATE, availability=AWAY if away else None))


@pytest.mark.parametrize("absence", ["interrupt", "cancel"])
@pytest.mark.parametrize("case", [*GRAPHS, *STARS])
def test_gradients_are_those_of_the_model_with_which_work_has_begun(case, absence):
    algorithm, exchange = (GRAPHS | STARS)[case]
    if exchange.delay_key:
        exchange = exchange.model_copy(update={exchange.delay_key: 0.0})
    compute = p2psim.Compute(time={"exponential": 0.4}, absence=absence)
    of = task(problem("logistic"), PoissonBatch(rate=0.4), private=True, clip=0.5)
    topology = STAR if case in STARS else RING
    # Where who answers makes no release, only every other update is computed.
    one_sided = not algorithm.answerer_releases and getattr(exchange, "mode", "") == "push-pull"
    how = {"channel": LATE, "availability": AWAY, "compute": compute, "commits": 150 if one_sided else 60}
    played = play(algorithm, exchange, topology, of, **how)
    assert (played.events["kind"] == BEGIN).sum() >= 50
    agree(played)


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", ["together gossip push-pull", "fedavg", "gossip learning update-merge age"])
def test_every_model_is_trained_alike(case, model, plain):
    """Also by the executor for models in Python."""
    algorithm, exchange = (GRAPHS | STARS)[case]
    topology = STAR if case in STARS else RING
    of = task(problem(model), PoissonBatch(rate=0.5), private=True, clip=0.3)
    agree(play(algorithm, exchange, topology, of, channel=LATE, plain=plain, commits=40))


@pytest.mark.parametrize("plain", [False, True], ids=["compiled", "plain"])
def test_pieces_of_events_do_not_matter(plain):
    """Nor does it that instructions are carried out many at a time."""
    algorithm, exchange = GRAPHS["together broadcast "]
    of = task(problem("softmax"), private=True, clip=0.5)
    one = play(algorithm, exchange, RING, of, channel=LATE, commits=120, plain=plain)
    many = play(algorithm, exchange, RING, of, channel=LATE, commits=120, pieces=40, plain=plain)
    np.testing.assert_array_equal(one.models[::40], many.models)


@pytest.mark.parametrize("case", ["gossip-then-gradient gossip push", "gossip learning merge-update equal"])
def test_who_is_spent_goes_on_without_a_gradient(case):
    algorithm, exchange = GRAPHS[case]
    of = task(problem("logistic"), private=True, clip=0.5)
    limits = np.array([3, 1, 0, 5, 2, 4])
    played = play(algorithm, exchange, RING, of, channel=LATE, limits=limits, goes_on=True, commits=80)
    agree(played)
    assert (played.events["release"] < limits.max()).all()


def test_slots_are_free_again_once_nobody_holds_a_model():
    """As many as models, messages on their way and what was heard, whatever the length of the run."""
    algorithm, exchange = GRAPHS["together gossip push-pull"]
    of = task(problem("logistic"))
    short = play(algorithm, exchange, RING, of, channel=LATE, commits=100)
    long = play(algorithm, exchange, RING, of, channel=LATE, commits=3000)
    assert long.replay._program.slots <= 2 * short.replay._program.slots


@pytest.mark.parametrize("kind", MODELS)
def test_metrics_are_those_of_each_model(kind):
    """Also those that are computed of all models together, and of one model on the records of each agent."""
    whole = problem(kind)
    random, offsets = np.random.default_rng(2), np.array([0, 3, 3, 5, 9, 10, 14])
    X, y = random.normal(size=(14, 4)), random.permutation(whole.y)[:14]
    of = replace(whole, test_X=X, test_y=y, test_offsets=offsets)
    models = random.normal(size=(6, of.dimension))
    for _ in range(2):  # again from memory
        values = [of.value(theta) for theta in models]
        np.testing.assert_allclose(of.values(models), values, rtol=1e-12)
        assert of.mean_objective(models) == pytest.approx(np.mean(values), rel=1e-12)
        assert of.objective(models) == pytest.approx(of.value(models.mean(axis=0)), rel=1e-12)
        right = np.array([of.model.predictions(of.model.outputs(theta, X)) == y for theta in models])
        np.testing.assert_array_equal(of.test_accuracy(models), right.mean(axis=1))
        np.testing.assert_array_equal(of.test_accuracy(models[2:3]), np.full(6, right[2].mean()))
        own = [slice(*pair) for pair in pairwise(offsets)]
        held = [i for i in range(6) if i != 1]  # agent 1 has no records held out
        for theta, rows in ((models, range(6)), (models[2:3], [2] * 6)):
            found = of.local_accuracy(theta)
            np.testing.assert_array_equal(found[held], [right[rows[i], own[i]].mean() for i in held])
            assert np.isnan(found[1])


def test_fedavg_of_one_full_step_is_gradient_descent_on_the_mean_of_all_records():
    of = task(problem("softmax", weights="records"))
    played = play(FedAvg(step=0.3, commits=1), p2psim.Round(), STAR, of, commits=30)
    theta = of.start.copy()
    for model in played.models[:, 0]:
        np.testing.assert_allclose(model, theta, rtol=1e-12, atol=1e-14)
        theta = theta - 0.3 * of.problem.slope(theta)


@pytest.mark.parametrize(("asked", "lost"), [("all", 0.5), (2, 0.0)])
def test_fedavg_divides_by_the_records_of_those_who_answered(asked, lost):
    """Half of the messages are lost, so that few answer; or only two owners are drawn for a round."""
    of = task(problem("squared", weights="records"))
    exchange = p2psim.Round() if asked == "all" else p2psim.Round(participants=asked)
    played = play(
        FedAvg(step=0.1, commits=1), exchange, STAR, of, commits=20, channel=p2psim.Channel(loss=lost)
    )
    events, problem_ = played.events, of.problem
    theta, answered, at = of.start.copy(), [], 1
    for event in events:
        if event["kind"] == 2 and event["agent"] == -1:
            answered.append(int(event["peer"]))
        elif event["kind"] == 4:
            rows = [r for i in answered for r in range(problem_.offsets[i], problem_.offsets[i + 1])]
            if rows:
                mean = problem_.model.gradients(theta, problem_.X[rows], problem_.y[rows]).mean(axis=0)
                theta = theta - 0.1 * (mean + 2 * problem_.l2 * theta)
            np.testing.assert_allclose(played.models[at, 0], theta, rtol=1e-12, atol=1e-14)
            answered, at = [], at + 1


def test_fedasync_without_delay_is_sequential_sgd():
    """With step α·η."""
    of = task(problem("logistic"))
    played = play(FedAsync(step=0.2, alpha=0.3, commits=1), p2psim.Request(), STAR, of, commits=50)
    theta, problem_ = of.start.copy(), of.problem
    owners = played.events["peer"][(played.events["kind"] == 4)]
    for model, owner in zip(played.models[1:, 0], owners.tolist(), strict=True):
        rows = slice(problem_.offsets[owner], problem_.offsets[owner + 1])
        mean = problem_.model.gradients(theta, problem_.X[rows], problem_.y[rows]).mean(axis=0)
        theta = theta - 0.3 * 0.2 * (mean + 2 * problem_.l2 * theta)
        np.testing.assert_allclose(model, theta, rtol=1e-12, atol=1e-14)


def test_pairs_take_the_mean_and_the_gradient_of_the_model_before_it():
    """AD-PSGD without delays: both ends of a meeting become the mean, and who woke steps along its gradient at its own
    model as it was."""
    of = task(problem("logistic"))
    pairs = p2psim.Gossip(mode="push-pull")
    played = play(DecentralisedSgd(step=0.2, order="together", commits=1), pairs, RING, of, commits=40)
    commits, problem_ = played.events[played.events["kind"] == 4], of.problem
    for at in range(0, 40, 2):
        (i,), (j,) = (
            commits["agent"][at : at + 2][(commits["release"][at : at + 2] >= 0) == woke]
            for woke in (True, False)
        )
        before, after = played.models[at], played.models[at + 2]
        rows = slice(problem_.offsets[i], problem_.offsets[i + 1])
        slope = problem_.model.gradients(before[i], problem_.X[rows], problem_.y[rows]).mean(axis=0)
        mean = (before[i] + before[j]) / 2
        np.testing.assert_allclose(after[j], mean, rtol=1e-12, atol=1e-14)
        stepped = mean - 0.2 * (slope + 2 * problem_.l2 * before[i])
        np.testing.assert_allclose(after[i], stepped, rtol=1e-12, atol=1e-14)


def test_fedbuff_of_one_answer_at_once_is_sequential_sgd():
    of = task(problem("logistic"))
    one = play(
        FedBuff(step=0.2, buffer=1, server_step=0.3, commits=1), p2psim.Request(), STAR, of, commits=50
    )
    other = play(FedAsync(step=0.2, alpha=0.3, commits=1), p2psim.Request(), STAR, of, commits=50)
    np.testing.assert_allclose(one.models, other.models, rtol=1e-12, atol=1e-14)


def test_a_random_walk_updates_one_model_by_one_agent_after_another():
    """On a directed circle with one walker's worth of pushes, ages count its updates."""
    of = task(problem("squared", l2=0.0))
    played = play(
        GossipLearning(step=0.1, merge="walk", commits=1), p2psim.Gossip(mode="push"), RING, of, commits=40
    )
    # Every commit's model is one step from the model that was sent.
    sent: dict[int, np.ndarray] = {}
    heard: dict[int, np.ndarray] = {}
    models, at, problem_ = [of.start] * 6, 1, of.problem
    for event in played.events:
        kind, i, seq, cause = (int(event[name]) for name in ("kind", "agent", "seq", "cause"))
        if kind == 1:
            sent[seq] = models[i]
        elif kind == 2:
            heard[seq] = sent[cause]
        elif kind == 4:
            rows = slice(problem_.offsets[i], problem_.offsets[i + 1])
            x = heard[cause]
            mean = problem_.model.gradients(x, problem_.X[rows], problem_.y[rows]).mean(axis=0)
            models[i] = x - 0.1 * mean
            np.testing.assert_allclose(played.models[at, i], models[i], rtol=1e-12, atol=1e-14)
            at += 1
