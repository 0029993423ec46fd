"""Gossip ADMM against its plain reference with all variables, against exact minimisers, and against itself."""

import itertools

import numpy as np
import pytest
from gossip_cases import CHANNELS, by_agent, complete, play, problem_on, releases, ring, weighted
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from p2psim.core.errors import SimulationError
from p2psim.core.events import COMMIT, DROP, SEND
from p2psim.learning.graph.admm import AdmmReplay, AdmmRule
from p2psim.learning.graph.algorithms import RelativePenalty, penalty
from p2psim.learning.graph.optimum import minimise_together
from p2psim.learning.graph.problem import GraphProblem, GraphTask
from p2psim.learning.losses import Logistic, Squared
from p2psim.learning.reference import reference_replay_admm
from p2psim.network.channels.channel import Channel
from p2psim.network.graph import Graph

LOSSES = {"squared": Squared(intercept=False), "logistic": Logistic(intercept=False)}


def feed(replay: AdmmReplay, events: np.ndarray, p: int) -> AdmmReplay:
    """Replay without noise."""
    replay.feed(events, np.zeros((len(releases(events)), p)))
    return replay


@st.composite
def runs(draw: st.DrawFn):  # type: ignore[no-untyped-def]
    links = draw(st.sampled_from([ring(5), complete(4), weighted(6, 1), weighted(7, 2)]))
    loss = LOSSES[draw(st.sampled_from(sorted(LOSSES)))]
    seed, p = draw(st.integers(0, 1_000)), draw(st.integers(1, 4))
    problem = problem_on(links, loss, p, seed, mu=draw(st.sampled_from([0.1, 1.0, 10.0])))
    inner = draw(st.sampled_from([1, 3, 10]))
    rule = AdmmRule(
        rho=draw(st.sampled_from([0.1, 1.0, 5.0])),
        inner=inner,
        clip=draw(st.sampled_from([np.inf, 0.3])),
        order=draw(st.sampled_from([1, 2])),
        anchored=draw(st.booleans()),
        grid=draw(st.sampled_from([None, None, 0.01, 0.3])),
    )
    goes_on = draw(st.booleans())
    limits = draw(
        st.none()
        | st.lists(st.integers(0 if goes_on else 1, 10), min_size=links.agents, max_size=links.agents)
    )
    events = play(
        links,
        "edge",
        partner=draw(st.sampled_from(["uniform", "weight"])),
        channel=CHANNELS[draw(st.sampled_from(sorted(CHANNELS)))],
        limits=None if limits is None else np.array(limits),
        goes_on=goes_on,
        replica=seed,
        commits=80,
        time=200.0,
    )
    random = np.random.default_rng(seed)
    start = draw(st.sampled_from([0.0, 1.0])) * random.normal(size=(links.agents, p))
    noise = (0.1 if inner == 1 else 0.0) * random.laplace(size=(len(releases(events)), p))
    return problem, rule, start, events, noise


class TestCompiledIsPlain:
    @settings(max_examples=40, deadline=None)
    @given(run=runs(), pieces=st.integers(1, 6))
    def test_to_1e_12_with_the_objective(self, run, pieces: int) -> None:  # type: ignore[no-untyped-def]
        problem, rule, start, events, noise = run
        made = releases(events)
        plain = list(reference_replay_admm(GraphTask(problem, rule, start), events, noise[by_agent(made)]))
        replay = AdmmReplay(GraphTask(problem, rule, start))
        ends = [0, *np.flatnonzero(events["kind"] == COMMIT) + 1]
        assert len(plain) == len(ends)
        done = 0
        for (a, b), models in zip(itertools.pairwise(ends), plain[1:], strict=True):
            for piece in np.array_split(events[a:b], pieces):
                count = len(releases(piece))
                replay.feed(piece, noise[done : done + count])
                done += count
            scale = max(1.0, np.abs(models).max())
            np.testing.assert_allclose(replay.theta, models, rtol=0, atol=1e-12 * scale)
            np.testing.assert_allclose(replay.objective, problem.objective(models), rtol=1e-11, atol=1e-11)
        replay.check()

    def test_two_vectors_a_message(self) -> None:
        links = weighted(6, 0)
        problem = problem_on(links, LOSSES["squared"], 2, 0)
        for channel in CHANNELS.values():
            events = play(links, "edge", channel=channel, commits=100)
            replay = feed(AdmmReplay(GraphTask(problem, AdmmRule(rho=1.0), np.zeros((6, 2)))), events, 2)
            assert replay.vectors_sent == 2 * (events["kind"] == SEND).sum()
            assert channel != Channel() or replay.vectors_sent == 400

    def test_lost_and_late_messages_leave_nothing_behind(self) -> None:
        links = ring(6)
        problem = problem_on(links, LOSSES["squared"], 2, 0)
        replay = AdmmReplay(GraphTask(problem, AdmmRule(rho=1.0, inner=1), np.zeros((6, 2))))
        events = play(links, "edge", channel=Channel(latency=0.5, loss=0.5), commits=3_000)
        assert (events["kind"] == DROP).sum() > 3_000
        for piece in np.array_split(events, 50):
            feed(replay, piece, 2)
            assert replay.mail.messages <= 40


