"""Channels against queueing theory (theory, section on networks): ALOHA, carrier sensing, bursts of losses, delays.

Each test holds for both engines. Seeds are fixed. Each assertion would reject a right implementation under a random
seed with probability at most `LEVEL`. Outcomes of neighbouring transmissions depend on each other, so that a run is cut
into `PARTS` parts of equal length, and the differences of the parts from what is expected are tested as independent
(Student's t).
"""

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from p2psim.core.distributions import Distribution
from p2psim.core.events import BUSY, COLLISION, DELIVER, DROP, GAVE_UP, LOSS, OK, SEND, WAKE
from p2psim.core.randomness import Streams
from p2psim.network.channels.channel import Channel
from p2psim.network.channels.draws import EdgeValue
from p2psim.network.channels.effects import GilbertElliott
from p2psim.network.exchanges import Gossip, Poll
from p2psim.network.graph import Graph, TopologyInputs, from_edges
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies import Complete, Star, draw_links

pytestmark = pytest.mark.verification

LEVEL = 1e-5
PARTS = 40
#: The engine that makes events, which is set for each test.
ENGINE = ""
AGENTS = 8
SENDS = 24_000
AIRTIME = 0.01
LOADS = [0.1, 0.5, 1.0, 3.0]


@pytest.fixture(autouse=True, params=["array", "simpy"])
def _on_each_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ENGINE", request.param)


def play(
    where: Graph, exchange: Any, channel: Channel, time: float, seed: int, rates: np.ndarray | None = None
) -> np.ndarray:
    network = Network(where, exchange, channel, rates=rates)
    return simulate_events(network, Streams(seed), time=time, engine=ENGINE).read()


@dataclass(frozen=True)
class Ends:
    """How each message that went out ended: sender, time of its end, and whether it was heard."""

    sender: np.ndarray
    time: np.ndarray
    heard: np.ndarray
    until: float

    def excess(self, chance: np.ndarray) -> np.ndarray:
        """Messages heard in each part of the run, less those expected by their senders' chances."""
        part = np.minimum((self.time * PARTS / self.until).astype(int), PARTS - 1)
        return np.bincount(part, self.heard - chance[self.sender], minlength=PARTS)

    def throughput(self) -> np.ndarray:
        """Share of time in which something is received well, in each part of the run."""
        part = np.minimum((self.time * PARTS / self.until).astype(int), PARTS - 1)
        return np.bincount(part, self.heard * AIRTIME, minlength=PARTS) * PARTS / self.until


