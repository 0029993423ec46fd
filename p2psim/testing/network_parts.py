"""What an exchange, a channel effect and an availability must do."""

from collections.abc import Iterator

import numpy as np

from p2psim.core.distributions import Distribution
from p2psim.core.errors import P2PSimError
from p2psim.core.events import COMMIT, LEAVE, NEIGHBOURS, SEND
from p2psim.core.randomness import Streams
from p2psim.network.availability import Always, Availability, Bernoulli
from p2psim.network.availability.renewal import Renewal
from p2psim.network.channels.channel import Channel, ResendSame
from p2psim.network.channels.effects import ChannelEffect, Delivery
from p2psim.network.compute import Compute
from p2psim.network.exchanges import Exchange
from p2psim.network.exchanges.request import Request
from p2psim.network.exchanges.synchronous import Broadcast
from p2psim.network.graph import Graph, from_edges, star_links
from p2psim.network.members import Members
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.verify import verify

#: Agents of the networks that parts are tried in, and how long these run.
AGENTS, TIME = 6, 20.0


def _links(star: bool) -> Graph:
    """A star, or a circle with chords."""
    if star:
        return star_links(AGENTS)
    here = np.arange(AGENTS)
    there = np.concatenate([(here + 1) % AGENTS, here[:2] + 3])
    return from_edges(AGENTS, np.concatenate([here, here[:2]]), there)


