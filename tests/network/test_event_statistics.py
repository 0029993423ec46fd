"""Laws of clocks, channels and partners (theory, section on networks).

Seeds are fixed, so nothing here is flaky; each assertion would reject a right implementation under a random
seed with probability at most `LEVEL`.
"""

import networkx as nx
import numpy as np
import pytest
from network_cases import (
    COMMIT,
    DELIVER,
    DROP,
    LEARNER,
    SEND,
    WAKE,
    Broadcast,
    Channel,
    Gossip,
    Request,
    complete,
    of_kind,
    play,
    star,
)
from scipy import stats

from p2psim.core.distributions import Distribution
from p2psim.network.graph import links

LEVEL = 1e-4
OWNERS = 6
RATES = np.array([0.5, 1.0, 1.0, 2.0, 4.0, 1.5])


@pytest.fixture(scope="module", params=["simpy", "array"])
def equal_rates(request: pytest.FixtureRequest) -> np.ndarray:
    events, _ = play(star(OWNERS), Request(), engine=request.param, commits=12_000, seed=11)
    return of_kind(events, COMMIT)


@pytest.fixture(scope="module")
def unequal_rates() -> np.ndarray:
    events, _ = play(star(OWNERS), Request(), rates=RATES, commits=20_000, seed=12)
    return of_kind(events, COMMIT)


class TestClocks:
    def test_owners_commit_equally_often(self, equal_rates: np.ndarray) -> None:
        counts = np.bincount(equal_rates["peer"], minlength=OWNERS)
        assert stats.chisquare(counts).pvalue > LEVEL

    def test_next_owner_does_not_depend_on_the_last(self, equal_rates: np.ndarray) -> None:
        peer = equal_rates["peer"]
        pairs = np.zeros((OWNERS, OWNERS))
        np.add.at(pairs, (peer[:-1], peer[1:]), 1)
        assert stats.chi2_contingency(pairs).pvalue > LEVEL

    @pytest.mark.parametrize("owner", range(OWNERS))
    def test_gaps_of_an_owner_are_exponential(self, equal_rates: np.ndarray, owner: int) -> None:
        times = equal_rates["time"][equal_rates["peer"] == owner]
        assert stats.kstest(np.diff(times, prepend=0.0), "expon").pvalue > LEVEL

    def test_superposed_rate_is_the_number_of_owners(self, equal_rates: np.ndarray) -> None:
        gaps = np.diff(equal_rates["time"], prepend=0.0)
        assert stats.kstest(gaps, stats.expon(scale=1 / OWNERS).cdf).pvalue > LEVEL
        # The time of the k-th commit is Gamma(k) / N.
        last = stats.gamma(equal_rates.size, scale=1 / OWNERS)
        assert LEVEL / 2 < last.cdf(equal_rates["time"][-1]) < 1 - LEVEL / 2

    def test_unequal_rates_give_unequal_shares(self, unequal_rates: np.ndarray) -> None:
        counts = np.bincount(unequal_rates["peer"], minlength=OWNERS)
        expected = unequal_rates.size * RATES / RATES.sum()
        assert stats.chisquare(counts, expected).pvalue > LEVEL

    @pytest.mark.parametrize("owner", range(OWNERS))
    def test_gaps_have_the_owners_rate(self, unequal_rates: np.ndarray, owner: int) -> None:
        times = unequal_rates["time"][unequal_rates["peer"] == owner]
        gaps = np.diff(times, prepend=0.0)
        assert stats.kstest(gaps, stats.expon(scale=1 / RATES[owner]).cdf).pvalue > LEVEL

    def test_replicas_are_independent(self) -> None:
        """Times of the tenth commit over many seeds follow Gamma(10) / N: seeds are no shifts of one schedule."""
        times = [play(star(OWNERS), Request(), commits=10, seed=seed)[0]["time"][-1] for seed in range(500)]
        assert stats.kstest(times, stats.gamma(10, scale=1 / OWNERS).cdf).pvalue > LEVEL


