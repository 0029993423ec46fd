"""Push-sum: its plain form, what it conserves, where it ends, and what loss does to it."""

import numpy as np
import pytest
from gossip_cases import CHANNELS, complete, play, regular, ring

from p2psim.core.errors import SimulationError
from p2psim.core.events import COMMIT, SEND
from p2psim.learning.graph.averaging import PushSumReplay
from p2psim.learning.reference import reference_push_sum
from p2psim.network.channels.channel import Channel

GRAPHS = {"ring": ring(8), "complete": complete(7), "random-regular": regular(10, 3)}


def start(n: int, p: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p))


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_compiled_equals_plain_for_chunks_of_any_size(graph: str, channel: str) -> None:
    links = GRAPHS[graph]
    events = play(links, "push", channel=CHANNELS[channel], commits=200)
    x = start(links.agents)
    plain = list(reference_push_sum(x, events))[-1]
    for chunk in (1, 7, events.size):
        replay = PushSumReplay(x)
        for at in range(0, events.size, chunk):
            replay.feed(events[at : at + chunk])
        assert replay.theta == pytest.approx(plain, rel=1e-12)
    assert replay.vectors_sent == np.count_nonzero(events["kind"] == SEND)


@pytest.mark.parametrize("channel", ["ideal", "late"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_without_loss_all_tend_to_the_mean_of_the_start(graph: str, channel: str) -> None:
    links = GRAPHS[graph]
    x = start(links.agents)
    replay = PushSumReplay(x)
    replay.feed(play(links, "push", channel=CHANNELS[channel], commits=6000))
    assert replay.theta == pytest.approx(np.broadcast_to(x.mean(axis=0), x.shape), abs=1e-6)
    if channel == "ideal":
        assert replay.mass == pytest.approx(1, rel=1e-12)


@pytest.mark.verification
def test_loss_takes_mass_at_the_rate_of_theory_and_moves_where_it_ends() -> None:
    """A wake sends half of its agent's weight, of which a share q is lost: E[mass] shrinks by 1 − q/(2n) each.

    Over 400 replicas, 4.5 standard errors: a false alarm of 7 in a million for other seeds.
    """
    links, q, exchanges = complete(6), 0.3, 60
    masses, ends = [], []
    x = start(6, 1)
    for replica in range(400):
        events = play(links, "push", channel=Channel(loss=q), replica=replica, commits=200)
        sends = np.flatnonzero(events["kind"] == SEND)
        last = sends[exchanges] if sends.size > exchanges else events.size
        replay = PushSumReplay(x)
        replay.feed(events[:last])
        masses.append(replay.mass)
        replay.feed(events[last:])
        ends.append(replay.theta.mean())
        assert np.ptp(replay.theta) < 0.05  # they agree nevertheless
    found = np.array(masses)
    expected = (1 - q / 12) ** exchanges
    assert abs(found.mean() - expected) < 4.5 * found.std(ddof=1) / np.sqrt(400)
    assert np.std(ends) > 0.05  # but not on the mean of the start, which is one number


def test_releases_and_updates_on_waking_are_refused() -> None:
    events = play(ring(5), "push", updates="wake", commits=5)
    replay = PushSumReplay(start(5))
    with pytest.raises(SimulationError, match="not on waking"):
        replay.feed(events)
    with pytest.raises(SimulationError, match="touches no data"):
        replay.feed(events, np.zeros((1, 3)))
    assert (events["kind"] == COMMIT).any()
