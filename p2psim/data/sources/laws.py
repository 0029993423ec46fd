"""What generated sources share: laws of the features, and how many records each agent draws."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Discriminator, Field, Tag

from p2psim.core.distributions import Distribution
from p2psim.core.errors import MeaningError
from p2psim.core.options import BY_NAME, Count, Options, Positive, per_agent
from p2psim.core.randomness import generator
from p2psim.data.records import Request
from p2psim.data.scaling import pull_within


class L1Ball(Options):
    """x uniform in the ball ‖x‖₁ ≤ radius."""

    kind: Literal["l1-ball"] = "l1-ball"
    radius: Positive = Field(1.0, description="largest ‖x‖₁")


class Gaussian(Options):
    """Independent standard normal coordinates; no bound holds."""

    kind: Literal["gaussian"] = "gaussian"


class Uniform(Options):
    """Independent coordinates, uniform in [−bound, bound]."""

    kind: Literal["uniform"] = "uniform"
    bound: Positive = Field(1.0, description="largest |x_j|")


Law = Annotated[L1Ball | Gaussian | Uniform, Field(discriminator="kind"), BY_NAME]


def fill(law: L1Ball | Gaussian | Uniform, random: np.random.Generator, X: np.ndarray) -> None:
    """Fill X, shape (n, p), C-contiguous, with independent rows."""
    if isinstance(law, Gaussian):
        random.standard_normal(out=X)
    elif isinstance(law, Uniform):
        random.random(out=X)
        X -= 0.5
        X *= 2 * law.bound
    else:
        # p + 1 exponentials over their sum are uniform on the simplex: without the last, in its inside;
        # a Laplace variable is an exponential with a random sign.
        X[:] = random.laplace(size=X.shape)
        total = random.exponential(size=len(X))
        for column in X.T:
            total += np.abs(column)
        X *= (law.radius / total)[:, None]
        pull_within(X, law.radius)


def bounds(law: L1Ball | Gaussian | Uniform, dimension: int) -> tuple[float | None, float | None]:
    """Bounds on ‖x‖₁ and on |x_j| that hold whatever is drawn; None where there is none."""
    if isinstance(law, L1Ball):
        return law.radius, law.radius
    if isinstance(law, Uniform):
        return dimension * law.bound, law.bound
    return None, None


def _points_kind(value: Any) -> str:
    if isinstance(value, Distribution):
        return "distribution"
    if isinstance(value, Mapping):
        return "distribution" if set(value) & set(Distribution.model_fields) else "mapping"
    return "number"


def _text_keys(value: Any) -> Any:
    return {str(key): entry for key, entry in value.items()} if isinstance(value, Mapping) else value


#: Records of each agent: a number for all, a mapping from agent to number, or a distribution.
Points = Annotated[
    Annotated[Count, Tag("number")]
    | Annotated[Distribution, Tag("distribution")]
    | Annotated[dict[str, Count], Tag("mapping")],
    Discriminator(_points_kind),
    BeforeValidator(_text_keys),
]

#: What `Points` say, for descriptions of keys.
POINTS = (
    "a number, a mapping, or a distribution of whole numbers from 1 on: `uniform` takes each from its lower "
    "to its upper end, both included, equally often; draws of the others are rounded"
)


def number_of_agents(agents: int | None, request: Request) -> int:
    """Number of agents, from the source's key or from the network.

    Raises
    ------
    MeaningError
        If neither says it, or they disagree.
    """
    number = agents or request.agents
    if number is None:
        raise MeaningError("data.source.agents", "say how many agents there are, here or in the topology")
    if request.agents is not None and number != request.agents:
        raise MeaningError("data.source.agents", f"is {number}, but the topology has {request.agents}")
    return number


def draw_number(points: Distribution, random: np.random.Generator) -> int:
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
        raise MeaningError("data.source.points", f"no whole number from 1 on lies in {list(points.uniform)}")
    return int(random.integers(low, high, endpoint=True))


def numbers_of_records(
    points: int | Distribution | Mapping[str, int],
    agents: int,
    key: np.ndarray,
    labels: Sequence[str] | None = None,
) -> np.ndarray:
    """Number of records of each agent; a distribution's are the first draw of the agent's stream.

    Parameters
    ----------
    points : Points
    agents : int
    key : ndarray of uint64, shape (2,)
        Key of the stream of data draws.
    labels : sequence of str, optional
        Names of the agents.

    Returns
    -------
    ndarray of int64, shape (agents,)

    Raises
    ------
    MeaningError
        If an agent has no number, or a number no agent.
    """
    if isinstance(points, Distribution):
        return np.array(
            [draw_number(points, generator(key, agent)) for agent in range(agents)], dtype=np.int64
        )
    if isinstance(points, int):
        return np.full(agents, points, dtype=np.int64)
    labels = tuple(map(str, range(agents))) if labels is None else labels
    return per_agent(points, labels, key="data.source.points").astype(np.int64)


def stream_of(
    points: int | Distribution | Mapping[str, int], key: np.ndarray, agent: int
) -> np.random.Generator:
    """An agent's stream after its number of records; made anew, as a million of them fill the memory."""
    random = generator(key, agent)
    if isinstance(points, Distribution):
        draw_number(points, random)
    return random
