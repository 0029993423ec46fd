"""Forecasts of gossip averaging against sums over everything that can happen, and known rates."""

import itertools
from itertools import islice

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from p2psim.core.events import KINDS
from p2psim.core.randomness import Streams
from p2psim.network.channels.channel import Channel
from p2psim.network.exchanges import Gossip
from p2psim.network.graph import links
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.theory.forecasts.gossip import (
    averaging,
    averaging_path,
    commits,
    contraction,
    exchanges,
    partner_chances,
    square,
)

MODES = ["push", "pull", "push-pull"]

GRAPHS = {
    "ring": nx.cycle_graph,
    "complete": nx.complete_graph,
    "path": nx.path_graph,
    "star": lambda agents: nx.star_graph(agents - 1),
}


def some_meetings(agents, kind, seed, by_weight=False):
    random = np.random.default_rng(seed)
    graph = GRAPHS[kind](agents)
    W = np.zeros((agents, agents))
    for i, j in graph.edges:
        W[i, j] = W[j, i] = random.uniform(0.2, 2.0)
    chance = random.uniform(0.5, 1.5, agents)
    loss = random.uniform(0, 0.6, (agents, agents))
    return partner_chances(csr_array(W), chance / chance.sum(), by_weight), loss


def hears(n, a, b):
    W = np.eye(n)
    W[a, a] = W[a, b] = 0.5
    return W


def outcomes(mode, chance, loss):
    """Probability and matrices, one a commit, of everything that an exchange can come to."""
    n, pi = len(loss), chance.toarray()
    found = []
    for i, j in itertools.product(range(n), repeat=2):
        if not pi[i, j]:
            continue
        there, back = 1 - loss[i, j], 1 - loss[j, i]
        both = np.eye(n)
        both[[i, i, j, j], [i, j, i, j]] = 0.5
        if mode == "push":
            found += [(pi[i, j] * there, [hears(n, j, i)]), (pi[i, j] * (1 - there), [])]
        elif mode == "pull":
            found += [(pi[i, j] * there * back, [hears(n, i, j)]), (pi[i, j] * (1 - there * back), [])]
        else:
            # i, which woke, commits first; the second commit brings j to what it would be after both.
            found += [
                (pi[i, j] * (1 - there), []),
                (pi[i, j] * there * (1 - back), [hears(n, j, i)]),
                (pi[i, j] * there * back, [hears(n, i, j), both]),
            ]
    return found


def after_commits(mode, chance, loss, x, steps):
    """[(probability, models)] after each number of commits, walking through all that can happen."""
    likely = [(p, made) for p, made in outcomes(mode, chance, loss) if made and p > 0]
    total = sum(p for p, _ in likely)
    found = [[(1.0, x)]] + [[] for _ in range(steps)]
    idle = [[(1.0, x)]] + [[] for _ in range(steps)]
    for k in range(steps):
        for weight, state in idle[k]:
            for p, made in likely:
                chance_of = weight * p / total
                for number, W in enumerate(made, 1):
                    if k + number > steps:
                        break
                    found[k + number].append((chance_of, W @ state))
                    if number == len(made):
                        idle[k + number].append((chance_of, W @ state))
    return found


@settings(max_examples=20, deadline=None)
@given(
    agents=st.integers(2, 4),
    mode=st.sampled_from(MODES),
    kind=st.sampled_from(sorted(GRAPHS)),
    seed=st.integers(0, 99),
    by_weight=st.booleans(),
    lossy=st.booleans(),
)
def test_averaging_is_the_sum_over_all_that_can_happen(agents, mode, kind, seed, by_weight, lossy):
    """Distances from consensus, drift and bias after 0 … 3 commits, with losses of each link and direction."""
    chance, loss = some_meetings(agents, kind, seed, by_weight)
    loss = loss if lossy else np.zeros_like(loss)
    x = np.random.default_rng(seed).normal(size=(agents, 2)) + 5
    found = averaging_path(averaging(mode, chance, loss), x, 3)
    for k, states in enumerate(after_commits(mode, chance, loss, x, 3)):
        assert sum(p for p, _ in states) == pytest.approx(1)
        spread = sum(p * ((s - s.mean(axis=0)) ** 2).sum() for p, s in states)
        drift = sum(p * ((s.mean(axis=0) - x.mean(axis=0)) ** 2).sum() for p, s in states)
        bias = np.linalg.norm(sum(p * s.mean(axis=0) for p, s in states) - x.mean(axis=0))
        assert found.spread[k] == pytest.approx(spread, rel=1e-9)
        assert found.drift[k] == pytest.approx(drift, rel=1e-9, abs=1e-12)
        assert found.bias[k] == pytest.approx(bias, rel=1e-6, abs=1e-12)


def commits_of_exchanges(events):
    """(waker, neighbour, [(who commits, whom it heard), ...]) of each exchange of a stream."""
    found = []
    for event in events:
        kind = KINDS[event["kind"]]
        if kind == "wake":
            found.append([int(event["agent"]), None, []])
        elif kind == "send" and found[-1][1] is None:
            found[-1][1] = int(event["peer"])
        elif kind == "commit":
            found[-1][2].append((int(event["agent"]), int(event["peer"])))
    return found


