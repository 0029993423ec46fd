"""Gossip averaging against the plain reference, and against the matrices of Boyd, Ghosh, Prabhakar and Shah (2006)."""

import itertools

import numpy as np
import pytest
from gossip_cases import CHANNELS, averaging_events, complete, play, regular, ring, weighted

from p2psim.core.errors import SimulationError
from p2psim.core.events import COMMIT, EVENT, SEND
from p2psim.learning.graph.averaging import AveragingReplay
from p2psim.learning.reference import reference_average
from p2psim.network.channels.channel import Channel
from p2psim.network.graph import Graph

pytestmark = pytest.mark.blas

GRAPHS = {
    "ring": ring(8),
    "complete": complete(7),
    "random-regular": regular(10, 3),
    "weighted": weighted(6, 0),
}
MODES = ["push", "pull", "push-pull"]
TURNS = {
    "uniform": lambda links, i: np.ones(links.of(i).size),
    "weight": lambda links, i: links.weights_of(i),
}


def updates(links: Graph, mode: str, partner: str = "uniform") -> list[tuple[float, np.ndarray]]:
    """Each exchange's probability, and the matrix that takes x from before it to after it; every agent wakes alike."""
    n, chances = links.agents, []
    for i in range(n):
        turns = TURNS[partner](links, i)
        for j, chance in zip(links.of(i).tolist(), turns / turns.sum() / n, strict=True):
            W = np.eye(n)
            for end, other in {"push": [(j, i)], "pull": [(i, j)], "push-pull": [(i, j), (j, i)]}[mode]:
                W[end, end] = W[end, other] = 0.5
            chances.append((float(chance), W))
    return chances


def mean_matrix(links: Graph, mode: str, partner: str = "uniform") -> np.ndarray:
    """E[W], shape (n, n)."""
    return sum(chance * W for chance, W in updates(links, mode, partner))  # type: ignore[return-value]


def second_moment(links: Graph) -> tuple[float, np.ndarray]:
    """Spectral radius r of E[W⊗W] off consensus, and M ≥ 0 with E[W M W] = r·M and no share of consensus."""
    n = links.agents
    off = np.eye(n) - 1 / n
    both = sum(chance * np.kron(off @ W, off @ W) for chance, W in updates(links, "push-pull"))
    radius, M = largest(both, off.ravel())
    M = M.reshape(n, n)
    return radius, (M + M.T) / 2


def largest(matrix: np.ndarray, towards: np.ndarray) -> tuple[float, np.ndarray]:
    """Largest eigenvalue of a symmetric matrix, and its unit eigenvector that is nearest to a vector.

    Of an eigenvalue that occurs several times LAPACK gives whatever eigenvectors the processor makes of it; the
    projection of a vector on their span is one and the same.
    """
    values, vectors = np.linalg.eigh(matrix)
    span = vectors[:, values > values[-1] - 1e-9]
    nearest = span @ (span.T @ towards)
    return float(values[-1]), nearest / np.linalg.norm(nearest)


def runs(links: Graph, mode: str, exchanges: int, replicas: int, start: np.ndarray, partner: str = "uniform"):  # type: ignore[no-untyped-def]
    """Models after so many exchanges, shape (replicas, n, p); ``start`` is one for all, or one a replica."""
    per = 2 if mode == "push-pull" else 1
    for replica in range(replicas):
        replay = AveragingReplay(start if start.ndim == 2 else start[replica])
        replay.feed(
            averaging_events(links, mode, per * exchanges, replica=replica, partner=partner, check=False)
        )  # type: ignore[arg-type]
        yield replay.theta


class TestCompiledIsPlain:
    @pytest.mark.parametrize("channel", CHANNELS)
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("graph", ["ring", "weighted"])
    def test_at_every_commit(self, graph: str, mode: str, channel: str) -> None:
        links = GRAPHS[graph]
        start = np.random.default_rng(1).normal(size=(links.agents, 3))
        events = averaging_events(links, mode, 300, channel=CHANNELS[channel], partner="weight")  # type: ignore[arg-type]
        plain = list(reference_average(start, events))
        assert len(plain) == 301
        replay = AveragingReplay(start)
        ends = np.flatnonzero(events["kind"] == COMMIT) + 1
        for (a, b), models in zip(itertools.pairwise([0, *ends.tolist()]), plain[1:], strict=True):
            replay.feed(events[a:b], np.empty((0, 3)))
            np.testing.assert_array_equal(replay.theta, models)
        models_sent = (events["kind"] == SEND) & (events["version"] >= 0)
        assert replay.vectors_sent == models_sent.sum()
        replay.check()

    def test_lost_and_late_messages_leave_nothing_behind(self) -> None:
        replay, links = AveragingReplay(np.zeros((8, 2))), GRAPHS["ring"]
        events = averaging_events(links, "push-pull", 20_000, channel=Channel(latency=0.5, loss=0.5))
        for piece in np.array_split(events, 50):
            replay.feed(piece)
            assert replay.mail.messages <= 40


class TestSum:
    @pytest.mark.parametrize("graph", GRAPHS)
    def test_push_pull_over_an_ideal_channel_keeps_it(self, graph: str) -> None:
        links = GRAPHS[graph]
        start = np.random.default_rng(2).normal(size=(links.agents, 4))
        replay = AveragingReplay(start)
        events = averaging_events(links, "push-pull", 2_000)
        ends = np.flatnonzero(events["kind"] == COMMIT)[1::2] + 1  # an exchange ends in two commits
        for a, b in itertools.pairwise([0, *ends.tolist()]):
            replay.feed(events[a:b])
            np.testing.assert_allclose(replay.theta.sum(axis=0), start.sum(axis=0), atol=1e-13)
        np.testing.assert_allclose(replay.theta, np.tile(start.mean(axis=0), (links.agents, 1)), atol=1e-6)

    def test_push_does_not(self) -> None:
        replay = AveragingReplay(np.arange(8.0)[:, None])
        replay.feed(averaging_events(GRAPHS["ring"], "push", 1))
        assert abs(replay.theta.sum() - 28.0) == 0.5 or abs(replay.theta.sum() - 28.0) == 3.5