class TestChannel:
    LOSS = 0.3

    @pytest.fixture(scope="class")
    def lossy(self) -> np.ndarray:
        channel = Channel(latency=Distribution(exponential=0.25), loss=self.LOSS)
        return play(complete(5), Broadcast(), channel, commits=3000, seed=13)[0]

    def test_losses_are_binomial(self, lossy: np.ndarray) -> None:
        dropped, ended = of_kind(lossy, DROP).size, np.isin(lossy["kind"], [DROP, DELIVER]).sum()
        assert stats.binomtest(dropped, ended, self.LOSS).pvalue > LEVEL

    def test_receivers_lose_independently(self, lossy: np.ndarray) -> None:
        """The number of the four neighbours that miss a message is Binomial(4, loss)."""
        sends = of_kind(lossy, SEND)["seq"]
        ends = lossy[np.isin(lossy["kind"], [DROP, DELIVER])]
        ended = np.bincount(ends["cause"], minlength=lossy.size)[sends]
        missed = np.bincount(ends["cause"], weights=ends["kind"] == DROP, minlength=lossy.size)[sends]
        counts = np.bincount(missed[ended == 4].astype(int), minlength=5)
        expected = counts.sum() * stats.binom(4, self.LOSS).pmf(range(5))
        assert stats.chisquare(counts, expected).pvalue > LEVEL

    def test_latencies_follow_their_law(self, lossy: np.ndarray) -> None:
        ends = lossy[np.isin(lossy["kind"], [DROP, DELIVER])]
        # The last messages of a run have not all ended: take those sent well before.
        ends = ends[lossy["time"][ends["cause"]] < lossy["time"][-1] - 5]
        assert (
            stats.kstest(ends["time"] - lossy["time"][ends["cause"]], stats.expon(scale=0.25).cdf).pvalue
            > LEVEL
        )

    def test_constant_and_uniform_latency(self) -> None:
        for latency, low, high in ((0.5, 0.5, 0.5), (Distribution(uniform=(0.2, 0.6)), 0.2, 0.6)):
            events, _ = play(complete(4), Gossip(), Channel(latency=latency), commits=1000, seed=14)
            heard = of_kind(events, DELIVER)
            delays = heard["time"] - events["time"][heard["cause"]]
            assert delays.min() >= low - 1e-9
            assert delays.max() <= high + 1e-9
            assert delays.mean() == pytest.approx((low + high) / 2, abs=0.02)  # five standard errors

    @pytest.mark.parametrize("loss", [0.0, 1.0])
    def test_certain_fates(self, loss: float) -> None:
        events, _ = play(complete(4), Broadcast(), Channel(latency=0.1, loss=loss), commits=500)
        absent = DROP if loss == 0 else DELIVER
        assert not np.any(events["kind"] == absent)

    def test_learner_and_owners_lose_alike(self) -> None:
        events, _ = play(star(4), Request(), Channel(loss=self.LOSS), time=800.0, seed=15)
        ends = events[np.isin(events["kind"], [DROP, DELIVER])]
        for at_learner in (True, False):
            mine = ends[(ends["agent"] == LEARNER) == at_learner]
            assert stats.binomtest(int((mine["kind"] == DROP).sum()), mine.size, self.LOSS).pvalue > LEVEL


class TestPartners:
    def test_partner_is_uniform_among_neighbours(self) -> None:
        graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3))
        events, _ = play(links(graph), Gossip(), commits=12_000, seed=16)
        sends = of_kind(events, SEND)
        for agent in graph:
            counts = [
                np.sum((sends["agent"] == agent) & (sends["peer"] == near)) for near in graph.adj[agent]
            ]
            assert sum(counts) == np.sum(sends["agent"] == agent)
            assert stats.chisquare(counts).pvalue > LEVEL / 9

    def test_everyone_wakes_at_the_rate_of_its_clock(self) -> None:
        time = 2000.0
        events, _ = play(complete(4), Gossip(), rates=np.array([0.25, 1, 2, 3]), time=time, seed=17)
        counts = np.bincount(of_kind(events, WAKE)["agent"])
        for count, rate in zip(counts, (0.25, 1, 2, 3), strict=True):
            low, high = stats.poisson(rate * time).interval(1 - LEVEL)
            assert low <= count <= high