@pytest.mark.parametrize("engine", ["simpy", "array"])
@pytest.mark.parametrize("mode", MODES)
def test_the_sum_runs_over_what_events_can_come_to(mode, engine):
    """The commits of every exchange, in their order, are one of the outcomes above; each outcome happens."""
    where = links(nx.star_graph(3))
    network = Network(where, Gossip(mode=mode), Channel(loss=0.4), goes_on=True, updates="hear")
    none = np.zeros(where.agents, np.int64)
    events = simulate_events(network, Streams(1), time=40.0, limits=none, engine=engine).read()
    happened = {(i, j, tuple(commits)) for i, j, commits in commits_of_exchanges(events)}
    expected = set()
    for i, j in zip(
        np.repeat(np.arange(4), np.diff(where.indptr)).tolist(), where.indices.tolist(), strict=True
    ):
        told, asked = ((j, i),), ((i, j),)
        made = {"push": [told], "pull": [asked], "push-pull": [told, asked + told]}[mode]
        expected |= {(i, j, commits) for commits in [(), *made]}
    assert happened == expected


@settings(max_examples=20, deadline=None)
@given(
    agents=st.integers(2, 4),
    mode=st.sampled_from(MODES),
    seed=st.integers(0, 99),
    kind=st.sampled_from(["ring", "path", "star"]),
)
def test_rates_are_eigenvalues_of_the_whole_matrices(agents, mode, seed, kind):
    """λ₂(E[W]) and the spectral radius of E[W ⊗ W] off consensus, from n² × n² matrices."""
    chance, loss = some_meetings(agents, kind, seed)
    step = averaging(mode, chance, loss)
    likely = [(p, made[-1]) for p, made in outcomes(mode, chance, loss) if made]
    total = sum(p for p, _ in likely)
    mean = sum(p / total * W for p, W in likely)
    squares = sum(p / total * np.kron(W, W) for p, W in likely)
    C = np.eye(agents) - 1 / agents
    CC = np.kron(C, C)
    found = contraction(step, agents)
    assert step.effective == pytest.approx(total)
    assert found.mean == pytest.approx(np.abs(np.linalg.eigvals(C @ mean @ C)).max(), rel=1e-9)
    assert found.square == pytest.approx(np.abs(np.linalg.eigvals(CC @ squares @ CC)).max(), rel=1e-7)
    assert found.mean**2 <= found.square + 1e-9


@pytest.mark.parametrize("agents", [5, 12])
def test_on_a_complete_graph_both_rates_are_one_in_n_less_one(agents):
    """E[W] = I − C/(n − 1), and every W is a projection: E‖x − x̄‖² falls as E x does."""
    W = csr_array(np.ones((agents, agents)) - np.eye(agents))
    step = averaging("push-pull", partner_chances(W, np.full(agents, 1 / agents)))
    found = contraction(step, agents)
    assert found.mean == pytest.approx(1 - 1 / (agents - 1))
    assert found.square == pytest.approx(1 - 1 / (agents - 1))
    x = np.random.default_rng(0).normal(size=(agents, 3))
    path = averaging_path(step, x, 30, walk=exchanges)
    assert path.spread == pytest.approx(path.spread[0] * found.square ** np.arange(31.0))
    assert path.drift == pytest.approx(np.zeros(31), abs=1e-14)


def test_on_a_ring_squares_fall_nearly_as_the_square_of_the_mean():
    agents = 30
    W = nx.to_scipy_sparse_array(nx.cycle_graph(agents), format="csr", dtype=float)
    found = contraction(averaging("push-pull", partner_chances(W, np.full(agents, 1 / agents))), agents)
    # E[W] = I − L/(2n), L the Laplacian of the ring.
    assert found.mean == pytest.approx(1 - (2 - 2 * np.cos(2 * np.pi / agents)) / (2 * agents))
    assert found.mean**2 <= found.square <= found.mean
    assert np.log(found.square) == pytest.approx(2 * np.log(found.mean), rel=0.1)


@pytest.mark.parametrize("mode", MODES)
def test_a_distance_keeps_its_digits_until_it_is_very_small(mode):
    """After 4,000 commits next to nothing is left, beside a drift that stays."""
    W = nx.to_scipy_sparse_array(nx.complete_graph(4), format="csr", dtype=float)
    step = averaging(mode, partner_chances(W, np.full(4, 0.25)))
    path = averaging_path(step, np.arange(4.0)[:, None] + 1e6, 1000)
    assert path.spread[1000] == pytest.approx(
        path.spread[800] * (path.spread[600] / path.spread[400]), rel=1e-6
    )
    assert 0 < path.spread[1000] < 1e-40


def test_a_start_with_noise_adds_its_variance():
    chance, loss = some_meetings(4, "ring", 1)
    step = averaging("push", chance, loss)
    x, variances = np.random.default_rng(0).normal(size=(4, 2)), np.array([0.1, 0.2, 0.0, 1.0])
    noisy, quiet = averaging_path(step, x, 5, np.diag(variances)), averaging_path(step, x, 5)
    # Noise of variance v in one coordinate of agent i is the mean of starts ±√v away.
    M = np.diag(2 * variances)
    added = [np.trace(one) - one.mean() * 4 for one in islice(commits(step, M, square), 6)]
    assert noisy.spread - quiet.spread == pytest.approx(added)
    assert noisy.bias == pytest.approx(quiet.bias)


@pytest.mark.parametrize(
    ("scale", "loss", "message"), [(0.5, 0.0, "add up to one"), (1.0, 1.0, "all messages are lost")]
)
def test_what_means_nothing_is_refused(scale, loss, message):
    chance, _ = some_meetings(3, "ring", 0)
    with pytest.raises(ValueError, match=message):
        averaging("push", chance * scale, loss)
