"""`check_part` passes every exchange, effect and availability that ships, and says what is wrong with bad ones."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from own_parts import let_in
from registered import registered

import p2psim
from p2psim.core import registry
from p2psim.core.events import NONE, SPENT
from p2psim.core.randomness import Streams
from p2psim.network.channels.effects import Delivery
from p2psim.network.graph import Graph
from p2psim.network.members import Members
from p2psim.network.spec import Conduct, RunningNetwork
from p2psim.testing import PartError, check_part


@pytest.fixture(autouse=True, scope="module")
def example_parts() -> Iterator[None]:
    with let_in("p2psim_example_parts"):
        yield


@pytest.mark.parametrize("kind", ["exchange", "channel", "availability"])
def test_registered_parts_pass(kind: str) -> None:
    for part in registered(kind):
        check_part(part)


@pytest.fixture(autouse=True)
def forgets() -> Iterator[None]:
    """A bad part must not stay registered for other tests."""
    before = {kind: dict(registry.parts(kind)) for kind in registry.KINDS}
    yield
    for kind, parts in before.items():
        for name in [name for name in registry.parts(kind) if name not in parts]:
            registry.forget(kind, name)


def wrong_with(part: type[Any]) -> str:
    registry.register(part)
    with pytest.raises(PartError) as raised:
        check_part(part())
    return str(raised.value)


class _Exchange(p2psim.Exchange):
    """Agents tell a neighbour."""

    kind: Literal["bad"] = "bad"

    def start(self, world: RunningNetwork) -> None:
        turns = [itertools.cycle([(int(world.links.of(agent)[0]),)]) for agent in range(world.links.agents)]
        world.start_clocks(lambda agent: world.update_and_send(agent, turns, lambda *_: None))


class _Silent(_Exchange):
    """Nobody does anything."""

    kind: Literal["silent"] = "silent"  # type: ignore[assignment]

    def start(self, world: RunningNetwork) -> None:
        pass


class _Uncaused(_Exchange):
    """Commits that nothing caused."""

    kind: Literal["uncaused"] = "uncaused"  # type: ignore[assignment]

    def start(self, world: RunningNetwork) -> None:
        world.start_clocks(lambda agent: void(world.commit(agent, -2, NONE, world.release(agent))))


class _Needy(_Exchange):
    """A wrong fact: agents commit by themselves."""

    kind: Literal["needy"] = "needy"  # type: ignore[assignment]

    def needs_delivery(self, updates: str) -> bool:
        return True


class _All(_Exchange):
    """A wrong fact: it tells one neighbour."""

    kind: Literal["all"] = "all"  # type: ignore[assignment]
    sends_to_all: ClassVar[bool] = True


class _Unseeded(_Exchange):
    """Random numbers of its own."""

    kind: Literal["unseeded"] = "unseeded"  # type: ignore[assignment]

    def start(self, world: RunningNetwork) -> None:
        random = np.random.default_rng()

        def peers(agent: int) -> Iterator[tuple[int]]:
            while True:
                yield (int(random.choice(world.links.of(agent))),)

        turns = [peers(agent) for agent in range(world.links.agents)]
        world.start_clocks(lambda agent: world.update_and_send(agent, turns, lambda *_: None))


def void(_: int) -> None:
    """Forget a number."""


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (_Silent, "no commit is made"),
        (_Uncaused, "cannot cause it"),
        (_Needy, "needs_delivery('wake') is True"),
        (_All, "sends_to_all is True, and releases are sent to one"),
        (_Unseeded, "the same streams give other events"),
    ],
)
def test_bad_exchanges(part: type[Any], said: str) -> None:
    assert said in wrong_with(part)


class _Pairs(_Exchange):
    """Who wakes tells a neighbour, which answers; only who woke makes a release, with its update."""

    kind: Literal["pairs"] = "pairs"  # type: ignore[assignment]

    def needs_delivery(self, updates: str) -> bool:
        return True

    def start(self, world: RunningNetwork) -> None:
        def wake(agent: int) -> None:
            if world.is_spent(agent):
                world.wake(agent, SPENT)
                return
            peer, cause = int(world.links.of(agent)[0]), world.wake(agent)
            world.send(agent, (peer,), world.versions[agent], cause, NONE, answer, lambda *_: None)

        def answer(agent: int, peer: int, delivery: int, *_: int) -> None:
            world.send(peer, (agent,), world.versions[peer], delivery, NONE, update, lambda *_: None)
            world.commit(peer, agent, delivery, NONE)

        def update(peer: int, agent: int, delivery: int, *_: int) -> None:
            if not world.is_spent(agent):
                world.commit(agent, peer, delivery, world.release(agent))

        world.start_clocks(wake)


class _SaidPairs(_Pairs):
    """The same, and it says so."""

    kind: Literal["said-pairs"] = "said-pairs"  # type: ignore[assignment]

    def conduct(self, updates: str, answerer_releases: bool) -> Conduct:
        return Conduct("wakers")


def test_an_exchange_answers_for_what_makes_its_releases() -> None:
    registry.register(_SaidPairs)
    check_part(_SaidPairs())
    assert "release" in wrong_with(_Pairs)


class _Effect(p2psim.ChannelEffect):
    """An effect."""

    kind: Literal["bad"] = "bad"

    def delay(self, delivery: Delivery, random: np.random.Generator) -> float:
        return -0.1


class _Maybe(p2psim.ChannelEffect):
    """A number for an answer."""

    kind: Literal["maybe"] = "maybe"

    def is_lost(self, delivery: Delivery, random: np.random.Generator) -> bool:
        return random.random()  # type: ignore[return-value]


class _Global(p2psim.ChannelEffect):
    """Random numbers of its own."""

    kind: Literal["global"] = "global"

    def is_lost(self, delivery: Delivery, random: np.random.Generator) -> bool:
        return bool(np.random.default_rng().random() < 0.5)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (_Effect, "delay gives -0.1; must be finite and 0 or more"),
        (_Maybe, "not True or False"),
        (_Global, "the argument `random` alone"),
    ],
)
def test_bad_effects(part: type[Any], said: str) -> None:
    assert said in wrong_with(part)


class _Absent(p2psim.Availability):
    """Agents are offline from 1 to 2."""

    kind: Literal["bad"] = "bad"

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        world.presence.alternate((0,), True, iter((1.0, 2.0)))


class _Spanless(_Absent):
    """A wrong fact: agents leave."""

    kind: Literal["spanless"] = "spanless"  # type: ignore[assignment]
    has_spans: ClassVar[bool] = False


class _Ideal(_Absent):
    """A wrong fact: agents leave."""

    kind: Literal["ideal"] = "ideal"  # type: ignore[assignment]
    ideal: ClassVar[bool] = True


class _Percent(_Absent):
    """Shares in percent."""

    kind: Literal["percent"] = "percent"  # type: ignore[assignment]

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        return np.full(links.agents, 80.0)


class _Moody(_Absent):
    """Random numbers of its own."""

    kind: Literal["moody"] = "moody"  # type: ignore[assignment]

    def misses(self, world: RunningNetwork, streams: Streams) -> Sequence[Callable[[], bool]]:
        random = np.random.default_rng()
        return [lambda: bool(random.random() < 0.5)] * world.links.agents


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (_Spanless, "has_spans is False, and agents leave"),
        (_Ideal, "ideal is set"),
        (_Percent, "numbers between 0 and 1, or NaN"),
        (_Moody, "the same streams give other events"),
    ],
)
def test_bad_availabilities(part: type[Any], said: str) -> None:
    assert said in wrong_with(part)


def test_a_good_one_passes() -> None:
    registry.register(_Exchange)
    registry.register(_Absent)
    check_part(_Exchange())
    check_part(_Absent())


@pytest.mark.parametrize("base", [p2psim.Exchange, p2psim.Availability])
def test_what_lacks_start_cannot_be_registered(base: type[Any]) -> None:
    with pytest.raises(p2psim.core.errors.InputError, match="lacks start"):
        registry.register(type("Lacking", (base,), {"__annotations__": {"kind": str}, "kind": "lacking"}))
