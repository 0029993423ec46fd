"""The compiled replay against the plain reference, the reference against the paper's formulas, and both on a line."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from star_cases import LOSSES, random_problem, releases_of, replay_compiled, star_events

from p2psim.core.distributions import Distribution
from p2psim.core.events import COMMIT, DELIVER, DROP, LEARNER, NEIGHBOURS, SEND
from p2psim.learning.batches import GradientRule
from p2psim.learning.losses import Squared
from p2psim.learning.star.algorithms import AsyncStar, StarMethod, star_method
from p2psim.learning.star.owners import FROM_MENDED_SUMS, FROM_RECORDS, FROM_SUMS
from p2psim.learning.star.problem import gradient_rule, star_problem
from p2psim.learning.star.reference import reference_replay
from p2psim.learning.star.replay import StarReplay
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Poll, Request
from p2psim.scenario.record import EveryTime

EXCHANGES = [
    (Request(), Channel()),
    (Request(service=Distribution(exponential=0.3)), Channel()),
    (Request(service=0.5, busy="queue"), Channel(latency=0.1)),
    (Request(service=Distribution(uniform=(0.0, 1.0)), busy="queue"), Channel(loss=0.3)),
    (Poll(), Channel()),
    (Poll(interval=0.5, response=Distribution(exponential=0.4)), Channel(loss=0.3)),
    (Poll(response=0.2), Channel(latency=Distribution(uniform=(0.0, 3.0)), loss=0.5)),
]


@st.composite
def runs(draw):
    """A star, its events and its noise; h is at most 1 where the loss is curved."""
    loss = LOSSES[draw(st.sampled_from(sorted(LOSSES)))](intercept=draw(st.booleans()))
    sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=5))
    seed = draw(st.integers(0, 10_000))
    problem = random_problem(
        loss,
        sizes,
        draw(st.integers(1, 4)),
        seed,
        l2=draw(st.sampled_from([1e-4, 0.1])),
        theta_max=draw(st.sampled_from([0.3, 2.0])),
    )
    exchange, channel = draw(st.sampled_from(EXCHANGES))
    events = star_events(len(sizes), 60, seed, exchange, channel)
    form, stale = (
        draw(st.sampled_from(["printed", "corrected"])),
        draw(st.sampled_from(["blend", "overwrite"])),
    )
    steepest = problem.hessian_peaks() if loss.kind != "hinge" else np.full(len(sizes), 2.0)
    step = draw(st.floats(0.05, 1.0)) / float((len(sizes) * problem.shares * steepest).max())
    step = min(step, 0.5 / (2 * problem.l2))
    weight = (len(sizes) - 1) / len(sizes) if form == "printed" else 0.5
    method = StarMethod(step, weight, stale == "overwrite")
    clip = draw(st.sampled_from([np.inf, 0.1, 1.0, 1e6]))
    noise = draw(st.sampled_from([0.0, 0.3])) * np.random.default_rng(seed).laplace(
        size=(int(releases_of(events, len(sizes)).sum()), problem.dimension)
    )
    return problem, method, events, noise, clip


@given(
    run=runs(),
    chunk=st.integers(1, 50),
    order=st.sampled_from([1, 2]),
    grid=st.sampled_from([None, None, 0.01, 0.3]),
)
def test_compiled_equals_plain_for_chunks_of_any_size(run, chunk, order, grid):
    problem, method, events, noise, clip = run
    more = {"order": order, "grid": grid}
    plain = reference_replay(problem, method, events, noise, GradientRule(clip, **more))
    whole = replay_compiled(problem, method, events, noise, clip, every=1, **more).recorded
    assert whole.step.tolist() == list(range(61))
    difference = np.abs(whole.theta - plain).max()
    assert difference <= 1e-12 * np.abs(plain).max()
    pieces = replay_compiled(problem, method, events, noise, clip, chunk=chunk, every=1, **more).recorded
    for name in ("step", "time", "theta"):
        assert getattr(pieces, name).tobytes() == getattr(whole, name).tobytes()


def transcribed(problem, rho, T, l2, form, order, noise):
    """F Algorithm 1 with an ideal network, as theory writes it; ``order`` is who answers, noise is by answer."""
    N, n, sigma = problem.owners, problem.offsets[-1], 2 * l2
    c_L = (N - 1) / N if form == "printed" else 1 / 2
    theta_L, theta, path = np.zeros(problem.dimension), [np.zeros(problem.dimension) for _ in range(N)], []
    for i, w in zip(order, noise, strict=True):
        X, y = (a[problem.offsets[i] : problem.offsets[i + 1]] for a in (problem.X, problem.y))
        bar = (theta_L + theta[i]) / 2
        Q = sum(problem.loss.slopes(x @ bar, t) * x for x, t in zip(X, y, strict=True)) / len(y) + w
        dg = 2 * l2 * bar
        theta[i] = np.clip(
            bar - N * rho / (T**2 * sigma) * (dg / (2 * N) + len(y) / n * Q),
            -problem.theta_max,
            problem.theta_max,
        )
        theta_L = np.clip(bar - c_L * rho / (T**2 * sigma) * dg, -problem.theta_max, problem.theta_max)
        path.append(theta_L)
    return np.array(path)


@settings(max_examples=40)
@given(
    kind=st.sampled_from(sorted(LOSSES)), form=st.sampled_from(["printed", "corrected"]), seed=st.integers(0, 10_000),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4), noisy=st.booleans(),
)  # fmt: skip
def test_plain_equals_the_papers_formulas(kind, form, seed, sizes, noisy):
    T, l2, N = 50, 0.01, len(sizes)
    problem = random_problem(LOSSES[kind](), sizes, 3, seed, l2=l2, theta_max=0.5)
    rho = 0.1 * T**2 * 2 * l2
    algorithm = AsyncStar(horizon=T, rho=rho, theta_max=0.5, form=form)
    events = star_events(N, T, seed)
    order = events["peer"][events["kind"] == COMMIT]
    made = np.bincount(order, minlength=N)
    noise = noisy * np.random.default_rng(seed).laplace(size=(T, problem.dimension))
    # From (agent, release) to the order of answers.
    row, by_answer = np.cumsum(made) - made, []
    for i in order:
        by_answer.append(noise[row[i]])
        row[i] += 1
    expected = transcribed(problem, rho, T, l2, form, order, by_answer)
    plain = reference_replay(problem, star_method(algorithm, rho, l2, N), events, noise)
    np.testing.assert_allclose(plain[1:], expected, rtol=1e-12, atol=1e-13)


@given(
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    seed=st.integers(0, 10_000),
    intercept=st.booleans(),
)
def test_gradients_from_sums_equal_those_from_records(sizes, seed, intercept):
    """A clipping norm just below the largest gradient on Θ asks for mended sums; nothing is clipped on the way."""
    problem = random_problem(Squared(intercept=intercept), sizes, 3, seed)
    largest = problem.largest_gradients().max()
    events = star_events(len(sizes), 40, seed)
    step = 0.3 / float((len(sizes) * problem.shares * problem.hessian_peaks()).max())
    method, noise = StarMethod(step, 0.5, False), np.zeros((40, problem.dimension))
    assert gradient_rule(problem, largest * 0.999999).how == FROM_MENDED_SUMS
    plain = reference_replay(problem, method, events, noise)
    for clip in (np.inf, largest * 1.001):
        assert gradient_rule(problem, clip).how == FROM_SUMS
        theta = replay_compiled(problem, method, events, noise, clip, every=1).recorded.theta
        np.testing.assert_allclose(theta, plain, rtol=0, atol=1e-12 * np.abs(plain).max())
    theta = replay_compiled(problem, method, events, noise, largest * 0.999999, every=1).recorded.theta
    np.testing.assert_allclose(theta, plain, rtol=0, atol=1e-12 * np.abs(plain).max())


def test_sums_are_chosen_only_where_they_are_exact():
    squared = random_problem(Squared(), [10, 20], 3, seed=0)
    largest = squared.largest_gradients().max()
    assert gradient_rule(squared).how == FROM_SUMS
    assert gradient_rule(squared, clip=largest).how == FROM_SUMS
    assert gradient_rule(squared, clip=largest * 0.99).how == FROM_MENDED_SUMS
    # Clipped gradients often add up to what lies between two points of a grid.
    assert gradient_rule(squared, clip=largest * 0.99, grid=0.01).how == FROM_RECORDS
    # A claimed bound is checked record by record, and changes nothing of how gradients are computed.
    assert gradient_rule(squared, bound=largest * 0.5).how == FROM_SUMS
    for kind in ("hinge", "logistic"):
        assert gradient_rule(random_problem(LOSSES[kind](), [10, 20], 3, seed=0)).how == FROM_RECORDS


def test_sums_leave_records_alone():
    """Records overwritten after the sums were taken do not matter: no gradient looks at them."""
    problem = random_problem(Squared(), [30, 20], 3, seed=3)
    events, noise = star_events(2, 50, 1), np.zeros((50, 3))
    method = StarMethod(0.05, 0.5, False)
    before = replay_compiled(problem, method, events, noise).recorded.theta
    problem.X[:] = np.nan
    assert replay_compiled(problem, method, events, noise).recorded.theta.tobytes() == before.tobytes()


def in_flight(events, owners):
    """Vectors that messages hold after each event: one a receiver still to be reached."""
    change = np.zeros(events.size, np.int64)
    sends = events["kind"] == SEND
    change[sends] = np.where(events["peer"][sends] == NEIGHBOURS, owners, 1)
    ends = (events["kind"] == DELIVER) | (
        (events["kind"] == DROP) & (events["peer"] >= LEARNER) & _was_sent(events)
    )
    change[ends] = -1
    return np.cumsum(change)


def _was_sent(events):
    """Drops of messages; the drop of an answer that was never sent has a delivery or a wake as its cause."""
    cause = np.maximum(events["cause"], 0)
    return (events["cause"] >= 0) & (events["kind"][cause] == SEND)


@pytest.mark.parametrize(
    ("exchange", "channel"),
    [
        (
            Poll(interval=0.5, response=Distribution(exponential=0.3)),
            Channel(latency=Distribution(uniform=(0.01, 3.0)), loss=0.5),
        ),
        (Request(service=Distribution(exponential=0.1), busy="queue"), Channel(latency=0.05, loss=0.5)),
    ],
    ids=["poll", "request"],
)
def test_payloads_of_lost_messages_are_freed(exchange, channel):
    owners, chunk = 10, 500
    problem = random_problem(Squared(), [5] * owners, 3, seed=0)
    events = star_events(owners, 20_000, 2, exchange, channel)
    noise = np.zeros((int(releases_of(events, owners).sum()), 3))
    replay = StarReplay(problem, StarMethod(0.01, 0.5, False), gradient_rule(problem))
    flying = in_flight(events, owners)
    assert (events["kind"] == DROP).sum() > 10_000
    places = []
    for start in range(0, events.size, chunk):
        replay.feed(events[start : start + chunk], noise)
        queries, ends, left = replay._queries
        held = replay._mail.messages + left[ends >= 0].sum()
        assert held == flying[min(start + chunk, events.size) - 1]
        places.append(len(replay._mail.places) + len(queries) * owners)
    # Room for what is on its way at once: reached early, and not growing with the run.
    assert places[-1] == places[len(places) // 4]
    assert places[-1] <= 40 * max(flying.max(), 10)


@pytest.mark.parametrize("step", [0.01, 0.001])
@pytest.mark.parametrize(
    ("form", "weight", "limit"), [("printed", 0.8, 3 / (1 + 1.5 - 1 / 5)), ("corrected", 0.5, 1.5)]
)
def test_what_each_form_tends_to(form, weight, limit, step):
    """ℓ = (θ − 3)², l2 = 1, N = 5, horizon 1e5: the printed form minimises f with g weighted 3/2 − 1/N, 1.304.

    At a finite step the models θ̄ that owners answer to have that mean, and the learner, having moved on from θ̄ by
    c_L·step·∇g(θ̄), has (1 − 2·c_L·step) of it.
    """
    N, T, l2 = 5, 100_000, 1.0
    problem = star_problem(np.ones((N, 1)), np.full(N, 3.0), np.arange(N + 1), Squared(), l2, 10.0)
    assert problem.optimum[0] == pytest.approx(1.5, rel=1e-12)
    rho = step * T**2 * 2 * l2
    method = star_method(AsyncStar(horizon=T, rho=rho, theta_max=10.0, form=form), rho, l2, N)
    assert method.step == pytest.approx(step, rel=1e-12)
    path = replay_compiled(problem, method, star_events(N, T, 5), np.zeros((T, 1)), every=1).recorded.theta[
        :, 0
    ]
    mean = path[T // 2 :].mean()
    assert mean == pytest.approx(limit * (1 - 2 * weight * step), abs=1e-4)
    assert mean == pytest.approx(limit, abs=2.1 * step)


def test_records_are_by_step_or_by_time():
    problem = random_problem(Squared(), [4, 4, 4], 2, seed=1)
    events, noise = star_events(3, 50, 3), np.zeros((50, 2))
    method = StarMethod(0.05, 0.5, False)
    every = replay_compiled(problem, method, events, noise, every=1).recorded
    sevens = replay_compiled(problem, method, events, noise, every=7).recorded
    assert sevens.step.tolist() == [0, 7, 14, 21, 28, 35, 42, 49, 50]
    np.testing.assert_array_equal(sevens.theta, every.theta[sevens.step])
    np.testing.assert_array_equal(sevens.time, every.time[sevens.step])
    for chunk in (1, 7, 1000):
        timed = replay_compiled(
            problem, method, events, noise, chunk=chunk, every=EveryTime(time=0.5)
        ).recorded
        end = every.time[-1]
        np.testing.assert_allclose(timed.time[:-1], 0.5 * np.arange(np.floor(end / 0.5) + 1), rtol=1e-15)
        assert timed.time[-1] == end
        # The model at a time is that after the last commit until then.
        at = np.searchsorted(every.time, timed.time, side="right") - 1
        np.testing.assert_array_equal(timed.step, every.step[at])
        np.testing.assert_array_equal(timed.theta, every.theta[at])


@pytest.mark.parametrize("stale", ["blend", "overwrite"])
def test_answers_are_computed_at_the_query_that_they_answer(stale):
    """Queries overtake each other; the chain of causes, answer, delivery, query, says which θ̄ is meant."""
    owners, seed = 4, 3
    problem = random_problem(Squared(), [5] * owners, 2, seed)
    channel = Channel(latency=Distribution(uniform=(0.0, 4.0)))
    events = star_events(owners, 300, seed, Poll(interval=0.5, response=0.1), channel)
    heard = [[] for _ in range(owners)]
    for event in events[(events["kind"] == DELIVER) & (events["agent"] >= 0)]:
        heard[event["agent"]].append(event["version"])
    assert any((np.diff(versions) < 0).any() for versions in heard)

    step = 0.2 / float((owners * problem.shares * problem.hessian_peaks()).max())
    method = StarMethod(step, 0.5, stale == "overwrite")
    theta_L, theta, sent, answers, path = np.zeros(2), np.zeros((owners, 2)), {}, {}, [np.zeros(2)]
    for event in events:
        agent, peer = event["agent"], event["peer"]
        if event["kind"] == SEND and agent == LEARNER:
            sent[event["seq"]] = (theta_L + theta) / 2
        elif event["kind"] == SEND:
            query = events[event["cause"]]["cause"]
            bar = sent[query][agent]
            gradient = 2 * (problem.gram[agent] @ bar - problem.moment[agent])
            answers[event["seq"]] = (gradient, bar)
        elif event["kind"] == COMMIT:
            answer = events[event["cause"]]["cause"]
            Q, bar = answers[answer]
            at = bar if method.overwrite else (theta_L + theta[peer]) / 2
            dg = 2 * problem.l2 * at
            theta[peer] = np.clip(
                at - owners * step * (dg / (2 * owners) + problem.shares[peer] * Q),
                -problem.theta_max,
                problem.theta_max,
            )
            theta_L = np.clip(at - 0.5 * step * dg, -problem.theta_max, problem.theta_max)
            path.append(theta_L)
    noise = np.zeros((int(releases_of(events, owners).sum()), 2))
    compiled = replay_compiled(problem, method, events, noise, every=1).recorded.theta
    np.testing.assert_allclose(compiled, path, rtol=0, atol=1e-12 * np.abs(path).max())
    np.testing.assert_allclose(
        reference_replay(problem, method, events, noise), path, rtol=0, atol=1e-12 * np.abs(path).max()
    )
