"""The checks of losses, mechanisms, allocations, accountants, features, partitions, sources and topologies."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from p2psim.core.errors import InputError, MeaningError, MissingSourceError, P2PSimError
from p2psim.core.randomness import stream_key
from p2psim.data.classes import Column
from p2psim.data.features import apply_features
from p2psim.data.features.maps import Feature
from p2psim.data.partitions import Partition, check_division
from p2psim.data.records import DataRequest, DataSource, Held, Table
from p2psim.learning.losses import Loss
from p2psim.learning.optimum import minimise
from p2psim.network.changes import LinkChanges
from p2psim.network.graph import Graph, TopologyInputs
from p2psim.network.topologies.base import ChangingTopology, Topology
from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.charges import Charges
from p2psim.privacy.accounting.noises import DISCRETE_LAPLACE, GAUSSIAN, LAPLACE, PURE
from p2psim.privacy.allocations import Allocation, StatedLosses
from p2psim.privacy.mechanisms import Mechanism
from p2psim.privacy.shares import UNLIMITED, Releases, RunForecast

#: Half a step of a difference quotient.
STEP = 1e-5


def check_loss(part: Loss) -> Iterator[str]:
    """Yield what is wrong with a loss."""
    random = np.random.default_rng(0)
    z = np.concatenate([random.uniform(-6, 6, 400), random.uniform(-0.2, 0.2, 100)])
    y = random.choice([-1.0, 1.0], z.size) if part.needs_classes else random.uniform(-3, 3, z.size)
    values, slopes, seconds = part.values(z, y), part.slopes(z, y), part.second_slopes(z, y)
    for name, array in (("values", values), ("slopes", slopes), ("second_slopes", seconds)):
        if np.shape(array) != z.shape:
            yield f"{name}(z, y) of arrays of shape {z.shape} has the shape {np.shape(array)}"
            return
        if not np.isfinite(array).all():
            yield f"{name} is not finite for scores up to 6"
            return
    if (values < 0).any():
        yield "values are negative"
    yield from _slopes(part, z, y, slopes, seconds)
    yield from _compiled(part, z, y, values, slopes)
    yield from _minimiser(part)


def _slopes(
    part: Loss, z: np.ndarray, y: np.ndarray, slopes: np.ndarray, seconds: np.ndarray
) -> Iterator[str]:
    below, above = part.slopes(z - STEP, y), part.slopes(z + STEP, y)
    # Next to a kink or a corner a quotient means nothing.
    smooth = np.abs(above - below) <= 2 * STEP * (np.abs(seconds) + 1) * 1.5
    quotient = (part.values(z + STEP, y) - part.values(z - STEP, y)) / (2 * STEP)
    if not np.allclose(slopes[smooth], quotient[smooth], rtol=1e-4, atol=1e-5):
        yield "slopes are not the derivative of values"
    second = (above - below) / (2 * STEP)
    steady = smooth & np.isclose(part.second_slopes(z - STEP, y), part.second_slopes(z + STEP, y), atol=1e-3)
    if not np.allclose(seconds[steady], second[steady], rtol=1e-3, atol=1e-4):
        yield "second_slopes are not the derivative of slopes"
    if (above < below - 1e-9).any():
        yield "it is not convex: a slope falls as the score rises"
    if (seconds > part.curvature * (1 + 1e-9)).any():
        yield f"a second slope of {seconds.max():g} is above the curvature, {part.curvature:g}"
    if (np.abs(slopes) > part.slope_bound * (1 + 1e-9)).any():
        yield f"a slope of {np.abs(slopes).max():g} is above slope_bound, {part.slope_bound:g}"
    bounds = part.slope_bounds(np.abs(z) / 2, np.abs(y) if not part.needs_classes else y, 2.0)
    if (np.abs(slopes) > np.asarray(bounds) * (1 + 1e-9)).any():
        yield "a slope is above slope_bounds(‖x‖₁, y, θ_max) where |z| = θ_max·‖x‖₁"


def _compiled(
    part: Loss, z: np.ndarray, y: np.ndarray, values: np.ndarray, slopes: np.ndarray
) -> Iterator[str]:
    from numba import njit

    from p2psim.learning.losses import compiled

    try:
        form = part.for_kernel()
    except P2PSimError as error:
        yield f"{error}"
        return
    value, slope = compiled.value, compiled.slope

    @njit
    def loop(loss: Any, z: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
        for i in range(z.size):
            out[0, i], out[1, i] = value(loss, z[i], y[i]), slope(loss, z[i], y[i])

    out = np.empty((2, z.size))
    loop(form, z, y, out)
    for name, computed, expected in zip(("value", "slope"), out, (values, slopes), strict=True):
        if not np.allclose(computed, expected, rtol=1e-9, atol=1e-12):
            worst = np.abs(computed - expected).max()
            yield f"the compiled {name} differs from the one in NumPy by up to {worst:.2g}"


def _minimiser(part: Loss) -> Iterator[str]:
    random = np.random.default_rng(1)
    for l2, box in ((1e-3, 0.5), (0.1, 20.0)):
        X = random.standard_normal((60, 3))
        y = X @ np.array([1.0, -0.5, 0.3]) + 0.3 * random.standard_normal(60)
        y = np.where(y >= 0, 1.0, -1.0) if part.needs_classes else y
        try:
            theta = minimise(part, X, y, l2, box)
        except P2PSimError as error:
            yield f"its minimiser fails for l2 = {l2}, theta_max = {box}: {error}"
            continue

        def fitness(model: np.ndarray, X: np.ndarray = X, y: np.ndarray = y, l2: float = l2) -> float:
            return float(part.values(X @ model, y).mean() + l2 * model @ model)

        for scale in (1e-3, 1e-1, 1.0):
            others = np.clip(theta + scale * random.standard_normal((50, 3)), -box, box)
            if min(map(fitness, others)) < fitness(theta) - 1e-9:
                yield f"its minimiser is beaten by another model for l2 = {l2}, theta_max = {box}"
                break


#: Releases of an agent that are looked at, and coordinates of each.
MANY, WIDTH = 40, 3


def check_mechanism(part: Mechanism) -> Iterator[str]:
    """Yield what is wrong with a mechanism's draws, scales and sensitivities."""
    if str(part.norm) not in ("l1", "l2"):
        yield f"its norm is {part.norm!r}; must be 'l1' or 'l2'"
    if not all(hasattr(part.noise, name) for name in ("name", "delta")):
        yield "its noise has no name or no curve delta(losses, epsilon)"
    key, agents, numbers = stream_key(0, 0, "noise"), np.arange(MANY) % 7, np.arange(MANY) // 7
    unit = np.full((MANY, WIDTH), np.nan)
    part.fill_unit(key, agents, numbers, unit)
    if not np.isfinite(unit).all():
        yield "fill_unit draws what is no finite number, or leaves some numbers as they were"
        return
    order = np.random.default_rng(0).permutation(MANY)[: MANY // 2]
    some = np.full((order.size, WIDTH), np.nan)
    part.fill_unit(key, agents[order], numbers[order], some)
    if not np.array_equal(some, unit[order]):
        yield "a draw depends on which others are drawn with it, not on the key, the agent and the number alone"
    if not np.isfinite(part.of_scale(unit, np.full(MANY, 0.3))).all():
        yield "noise of scale 0.3 is no finite number"
    if np.any(part.of_scale(unit, np.zeros(MANY))):
        yield "noise of scale 0 is not 0"
    moved = np.array([0.0, 0.01, 0.5, 3.0])
    sensitivity = part.sensitivity_of(moved, WIDTH)
    if sensitivity.shape != moved.shape or sensitivity[0] != 0 or (sensitivity < moved).any():
        yield "sensitivity_of gives less than values move by, or something for values that do not move"


def check_allocation(part: Allocation) -> Iterator[str]:
    """Yield what is wrong with an allocation's limits and shares."""
    most = part.limit(1000, 0.02, 20.0)
    if not 0 <= most <= UNLIMITED:
        yield f"limit gives {most} releases"
        return
    count = int(min(most, MANY))
    releases = Releases(np.zeros(count, np.int64), np.arange(count), np.arange(count) * 50)
    forecast = RunForecast(np.array([20.0]), np.array([50.0]), 0.99)
    if isinstance(part, StatedLosses):
        shares = part.stated_losses(releases.numbers)
    elif part.composed_by is None:
        shares = part.weights(releases, np.full(count, most), forecast, 1)
    else:
        return
    if shares.shape != (count,) or not (np.isfinite(shares) & (shares > 0)).all():
        yield f"the shares of {count} releases are not so many positive numbers"
    elif part.sums_to_one and not part.clairvoyant and shares.sum() > 1 + 1e-9:
        yield f"sums_to_one is set, and {count} shares add up to {shares.sum():g}"
    elif part.even and np.ptp(shares) > 0:
        yield "even is set, and shares differ"
    if part.clairvoyant and not np.isfinite(part.logarithms(releases, forecast, 1)).all():
        yield "logarithms gives what is no finite number"


def check_accountant(part: Accountant) -> Iterator[str]:
    """Yield what is wrong with an accountant's ε and δ on a few lists of releases."""
    if part.supports(_Unheard()) and part.name not in ("pld", "best"):
        yield "it says that it supports a noise of which nothing is known but its curve, which it cannot know"
    for noise in (LAPLACE, GAUSSIAN, PURE, DISCRETE_LAPLACE):
        if not part.supports(noise):
            continue
        ten, twenty = Charges.of(noise, [0.3], [10]), Charges.of(noise, [0.3], [20])
        last = np.inf
        for delta in (1e-9, 1e-5, 1e-2):
            epsilon, more = float(part.epsilon(ten, delta)[0]), float(part.epsilon(twenty, delta)[0])
            if epsilon > last:
                yield f"of {noise.name} noise ε grows with δ"
            if more < epsilon:
                yield f"of {noise.name} noise 20 releases cost less than 10"
            last = epsilon
            if np.isfinite(epsilon) and delta * (1 + 1e-6) < float(
                noise.delta(np.array(0.3), np.array(epsilon))
            ):
                yield f"of {noise.name} noise 10 releases have a smaller δ at ε = {epsilon:g} than one has"
            if np.isfinite(epsilon) and not 0 <= float(part.delta(ten, epsilon)[0]) <= 1:
                yield f"of {noise.name} noise δ is no probability"


class _Unheard:
    """A noise that no accountant has heard of."""

    name = "unheard-of"

    def delta(self, losses: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
        """That of nothing known."""
        return np.ones(np.broadcast(losses, epsilon).shape)


def check_partition(part: Partition) -> Iterator[str]:
    """Yield what is wrong with how a partition divides 60 rows."""
    labels = np.random.default_rng(0).choice([-1.0, 1.0], 60)
    column = Column(np.arange(60) % 3) if part.divides_by is not None else None
    agents = getattr(part, "agents", None)
    owners, names = part.split(labels, agents or 3, column, np.random.default_rng(1))
    again, _ = part.split(labels, agents or 3, column, np.random.default_rng(1))
    try:
        check_division(owners, names, 60, agents or 3, part.kind)
    except MeaningError as error:
        yield str(error)
    if len(owners) != len(again) or not all(map(np.array_equal, owners, again)):
        yield "the same generator gives other owners: take random numbers from the argument `random` alone"


def check_feature(part: Feature) -> Iterator[str]:
    """Yield what is wrong with the features of 30 records of two owners, with 20 public rows."""
    random, ratings = np.random.default_rng(0), part.needs_ratings
    X, public = (
        random.integers(0, 5, (rows, 1)).astype(np.float64) if ratings else random.standard_normal((rows, 6))
        for rows in (30, 20)
    )
    columns = tuple(f"x{j + 1}" for j in range(X.shape[1]))
    y, offsets = random.standard_normal(30), np.array([0, 12, 30])
    held = Held(X, y, offsets, columns, ("0", "1"), public, np.zeros(20), items=5 if ratings else None)
    key = stream_key(0, None, "data")
    before = X.copy(), public.copy()
    done, (fitted,) = apply_features([part], held, key)
    if not (np.array_equal(X, before[0]) and np.array_equal(public, before[1])):
        yield "it changes the rows that it is given: return a new array"
        return
    again, (fitted_again,) = apply_features([part], held, key)
    if fitted != fitted_again or not np.array_equal(done.X, again.X):
        yield "the same generator gives other features: take random numbers from the argument `random` alone"
    if not np.isfinite(done.X).all():
        yield "features of finite records are not finite"
    if len(set(done.names)) != len(done.names):
        yield f"two features have one name: {', '.join(done.names)}"
    if not part.data_dependent:
        turned, (of_others,) = apply_features([part], replace(held, X=held.X[::-1].copy()), key)
        if of_others != fitted or not np.allclose(turned.X[::-1], done.X, rtol=1e-9, atol=1e-9):
            yield "a record's features depend on other records: map each row by itself, or set `data_dependent`"


def check_source(part: DataSource) -> Iterator[str]:
    """Yield what is wrong with the records that a source gives to three owners, with five public rows."""
    for word in ("about", "citation", "licence"):
        if not str(getattr(part, word, "")).strip():
            yield f'it does not say what it is, or whose: {word}: ClassVar[str] = "..."'
    requests = [DataRequest(stream_key(0, replica, "data"), 3, 5) for replica in (0, 0, 1)]
    once: Any
    try:
        once, again, other = map(part.load, requests)
    except MissingSourceError as error:
        yield f"its records were not tried: {error}"
        return
    if not isinstance(once, Table | Held):
        yield f"load gives a {type(once).__name__}, not a Table or Held of p2psim.data.records"
        return
    n, p = len(once.X), len(once.names)
    if once.X.dtype != np.float64 or once.X.shape != (n, p) or not p:
        yield f"X is of {once.X.dtype} and the shape {once.X.shape}, must be float64 ({n}, {p}): a column a name"
        return
    if np.shape(once.y) != (n,) or not np.isfinite(once.y).all():
        yield f"y is not {n} finite numbers, one a record"
    if not np.isfinite(once.X).all() and getattr(once, "fill", None) is None:
        yield "a feature is no finite number, and `fill` does not say what replaces it"
    if len(set(once.names)) != p:
        yield f"two features have one name: {', '.join(once.names)}"
    yield from _faults_of_owners(once)
    if not _same_rows(once, again):
        yield "the same key gives other records: take random numbers from generator(request.key) alone"
    elif _same_rows(once, other) == part.generated:
        yield "`generated` must say whether records are drawn: they differ with the key where it is set alone"


def _same_rows(a: Table | Held, b: Table | Held) -> bool:
    return np.array_equal(a.X, b.X, equal_nan=True) and np.array_equal(a.y, b.y)


def _faults_of_owners(given: Table | Held) -> Iterator[str]:
    n = len(given.X)
    if given.classes and not np.isin(given.y, np.arange(len(given.classes))).all():
        yield f"a label is no place of a class among {len(given.classes)}"
    if isinstance(given, Held):
        last = given.offsets[-1] if given.offsets.size else -1
        if given.offsets.size != len(given.labels) + 1 or last != n or np.any(np.diff(given.offsets) < 0):
            yield f"offsets do not divide {n} rows among {len(given.labels)} owners"
        if given.public.shape[1:] != given.X.shape[1:] or len(given.public) != len(given.public_labels):
            yield "public rows have other features than the records, or another number of labels"
        return
    for name, values in {**given.columns, **given.numbers}.items():
        if len(values) != n:
            yield f"the column {name} has {len(values)} values, and there are {n} records"
    if given.held_by is not None and given.held_by not in given.columns:
        yield f"held_by names the column {given.held_by}, which is not among columns"
    if not 0 <= given.tests < n:
        yield f"{given.tests} of {n} records are test records"


#: Agents that a topology is asked for if it does not say how many there are.
AGENTS = 12


def check_topology(part: Topology) -> Iterator[str]:
    """Yield what is wrong with the graphs that a topology makes."""
    number = part.size_and_names()[0] or AGENTS
    random = np.random.default_rng(0)
    given = TopologyInputs(number, random.standard_normal((number, 3)), random.standard_normal((number, 3)))
    links = part.links(None, np.random.default_rng(1), given)
    yield from _faults(links, number)
    if not _same(links, part.links(None, np.random.default_rng(1), given)):
        yield "the same generator gives another graph: take random numbers from the argument `random` alone"
    others = [part.links(None, np.random.default_rng(seed), given) for seed in range(2, 8)]
    differs = not all(_same(links, other) for other in others)
    if differs and not part.is_random:
        yield "the graph depends on the generator: set `is_random: ClassVar[bool] = True`"
    if part.is_random and not differs and not isinstance(part, ChangingTopology):
        yield "it says that it is random, and seven generators gave one graph"
    if isinstance(part, ChangingTopology) and number == links.agents:
        yield from _faults_of_changes(part, links, given)
    try:
        part.links(number + 1, np.random.default_rng(1), given)
    except InputError:
        pass
    else:
        yield "a graph of another size than the data has: call p2psim.network.topologies.base.settle"


def _faults(links: Graph, number: int) -> Iterator[str]:
    if links.agents != number:
        yield f"the graph has {links.agents} agents, and {number} were asked for"
        return
    if links.indptr[0] != 0 or not links.indptr[-1] == links.indices.size == links.weights.size:
        yield "indptr, indices and weights do not belong together"
        return
    agents = np.repeat(np.arange(number), np.diff(links.indptr))
    pairs = list(zip(agents.tolist(), links.indices.tolist(), strict=True))
    weights = dict(zip(pairs, links.weights.tolist(), strict=True))
    faults = {
        "an agent is linked with itself": any(a == b for a, b in pairs),
        "two agents are linked twice": len(weights) != len(pairs),
        "a link goes one way only": any((b, a) not in weights for a, b in pairs),
        "the neighbours of an agent are not in rising order": any(
            np.any(np.diff(links.of(agent)) <= 0) for agent in range(number)
        ),
        "a weight is not a positive number": not all(np.isfinite(w) and w > 0 for w in weights.values()),
        "a link has another weight in the other direction": any(
            weights.get((b, a), weight) != weight for (a, b), weight in weights.items()
        ),
    }
    yield from (fault for fault, holds in faults.items() if holds)


#: Changes of a graph that are looked at.
CHANGES = 20


def _faults_of_changes(part: ChangingTopology, links: Graph, given: TopologyInputs) -> Iterator[str]:
    def read(seed: int) -> list[list[object]]:
        changes = LinkChanges(part, given, stream_key(seed, None, "topology")).read(links)
        first = itertools.islice(changes, CHANGES)
        return [[one.time, one.comes.tolist(), one.goes.tolist()] for one in first]

    try:
        once = read(1)
        if once != read(1):
            yield "links change otherwise a second time: take random numbers from the argument `random` alone"
        if not part.is_random and once != read(2):
            yield "changes depend on the generator: set `is_random: ClassVar[bool] = True`"
    except MeaningError as error:
        yield str(error)


def _same(a: Graph, b: Graph) -> bool:
    arrays = ("indptr", "indices", "weights")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays)
