"""Batches of agents on a graph: the kernels against the plain references."""

import numpy as np
import pytest
from gossip_cases import play, problem_on, releases, ring
from graph_cases import (
    LOSSES,
    graph_events,
    in_order_of_events,
    laplace_noise,
    paths,
    problem_of,
    random_links,
    replayed,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from p2psim.core.events import COMMIT, SEND
from p2psim.core.randomness import stream_key
from p2psim.learning.batches import FixedBatch, PoissonBatch, sampling
from p2psim.learning.graph.admm import AdmmReplay, AdmmRule
from p2psim.learning.graph.problem import GraphRule, GraphTask
from p2psim.learning.graph.replay import GraphReplay
from p2psim.learning.reference import reference_replay, reference_replay_admm


def fed(replay, events):
    """A replay without noise."""
    replay.feed(events, np.zeros((len(releases(events)), replay.theta.shape[1])))
    return replay


KEY = stream_key(5, 0, "batches")
BATCHES = [PoissonBatch(rate=0.3), PoissonBatch(rate=1.0), FixedBatch(size=2)]


@settings(max_examples=30)
@given(
    kind=st.sampled_from(sorted(LOSSES)),
    batch=st.sampled_from(BATCHES),
    seed=st.integers(0, 1000),
    order=st.sampled_from([1, 2]),
    clip=st.sampled_from([np.inf, 0.5]),
    limits=st.sampled_from([None, 4]),
)
def test_descent_equals_plain(kind, batch, seed, order, clip, limits):
    """Of agents some of whom hold nothing, and some of whom stop to release before the end."""
    sizes, start = [3, 9, 0, 30], np.zeros((4, 3))
    where = random_links(4, seed, 3)
    problem = problem_of(LOSSES[kind](), where, sizes, 3, 0.4, seed)
    most = None if limits is None else np.full(4, limits)
    events = graph_events(where, 50, seed, limits=most, goes_on=True)
    noise, rule = laplace_noise(events, 3, 0.1, seed), GraphRule(clip, order)
    how = sampling(batch, problem.records, KEY)
    plain = np.array(list(reference_replay(GraphTask(problem, rule, start, sampling=how), events, noise)))
    found = paths(problem, rule, start, events, noise, sampling=how)
    assert np.abs(found - plain).max() <= 1e-12 * np.abs(plain).max()
    # What is tracked beside it is the objective of all records.
    replay = replayed(problem, rule, start, events, noise, sampling=how)
    np.testing.assert_allclose(replay.objective, problem.objective(replay.theta), rtol=1e-9)


@pytest.mark.parametrize("batch", BATCHES, ids=repr)
@pytest.mark.parametrize("inner", [1, 3])
def test_admm_equals_plain(batch, inner):
    links = ring(5)
    problem = problem_on(links, LOSSES["logistic"](), 2, 0)
    events, start = play(links, "edge", commits=60), np.zeros((5, 2))
    how = sampling(batch, problem.records, KEY)
    rule = AdmmRule(rho=1.0, inner=inner, clip=0.5)
    replay = fed(AdmmReplay(GraphTask(problem, rule, start, sampling=how)), events)
    noise = np.zeros((events.size, 2))
    *_, plain = reference_replay_admm(GraphTask(problem, rule, start, sampling=how), events, noise)
    np.testing.assert_allclose(replay.theta, plain, rtol=1e-10, atol=1e-12)


def longest_at_releases(problem, events, rule, start, noise, how):
    """Of each release, by agent in order: the commits before it, and the longest gradient of any of its records."""
    path = reference_replay(GraphTask(problem, rule, start, sampling=how), events, noise)
    theta, step, seen = next(path), 0, {i: [] for i in range(problem.agents)}
    for event in events[events["kind"] == COMMIT]:
        i = int(event["agent"])
        rows = slice(problem.offsets[i], problem.offsets[i + 1])
        slopes = problem.loss.slopes(problem.X[rows] @ theta[i], problem.y[rows])
        norms = np.linalg.norm(slopes[:, None] * problem.X[rows], ord=rule.order, axis=1)
        if event["release"] >= 0:
            seen[i].append((step, float(norms.max(initial=0.0))))
        theta, step = next(path), step + 1
    return seen


@pytest.mark.parametrize("batch", [None, PoissonBatch(rate=0.2), FixedBatch(size=2)], ids=repr)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("track", [True, False])
def test_violations_have_their_first_step_and_largest_size_whoever_is_drawn(batch, order, track):
    sizes, start = [2, 9, 0, 30], np.zeros((4, 3))
    where = random_links(4, 3, 3)
    problem = problem_of(LOSSES["squared"](), where, sizes, 3, 0.4, 3)
    events = graph_events(where, 60, 3)
    noise = laplace_noise(events, 3, 0.5)
    how = None if batch is None else sampling(batch, problem.records, KEY)
    seen = longest_at_releases(problem, events, GraphRule(order=order), start, noise, how)
    every = np.concatenate([[size for _, size in one] for one in seen.values()])
    counts = set()
    for bound in np.quantile(every[every > 0], [0.3, 0.8, 0.97]):
        rule = GraphRule(order=order, bound=float(bound) * (1 + 1e-9))
        replay = GraphReplay(GraphTask(problem, rule, start, sampling=how), track=track)
        replay.feed(events, in_order_of_events(events, noise, 4))
        for i, made in seen.items():
            broken = [(step, size) for step, size in made if size > rule.bound]
            assert replay.violations.counts[i] == len(broken)
            assert replay.violations.steps[i] == (broken[0][0] if broken else -1)
            largest = max((size for _, size in broken), default=0.0) / rule.bound
            assert replay.violations.sizes[i] == pytest.approx(largest, rel=1e-9)
        counts.add(tuple(replay.violations.counts))
    assert len(counts) == 3


def test_violations_of_admm_have_step_and_size():
    links = ring(5)
    problem = problem_on(links, LOSSES["logistic"](), 2, 0)
    events = play(links, "edge", commits=50)
    replay = fed(AdmmReplay(GraphTask(problem, AdmmRule(rho=1.0, bound=1e-3), np.zeros((5, 2)))), events)
    # At the start the slope of every record is one half.
    assert (replay.violations.sizes[problem.records > 0] > 100).all()
    first = {}
    for step, event in zip(np.cumsum(events["kind"] == COMMIT), events, strict=True):
        if event["kind"] == SEND and event["release"] == 0:
            first[int(event["agent"])] = int(step)
    held = np.flatnonzero(problem.records > 0)
    assert replay.violations.steps[held].tolist() == [first[int(i)] for i in held]