class TestRates:
    """Means over replicas within 4.5 of their standard errors: some 40 comparisons, a false alarm in 3,000 runs."""

    def test_known_second_eigenvalues(self) -> None:
        """λ₂(E[W]) of a complete graph is 1 − 1/(n − 1), of a ring 1 − (1 − cos(2π/n))/n."""
        values = {name: np.linalg.eigvalsh(mean_matrix(links, "push-pull")) for name, links in GRAPHS.items()}
        assert values["complete"][-2] == pytest.approx(1 - 1 / 6)
        assert values["ring"][-2] == pytest.approx(1 - (1 - np.cos(2 * np.pi / 8)) / 8)

    def test_radius_lies_between_powers_of_the_second_eigenvalue(self) -> None:
        for name, links in GRAPHS.items():
            slow, (radius, M) = np.linalg.eigvalsh(mean_matrix(links, "push-pull"))[-2], second_moment(links)
            assert slow**2 - 1e-12 <= radius <= slow + 1e-12
            assert np.linalg.eigvalsh(M).min() > -1e-9
            if name == "complete":
                assert radius == pytest.approx(slow)

    @pytest.mark.parametrize("graph", ["ring", "complete", "random-regular"])
    def test_mean_contracts_by_the_second_eigenvalue(self, graph: str) -> None:
        links = GRAPHS[graph]
        n, exchanges, replicas = links.agents, 2 * links.agents, 600
        off = mean_matrix(links, "push-pull") - 1 / n  # without the largest, of consensus
        slow, mode = largest(off, np.cos(2 * np.pi * np.arange(n) / n))
        shares = np.array(
            [float(mode @ x[:, 0]) for x in runs(links, "push-pull", exchanges, replicas, mode[:, None])]
        )
        error = shares.std(ddof=1) / np.sqrt(replicas)
        assert error < 0.1 * slow**exchanges
        assert abs(shares.mean() - slow**exchanges) < 4.5 * error

    @pytest.mark.parametrize("graph", ["ring", "complete", "random-regular"])
    def test_spread_contracts_by_the_spectral_radius(self, graph: str) -> None:
        """From x ~ N(0, M), for which it does so from the first exchange on: E‖x − x̄‖² = r^k tr M."""
        links = GRAPHS[graph]
        radius, M = second_moment(links)
        values, vectors = np.linalg.eigh(M)
        exchanges, replicas = 2 * links.agents, 400
        normals = np.random.default_rng(3).normal(size=(replicas, links.agents, 30))
        # The symmetric root is one, whichever eigenvectors were found.
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        starts = np.einsum("ij,rjp->rip", root, normals)
        spreads = np.array(
            [
                ((x - x.mean(axis=0)) ** 2).sum(axis=0).mean()
                for x in runs(links, "push-pull", exchanges, replicas, starts)
            ]
        )
        expected = radius**exchanges * np.trace(M)
        error = spreads.std(ddof=1) / np.sqrt(replicas)
        assert error < 0.1 * expected
        assert abs(spreads.mean() - expected) < 4.5 * error

    @pytest.mark.parametrize("partner", ["uniform", "weight"])
    @pytest.mark.parametrize("mode", MODES)
    def test_mean_follows_the_matrix_in_each_mode(self, mode: str, partner: str) -> None:
        """On a graph without symmetry, where push, pull and choices by weight differ."""
        links, exchanges, replicas = GRAPHS["weighted"], 5, 1_000
        start = np.random.default_rng(4).normal(size=(links.agents, 1))
        ends = np.stack(list(runs(links, mode, exchanges, replicas, start, partner)))[:, :, 0]
        expected = np.linalg.matrix_power(mean_matrix(links, mode, partner), exchanges) @ start[:, 0]
        errors = ends.std(axis=0, ddof=1) / np.sqrt(replicas)
        assert (np.abs(ends.mean(axis=0) - expected) < 4.5 * errors + 1e-12).all()
        # The test can tell modes and partners apart.
        others = [
            np.linalg.matrix_power(mean_matrix(links, m, q), exchanges) @ start[:, 0]
            for m in MODES
            for q in TURNS
            if (m, q) != (mode, partner)
        ]
        assert all((np.abs(ends.mean(axis=0) - other) > 4.5 * errors).any() for other in others)


class TestWhatIsRefused:
    def test_updates_on_waking(self) -> None:
        events = play(GRAPHS["ring"], "push", updates="wake", commits=3)
        with pytest.raises(SimulationError, match=r"event 1: .* when another is heard"):
            AveragingReplay(np.zeros((8, 1))).feed(events)

    def test_releases(self) -> None:
        with pytest.raises(SimulationError, match="touches no data"):
            AveragingReplay(np.zeros((8, 1))).feed(np.empty(0, EVENT), np.zeros((1, 1)))

    def test_models_that_are_not_finite(self) -> None:
        start = np.zeros((8, 1))
        start[3] = np.inf
        with pytest.raises(SimulationError, match="agent 3 is not finite"), np.errstate(invalid="ignore"):
            AveragingReplay(start).check()