class TestFixedPoint:
    @pytest.mark.parametrize("channel", ["ideal", "lossy"])
    @pytest.mark.parametrize("inner", [1, 10])
    @pytest.mark.parametrize("rho", [0.3, 2.0])
    @pytest.mark.parametrize("loss", LOSSES)
    @pytest.mark.parametrize("links", [ring(5), weighted(6, 3)], ids=["ring", "weighted"])
    def test_is_the_exact_minimiser(
        self, links: Graph, loss: str, rho: float, inner: int, channel: str
    ) -> None:
        problem = problem_on(links, LOSSES[loss], 3, 5)
        rule = AdmmRule(rho=penalty(RelativePenalty(mean_weight=rho), links.weights), inner=inner)
        replay = AdmmReplay(GraphTask(problem, rule, np.zeros((links.agents, 3))))
        best = minimise_together(problem)
        for replica in range(20):
            # Each piece is a run of its own; what was on its way when it ended is lost.
            events = play(
                links, "edge", channel=CHANNELS[channel], commits=3_000, replica=replica, check=False
            )
            replay = feed(replay, shifted(events, replica), 3)
            if np.abs(replay.theta - best).max() < 1e-8:
                break
        np.testing.assert_allclose(replay.theta, best, rtol=0, atol=1e-8)
        assert replay.objective == pytest.approx(problem.objective(best), rel=1e-10)


def shifted(events: np.ndarray, piece: int) -> np.ndarray:
    """Numbers of a further run, above those of the runs before."""
    events = events.copy()
    events["seq"] += piece * 10**7
    events["cause"][events["cause"] >= 0] += piece * 10**7
    return events


