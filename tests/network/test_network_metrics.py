"""Metrics of the network against a plain reading of the same events, and against what is known of them."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_cases import Broadcast, Channel, Gossip, Network, Poll, Request, complete, ring, star

from p2psim.distributions import Distribution
from p2psim.network.availability import LearnerOutage, Renewal
from p2psim.network.events import KINDS, LEARNER, OUTCOMES
from p2psim.network.exchanges.protocol import ExchangePattern
from p2psim.network.graphs import Links
from p2psim.network.metrics import NETWORK_METRICS, Seen, gini
from p2psim.network.simulation import simulate_events
from p2psim.network.tally import Tally
from p2psim.randomness import Streams

AWAY = Renewal(up=4.0, down=2.0)
CASES: dict[str, tuple[Links, ExchangePattern, Any]] = {
    "request": (star(5), Request(service=Distribution(exponential=0.2)), AWAY),
    "queue": (star(5), Request(service=0.3, busy="queue"), AWAY),
    "outage": (star(5), Request(service=0.1, busy="queue"), LearnerOutage(up=2.0, down=1.0)),
    "poll": (star(5), Poll(response=Distribution(exponential=0.7)), AWAY),
    "broadcast": (ring(7), Broadcast(), AWAY),
    "pull": (complete(5), Gossip(mode="pull"), AWAY),
    "push-pull": (ring(6), Gossip(mode="push-pull"), AWAY),
}


def stream(case: str, seed: int = 0) -> tuple[np.ndarray, Links]:
    links, exchange, availability = CASES[case]
    channel = Channel(latency=Distribution(exponential=0.4), loss=0.25)
    network = Network(links, exchange, channel, availability)
    return simulate_events(network, Streams(seed), time=60.0).read(), links


def read_plainly(events: np.ndarray, links: Links, since: float) -> dict[str, float]:
    """The metrics at the end of a stream, from its definition in words; ``since``: of the last record."""
    names = events.dtype.names
    assert names is not None
    rows = [dict(zip(names, row, strict=True)) for row in events.tolist()]
    for row in rows:
        row["kind"], row["outcome"] = KINDS[row["kind"]], OUTCOMES[row["outcome"]]
    by_seq = {row["seq"]: row for row in rows}
    ends = [r for r in rows if r["kind"] == "deliver"] + [
        r
        for r in rows
        if r["kind"] == "drop" and r["outcome"] in ("loss", "collision", "offline") and r["peer"] >= -1
    ]
    share = {o: sum(r["outcome"] == o for r in ends) / max(len(ends), 1) for o in OUTCOMES}
    delivered = [r for r in ends if r["kind"] == "deliver"]
    own = [r for r in rows if r["release"] >= 0 and r["agent"] >= 0 and r["kind"] in ("send", "commit")]
    made = {(r["agent"], r["release"]) for r in own}
    got = {(r["peer"], r["release"]) for r in delivered if r["release"] >= 0}
    ages = []
    versions: dict[int, int] = {}
    away: set[int] = set()
    for row in rows:
        if row["kind"] == "commit":
            versions[row["agent"]] = row["version"]
        elif row["kind"] == "deliver" and row["version"] >= 0 and (row["agent"] == LEARNER or not links.star):
            ages.append(versions.get(LEARNER if links.star else row["peer"], 0) - row["version"])
        elif row["agent"] >= 0 and row["kind"] == "leave":
            away.add(row["agent"])
        elif row["agent"] >= 0 and row["kind"] == "join":
            away.discard(row["agent"])
    commits = [r["peer"] if r["agent"] == LEARNER else r["agent"] for r in rows if r["kind"] == "commit"]
    counts = np.bincount(commits, minlength=links.agents).astype(float)
    wakes = [r for r in rows if r["kind"] == "wake"]
    queries = [r for r in rows if r["kind"] == "send" and r["agent"] == LEARNER and r["peer"] >= 0]
    waits = [r["time"] - by_seq[r["cause"]]["time"] for r in queries]
    over = {(r["agent"], r["peer"]) for r in delivered if r["time"] > since}
    if links.star:
        over = {max(pair) for pair in over}  # either way over an owner's link
    pairwise = np.abs(counts[:, None] - counts[None, :]).sum() / (2 * counts.size * max(counts.sum(), 1))
    return {
        "messages": sum(r["kind"] == "send" for r in rows),
        "delivery": len(delivered) / max(len(ends), 1),
        "loss_rate": share["loss"],
        "collision_rate": share["collision"],
        "offline_rate": share["offline"],
        "present": 1 - len(away) / links.agents,
        "turned_away": sum(r["outcome"] in ("busy", "offline") for r in wakes) / max(len(wakes), 1),
        "waiting_time": sum(waits) / max(len(waits), 1),
        "staleness": float(np.mean(ages)) if ages else 0.0,
        "updates_gini": float(pairwise),
        "releases": len(made),
        "releases_wasted": 1 - len(got) / len(made) if made else 0.0,
        "links_heard": len(over) / links.indices.size,
    }


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", [0, 1])
def test_metrics_are_what_their_words_say(case: str, seed: int) -> None:
    events, links = stream(case, seed)
    tally = Tally(links)
    half = int(np.searchsorted(events["time"], 30.0))
    for chunk in np.array_split(events[:half], 7):
        tally.count(chunk)
    tally.heard[:] = False
    for chunk in np.array_split(events[half:], 3):
        tally.count(chunk)
    seen = Seen(tally, 60.0, float(links.agents), 0.01)
    expected = read_plainly(events, links, float(events["time"][half - 1]))
    for name, value in expected.items():
        if NETWORK_METRICS[name].needs == "request" and "poll" in case:
            continue
        assert NETWORK_METRICS[name].measure(seen) == pytest.approx(value, rel=1e-12, abs=1e-12), name
    assert expected["loss_rate"] > 0.1
    assert expected["staleness"] > 0 or case in ("request", "queue", "outage")


def test_a_learner_is_busy_from_a_query_until_its_answer_has_ended() -> None:
    events, links = stream("request")
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
    assert NETWORK_METRICS["utilisation"].measure(Seen(tally, 60.0, 5.0, 0.0)) == pytest.approx(busy / 60.0)


def test_effective_graph_is_that_of_links_in_use() -> None:
    links = ring(5)
    tally = Tally(links)
    seen = Seen(tally, 1.0, 5.0, 0.0)
    assert NETWORK_METRICS["effective_lambda2"].measure(seen) == pytest.approx(0)
    tally.heard[:] = True
    assert NETWORK_METRICS["effective_lambda2"].measure(seen) == pytest.approx(
        2 - 2 * math.cos(2 * math.pi / 5)
    )
    owners = Tally(star(4))
    owners.heard[:] = True
    assert NETWORK_METRICS["effective_lambda2"].measure(Seen(owners, 1.0, 4.0, 0.0)) == pytest.approx(1)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12))
def test_gini_is_half_the_relative_mean_difference(values: list[int]) -> None:
    x = np.array(values, dtype=float)
    if x.sum() == 0:
        assert gini(x) == 0
        return
    assert gini(x) == pytest.approx(np.abs(x[:, None] - x[None, :]).mean() / (2 * x.mean()), abs=1e-12)
    assert 0 <= gini(x) <= 1 - 1 / x.size + 1e-12
