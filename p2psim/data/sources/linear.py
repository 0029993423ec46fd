"""Generated linear models: regression, y = xᵀθ + noise, and classification, y = sign(xᵀθ_i), a θ_i for each agent.

The classes are those of Bellet et al. (2018), section 5.1. One agent more changes nobody's records.
"""

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag

from p2psim.core.distributions import Distribution
from p2psim.core.errors import MeaningError
from p2psim.core.options import (
    BY_NAME,
    TEXT_KEYS,
    ByKind,
    Count,
    Few,
    Fraction,
    Index,
    NonNegative,
    Options,
    Positive,
    per_agent,
)
from p2psim.core.randomness import Rewound, generator
from p2psim.data.records import PUBLIC, TARGETS, DataRequest, DataSource, Held, TestSet, offsets_of
from p2psim.data.scaling import pull_within


class FeatureDistribution(Options):
    """Base of distributions of the features.

    Attributes
    ----------
    is_uniform : bool
        Whether `draw` fills with uniform draws on [0, 1), one after the other.
    """

    is_uniform: ClassVar[bool] = False

    @abstractmethod
    def draw(self, random: np.random.Generator, X: np.ndarray) -> None:
        """Fill X, shape (n, p), C-contiguous, with what becomes independent rows by `finish`."""

    def finish(self, X: np.ndarray) -> None:
        """Turn draws of all agents, which lie one after the other, into features; nothing to do where left out."""

    def bounds(self, dimension: int) -> tuple[float | None, float | None]:
        """Bounds on ‖x‖₁ and on |x_j| that hold whatever is drawn; None where there is none."""
        return None, None


class L1BallFeatures(FeatureDistribution):
    """x uniform in the ball ‖x‖₁ ≤ radius."""

    kind: Literal["l1-ball"] = "l1-ball"
    radius: Positive = Field(1.0, description="largest ‖x‖₁")

    def draw(self, random: np.random.Generator, X: np.ndarray) -> None:
        """Fill X.

        p + 1 exponentials over their sum are uniform on the simplex: without the last, in its inside; a Laplace
        variable is an exponential with a random sign.
        """
        X[:] = random.laplace(size=X.shape)
        total = random.exponential(size=len(X))
        for column in X.T:
            total += np.abs(column)
        X *= (self.radius / total)[:, None]
        pull_within(X, self.radius)

    def bounds(self, dimension: int) -> tuple[float | None, float | None]:
        """The radius, for both."""
        return self.radius, self.radius


class GaussianFeatures(FeatureDistribution):
    """Independent standard normal coordinates; no bound holds."""

    kind: Literal["gaussian"] = "gaussian"

    def draw(self, random: np.random.Generator, X: np.ndarray) -> None:
        """Fill X."""
        random.standard_normal(out=X)


class UniformFeatures(FeatureDistribution):
    """Independent coordinates, uniform in [−bound, bound]."""

    kind: Literal["uniform"] = "uniform"
    bound: Positive = Field(1.0, description="largest |x_j|")

    is_uniform: ClassVar[bool] = True

    def draw(self, random: np.random.Generator, X: np.ndarray) -> None:
        """Fill X with numbers on [0, 1)."""
        random.random(out=X)

    def finish(self, X: np.ndarray) -> None:
        """Move and stretch the interval."""
        X -= 0.5
        X *= 2 * self.bound

    def bounds(self, dimension: int) -> tuple[float | None, float | None]:
        """The bound of a coordinate, and p times that."""
        return dimension * self.bound, self.bound


Features = ByKind[L1BallFeatures | GaussianFeatures | UniformFeatures]


#: From so many agents on, compiled code draws for them, as it takes a second or two to compile.
_MANY = 10_000
#: Agents whose labels are found together.
_TOGETHER = 512


def _points_kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "distribution" if set(value) & set(Distribution.model_fields) else "mapping"
    return "distribution" if isinstance(value, Distribution) else "number"