def _network(
    exchange: Exchange,
    channel: Channel | None = None,
    availability: Availability | None = None,
    compute: Compute | None = None,
) -> Network:
    links = _links(exchange.needs_learner)
    members = Members(tuple(map(str, range(AGENTS))), ("a", "b") * (AGENTS // 2))
    return Network(
        links, exchange, channel or Channel(), availability or Always(), members=members, compute=compute
    )


def _play(network: Network, limit: int | None = None, seed: int = 0) -> np.ndarray:
    """Events of a run, whose invariants have been checked."""
    limits = None if limit is None else np.full(AGENTS, limit)
    events = simulate_events(network, Streams(seed), time=TIME, limits=limits, engine="simpy").read()
    verify(
        [events],
        network.links,
        limits,
        by_edge=network.exchange.by_edge,
        resending=network.channel.resending,
        end=TIME,
        polled=network.exchange.polled,
        order=network.ordering,
        conduct=network.conduct,
    )
    return events


def _runs(where: str, network: Network) -> Iterator[str]:
    """Yield what is wrong with runs of a network: with the events of one, and with what two of them share."""
    try:
        events, again = _play(network), _play(network)
        _play(network, limit=3)
    except P2PSimError as error:
        yield f"{where}: {error}"
        return
    if not np.array_equal(events, again):
        reason = "take random numbers from them alone, and keep nothing from one run to the next"
        yield f"{where}: the same streams give other events: {reason}"


#: Messages that collide and are sent again.
COLLIDING = Channel(airtime=0.05, collision="aloha", retransmit=ResendSame(limit=2))

#: What agents take to compute; who leaves drops it.
SLOW = Compute(time=Distribution(exponential=0.4), absence="cancel")

#: Networks that an exchange is tried in.
CONDITIONS = {
    "an ideal network": (Channel(), None),
    "delays and losses": (Channel(latency=Distribution(exponential=0.3), loss=0.3), None),
    "collisions": (COLLIDING, None),
    "missed wakes": (Channel(), Bernoulli(drop=0.3)),
    "absences": (Channel(latency=0.2), Renewal(up=3.0, down=1.0)),
}


def check_exchange(part: Exchange) -> Iterator[str]:
    """Yield what is wrong with the events of an exchange."""
    for where, (channel, availability) in CONDITIONS.items():
        yield from _runs(where, _network(part, channel, availability))
        if part.computes and not part.answer_delay:
            slow = _network(part, channel, availability, SLOW)
            yield from _runs(f"{where}, where agents take time to compute", slow)
    for updates in ("wake", "hear") if part.updates_on_hearing else ("wake",):
        silent = Network(_links(part.needs_learner), part, Channel(loss=1.0), updates=updates)
        try:
            commits = np.count_nonzero(_play(silent)["kind"] == COMMIT)
        except P2PSimError as error:
            yield f"with all messages lost: {error}"
            continue
        needs_delivery = part.needs_delivery(updates)
        if bool(commits) == needs_delivery:
            yield f"needs_delivery({updates!r}) is {needs_delivery}, and {commits} commits are made without a delivery"
    try:
        events = _play(_network(part))
    except P2PSimError:
        return  # named above
    if not (events["kind"] == COMMIT).any():
        yield f"no commit is made within {TIME:g} clock periods"
    sent = events[(events["kind"] == SEND) & (events["agent"] >= 0) & (events["release"] >= 0)]
    if not part.needs_learner and sent.size and (sent["peer"] == NEIGHBOURS).all() != part.sends_to_all:
        yield f"sends_to_all is {part.sends_to_all}, and releases are sent to {'one' if part.sends_to_all else 'all'}"
    rounds = events[(events["kind"] == COMMIT) & (events["agent"] < 0)]
    if part.needs_learner and rounds.size and (rounds["peer"] == NEIGHBOURS).all() != part.in_rounds:
        yield f"in_rounds is {part.in_rounds}, and the learner's commits are not such"


def check_channel(part: ChannelEffect) -> Iterator[str]:
    """Yield what is wrong with what an effect does to deliveries."""
    links = _links(False)
    effect, again = part.open(links), part.open(links)
    random, same = np.random.default_rng(0), np.random.default_rng(0)
    for number in range(400):
        begin = 0.37 * number
        delivery = Delivery(number % AGENTS, (number + 1) % AGENTS, begin, begin + 0.1 * (number % 5))
        lost: object = effect.is_lost(delivery, random)
        late = effect.delay(delivery, random)
        if not isinstance(lost, bool | np.bool_):
            yield f"is_lost gives {lost!r}, not True or False"
            return
        if not (np.isfinite(late) and late >= 0):
            yield f"delay gives {late!r}; must be finite and 0 or more"
            return
        if (lost, late) != (again.is_lost(delivery, same), again.delay(delivery, same)):
            alone = "take random numbers from the argument `random` alone"
            remember = "keep what must be remembered in what `open` returns"
            yield f"two runs with the same generator give other answers: {alone}, and {remember}"
            return
    for where, channel in {
        "messages that take no time": Channel(),
        "delays and losses": Channel(latency=0.2, loss=0.2),
        "collisions": COLLIDING,
    }.items():
        # A copy: this process may not have read the language of scenarios, which learns of parts.
        affected = channel.model_copy(update={"effects": [part]})
        for exchange in (Broadcast(), Request()):
            yield from _runs(f"{where}, {exchange.kind}", _network(exchange, affected))


def check_availability(part: Availability) -> Iterator[str]:
    """Yield what is wrong with absences of agents, or, where it is for a star, of owners."""
    tried: list[list[str]] = []
    for exchange in (Broadcast(), Request()):
        network = _network(exchange, Channel(latency=0.2), part)
        try:
            shares = network.shares()
            tried.append(list(_runs("delays", network)))
        except P2PSimError as error:
            tried.append([f"shares: {error}"])
        if not tried[-1]:
            break
    else:
        yield from tried[0]
        return
    known = shares[~np.isnan(shares)] if np.shape(shares) == (AGENTS,) else np.full(1, np.inf)
    if ((known < 0) | (known > 1)).any():
        yield f"shares must be {AGENTS} numbers between 0 and 1, or NaN; got {shares}"
    events, always = _play(network), _play(_network(network.exchange, network.channel))
    if not part.has_spans and (events["kind"] == LEAVE).any():
        yield "has_spans is False, and agents leave"
    if part.ideal and not np.array_equal(events, always):
        yield "ideal is set, and wakes are missed or agents leave"
