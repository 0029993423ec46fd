"""What a model must do, and an algorithm that trains one: what the reference says, under all its exchanges."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from p2psim.core.errors import SimulationError
from p2psim.core.randomness import Streams
from p2psim.core.registry import place_of
from p2psim.learning.losses import Logistic, Squared
from p2psim.learning.models import Linear
from p2psim.learning.models.protocol import Model
from p2psim.learning.sgd.problem import SharedProblem, TrainingTask
from p2psim.learning.sgd.protocol import OfLearner, TrainingAlgorithm
from p2psim.network.exchanges import Exchange
from p2psim.network.exchanges.gossip import Gossip
from p2psim.network.exchanges.request import Request
from p2psim.network.exchanges.rounds import Poll, Round
from p2psim.network.exchanges.synchronous import Broadcast, Synchronous
from p2psim.network.section import Network
from p2psim.network.simulation import simulate_events
from p2psim.network.topologies.regular import Ring, Star
from p2psim.privacy.releases import ReleaseCounter, by_agent
from p2psim.simulation.algorithms.training import receivers_of

#: Records and their features, and numbers of classes that models of classes are tried with.
RECORDS, FEATURES, CLASSES = 12, 3, (2, 4)

#: Half a step of a difference quotient.
STEP = 1e-5


def check_model(part: Model) -> Iterator[str]:
    """Yield what is wrong with a model."""
    if part.uses_loss:
        if place_of(part) is not None:
            yield "uses_loss is for the linear model of p2psim; bring a loss in losses and gradients"
            return
        for loss in (Squared(), Logistic()):
            yield from _tried(part.with_loss(loss), 0)
        return
    if part.labels not in ("numbers", "signs", "classes"):
        yield f"labels is {part.labels!r}; must be 'numbers', 'signs' or 'classes'"
        return
    for classes in CLASSES if part.labels == "classes" else (2 if part.labels == "signs" else 0,):
        wrong = list(_tried(part, classes))
        yield from wrong
        if wrong:
            return


def _tried(part: Model, classes: int) -> Iterator[str]:
    """Yield what is wrong with a number of classes."""
    p = part.size(FEATURES, classes)
    if not isinstance(p, int | np.integer) or p < 1:
        yield f"size({FEATURES}, {classes}) gives {p!r}; must be a whole number of at least 1"
        return
    start, again = (part.start(FEATURES, classes, np.random.default_rng(1)) for _ in range(2))
    wrong = list(_of_array("start", start, (p,)))
    yield from wrong
    if wrong:
        return
    if not np.array_equal(start, again):
        yield "start gives other parameters for the same generator: draw from the argument `generator` alone"
    random = np.random.default_rng(0)
    X, y = random.standard_normal((RECORDS, FEATURES)), _labels(part, classes, random)
    theta = start + 0.3 * random.standard_normal(p)
    wrong = list(_shapes(part, theta, X, y, classes))
    yield from wrong
    if wrong:
        return
    yield from _derivatives(part, theta, X, y, random)
    yield from _one_by_one(part, theta, X, y)
    yield from _sums(part, theta, X, y)
    if place_of(part) is not None and part.for_kernel(FEATURES, classes) is not None:
        yield "for_kernel must be None: compiled models are those of p2psim"


def _labels(part: Model, classes: int, random: np.random.Generator) -> np.ndarray:
    if part.labels == "classes":
        return random.integers(0, classes, RECORDS).astype(float)
    numbers = random.uniform(-2.0, 2.0, RECORDS)
    return np.where(numbers > 0, 1.0, -1.0) if part.labels == "signs" else numbers


def _of_array(name: str, array: object, shape: tuple[int, ...]) -> Iterator[str]:
    if not isinstance(array, np.ndarray) or array.dtype != np.float64:
        yield f"{name} gives {getattr(array, 'dtype', type(array).__name__)}, not an array of float64"
    elif array.shape != shape:
        yield f"{name} gives an array of shape {array.shape}, not {shape}"
    elif not np.isfinite(array).all():
        yield f"{name} gives numbers that are not finite"


def _shapes(part: Model, theta: np.ndarray, X: np.ndarray, y: np.ndarray, classes: int) -> Iterator[str]:
    """Yield what is wrong with the shapes of results, and with what happens to the arguments."""
    before = theta.copy(), X.copy(), y.copy()
    outputs = part.outputs(theta, X)
    yield from _of_array("losses", part.losses(theta, X, y), (RECORDS,))
    yield from _of_array("gradients", part.gradients(theta, X, y), (RECORDS, theta.size))
    wrong = list(_of_array("outputs", outputs, (RECORDS, classes if part.labels == "classes" else 1)))
    yield from wrong
    if wrong:
        return
    predictions = part.predictions(outputs)
    yield from _of_array("predictions", predictions, (RECORDS,))
    if part.labels != "numbers":
        known = np.arange(classes) if part.labels == "classes" else np.array([-1.0, 0.0, 1.0])
        if not np.isin(predictions, known).all():
            yield f"predictions gives labels that do not exist: {np.setdiff1d(predictions, known)[0]:g}"
    if not all(map(np.array_equal, before, (theta, X, y))):
        yield "it changes its arguments"


def _derivatives(
    part: Model, theta: np.ndarray, X: np.ndarray, y: np.ndarray, random: np.random.Generator
) -> Iterator[str]:
    """Yield whether gradients are not those of the losses, along some directions."""
    gradients = part.gradients(theta, X, y)
    scale = max(1.0, float(np.abs(gradients).max()))
    for _ in range(8):
        way = random.standard_normal(theta.size)
        way /= np.linalg.norm(way)
        quotients = part.losses(theta + STEP * way, X, y) - part.losses(theta - STEP * way, X, y)
        off = np.abs(gradients @ way - quotients / (2 * STEP))
        # One record may lie at a corner.
        if np.sort(off)[-2] > 1e-5 * scale:
            yield "gradients are not the derivative of losses"
            return


def _one_by_one(part: Model, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> Iterator[str]:
    """Yield whether a record's results depend on other records, or on what was computed before."""
    some = slice(3, 8)
    for name, whole, few in (
        ("losses", part.losses(theta, X, y), part.losses(theta, X[some], y[some])),
        ("gradients", part.gradients(theta, X, y), part.gradients(theta, X[some], y[some])),
        ("outputs", part.outputs(theta, X), part.outputs(theta, X[some])),
    ):
        if not np.allclose(whole[some], few, rtol=1e-8, atol=1e-10):
            yield f"{name} of a record depend on the other records, or on earlier calls: clipping needs each alone"