#: Records of each agent: a number for all, a mapping from agent to number, or a distribution.
Points = Annotated[
    Annotated[Count, Tag("number")]
    | Annotated[Distribution, Tag("distribution")]
    | Annotated[dict[str, Count], Tag("mapping")],
    Discriminator(_points_kind),
    TEXT_KEYS,
]

#: What `Points` say, for descriptions of keys.
_POINTS = (
    "a number, a mapping, or a distribution of whole numbers from 1 on: `uniform` takes each from its lower "
    "to its upper end, both included, equally often; draws of the others are rounded"
)


def _draw_size(points: Distribution, random: np.random.Generator) -> int:
    """Draw a number of records, at least 1.

    Raises
    ------
    MeaningError
        If a uniform distribution has no such whole number between its ends.
    """
    if points.uniform is None:
        return max(1, round(float(points.sample(random, 1)[0])))
    low, high = max(1, math.ceil(points.uniform[0])), math.floor(points.uniform[1])
    if low > high:
        message = f"must contain a whole number of at least 1, got {list(points.uniform)}"
        raise MeaningError("data.source.points", message)
    return int(random.integers(low, high, endpoint=True))


class _LinearSource(DataSource):
    """What both sources share: how many agents there are, and how many records each draws."""

    licence: ClassVar[str] = "none needed"
    generated: ClassVar[bool] = True

    agents: Few | None = Field(None, description="number of agents; left out, the topology's")
    dimension: Count
    points: Points

    def _sizes(self, request: DataRequest) -> np.ndarray:
        """Number of records of each agent, shape (N,); a distribution's are the first draw of the agent's stream.

        Raises
        ------
        MeaningError
            If neither this key nor the network says how many agents there are, or they disagree; or if an agent has
            no number of records, or a number no agent.
        """
        agents = self.agents or request.agents
        if agents is None:
            message = "is missing: give a number here, or in network.topology.agents"
            raise MeaningError("data.source.agents", message)
        if request.agents not in (None, agents):
            raise MeaningError("data.source.agents", f"is {agents}, but the topology has {request.agents}")
        if isinstance(self.points, Distribution):
            rewound = Rewound(request.key)
            drawn = (_draw_size(self.points, rewound.at(agent)) for agent in range(agents))
            return np.fromiter(drawn, np.int64, agents)
        if isinstance(self.points, int):
            return np.full(agents, self.points, dtype=np.int64)
        labels = tuple(map(str, range(agents))) if request.labels is None else request.labels
        return per_agent(self.points, labels, key="data.source.points").astype(np.int64)

    def _streams(self, key: np.ndarray, agents: Iterable[int]) -> Iterator[np.random.Generator]:
        """Each agent's stream after its number of records; one generator, which the next agent moves."""
        rewound = Rewound(key)
        for agent in agents:
            random = rewound.at(agent)
            if isinstance(self.points, Distribution):
                _draw_size(self.points, random)
            yield random

    def _held(self, offsets: np.ndarray, notes: Mapping[str, object], **records: Any) -> Held:
        """Records that were drawn, with names and bounds; `records` are the other attributes of `Held`."""
        names = tuple(f"x{j + 1}" for j in range(self.dimension))
        labels = tuple(map(str, range(len(offsets) - 1)))
        notes, (x_l1, x_max) = {"columns": list(names), **notes}, self.x_bounds()
        return Held(
            offsets=offsets, names=names, labels=labels, x_l1=x_l1, x_max=x_max, notes=notes, **records
        )


class SharedModel(Options):
    """One θ for all agents, in a uniformly random direction."""

    kind: Literal["common"] = "common"
    norm: NonNegative = Field(1.0, description="Euclidean norm of θ")


