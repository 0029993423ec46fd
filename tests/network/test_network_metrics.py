"""Metrics of the network against a plain reading of the same events, and against what is known of them."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_cases import (
    Broadcast,
    Channel,
    Gossip,
    Network,
    Poll,
    Request,
    Round,
    Synchronous,
    complete,
    ring,
    star,
)

from p2psim.core.distributions import Distribution
from p2psim.core.events import KINDS, LEARNER
from p2psim.core.randomness import Streams
from p2psim.network.availability import Always, LearnerOutage, Renewal
from p2psim.network.channels.channel import ResendFresh, ResendSame
from p2psim.network.channels.draws import Airtime
from p2psim.network.compute import Compute
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.metrics import NETWORK_METRICS, NetworkState, gini
from p2psim.network.metrics_reference import ReferenceTally, in_words
from p2psim.network.simulation import simulate_events
from p2psim.network.tally import Tally
from p2psim.network.topologies import RandomWaypoint, draw_links

AWAY = Renewal(up=4.0, down=2.0)
NO_TIME = Airtime(0.0, 0.0)
LOSSY = Channel(latency=Distribution(exponential=0.4), loss=0.25)
AGAIN = LOSSY.model_copy(update={"retransmit": ResendSame(limit=2, backoff=0.3, acknowledge=0.2)})
FRESH = LOSSY.model_copy(update={"retransmit": ResendFresh(limit=2, backoff=Distribution(exponential=0.3))})
RADIO = Channel(airtime=0.2, bandwidth=10.0, collision="aloha", while_sending="skip", loss=0.1)
MOVING = draw_links(
    RandomWaypoint(agents=8, radius=0.4, speed=(0.1, 0.3), interval=0.5), TopologyInputs(), replica=0
)
CASES: dict[str, tuple[Graph, Exchange, Any]] = {
    "request": (star(5), Request(service=Distribution(exponential=0.2)), AWAY),
    "queue": (star(5), Request(service=0.3, busy="queue"), AWAY),
    "several": (star(5), Request(service=0.6, busy="queue", concurrency=2), AWAY),
    "all at once": (star(5), Request(service=Distribution(exponential=0.6), concurrency="all"), AWAY),
    "outage": (star(5), Request(service=0.1, busy="queue"), LearnerOutage(up=2.0, down=1.0)),
    "poll": (star(5), Poll(response=Distribution(exponential=0.7)), AWAY),
    "round": (star(5), Round(response=Distribution(exponential=0.7)), AWAY),
    "round, late": (
        star(5),
        Round(response=Distribution(exponential=0.7), deadline=0.8),
        LearnerOutage(up=2.0, down=1.0),
    ),
    "round, some": (star(5), Round(response=Distribution(exponential=0.7), participants=2), AWAY),
    "synchronous": (ring(7), Synchronous(interval=0.5), AWAY),
    "synchronous, late": (ring(7), Synchronous(interval=0.5, deadline=0.5), AWAY),
    "broadcast": (ring(7), Broadcast(), AWAY),
    "moving": (MOVING, Broadcast(), AWAY),
    "moving, synchronous": (MOVING, Synchronous(interval=0.5), AWAY),
    "pull": (complete(5), Gossip(mode="pull"), AWAY),
    "push-pull": (ring(6), Gossip(mode="push-pull"), AWAY),
    "again": (ring(6), Broadcast(), AWAY),
    "again, request": (star(4), Request(service=0.1), AWAY),
    "fresh": (star(4), Request(service=Distribution(exponential=0.2)), AWAY),
    "fresh, several": (star(4), Request(service=Distribution(exponential=0.4), concurrency=3), AWAY),
    "radio": (ring(6), Gossip(mode="push-pull"), AWAY),
}
#: Networks whose agents take time to compute.
COMPUTE = {
    "compute, request": (star(5), Request(busy="queue"), AWAY, Compute(time=0.2)),
    "compute, poll": (star(5), Poll(), AWAY, Compute(time=0.4, absence="cancel")),
    "compute, round": (star(5), Round(deadline=2.0), AWAY, Compute(time=Distribution(exponential=0.7))),
    "compute, broadcast": (ring(7), Broadcast(), AWAY, Compute(time=0.5)),
    "compute, push-pull": (ring(6), Gossip(mode="push-pull"), AWAY, Compute(time=1.0, absence="cancel")),
    "compute, edge": (ring(6), Gossip(mode="edge"), AWAY, Compute(time=0.6)),
}
CASES |= {case: (links, exchange, away) for case, (links, exchange, away, _) in COMPUTE.items()}
CHANNELS = {"again": AGAIN, "again, request": AGAIN, "fresh": FRESH, "fresh, several": FRESH, "radio": RADIO}


def stream(case: str, seed: int = 0) -> tuple[np.ndarray, Graph, Exchange]:
    links, exchange, availability = CASES[case]
    compute = COMPUTE[case][3] if case in COMPUTE else None
    network = Network(links, exchange, CHANNELS.get(case, LOSSY), availability, compute=compute)
    return simulate_events(network, Streams(seed), time=60.0).read(), links, exchange


def names_for(exchange: Exchange) -> list[str]:
    """Metrics that say something of an exchange."""
    has = {
        "request": isinstance(exchange, Request),
        "clock": exchange.has_clocks,
        "version": not exchange.by_edge,
        "": True,
    }
    return [name for name, metric in NETWORK_METRICS.items() if has[metric.needs]]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_metrics_are_what_their_words_say(case: str, seed: int) -> None:
    events, links, exchange = stream(case, seed)
    names, rate, airtime = names_for(exchange), float(links.agents), Airtime(0.01, 0.03)
    places = exchange.places(links.agents) if isinstance(exchange, Request) else 1
    tally, plain = Tally(links), ReferenceTally(links, rate, airtime, places)
    half = int(np.searchsorted(events["time"], 30.0))
    for part, time, pieces in ((events[:half], 30.0, 7), (events[half:], 60.0, 3)):
        for chunk in np.array_split(part, pieces):
            tally.count(chunk)
        seen = NetworkState(tally, time, rate, airtime, places)
        found = {name: NETWORK_METRICS[name].measure(seen) for name in names}
        plain.read(in_words(part))
        assert found == pytest.approx(plain.record(time, names), rel=1e-12, abs=1e-9)
        of_each = {name: NETWORK_METRICS[name] for name in names if NETWORK_METRICS[name].each}
        for name, expected in plain.record_each(of_each).items():
            measure = of_each[name].measure_each
            assert measure is not None
            assert measure(seen).tolist() == pytest.approx(expected, rel=1e-12), name
        tally.heard[:] = False
    assert found["loss_rate"] > 0.03
    # Whoever is waited for is never stale.
    is_waited_for = (isinstance(exchange, Request) and places == 1) or case in (
        "round",
        "round, some",
        "synchronous",
        "moving, synchronous",
    )
    assert (found["staleness"] > 0) == (not is_waited_for)
    assert (found["retries"] > 0) == case.startswith("again")
    assert (found["unsent_rate"] > 0) == ("radio" in case)


def test_a_learner_is_busy_from_a_query_until_its_answer_has_ended() -> None:
    events, links, _ = stream("request")
    tally = Tally(links)
    tally.count(events)
    busy, since = 0.0, math.nan
    for row in events:
        kind, learner = KINDS[row["kind"]], row["agent"] == LEARNER
        if kind == "send" and learner:
            since = row["time"]
        elif (kind == "commit" and learner) or kind == "drop":
            busy, since = busy + row["time"] - since, math.nan
    if not math.isnan(since):
        busy += 60.0 - since
    seen = NetworkState(tally, 60.0, 5.0, NO_TIME)
    assert NETWORK_METRICS["utilisation"].measure(seen) == pytest.approx(busy / 60.0)


def test_every_attempt_counts_where_messages_are_sent_again() -> None:
    """Of n attempts on links that lose 30 %, lost ones are binomial: false alarms 6e-5 at four standard deviations.
    A message that may be tried three times arrives with probability 1 − 0.3³."""
    again = ResendSame(limit=2, backoff=0.01)
    network = Network(ring(10), Broadcast(), Channel(loss=0.3, retransmit=again))
    tally = Tally(network.links)
    tally.count(simulate_events(network, Streams(5), time=400.0).read())
    ended = tally["delivered"] + tally["dropped"]
    seen = NetworkState(tally, 400.0, 10.0, NO_TIME)
    attempts = tally["delivered"] + tally["lost"]
    assert attempts == tally["dropped"] + tally["delivered"] + tally["retries"]
    for name, expected, count in (("loss_rate", 0.3, attempts), ("delivery", 1 - 0.3**3, ended)):
        spread = math.sqrt(expected * (1 - expected) / count)
        assert NETWORK_METRICS[name].measure(seen) == pytest.approx(expected, abs=4 * spread), name


@pytest.mark.parametrize(
    ("links", "exchange"),
    [
        (star(5), Request(service=0.1)),
        (star(5), Poll()),
        (star(5), Round()),
        (ring(7), Broadcast()),
        (ring(7), Gossip(mode="edge")),
        (ring(7), Gossip(mode="push")),
    ],
)
@pytest.mark.parametrize("availability", [Always(), Renewal(up=4.0, down=2.0, messages="held")])
def test_nothing_is_wasted_before_it_has_failed(
    links: Graph, exchange: Exchange, availability: Always | Renewal
) -> None:
    """Where no message is ever lost all releases arrive, or are on their way, at every moment."""
    slow = Channel(latency=Distribution(exponential=1.0))
    network = Network(links, exchange, slow, availability)
    events = simulate_events(network, Streams(4), time=100.0).read()
    tally, arrived, waited = Tally(links), set(), False
    for event in np.split(events, events.size):
        tally.count(event)
        if event["kind"][0] == KINDS.index("deliver") and event["release"][0] >= 0:
            arrived.add((int(event["peer"][0]), int(event["release"][0])))
        waited |= tally["releases"] > len(arrived)
        assert (
            NETWORK_METRICS["releases_wasted"].measure(NetworkState(tally, tally.time, 5.0, NO_TIME)) == 0.0
        )
    assert waited


def test_a_lost_answer_is_a_wasted_release() -> None:
    """Answers on a star that loses 30 % are wasted independently: binomial, four standard deviations (6e-5)."""
    network = Network(star(5), Request(), Channel(loss=0.3))
    tally = Tally(network.links)
    tally.count(simulate_events(network, Streams(6), commits=5_000).read())
    wasted = NETWORK_METRICS["releases_wasted"].measure(NetworkState(tally, tally.time, 5.0, NO_TIME))
    assert wasted == pytest.approx(0.3, abs=4 * math.sqrt(0.3 * 0.7 / tally["releases"]))
    # A broadcast reaches somebody unless both neighbours miss it.
    network = Network(ring(7), Broadcast(), Channel(loss=0.3))
    tally = Tally(network.links)
    tally.count(simulate_events(network, Streams(6), commits=5_000).read())
    wasted = NETWORK_METRICS["releases_wasted"].measure(NetworkState(tally, tally.time, 7.0, NO_TIME))
    assert wasted == pytest.approx(0.09, abs=4 * math.sqrt(0.09 * 0.91 / tally["releases"]))


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_half_of_what_is_pulled_is_wasted(loss: float) -> None:
    """On a complete graph an agent's own updates and others' of its model come at the same rate, 1·(1 − q)².

    So a release is fetched before the next one is made with probability 1/2, whatever the loss: a coin for each release
    of an agent. At worst all five agents' coins were the same; four standard deviations then, false alarms 6e-5.
    """
    network = Network(complete(5), Gossip(mode="pull"), Channel(loss=loss))
    tally = Tally(network.links)
    tally.count(simulate_events(network, Streams(7), commits=10_000).read())
    wasted = NETWORK_METRICS["releases_wasted"].measure(NetworkState(tally, tally.time, 5.0, NO_TIME))
    assert wasted == pytest.approx(0.5, abs=4 * math.sqrt(0.25 / 2_000))


def test_effective_graph_is_that_of_links_in_use() -> None:
    links = ring(5)
    tally = Tally(links)
    seen = NetworkState(tally, 1.0, 5.0, NO_TIME)
    assert NETWORK_METRICS["effective_lambda2"].measure(seen) == pytest.approx(0)
    tally.heard[:] = True
    assert NETWORK_METRICS["effective_lambda2"].measure(seen) == pytest.approx(
        2 - 2 * math.cos(2 * math.pi / 5)
    )
    owners = Tally(star(4))
    owners.heard[:] = True
    assert NETWORK_METRICS["effective_lambda2"].measure(
        NetworkState(owners, 1.0, 4.0, NO_TIME)
    ) == pytest.approx(1)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12))
def test_gini_is_half_the_relative_mean_difference(values: list[int]) -> None:
    x = np.array(values, dtype=float)
    if x.sum() == 0:
        assert gini(x) == 0
        return
    assert gini(x) == pytest.approx(np.abs(x[:, None] - x[None, :]).mean() / (2 * x.mean()), abs=1e-12)
    assert 0 <= gini(x) <= 1 - 1 / x.size + 1e-12


@pytest.mark.parametrize("time", [0.0, 0.4])
def test_answers_to_a_poll_lag_behind_those_that_came_before(time: float) -> None:
    """Of n answers of one instant the k-th is computed from a model that k − 1 others have changed meanwhile."""
    network = Network(star(7), Poll(), compute=Compute(time=time))
    tally = Tally(network.links)
    tally.count(simulate_events(network, Streams(1), time=30.5).read())
    seen = NetworkState(tally, 30.5, 7.0, NO_TIME)
    assert NETWORK_METRICS["version_lag"].measure(seen) == pytest.approx(3.0)
    # Owners answer in their order, in each of the 31 polls.
    measure = NETWORK_METRICS["version_lag"].measure_each
    assert measure is not None
    assert measure(seen).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize("exchange", [Gossip(), Broadcast(), Gossip(mode="push-pull")])
def test_who_computes_one_thing_at_a_time_has_the_version_that_it_read(exchange: Exchange) -> None:
    network = Network(ring(6), exchange, LOSSY, compute=Compute(time=1.0))
    tally = Tally(network.links)
    tally.count(simulate_events(network, Streams(1), time=100.0).read())
    assert tally["commits"] > 100
    assert not tally.of_each("lag").any()