def _sums(part: Model, theta: np.ndarray, X: np.ndarray, y: np.ndarray) -> Iterator[str]:
    """Yield whether sums of clipped gradients are not those of the gradients."""
    thetas = np.stack([theta, theta + 0.1, theta])
    batches = [np.array([0, 2, 5]), np.arange(RECORDS), np.arange(0)]
    for order in (0, 1, 2):
        clip = np.inf
        if order:
            clip = float(np.median(np.linalg.norm(part.gradients(theta, X, y), order, axis=1))) or 1.0
        given = part.clipped_sums(thetas, X, y, batches, clip, order)
        expected = Model.clipped_sums(part, thetas, X, y, batches, clip, order)
        if not all(np.allclose(a, b, rtol=1e-7, atol=1e-10) for a, b in zip(given, expected, strict=True)):
            yield f"clipped_sums of order {order} are not the sums of the clipped gradients"
            return


#: Exchanges that algorithms with a learner may take, and others.
_OWNERS = (Round(), Request(), Poll(interval=0.3, response=0.2))
_AGENTS = (Gossip(mode="push"), Gossip(mode="push-pull"), Broadcast(), Synchronous())


def check_training(part: TrainingAlgorithm) -> Iterator[str]:
    """Yield what is wrong with a training algorithm."""
    exchanges: tuple[Exchange, ...] = _AGENTS
    if isinstance(part, OfLearner):
        exchanges = tuple(exchange for exchange in _OWNERS if exchange.kind in part.star_exchanges)
        if not exchanges:
            known = ", ".join(exchange.kind for exchange in _OWNERS)
            yield f"star_exchanges are {part.star_exchanges!r}; must name some of {known}"
    for exchange in exchanges:
        try:
            yield from _run(part, exchange)
        except (SimulationError, ValueError) as error:
            yield f"a run under {exchange.kind} fails: {error}"


def _run(part: TrainingAlgorithm, exchange: Exchange) -> Iterator[str]:
    """Replay a small run."""
    random, n, each, p = np.random.default_rng(1), 4, 5, 3
    network = Network.of_graph(Star(agents=n) if exchange.needs_learner else Ring(agents=n), exchange)
    network = replace(network, updates=part.updates_under(exchange), answerer_releases=part.answerer_releases)
    X, none = random.standard_normal((n * each, p)), np.zeros(n + 1, np.int64)
    problem = SharedProblem(
        Linear().with_loss(Squared()), X, X.sum(axis=1), np.arange(n + 1) * each, X[:0], X[:0, 0], none, 0, 0.01,
        np.full(n, 1 / n),
    )  # fmt: skip
    events = simulate_events(network, Streams(0), commits=30).read()
    releases = ReleaseCounter.empty(n, part.queries).read(events)
    noise = random.standard_normal((releases.agents.size, p)) * 0.01
    task = TrainingTask(problem, 1.0, 2, None, True, None, random.standard_normal(p))
    replay = part.replay(task, network.links, exchange, receivers_of(network))
    replay.feed(events, noise)
    replay.check()
    *_, last = part.reference(task, network.links, exchange, events, noise[by_agent(releases)])
    if not np.allclose(replay.theta, last, rtol=1e-9, atol=1e-12):
        yield (
            f"two replays of the same events under {exchange.kind} differ: its methods are no functions of their "
            "arguments and memory"
        )