class TestLocalSteps:
    """A first message tells what local steps did, since all multipliers are still zero."""

    def first_model(self, problem: GraphProblem, rule: AdmmRule, start: np.ndarray, noise: float = 0.0):  # type: ignore[no-untyped-def]
        links = Graph(problem.indptr, problem.indices, False, problem.weights)
        events = play(links, "edge", commits=5)
        at = int(np.flatnonzero(events["kind"] == SEND)[0])
        replay = AdmmReplay(GraphTask(problem, rule, start))
        replay.feed(events[: at + 1], np.full((1, problem.dimension), noise))
        agent = int(events["agent"][at])
        return agent, replay.theta[agent]

    @pytest.mark.parametrize("loss", LOSSES)
    def test_minimise_the_augmented_lagrangian_over_model_and_copies(self, loss: str) -> None:
        """Many steps against a joint minimisation, by a general solver, of what the paper writes."""
        problem = problem_on(weighted(6, 4), LOSSES[loss], 2, 8)
        start, rho = np.random.default_rng(0).normal(size=(6, 2)), 0.7
        i, model = self.first_model(problem, AdmmRule(rho=rho, inner=3_000), start)
        near = problem.indices[problem.indptr[i] : problem.indptr[i + 1]]
        W = problem.weights[problem.indptr[i] : problem.indptr[i + 1]]
        rows = slice(problem.offsets[i], problem.offsets[i + 1])

        def lagrangian(flat: np.ndarray) -> float:
            own, copies = flat[:2], flat[2:].reshape(-1, 2)
            values = problem.loss.values(problem.X[rows] @ own, problem.y[rows])
            fit = (values.mean() if values.size else 0.0) + problem.ridge[i] * own @ own
            close = (W * ((own - copies) ** 2).sum(axis=1)).sum() / 4
            held = len(near) * ((own - start[i]) ** 2).sum() + ((copies - start[near]) ** 2).sum()
            return float(close + problem.mu * W.sum() * problem.confidence[i] * fit + rho / 2 * held)

        joint = minimize(lagrangian, np.zeros(2 + 2 * len(near)), method="BFGS", options={"gtol": 1e-9})
        np.testing.assert_allclose(model, joint.x[:2], atol=1e-6)

    def test_noise_enters_as_part_of_the_mean_gradient(self) -> None:
        """One step moves by μD_ii·c_i·η over the local problem's curvature, and by nothing else."""
        problem = problem_on(weighted(6, 5), LOSSES["logistic"], 3, 1, mu=2.0)
        start, rho = np.zeros((6, 3)), 1.5
        i, without = self.first_model(problem, AdmmRule(rho=rho, inner=1), start)
        _, noisy = self.first_model(problem, AdmmRule(rho=rho, inner=1), start, noise=0.25)
        W = problem.weights[problem.indptr[i] : problem.indptr[i + 1]]
        pull = 2.0 * W.sum() * problem.confidence[i]
        curvature = (rho + (W / 2) * rho / (W / 2 + rho)).sum() + pull * problem.smoothness[i]
        np.testing.assert_allclose(noisy - without, -pull * 0.25 / curvature, rtol=1e-12)

    def test_one_draw_does_not_hide_several_gradients(self) -> None:
        problem = problem_on(ring(5), LOSSES["squared"], 2, 0)
        with pytest.raises(SimulationError, match=r"inner: 1 only, for each of its 10 inner steps"):
            self.first_model(problem, AdmmRule(rho=1.0), np.zeros((5, 2)), noise=1.0)

    def test_violations_count_releases(self) -> None:
        links = ring(5)
        problem = problem_on(links, LOSSES["logistic"], 2, 0)
        events = play(links, "edge", commits=50)
        made = np.bincount(releases(events)[:, 0], minlength=5)
        for bound, expected in (
            (1e-9, made * (problem.records > 0)),
            (10.0, np.zeros(5)),
            (np.inf, np.zeros(5)),
        ):
            replay = feed(
                AdmmReplay(GraphTask(problem, AdmmRule(rho=1.0, bound=bound), np.zeros((5, 2)))), events, 2
            )
            np.testing.assert_array_equal(replay.violations.counts, expected)


class TestGoingOn:
    def test_without_data_all_agree(self) -> None:
        """Steps without a release minimise no loss: what is left is consensus."""
        links = ring(6)
        problem = problem_on(links, LOSSES["squared"], 2, 0)
        start = np.random.default_rng(1).normal(size=(6, 2))
        events = play(links, "edge", limits=np.zeros(6, np.int64), goes_on=True, commits=3_000)
        replay = AdmmReplay(GraphTask(problem, AdmmRule(rho=1.0), start))
        replay.feed(events, np.empty((0, 2)))
        assert np.ptp(replay.theta, axis=0).max() < 1e-8

    def test_anchored_steps_are_model_propagation(self) -> None:
        """With ½‖θ − anchor‖² for every loss the minimiser is that of B (16)."""
        links = weighted(6, 6)
        problem = problem_on(links, LOSSES["squared"], 2, 0)
        anchor = np.random.default_rng(2).normal(size=(6, 2))
        events = play(links, "edge", limits=np.zeros(6, np.int64), goes_on=True, commits=20_000, check=False)
        rho = penalty(RelativePenalty(mean_weight=1.0), links.weights)
        replay = AdmmReplay(GraphTask(problem, AdmmRule(rho=rho, anchored=True), np.zeros((6, 2)), anchor))
        replay.feed(events, np.empty((0, 2)))
        W = np.zeros((6, 6))
        W[np.repeat(np.arange(6), np.diff(links.indptr)), links.indices] = links.weights
        D, C = np.diag(W.sum(axis=1)), np.diag(problem.confidence)
        expected = np.linalg.solve(D - W + problem.mu * D @ C, problem.mu * D @ C @ anchor)
        np.testing.assert_allclose(replay.theta, expected, atol=1e-8)


def test_penalty_is_a_number_or_relative() -> None:
    weights = np.array([1.0, 3.0])
    assert penalty(0.7, weights) == 0.7
    assert penalty(RelativePenalty(mean_weight=0.5), weights) == 1.0


def test_models_that_are_not_finite() -> None:
    problem = problem_on(ring(5), LOSSES["squared"], 2, 0)
    start = np.zeros((5, 2))
    start[2] = np.nan
    with pytest.raises(SimulationError, match="agent 2 is not finite"):
        AdmmReplay(GraphTask(problem, AdmmRule(rho=1.0), start), track=False).check()
