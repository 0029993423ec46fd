"""`check_part` passes every part that ships and those of the example package, and says what is wrong with bad ones."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from own_parts import let_in
from pydantic import Field

import p2psim
from p2psim.core import registry
from p2psim.learning.graph.gossip import ForKernel as ForKernelOfGossip
from p2psim.learning.graph.gossip import compiled_form as compiled_gossip
from p2psim.learning.losses.compiled import ForKernel
from p2psim.network.graph import Graph, TopologyInputs, from_edges
from p2psim.network.topologies import Complete, Grid, RandomRegular, Ring, SmallWorld
from p2psim.testing import PartError, check_part

with let_in("p2psim_example_parts"):
    from p2psim_example_parts.caveman import Caveman
    from p2psim_example_parts.gossip_sgd import GossipSgd
    from p2psim_example_parts.huber import Huber
    from p2psim_example_parts.server_momentum import ServerMomentum
    from p2psim_example_parts.trimmed_gossip import TrimmedGossip


@pytest.fixture(autouse=True, scope="module")
def example_parts() -> Iterator[None]:
    with let_in("p2psim_example_parts"):
        yield


GOOD = [
    Ring(), Complete(), Grid(shape=(3, 4)), RandomRegular(degree=3), SmallWorld(neighbours=4, rewire=0.5),
    Caveman(cliques=3, members=4), Huber(), Huber(delta=0.1),
    GossipSgd(commits=9, learning_rate=0.1), GossipSgd(time=2.0, learning_rate=3.0, decay=0.5),
    ServerMomentum(commits=9, step=0.1, local_steps=2), TrimmedGossip(commits=9, step=0.1),
    *(loss() for name, loss in registry.parts("loss").items() if name in ("squared", "hinge", "logistic")),
]  # fmt: skip


@pytest.mark.parametrize("part", GOOD, ids=repr)
def test_good_parts_pass(part: Any) -> None:
    check_part(part)


@pytest.fixture(autouse=True)
def forgets() -> Iterator[None]:
    """A bad part must not stay registered for other tests."""
    before = {kind: dict(registry.parts(kind)) for kind in registry.KINDS}
    yield
    for kind, parts in before.items():
        made = {name for name, part in registry.parts(kind).items() if registry.place_of(part) is not None}
        for name in made - parts.keys():
            registry.forget(kind, name)


def wrong_with(part: Any) -> str:
    with pytest.raises(PartError) as raised:
        check_part(part)
    return str(raised.value)


class _Bad(p2psim.Topology):
    """A topology that makes what it is told to."""

    kind: Literal["bad"] = "bad"
    edges: tuple[tuple[int, int], ...] = Field(((0, 1), (1, 2)), description="links")

    agents: ClassVar[int] = 3

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        ends = np.array(self.edges)
        return from_edges(3, ends[:, 0], ends[:, 1])


def test_a_part_that_is_not_registered() -> None:
    assert "not registered" in wrong_with(_Bad())


def test_a_topology_that_ignores_how_many_agents_there_are() -> None:
    registry.register(_Bad)
    assert "settle" in wrong_with(_Bad())


class _OneWay(_Bad):
    """Links that go one way."""

    kind: Literal["one-way"] = "one-way"

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        return Graph(np.array([0, 1, 2, 2]), np.array([1, 2], np.int32), False, np.ones(2))


class _Secret(_Bad):
    """Random without saying so."""

    kind: Literal["secret"] = "secret"

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        weights = random.uniform(1, 2)
        links = from_edges(3, np.array([0, 1]), np.array([1, 2]))
        return Graph(links.indptr, links.indices, False, np.full(4, weights))


class _Unseeded(_Bad):
    """Random numbers of its own."""

    kind: Literal["unseeded"] = "unseeded"
    is_random: ClassVar[bool] = True

    def links(
        self, agents: int | None, random: np.random.Generator, given: TopologyInputs, learner: bool = False
    ) -> Graph:
        links = from_edges(3, np.array([0, 1]), np.array([1, 2]))
        return Graph(links.indptr, links.indices, False, np.full(4, np.random.default_rng().uniform(1, 2)))


@pytest.mark.parametrize(
    ("part", "said"),
    [(_OneWay, "one way only"), (_Secret, "is_random"), (_Unseeded, "the argument `random` alone")],
)
def test_bad_topologies(part: type[_Bad], said: str) -> None:
    registry.register(part)
    assert said in wrong_with(part())


class _Loss(Huber):
    """Huber's loss with one mistake."""

    kind: Literal["mistaken"] = "mistaken"