class LinearRegression(_LinearSource):
    """Generated numbers, drawn for each agent from its own stream: one more agent changes no other records."""

    about: ClassVar[str] = "generated: y = xᵀθ + noise, any number of agents and records"
    citation: ClassVar[str] = "generated by p2psim"

    kind: Literal["linear-regression"] = "linear-regression"
    dimension: Count = Field(10, description="number of features p")
    points: Points = Field(1000, description=f"records of each agent: {_POINTS}")
    noise: NonNegative = Field(0.1, description="standard deviation of the noise on y")
    x: Features = Field(L1BallFeatures(), description="distribution of the features")
    targets: Annotated[SharedModel, BY_NAME] = Field(SharedModel(), description="distribution of θ")

    def load(self, request: DataRequest) -> Held:
        """Draw all records.

        Raises
        ------
        MeaningError
            If the number of agents is not known, or not the network's, or an agent has no number of points.
        """
        sizes, p = self._sizes(request), self.dimension
        direction = generator(request.key, TARGETS).standard_normal(p)
        target = direction * (self.targets.norm / np.linalg.norm(direction))
        offsets = offsets_of(sizes)
        X, y = np.empty((offsets[-1], p)), np.empty(offsets[-1])
        for stream, (start, stop) in zip(
            self._streams(request.key, range(sizes.size)), pairwise(offsets.tolist()), strict=True
        ):
            self.x.draw(stream, X[start:stop])
            stream.standard_normal(out=y[start:stop])
        self._finish(X, y, target)
        public, public_labels = np.empty((request.public, p)), np.empty(request.public)
        stream = generator(request.key, PUBLIC)
        self.x.draw(stream, public)
        stream.standard_normal(out=public_labels)
        self._finish(public, public_labels, target)
        notes = {"target": target.tolist()}
        return self._held(offsets, notes, X=X, y=y, public=public, public_labels=public_labels)

    def x_bounds(self) -> tuple[float | None, float | None]:
        """Bounds of the distribution of the features."""
        return self.x.bounds(self.dimension)

    def _finish(self, X: np.ndarray, y: np.ndarray, target: np.ndarray) -> None:
        """Turn draws X (n, p) and normal numbers y (n,) into features and labels."""
        self.x.finish(X)
        y *= self.noise
        # Column by column, as a product through BLAS could depend on where the rows lie in memory.
        for column, weight in zip(X.T, target, strict=True):
            y += column * weight


class Subspace(Options):
    """θ_i has independent normal first coordinates, of mean 0 and mean square length 1, and 0 elsewhere.

    In many dimensions, directions drawn from all of them are all but orthogonal, and no agent could learn
    from another.
    """

    kind: Literal["subspace"] = "subspace"
    dimension: Count = Field(2, description="number of coordinates d that are not 0, each N(0, 1/d)")

    def normals(self, features: int) -> int:
        """Number of normal draws that make a θ_i."""
        return self.dimension

    def targets(self, normals: np.ndarray, shared: np.ndarray) -> np.ndarray:
        """θ_i of each row of normal draws, shape (n, p)."""
        targets = np.zeros((len(normals), shared.size))
        targets[:, : self.dimension] = normals / np.sqrt(self.dimension)
        return targets


class SharedDirection(Options):
    """θ_i is one uniformly random unit vector for all, plus the agent's own normal vector."""

    kind: Literal["common"] = "common"
    spread: NonNegative = Field(
        0.0,
        description="root mean square length s of an agent's own part, N(0, s²/p) a coordinate: "
        "the tangent of its typical angle with the common direction",
    )

    def normals(self, features: int) -> int:
        """Number of normal draws that make a θ_i."""
        return features

    def targets(self, normals: np.ndarray, shared: np.ndarray) -> np.ndarray:
        """θ_i of each row of normal draws, shape (n, p)."""
        return shared + self.spread / np.sqrt(shared.size) * normals


