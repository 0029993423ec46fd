"""Coordinate descent, compiled, against the plain reference, and the reference against the paper's update."""

import math
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from graph_cases import (
    LOSSES,
    SLOPES,
    commits_of,
    graph_events,
    laplace_noise,
    paths,
    problem_of,
    random_links,
    record_counts,
    released,
    replayed,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.core.distributions import Distribution
from p2psim.core.events import COMMIT, DELIVER, DROP, NEIGHBOURS, SEND
from p2psim.learning.graph.problem import GraphProblem, GraphRule, GraphTask
from p2psim.learning.graph.replay import GraphReplay
from p2psim.learning.losses import Logistic, Squared
from p2psim.learning.owner_kernel import EXCEEDED, UNKNOWN, WITHIN, Records, evaluate
from p2psim.learning.reference import reference_replay
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Broadcast, Gossip
from p2psim.network.graph import links

CHANNELS = {
    "ideal": Channel(),
    "delay": Channel(latency=0.7),
    "reordering": Channel(latency=Distribution(exponential=2.0)),
    "lossy": Channel(latency=Distribution(uniform=(0.0, 3.0)), loss=0.4),
}
EXCHANGES = [Broadcast(), Gossip(), Gossip(partner="weight"), Gossip(mode="pull"), Gossip(mode="push-pull")]


#: ℓ of several records, in extended precision.
VALUES = {
    "squared": lambda z, y: (z - y) ** 2,
    "logistic": lambda z, y: np.logaddexp(np.longdouble(0), -y * z),
    "huber": lambda z, y: np.where(abs(z - y) <= 1, (z - y) ** 2, 2 * abs(z - y) - 1),
}

#: ℓ and ∂ℓ/∂z of one record.
PLAIN = {
    "squared": lambda z, t: ((z - t) ** 2, 2 * (z - t)),
    "logistic": lambda z, t: (math.log1p(math.exp(-t * z)), -t / (1 + math.exp(t * z))),
    "huber": lambda z, t: (
        (z - t) ** 2 if abs(z - t) <= 1 else 2 * abs(z - t) - 1,
        2 * min(max(z - t, -1), 1),
    ),
}


@st.composite
def runs(draw):
    """A problem on a random graph, a rule, its first models and anchors, its events, and their noise."""
    loss = LOSSES[draw(st.sampled_from(sorted(LOSSES)))](intercept=draw(st.booleans()))
    sizes = draw(record_counts)
    seed = draw(st.integers(0, 10_000))
    where = random_links(len(sizes), seed, draw(st.integers(0, 8)))
    problem = problem_of(
        loss, where, sizes, draw(st.integers(1, 4)), draw(st.sampled_from([0.01, 1.0, 20.0])), seed
    )
    order = draw(st.sampled_from([None, 1, 2]))
    clip = np.inf if order is None else draw(st.sampled_from([0.05, 1.0, 1e3]))
    grid = draw(st.sampled_from([None, None, 0.01, 0.3]))
    rule = GraphRule(clip, order or 1, anchored=draw(st.booleans()), grid=grid)
    limit = draw(st.sampled_from([None, 0, 1, 5]))
    events = graph_events(
        where,
        60,
        seed,
        draw(st.sampled_from(EXCHANGES)),
        draw(st.sampled_from(list(CHANNELS.values()))),
        None if limit is None else np.full(len(sizes), limit),
        goes_on=True,
    )
    random = np.random.default_rng(seed)
    start = draw(st.sampled_from([0.0, 1.0])) * random.standard_normal((len(sizes), problem.dimension))
    anchor = None if draw(st.booleans()) else random.standard_normal(start.shape)
    noise = laplace_noise(events, problem.dimension, draw(st.sampled_from([0.0, 0.5])), seed)
    return problem, rule, start, anchor, events, noise


@settings(max_examples=200)
@given(run=runs())
def test_compiled_equals_plain(run):
    problem, rule, start, anchor, events, noise = run
    plain = np.array(list(reference_replay(GraphTask(problem, rule, start, anchor), events, noise)))
    made = paths(problem, rule, start, events, noise, anchor=anchor)
    assert made.shape == plain.shape == (61, *start.shape)
    assert np.abs(made - plain).max() <= 1e-12 * max(np.abs(plain).max(), 1e-300)


@pytest.mark.parametrize("chunk", [None, 7])
def test_models_that_no_cache_holds_equal_plain(chunk):
    """What is known of the agents that commit next is fetched ahead, up to the last of the events."""
    where, sizes = random_links(300, 4, 600), [1, 0, 3] * 100
    problem = problem_of(Squared(), where, sizes, 120, 1.0, 4)
    rule, start = GraphRule(np.inf, 1), np.random.default_rng(4).standard_normal((300, 120))
    events = graph_events(where, 150, 4, Broadcast(), Channel(loss=0.1), None, goes_on=True)
    noise = laplace_noise(events, 120, 0.1, 4)
    *_, plain = reference_replay(GraphTask(problem, rule, start, None), events, noise)
    made = replayed(problem, rule, start, events, noise, *([] if chunk is None else [chunk])).theta
    assert np.abs(made - plain).max() <= 1e-12 * np.abs(plain).max()


@settings(max_examples=60)
@given(run=runs(), chunk=st.integers(1, 50))
def test_pieces_of_any_size_give_the_same_bytes(run, chunk):
    problem, rule, start, anchor, events, noise = run
    whole = replayed(problem, rule, start, events, noise, anchor=anchor)
    pieces = replayed(problem, rule, start, events, noise, chunk, anchor)
    assert pieces.theta.tobytes() == whole.theta.tobytes()
    assert pieces.local.tobytes() == whole.local.tobytes()
    assert pieces.objective == whole.objective
    assert pieces.vectors_sent == whole.vectors_sent
    assert pieces.versions_held == whole.versions_held


@settings(max_examples=100)
@given(run=runs(), claimed=st.sampled_from([0.05, 0.5, 5.0]))
def test_what_is_tracked_and_when_gradients_are_found_change_nothing(run, claimed):
    problem, rule, start, anchor, events, noise = run
    rule = replace(rule, bound=claimed)
    made = []
    for track in (True, False):
        replay = GraphReplay(GraphTask(problem, rule, start, anchor), track=track)
        replay.feed(events, noise)
        made.append((replay.theta.tobytes(), replay.violations.counts.tolist()))
    assert made[0] == made[1]


@settings(max_examples=100)
@given(
    kind=st.sampled_from(sorted(LOSSES)),
    records=st.integers(0, 70),
    p=st.integers(1, 9),
    clip=st.sampled_from([np.inf, 0.3]),
    order=st.sampled_from([1, 2]),
    seed=st.integers(0, 10_000),
)
def test_loss_and_gradient_are_those_of_the_records_alone(kind, records, p, clip, order, seed):
    """In the plain formula, record by record; whether some gradient exceeds a bound; and losses alone are the same."""
    random, loss = np.random.default_rng(seed), LOSSES[kind]()
    X, theta = random.standard_normal((records, p)), random.standard_normal(p)
    y = random.choice([-1.0, 1.0], records)
    norms = np.linalg.norm(X, ord=order, axis=1)
    out = np.empty(p)
    bound = 0.9
    held = Records(loss.for_kernel(), X, y, norms, np.array([0, records]), clip, bound)
    value, known = evaluate(held, 0, theta, out)
    total, gradient, exceeded = 0.0, np.zeros(p), False
    for x, t in zip(X, y, strict=True):
        z = float(x @ theta)
        one_loss, slope = PLAIN[kind](z, t)
        total += one_loss
        length = abs(slope) * np.linalg.norm(x, ord=order)
        exceeded = exceeded or bool(length > bound)
        gradient += slope * x * min(1.0, clip / length)
    count = max(records, 1)
    assert value == pytest.approx(total / count, rel=1e-12, abs=1e-14)
    assert out == pytest.approx(gradient / count, rel=1e-11, abs=1e-13)
    assert known == (EXCEEDED if exceeded else WITHIN)
    alone = evaluate(held, 0, theta, np.empty(0))
    assert alone == (value, UNKNOWN)


def transcribed(problem, start, commits, noise):
    """Theory's update with delay 0, by broadcast: Θ_j of all neighbours is always the present one."""
    W = np.zeros((problem.agents, problem.agents))
    for i in range(problem.agents):
        W[i, problem.indices[problem.indptr[i] : problem.indptr[i + 1]]] = problem.weights[
            problem.indptr[i] : problem.indptr[i + 1]
        ]
    theta, made = start.copy(), []
    for i, eta in zip(commits["agent"], noise, strict=True):
        D, c, lam = W[i].sum(), problem.confidence[i], problem.ridge[i]
        X, y = (rows[problem.offsets[i] : problem.offsets[i + 1]] for rows in (problem.X, problem.y))
        gradients = [SLOPES[problem.loss.kind](x @ theta[i], t) * x for x, t in zip(X, y, strict=True)]
        grad = sum(gradients) / len(y) + 2 * lam * theta[i]
        alpha = 1 / (1 + problem.mu * c * problem.smoothness[i])
        theta[i] = (1 - alpha) * theta[i] + alpha * (W[i] @ theta / D - problem.mu * c * (grad + eta))
        made.append(theta.copy())
    return np.array(made)


@settings(max_examples=60)
@given(
    kind=st.sampled_from(sorted(LOSSES)), sizes=record_counts, seed=st.integers(0, 10_000),
    mu=st.sampled_from([0.05, 2.0]), scale=st.sampled_from([0.0, 1.0]),
)  # fmt: skip
def test_plain_equals_the_papers_update(kind, sizes, seed, mu, scale):
    where = random_links(len(sizes), seed, 4)
    problem = problem_of(LOSSES[kind](), where, sizes, 3, mu, seed)
    events = graph_events(where, 50, seed)
    noise = laplace_noise(events, 3, scale, seed)
    start = np.random.default_rng(seed).standard_normal((len(sizes), 3))
    commits = commits_of(events)
    ordered = np.empty_like(noise)
    row = 0
    for i in range(len(sizes)):
        mine = np.flatnonzero(commits["agent"] == i)
        ordered[mine] = noise[row : row + mine.size]
        row += mine.size
    expected = transcribed(problem, start, commits, ordered)
    for models in (
        np.array(list(reference_replay(GraphTask(problem, GraphRule(), start), events, noise))),
        paths(problem, GraphRule(), start, events, noise),
    ):
        np.testing.assert_allclose(models[1:], expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def only_averages(where, start):
    """A problem on which an update is half the agent's own model and half the mean of its neighbours': α = 1/2."""
    agents = where.agents
    offsets = np.arange(agents + 1)
    return GraphProblem(
        Squared(), 1.0, np.zeros((agents, 1)), np.zeros(agents), offsets, np.zeros(agents), np.ones(agents),
        np.ones(agents), where.indptr, where.indices, where.weights, np.empty((0, 1)), np.empty(0),
        np.zeros(agents + 1, np.int64),
    )  # fmt: skip


def test_neighbours_know_the_start_before_anything_arrives():
    where = links(nx.path_graph(3))
    start = np.array([[1.0], [5.0], [-3.0]])
    events = graph_events(where, 30, 1, channel=Channel(latency=1e6))
    theta = start[:, 0].copy()
    for i in commits_of(events)["agent"]:
        near = {0: [1], 1: [0, 2], 2: [1]}[int(i)]
        theta[i] = theta[i] / 2 + start[near, 0].mean() / 2
    problem = only_averages(where, start)
    replay = replayed(problem, GraphRule(), start, events, np.zeros((30, 1)))
    np.testing.assert_allclose(replay.theta[:, 0], theta, rtol=1e-14)


def message(seq, kind, agent, peer, version, cause, release=-1):
    return (seq, float(seq), version, cause, agent, peer, release, kind, 0)


def test_an_older_version_never_overwrites_a_newer_one():
    """Agent 0 sends versions 1 and 2; the second arrives first."""
    from p2psim.core.events import EVENT

    where = links(nx.path_graph(2))
    start = np.array([[8.0], [0.0]])
    events = np.array(
        [
            message(0, COMMIT, 0, -2, 1, -1, 0),  # θ_0 = 4
            message(1, SEND, 0, 1, 1, 0, 0),
            message(2, COMMIT, 0, -2, 2, -1, 1),  # θ_0 = 2
            message(3, SEND, 0, 1, 2, 2, 1),
            message(4, DELIVER, 1, 0, 2, 3, 1),
            message(5, DELIVER, 1, 0, 1, 1, 0),
            message(6, COMMIT, 1, -2, 1, -1, 0),  # θ_1 = 0/2 + 2/2
        ],
        EVENT,
    )
    problem = only_averages(where, start)
    noise = np.zeros((3, 1))
    assert replayed(problem, GraphRule(), start, events, noise).theta.tolist() == [[2.0], [1.0]]
    assert [m.tolist() for m in reference_replay(GraphTask(problem, GraphRule(), start), events, noise)][
        -1
    ] == [
        [2.0],
        [1.0],
    ]


def test_reordering_happens_and_the_newest_received_is_what_counts():
    """What the commits used, against a dictionary of newest versions; older arrivals are many."""
    where = random_links(12, 3, 10)
    start = np.random.default_rng(0).standard_normal((12, 1))
    events = graph_events(where, 600, 2, channel=CHANNELS["reordering"])
    problem = only_averages(where, start)
    newest = {(i, int(j)): 0 for i in range(12) for j in where.of(i)}
    models = {(i, 0): start[i, 0] for i in range(12)}
    theta, late = start[:, 0].copy(), 0
    for event in events:
        i, peer, version = int(event["agent"]), int(event["peer"]), int(event["version"])
        if event["kind"] == SEND:
            models[i, version] = theta[i]
        elif event["kind"] == DELIVER:
            late += version < newest[i, peer]
            newest[i, peer] = max(newest[i, peer], version)
        elif event["kind"] == COMMIT:
            known = np.array([models[int(j), newest[i, int(j)]] for j in where.of(i)])
            theta[i] = theta[i] / 2 + np.average(known, weights=where.weights_of(i)) / 2
    assert late > 300
    replay = replayed(problem, GraphRule(), start, events, np.zeros((600, 1)))
    np.testing.assert_allclose(replay.theta[:, 0], theta, rtol=1e-12)


@pytest.mark.parametrize("kind", sorted(LOSSES))
@pytest.mark.parametrize("channel", CHANNELS)
def test_objective_kept_up_to_date_is_the_objective(kind, channel):
    """Over 30,000 updates, with neighbours' models stale or not: 1e-12 of Q_L, at each of 60 moments."""
    sizes = [1, 5, 40, 33, 64, 100, 7, 8, 9, 300, 2, 16]
    where = random_links(len(sizes), 5, 12)
    problem = problem_of(LOSSES[kind](), where, sizes, 5, 1.0, 4)
    events = graph_events(where, 30_000, 7, channel=CHANNELS[channel])
    noise = laplace_noise(events, 5, 0.02, 1)
    compared = []

    def look(replay, _):
        compared.append(abs(replay.objective / objective(problem, replay.theta) - 1))

    replayed(problem, GraphRule(), np.zeros((len(sizes), 5)), events, noise, events.size // 60, seen=look)
    assert max(compared) < 1e-12


@pytest.mark.parametrize("kind", sorted(LOSSES))
@pytest.mark.parametrize("start", [0.0, 1e12])
def test_objective_kept_up_to_date_outlives_what_was_far_larger(kind, start):
    """Models go from 1e12 down to 1: squares of what was, 1e24, would leave errors of 1e8."""
    sizes = [5, 40, 33, 8, 2, 16]
    where = random_links(len(sizes), 5, 6)
    problem = problem_of(LOSSES[kind](), where, sizes, 3, 1.0, 4)
    events = graph_events(where, 3_000, 7)
    noise = laplace_noise(events, 3, 1.0, 1)
    # By the number of the release: noise is ordered by agent.
    number = np.concatenate([np.arange(n) for n in np.bincount(released(events)["agent"])])
    noise *= 10.0 ** np.maximum(12 - number / 15, -3)[:, None]
    compared, seen = [], []

    def look(replay, _):
        seen.append(replay.objective)
        compared.append(abs(replay.objective / objective(problem, replay.theta) - 1))

    first = np.full((len(sizes), 3), start)
    replayed(problem, GraphRule(), first, events, noise, events.size // 100, seen=look)
    assert max(seen) > 1e10 * seen[-1]
    assert max(compared) < 1e-11


def objective(problem, theta):
    """Q_L from its definition, in extended precision; every link once."""
    big = np.longdouble
    total = big(0)
    for i in range(problem.agents):
        for e in range(problem.indptr[i], problem.indptr[i + 1]):
            j = problem.indices[e]
            if i < j:
                total += big(problem.weights[e]) / 2 * ((theta[i].astype(big) - theta[j]) ** 2).sum()
        rows = slice(problem.offsets[i], problem.offsets[i + 1])
        z = problem.X[rows].astype(big) @ theta[i].astype(big)
        losses = VALUES[problem.loss.kind](z, problem.y[rows])
        local = losses.mean() + problem.ridge[i] * (theta[i].astype(big) ** 2).sum()
        degree = problem.weights[problem.indptr[i] : problem.indptr[i + 1]].sum()
        total += big(problem.mu) * degree * problem.confidence[i] * local
    return float(total)


@settings(max_examples=100)
@given(
    records=st.integers(1, 400),
    scale=st.sampled_from([1e-9, 1e-3, 1.0, 30.0, 1e4]),
    seed=st.integers(0, 10_000),
)
def test_logarithms_of_products_are_sums_of_logarithms(records, scale, seed):
    """Each factor 1 + e is rounded once and each product once: 2**-53 a record. And every sum of a logarithm is."""
    random = np.random.default_rng(seed)
    X, theta = random.standard_normal((records, 3)), scale * random.standard_normal(3)
    y = random.choice([-1.0, 1.0], records)
    gradient = np.empty(3)
    norms = np.linalg.norm(X, axis=1)
    held = Records(Logistic.code, X, y, norms, np.array([0, records]), np.inf, np.inf)
    made, _ = evaluate(held, 0, theta, gradient)
    z = np.array([sum(x[a] * theta[a] for a in range(3)) for x in X])
    exact = np.logaddexp(np.longdouble(0), -(y * z).astype(np.longdouble)).mean()
    # Scores may differ in their last places between compilers that fuse products and sums.
    apart = 8 * np.finfo(float).eps * np.abs(X * theta).sum(axis=1).mean()
    roundings = 4 + records / 32
    assert abs(made - exact) <= roundings * 2.0**-53 * (1 + abs(exact)) + apart
    expected = (Logistic.slopes(z, y)[:, None] * X).mean(axis=0)
    assert gradient == pytest.approx(expected, rel=1e-12, abs=(apart + 1e-14) * np.abs(X).max())


def counted(where, events):
    """Versions that are some agent's newest of a neighbour, or on their way, after each event.

    And the most events from a send to the last of its receivers, plus one.
    """
    known = {(i, int(j)): (int(j), 0) for i in range(where.agents) for j in where.of(i)}
    holders: dict[tuple[int, int], int] = {}
    for one in known.values():
        holders[one] = holders.get(one, 0) + 1
    # Two sends of one version are two payloads; tell them apart by the send.
    flying: dict[int, tuple[tuple[int, int], int]] = {}
    span, held = 0, []
    for event in events:
        agent, peer = int(event["agent"]), int(event["peer"])
        if event["kind"] == SEND and event["version"] >= 0:
            payload = (-1, int(event["seq"]))
            receivers = where.of(agent).size if peer == NEIGHBOURS else 1
            flying[int(event["seq"])] = payload, receivers
            holders[payload] = 1
        elif event["kind"] in (DELIVER, DROP) and int(event["cause"]) in flying:
            payload, left = flying[int(event["cause"])]
            if event["kind"] == DELIVER and event["version"] > version_of(known[agent, peer], events):
                let_go(holders, known[agent, peer])
                known[agent, peer] = payload
                holders[payload] += 1
            flying[int(event["cause"])] = payload, left - 1
            if left == 1:
                del flying[int(event["cause"])]
                let_go(holders, payload)
        span = max([span, *(int(event["seq"]) - seq + 1 for seq in list(flying)[:1])])
        held.append(len(holders))
    return np.array(held), span


def let_go(holders, payload):
    holders[payload] -= 1
    if not holders[payload]:
        del holders[payload]


def version_of(payload, events):
    return 0 if payload[0] >= 0 else int(events["version"][payload[1]])


@pytest.mark.parametrize(
    "exchange", [Broadcast(), Gossip(), Gossip(mode="push-pull")], ids=["broadcast", "push", "push-pull"]
)
@pytest.mark.parametrize("latency", [0.0, 3.0], ids=["prompt", "late"])
def test_versions_of_lost_messages_are_freed(exchange, latency):
    where = random_links(10, 1, 15)
    channel = Channel(latency=Distribution(uniform=(0.0, latency)) if latency else 0.0, loss=0.5)
    problem = problem_of(Squared(), where, [3] * 10, 3, 1.0)
    events = graph_events(where, 8_000, 2, exchange, channel)
    assert (events["kind"] == DROP).sum() > 3_000
    held, span = counted(where, events)
    rows, places = [], []

    def look(replay, seen):
        assert replay.versions_held == held[seen - 1]
        rows.append(len(replay.mail.payloads))
        places.append(len(replay.mail.places))

    replayed(
        problem, GraphRule(), np.zeros((10, 3)), events, np.zeros((released(events).size, 3)), 500, seen=look
    )
    # Room for what is held at once: reached early, and not growing with the run.
    assert rows[-1] == rows[len(rows) // 4]
    assert rows[-1] <= 1.25 * held.max() + 64
    assert places[-1] == places[len(places) // 4]
    assert places[-1] <= max(64, 2 * span)


def test_violations_of_a_claimed_bound_are_counted_by_release():
    where = links(nx.path_graph(2))
    problem = problem_of(Squared(), where, [1, 1], 1, 1.0, 3)
    events = graph_events(where, 40, 1)
    start = np.zeros((2, 1))
    largest = np.zeros((2, 41))
    models = paths(problem, GraphRule(), start, events, np.zeros((40, 1)))
    for i in range(2):
        x, y = problem.X[i, 0], problem.y[i]
        largest[i] = np.abs(2 * (x * models[:, i, 0] - y) * x)
    who = commits_of(events)["agent"]
    bound = float(np.median(largest))
    replay = replayed(problem, GraphRule(bound=bound), start, events, np.zeros((40, 1)))
    expected = [sum(largest[i, k] > bound for k in range(40) if who[k] == i) for i in range(2)]
    assert replay.violations.counts.tolist() == expected
    assert 0 < sum(expected) < 40


def test_a_model_that_is_not_finite_is_told(monkeypatch):
    from p2psim.core.errors import SimulationError

    where = links(nx.path_graph(2))
    problem = problem_of(Squared(), where, [2, 2], 2, 1.0)
    replay = GraphReplay(GraphTask(problem, GraphRule(), np.zeros((2, 2))))
    replay.theta[1] = np.nan
    with pytest.raises(SimulationError, match="model of agent 1 is not finite"):
        replay.check()