class _Slope(_Loss):
    """A slope without its factor."""

    kind: Literal["slope"] = "slope"

    def slopes(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.clip(z - y, -self.delta, self.delta)


class _Curved(_Loss):
    """A curvature that is too small."""

    kind: Literal["curved"] = "curved"
    curvature: ClassVar[float] = 1.0


class _Steep(_Loss):
    """A bound on slopes that is too small."""

    kind: Literal["steep"] = "steep"

    @property
    def slope_bound(self) -> float:
        return self.delta


class _Wrongly(_Loss):
    """Another loss's compiled form."""

    kind: Literal["wrongly"] = "wrongly"

    def for_kernel(self) -> ForKernel:
        return 0


class _Minimum(_Loss):
    """A minimiser that gives up at once."""

    kind: Literal["minimum"] = "minimum"

    def minimise(self, X: np.ndarray, y: np.ndarray, l2: float, theta_max: float) -> np.ndarray:
        return np.zeros(X.shape[1])


class _Concave(_Loss):
    """Bent the wrong way in the middle."""

    kind: Literal["concave"] = "concave"

    def values(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return 1.0 + np.cos(z)

    def slopes(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -np.sin(z)

    def second_slopes(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        return -np.cos(z)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (_Slope, "not the derivative of values"),
        (_Curved, "above the curvature"),
        (_Steep, "above slope_bound"),
        (_Wrongly, "the compiled value differs"),
        (_Minimum, "minimiser"),
        (_Concave, "not convex"),
    ],
)
def test_bad_losses(part: type[Huber], said: str) -> None:
    registry.register(part)
    assert said in wrong_with(part())


def test_a_key_without_words_is_named() -> None:
    @registry.register
    class Silent(_Bad):
        kind: Literal["silent"] = "silent"
        number: int = 3

    said = wrong_with(Silent())
    assert "no docstring" in said
    assert "the key number has no description" in said
    assert "worker process" in said


def test_a_name_that_exists_names_both_packages() -> None:
    class Again(_Bad):
        """A ring of one's own."""

        kind: Literal["ring"] = "ring"

    with pytest.raises(
        p2psim.core.errors.InputError, match=r"'ring' of .* cannot be registered: p2psim has one"
    ):
        registry.register(Again)


class _Drifts(p2psim.GossipAlgorithm):
    """An algorithm whose methods misbehave in turn."""

    kind: Literal["drifts"] = "drifts"
    fault: str = Field("", description="what is wrong")

    def mix(self, own: np.ndarray, received: np.ndarray) -> np.ndarray:
        if self.fault == "shape":
            return np.zeros(own.size + 1)
        if self.fault == "changes":
            own += received
            return own
        return received + (next(_COUNT) if self.fault == "memory" else 0)

    def step(self, at: np.ndarray, gradient: np.ndarray, updates: int) -> np.ndarray:
        return at * np.nan if self.fault == "nan" else at

    def for_kernel(self) -> ForKernelOfGossip | None:
        return {"": compiled_gossip(_take, _stay), "form": compiled_gossip(_take, _move)}.get(self.fault)


def _take(own: np.ndarray, received: np.ndarray, parameters: np.ndarray, out: np.ndarray) -> None:
    out[:] = received


def _stay(
    at: np.ndarray, gradient: np.ndarray, updates: int, parameters: np.ndarray, out: np.ndarray
) -> None:
    out[:] = at


def _move(
    at: np.ndarray, gradient: np.ndarray, updates: int, parameters: np.ndarray, out: np.ndarray
) -> None:
    out[:] = at + updates


_COUNT = itertools.count()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("shape", "mix(own, received) of models of shape (1,) gives"),
        ("changes", "mix(own, received) changes its arguments"),
        ("memory", "mix(own, received) gives another model for the same arguments"),
        ("nan", "step(at, gradient, updates) of models of shape (1,) gives"),
        ("form", "models of the compiled form differ from those of mix and step by up to"),
    ],
)
def test_bad_algorithms(fault: str, said: str) -> None:
    registry.register(_Drifts)
    assert said in wrong_with(_Drifts(commits=5, fault=fault))
    check_part(_Drifts(commits=5))


class _Wanders(p2psim.GraphTraining):
    """A training algorithm whose methods misbehave in turn."""

    kind: Literal["wanders"] = "wanders"
    fault: str = Field("", description="what is wrong")

    order: ClassVar[Any] = "gradient-then-gossip"

    def train(self, model: np.ndarray, gradient: Any, t: int, memory: dict[str, Any]) -> np.ndarray:
        gradient(model)
        if self.fault == "greed":
            gradient(model)
        if self.fault == "changes":
            model += 1
        kinds = {
            "complex": model * 1j,
            "text": model.astype(str),
            "masked": np.ma.masked_equal(model, model[0]),
        }
        return np.zeros(model.size + 1) if self.fault == "shape" else kinds.get(self.fault, model)

    def mix(self, model: np.ndarray, heard: Sequence[p2psim.Heard], memory: dict[str, Any]) -> np.ndarray:
        return model + (next(_COUNT) if self.fault == "memory" else 0)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("greed", "train of wanders asks for more gradients than a release has, 1: give more local_steps"),
        ("changes", "a run under synchronous fails: output array is read-only"),
        ("shape", "train of wanders must take and give models of shape (3,), got (4,)"),
        ("complex", "train of wanders must take and give models of real numbers, got an array of complex128"),
        ("text", "train of wanders must take and give models of real numbers, got an array of <U"),
        ("masked", "train of wanders must take and give models of real numbers, got masked entries"),
        ("memory", "two replays of the same events under broadcast differ"),
    ],
)
def test_bad_training_algorithms(fault: str, said: str) -> None:
    registry.register(_Wanders)
    assert said in wrong_with(_Wanders(commits=5, fault=fault))


def test_an_unknown_order_is_refused() -> None:
    class Sideways(_Wanders):
        """An algorithm whose steps come in no known order."""

        kind: Literal["sideways"] = "sideways"
        order: ClassVar[Any] = "sideways"

    with pytest.raises(p2psim.core.errors.InputError, match=r"order must be one of .*'sideways'"):
        Sideways(commits=5)