class LinearClassification(_LinearSource):
    """Generated classes ±1, drawn for each agent from its own stream: one more agent changes no other records.

    Public rows are those of one more person, whose θ is drawn like an agent's.
    """

    about: ClassVar[str] = "generated: y = sign(xᵀθ), a θ for each agent, labels flipped at random"
    citation: ClassVar[str] = (
        "generated by p2psim; after Bellet, Guerraoui, Taziki, Tommasi (AISTATS 2018), section 5.1"
    )

    kind: Literal["linear-classification"] = "linear-classification"
    dimension: Count = Field(20, description="number of features p")
    points: Points = Field(100, description=f"training records of each agent: {_POINTS}")
    label_noise: Fraction = Field(
        0.05, description="probability that the label of a training record is flipped; test labels are right"
    )
    test_points: Index = Field(100, description="test records of each agent")
    targets: ByKind[Subspace | SharedDirection] = Field(Subspace(), description="distribution of θ")
    x: Features = Field(UniformFeatures(), description="distribution of the features")

    def load(self, request: DataRequest) -> Held:
        """Draw all records.

        Raises
        ------
        MeaningError
            If the number of agents is not known, or not the network's, an agent has no number of points, or
            the targets' subspace has more dimensions than there are features.
        """
        p, tests = self.dimension, self.test_points
        if (inside := getattr(self.targets, "dimension", 0)) > p:
            message = f"must be at most the {p} features, got {inside}"
            raise MeaningError("data.source.targets.dimension", message)
        sizes = self._sizes(request)
        offsets, test_offsets = offsets_of(sizes), np.arange(sizes.size + 1, dtype=np.int64) * tests
        shared = generator(request.key, TARGETS).standard_normal(p)
        shared /= np.linalg.norm(shared)
        X, test_X = np.empty((offsets[-1], p)), np.empty((test_offsets[-1], p))
        chances, normals = np.empty(offsets[-1]), np.empty((sizes.size, self.targets.normals(p)))
        left: Sequence[int] = range(sizes.size)
        if sizes.size >= _MANY and self.x.is_uniform and isinstance(self.points, int):
            from p2psim.core.philox import fill_together

            left = fill_together(request.key, normals, (X, chances, test_X))
        bounds = offsets.tolist()
        for agent, stream in zip(left, self._streams(request.key, left), strict=True):
            start, stop = bounds[agent], bounds[agent + 1]
            stream.standard_normal(out=normals[agent])
            self.x.draw(stream, X[start:stop])
            stream.random(out=chances[start:stop])
            if tests:
                self.x.draw(stream, test_X[agent * tests : (agent + 1) * tests])
        stream = generator(request.key, PUBLIC)
        target, public = stream.standard_normal((1, normals.shape[1])), np.empty((request.public, p))
        self.x.draw(stream, public)
        for rows in (X, test_X, public):
            self.x.finish(rows)
        targets = self.targets.targets(normals, shared)
        labels = _signs(public, self.targets.targets(target, shared), np.array([request.public]))
        y = _signs(X, targets, sizes)
        for signs, draws in ((y, chances), (labels, stream.random(request.public))):
            np.negative(signs, out=signs, where=draws < self.label_noise)
        test = TestSet(test_X, _signs(test_X, targets, np.diff(test_offsets)), test_offsets)
        drawn = {"X": X, "y": y, "public": public, "public_labels": labels}
        return self._held(offsets, {}, **drawn, test=test, targets=targets)

    def x_bounds(self) -> tuple[float | None, float | None]:
        """Bounds of the distribution of the features."""
        return self.x.bounds(self.dimension)


def _signs(X: np.ndarray, targets: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """sign(xᵀθ) of rows that lie owner by owner; +1 where it is 0, as a label is never 0.

    Column by column, as a product through BLAS could depend on where rows lie; of as many owners as a cache holds.
    """
    signs, columns, stop = np.empty(len(X)), np.flatnonzero(targets.any(axis=0)).tolist(), 0
    for first in range(0, sizes.size if len(X) else 0, _TOGETHER):
        owners = slice(first, first + _TOGETHER)
        start, stop = stop, stop + int(sizes[owners].sum())
        products = np.zeros(stop - start)
        for j in columns:
            products += X[start:stop, j] * np.repeat(targets[owners, j], sizes[owners])
        signs[start:stop] = np.where(products < 0, -1.0, 1.0)
    return signs
