"""Releases that reached nobody, and deliveries of releases that failed, counted anew from the events."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neighbours import Neighbours
from network_cases import Broadcast, Channel, Gossip, Network, Poll, Request, Round, complete, ring, star

from p2psim.core.distributions import Distribution
from p2psim.core.events import COMMIT, DELIVER, DROP, LEARNER, NEIGHBOURS, SEND
from p2psim.core.randomness import Streams
from p2psim.network.availability import Always, Bernoulli, Renewal
from p2psim.network.channels.channel import ResendFresh, ResendSame
from p2psim.network.graph import TopologyInputs
from p2psim.network.simulation import simulate_events
from p2psim.network.tally import LostReleases
from p2psim.network.topologies import RandomWaypoint, draw_links

LATE = {"latency": Distribution(exponential=0.4)}


def recount(events, links):
    """Releases, lost ones and failed deliveries of each agent, message by message."""
    made, sends, ahead, reached, named, made_by = set(), {}, Counter(), set(), set(), {}
    newest, failed, neighbours = Counter(), [0] * links.agents, Neighbours(links)
    for event in events:
        kind, agent, release = int(event["kind"]), int(event["agent"]), int(event["release"])
        version, seq, cause = int(event["version"]), int(event["seq"]), int(event["cause"])
        near = neighbours.at(float(event["time"]), agent) if agent >= 0 else ()
        if kind in (SEND, COMMIT) and agent != LEARNER and release >= 0:
            made.add((agent, release))
        if kind == COMMIT and agent != LEARNER:
            newest[agent] = version
            if release >= 0:
                made_by[agent, version] = release
        if kind == SEND and agent != LEARNER:
            carried = release
            if release >= 0:
                named.add((agent, release))
            elif not links.star:
                carried = made_by.get((agent, version), -1)
            if carried >= 0:
                sends[seq] = agent, carried
                ahead[agent, carried] += len(near) if event["peer"] == NEIGHBOURS else 1
        if kind in (DELIVER, DROP) and cause in sends:
            ahead[sends[cause]] -= 1
            if kind == DELIVER:
                reached.add(sends[cause])
            else:
                failed[sends[cause][0]] += 1
    # What will not be sent any more: what was sent by name, or is in a model that is not the newest.
    old = {(agent, release) for (agent, version), release in made_by.items() if version < newest[agent]}
    lost = {one for one in made - reached if not ahead[one] and one in named | old}
    count = lambda some: [sum(agent == i for agent, _ in some) for i in range(links.agents)]  # noqa: E731
    return count(made), count(lost), failed


def played(network, pieces=1, **how):
    events = simulate_events(network, Streams(how.pop("seed", 0)), **how).read()
    losses = LostReleases(network)
    for piece in np.array_split(events, pieces):
        losses.read(piece)
    return events, losses


MOVING = RandomWaypoint(agents=6, radius=0.5, speed=(0.1, 0.4), interval=0.7)
GRAPHS = st.tuples(
    st.sampled_from([ring(4), complete(5), draw_links(MOVING, TopologyInputs())]),
    st.sampled_from([Broadcast(), *(Gossip(mode=mode) for mode in ("push", "pull", "push-pull", "edge"))]),
    st.sampled_from([Channel(), Channel(loss=0.4), Channel(loss=0.5, retransmit=ResendSame(limit=1)),
                     Channel(**LATE, loss=0.3), Channel(airtime=0.2, collision="aloha")]),
    st.sampled_from(["wake", "hear"]),
)  # fmt: skip
STARS = st.tuples(
    st.sampled_from([star(1), star(4)]),
    st.sampled_from([Request(), Poll(response=Distribution(exponential=0.5)), Round()]),
    st.sampled_from(
        [Channel(), Channel(loss=0.4), Channel(loss=0.5, retransmit=ResendFresh(limit=2)), Channel(**LATE)]
    ),
    st.just("wake"),
)


@settings(max_examples=120, deadline=None)
@given(
    case=GRAPHS | STARS,
    availability=st.sampled_from([Always(), Bernoulli(drop=0.3), Renewal(up=3.0, down=2.0, messages="held")]),
    seed=st.integers(0, 999),
    pieces=st.integers(1, 6),
)
def test_as_counted_anew(case, availability, seed, pieces):
    where, exchange, channel, updates = case
    if updates == "hear" and not isinstance(exchange, Gossip):
        updates = "wake"
    network = Network(where, exchange, channel, availability, updates=updates)
    events, losses = played(network, pieces, seed=seed, commits=60, time=40.0)
    made, lost, failed = recount(events, where)
    assert losses.releases.tolist() == lost
    assert losses.deliveries.tolist() == failed
    assert all(0 <= a <= b for a, b in zip(lost, made, strict=True))


@pytest.mark.parametrize("exchange", [Broadcast(), Gossip(mode="push"), Gossip(mode="pull")])
def test_where_nothing_or_everything_arrives(exchange):
    """A broadcast that nobody hears is one release lost, at three neighbours; who is never asked loses releases too."""
    for loss in (0.0, 1.0):
        network = Network(complete(4), exchange, Channel(loss=loss))
        if loss and exchange != Broadcast() and exchange.mode == "pull":
            continue  # makes no commit
        events, losses = played(network, time=10.0)
        sent = np.bincount(events["agent"][(events["kind"] == SEND) & (events["release"] >= 0)], minlength=4)
        if exchange == Gossip(mode="pull"):
            assert losses.releases.sum() > 0
            assert losses.deliveries.sum() == 0
        else:
            assert losses.releases.tolist() == (sent * int(loss)).tolist()
            each = 3 if exchange == Broadcast() else 1
            assert losses.deliveries.tolist() == (sent * int(loss) * each).tolist()