def talk(channel: Channel, rates: np.ndarray, seed: int, sends: int = SENDS) -> tuple[Ends, np.ndarray]:
    """Agents that tell one another on one medium, each with a Poisson clock of its own rate.

    With SimPy, which takes longer, a quarter of the messages must do.
    """
    until = (sends if ENGINE == "array" else sends // 4) / rates.sum()
    events = play(
        draw_links(Complete(), TopologyInputs(rates.size)), Gossip(), channel, until, seed, rates
    )  # fmt: skip
    ends = events[np.isin(events["kind"], [DELIVER, DROP]) & np.isin(events["outcome"], [OK, COLLISION])]
    return Ends(ends["peer"], ends["time"], ends["kind"] == DELIVER, until), events


def fits(differences: np.ndarray) -> bool:
    """Whether parts of a run differ from what is expected by chance alone."""
    return bool(stats.ttest_1samp(differences, 0.0).pvalue > LEVEL)


def rates_at(load: float, uneven: bool) -> np.ndarray:
    weights = np.linspace(0.4, 1.6, AGENTS) if uneven else np.ones(AGENTS)
    return load / AIRTIME * weights / weights.sum()


def others(rates: np.ndarray) -> np.ndarray:
    """Rate of all but one, for each."""
    return rates.sum() - rates


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("load", LOADS)
class TestAloha:
    """Half duplex, so that the receiver counts among the others, unless said otherwise."""

    def test_pure(self, load: float, uneven: bool) -> None:
        """exp(−2τG), exact for Poisson senders whose own messages do not collide."""
        channel = Channel(
            airtime=AIRTIME, collision="aloha", shared=True, half_duplex=True, while_sending="overlap"
        )
        rates = rates_at(load, uneven)
        ends, _ = talk(channel, rates, 1)
        assert fits(ends.excess(np.exp(-2 * AIRTIME * others(rates))))

    def test_slotted(self, load: float, uneven: bool) -> None:
        """exp(−τG): nobody else may have woken in the slot before."""
        channel = Channel(
            airtime=AIRTIME, collision="slotted", shared=True, half_duplex=True, while_sending="overlap"
        )
        rates = rates_at(load, uneven)
        ends, _ = talk(channel, rates, 2)
        assert fits(ends.excess(np.exp(-AIRTIME * others(rates))))

    def test_senders_that_miss_their_ticks_while_they_send(self, load: float, uneven: bool) -> None:
        """Π_j exp(−λ_jτ)/(1 + λ_jτ): every other one must be idle, and stay so."""
        channel = Channel(
            airtime=AIRTIME, collision="aloha", shared=True, half_duplex=True, while_sending="skip"
        )
        rates = rates_at(load, uneven)
        ends, events = talk(channel, rates, 3)
        each = np.exp(-rates * AIRTIME) / (1 + rates * AIRTIME)
        assert fits(ends.excess(each.prod() / each))
        # A sender is idle for 1/λ, then sends for τ: a share λτ/(1 + λτ) of its ticks is skipped.
        for agent, rate in enumerate(rates):
            sent = (events["kind"] == SEND) & (events["agent"] == agent)
            skipped = (events["outcome"] == BUSY) & (events["peer"] == agent)
            share = rate * AIRTIME / (1 + rate * AIRTIME)
            # Ticks are Poisson, and see the sender as it is on average; runs of skipped ticks are short.
            assert abs(skipped.sum() - share * sent.sum()) < 6 * math.sqrt(share * sent.sum()) + 6

    def test_senders_that_wait_for_themselves(self, load: float, uneven: bool) -> None:
        """Π_j (1 − λ_jτ)·exp(−λ_jτ): every other one is a queue with service τ, found empty, and stays so."""
        channel = Channel(
            airtime=AIRTIME, collision="aloha", shared=True, half_duplex=True, while_sending="wait"
        )
        rates = rates_at(load, uneven)
        ends, _ = talk(channel, rates, 4)
        each = (1 - rates * AIRTIME) * np.exp(-rates * AIRTIME)
        assert fits(ends.excess(each.prod() / each))

    def test_slotted_senders_that_wait_for_themselves(self, load: float, uneven: bool) -> None:
        """Π_j (1 − λ_jτ): a sender uses a share λ_jτ of the slots."""
        channel = Channel(airtime=AIRTIME, collision="slotted", shared=True, half_duplex=True)
        rates = rates_at(load, uneven)
        ends, _ = talk(channel, rates, 5)
        each = 1 - rates * AIRTIME
        assert fits(ends.excess(each.prod() / each))

    def test_full_duplex_leaves_the_receivers_rate_out(self, load: float, uneven: bool) -> None:
        """exp(−2τ(Λ − λ_sender − λ_receiver)), the receiver each of the others alike."""
        channel = Channel(airtime=AIRTIME, collision="aloha", shared=True, while_sending="overlap")
        rates = rates_at(load, uneven)
        ends, _ = talk(channel, rates, 6)
        chance = [
            np.mean([np.exp(-2 * AIRTIME * (total - rates[r])) for r in range(AGENTS) if r != s])
            for s, total in enumerate(others(rates))
        ]
        assert fits(ends.excess(np.array(chance)))

    def test_capture_adds_what_met_only_later_ones(self, load: float, uneven: bool) -> None:
        """exp(−τG)·(exp(−τG) + c(1 − exp(−τG))): quiet before, and quiet after or captured. The receiver apart."""
        channel = Channel(
            airtime=AIRTIME, collision="aloha", shared=True, while_sending="overlap", capture=0.3
        )
        rates = rates_at(load, uneven)
        ends, _ = talk(channel, rates, 7)
        chance = np.zeros(AGENTS)
        for s, total in enumerate(others(rates)):
            quiet = np.exp(-AIRTIME * (total - np.delete(rates, s)))
            chance[s] = np.mean(quiet * (quiet + 0.3 * (1 - quiet)))
        assert fits(ends.excess(chance))


class TestThroughput:
    """Twenty senders, the receiver one of them and busy with its own: N − 1 others, as in theory."""

    N = 20

    def run(self, load: float, **keys: Any) -> np.ndarray:
        channel = Channel(airtime=AIRTIME, shared=True, half_duplex=True, **keys)
        return talk(channel, np.full(self.N, load / AIRTIME / self.N), 8, 40_000)[0].throughput()

    def test_pure_peaks_at_half_the_inverse_of_the_others(self) -> None:
        """N/(2e(N − 1)) = .1936 at τλ = 1/(2(N − 1))."""
        best = self.N / (2 * (self.N - 1))
        peak = self.run(best, collision="aloha", while_sending="overlap")
        assert fits(peak - self.N / (2 * math.e * (self.N - 1)))
        for load in (best / 2, 2 * best):
            beside = self.run(load, collision="aloha", while_sending="overlap")
            assert stats.ttest_ind(peak, beside, alternative="greater").pvalue < LEVEL

    def test_slotted_peaks_at_one_message_a_slot(self) -> None:
        """(1 − 1/N)^(N−1) = .3774, when each sends in one slot of N."""
        peak = self.run(1.0, collision="slotted")
        assert fits(peak - (1 - 1 / self.N) ** (self.N - 1))
        for load in (0.5, 2.0):
            beside = self.run(load, collision="slotted")
            assert stats.ttest_ind(peak, beside, alternative="greater").pvalue < LEVEL

    @pytest.mark.parametrize("load", [0.5, 1.0, 3.0])
    def test_carrier_sensing_beats_both(self, load: float) -> None:
        sensing = self.run(load, collision="carrier-sense")
        assert sensing.mean() > 0
        for kind in ("aloha", "slotted"):
            blind = self.run(load, collision=kind)
            assert stats.ttest_ind(sensing, blind, alternative="greater").pvalue < LEVEL

    def test_carrier_sensing_never_collides_where_all_hear_each_other(self) -> None:
        channel = Channel(airtime=AIRTIME, collision="carrier-sense", shared=True)
        events = talk(channel, np.full(self.N, 3 / AIRTIME / self.N), 9)[1]
        assert COLLISION not in events["outcome"]

    def test_carrier_sensing_without_a_second_try(self) -> None:
        """S = G/(1 + G) (Kleinrock, Tobagi 1975, at no propagation delay): the medium is idle for 1/Λ, then busy for τ.

        What comes while one sends is lost: its own ticks are skipped, those of the others refused.
        """
        load = 1.5
        channel = Channel(
            airtime=AIRTIME, collision="carrier-sense", shared=True, while_sending="skip", attempts=1
        )
        ends, events = talk(channel, np.full(self.N, load / AIRTIME / self.N), 10)
        assert fits(ends.throughput() - load / (1 + load))
        assert {BUSY, GAVE_UP} <= set(events["outcome"].tolist())


class TestPolledStar:
    def test_answers_reach_the_learner_like_those_of_a_plain_model(self) -> None:
        """Success of N answers at independent exponential times after a query, by direct Monte Carlo."""
        owners, airtime, mean = 20, 0.01, 0.5
        channel = Channel(airtime=airtime, collision="aloha", shared=False)
        poll = Poll(interval=20.0, response=Distribution(exponential=mean))
        events = play(draw_links(Star(), TopologyInputs(owners), learner=True), poll, channel, 20_000.0, 11)
        answers = events[np.isin(events["kind"], [DELIVER, DROP]) & (events["agent"] == -1)]
        query = np.floor(answers["time"] / 20.0).astype(int)
        heard = np.bincount(query, answers["kind"] == DELIVER)[1:-1]
        random = np.random.default_rng(12)
        times = np.sort(random.exponential(mean, (4000, owners)), axis=1)
        apart = np.diff(times, axis=1) >= airtime
        ones = np.ones((4000, 1), bool)
        free = (np.hstack([ones, apart]) & np.hstack([apart, ones])).sum(axis=1)
        assert stats.ttest_ind(heard, free, equal_var=False).pvalue > LEVEL


class TestBursts:
    """Two agents on one link: losses form a chain of two states, seen at Poisson times."""

    @pytest.mark.parametrize(
        "loss",
        [GilbertElliott(mean=0.2, burst=0.5), GilbertElliott(to_bad=0.7, to_good=1.3)],
        ids=["mean and burst", "rates"],
    )
    def test_share_and_length(self, loss: GilbertElliott) -> None:
        rate = 4.0
        events = play(
            draw_links(Complete(), TopologyInputs(2)),
            Gossip(),
            Channel(loss=loss),
            10_000.0,
            13,
            np.full(2, rate),
        )
        lost = events["outcome"][np.isin(events["kind"], [DELIVER, DROP])] == LOSS
        share = loss.bad_share
        assert share == pytest.approx(0.2 if loss.mean is not None else 0.35)
        mean_good, mean_bad = (2.0, 0.5) if loss.mean is not None else (1 / 0.7, 1 / 1.3)
        relaxation = 1 / mean_good + 1 / mean_bad
        assert loss.relaxation == pytest.approx(relaxation)
        # Sends are apart by an exponential time of rate 2·rate, after which memory is left with this probability.
        memory = 2 * rate / (2 * rate + relaxation)
        stays = share + (1 - share) * memory
        after = lost[1:][lost[:-1]]
        assert stats.binomtest(int(after.sum()), after.size, stays).pvalue > LEVEL
        turns = lost[1:][~lost[:-1]]
        assert stats.binomtest(int(turns.sum()), turns.size, share * (1 - memory)).pvalue > LEVEL
        # Lengths of bursts, in messages, are geometric.
        edges = np.flatnonzero(np.diff(np.concatenate([[False], lost, [False]]).astype(int)))
        lengths = np.minimum(edges[1::2] - edges[::2], 8)
        chances = stats.geom(1 - stays).pmf(np.arange(1, 8))
        expected = lengths.size * np.append(chances, 1 - chances.sum())
        assert stats.chisquare(np.bincount(lengths, minlength=9)[1:], expected).pvalue > LEVEL

    def test_states_of_links_are_independent(self) -> None:
        loss = GilbertElliott(mean=0.5, burst=100.0)
        shares = []
        for seed in range(60):
            events = play(draw_links(Complete(), TopologyInputs(6)), Gossip(), Channel(loss=loss), 1.0, seed)
            ends = events[np.isin(events["kind"], [DELIVER, DROP])]
            links = {tuple(sorted(pair)): kind for *pair, kind in zip(
                ends["agent"].tolist(), ends["peer"].tolist(), ends["kind"].tolist(), strict=True)}  # fmt: skip
            shares += [kind == DROP for kind in links.values()]
        assert stats.binomtest(sum(shares), len(shares), 0.5).pvalue > LEVEL

    def test_partial_losses_mix(self) -> None:
        loss = GilbertElliott(good=0.1, bad=0.8, to_bad=1.0, to_good=3.0)
        events = play(draw_links(Complete(), TopologyInputs(2)), Gossip(), Channel(loss=loss), 20_000.0, 14)
        lost = events["outcome"][np.isin(events["kind"], [DELIVER, DROP])] == LOSS
        parts = np.array([part.mean() for part in np.array_split(lost, PARTS)])
        assert fits(parts - (0.1 + 0.7 * 0.25))


class TestDelays:
    @pytest.mark.parametrize(
        ("written", "law"),
        [
            ({"lognormal": {"median": 0.3, "sigma": 1.0}}, stats.lognorm(1.0, scale=0.3)),
            ({"weibull": {"mean": 1.0, "shape": 0.5}}, stats.weibull_min(0.5, scale=0.5)),
            ({"gamma": {"mean": 1.0, "shape": 2.0}}, stats.gamma(2.0, scale=0.5)),
        ],
        ids=["lognormal", "weibull", "gamma"],
    )
    def test_laws(self, written: Any, law: Any) -> None:
        channel = Channel(latency=Distribution.model_validate(written), airtime=0.25)
        events = play(draw_links(Complete(), TopologyInputs(4)), Gossip(), channel, 2000.0, 15)
        heard = events[events["kind"] == DELIVER]
        sent = events["time"][heard["cause"]]
        # Of late ones only the quick are seen.
        early = sent < 1500.0
        assert stats.kstest((heard["time"] - sent)[early] - 0.25, law.cdf).pvalue > LEVEL

    def test_links_have_delays_and_losses_of_their_own(self) -> None:
        ends = np.array([[0, 1], [1, 2], [0, 2]])
        where = from_edges(
            3, ends[:, 0], ends[:, 1], None, {"delay": np.array([0.1, 0.2, 0.3]), "p": np.array([0.0, 0.5, 1.0])}
        )  # fmt: skip
        channel = Channel(latency=EdgeValue(edge="delay"), loss=EdgeValue(edge="p"))
        events = play(where, Gossip(), channel, 3000.0, 16)
        done = events[np.isin(events["kind"], [DELIVER, DROP])]
        took = done["time"] - events["time"][done["cause"]]
        for a, b, delay, loss in ((0, 1, 0.1, 0.0), (1, 2, 0.2, 0.5), (0, 2, 0.3, 1.0)):
            for s, r in ((a, b), (b, a)):
                here = (done["peer"] == s) & (done["agent"] == r)
                assert took[here] == pytest.approx(delay)
                lost = int((done["outcome"][here] == LOSS).sum())
                assert stats.binomtest(lost, int(here.sum()), loss).pvalue > LEVEL

    def test_wakes_come_as_without_a_channel(self) -> None:
        """What the channel does moves no clock."""
        channel = Channel(airtime=0.1, collision="aloha", latency=Distribution(exponential=1.0), loss=0.2)
        plain = play(draw_links(Complete(), TopologyInputs(5)), Gossip(), Channel(), 200.0, 17)
        events = play(draw_links(Complete(), TopologyInputs(5)), Gossip(), channel, 200.0, 17)
        assert (events["time"][events["kind"] == WAKE] == plain["time"][plain["kind"] == WAKE]).all()
