"""The base of all kinds of availability, independent missed wakes, and absence that depends on the agent.

Absence can depend on an agent's degree, on its number of records, or on its mean label.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from p2psim.core.options import Options
from p2psim.core.randomness import Streams
from p2psim.core.registry import place_of
from p2psim.network.graph import Graph
from p2psim.network.members import Members
from p2psim.network.spec import RunningNetwork

#: Where the keys of this part stand in a scenario.
KEY = "network.availability"


class MissedWakes(NamedTuple):
    """Wakes that are missed for one reason.

    Attributes
    ----------
    chances : ndarray, shape (n,)
        Probability that each agent misses a wake.
    key : ndarray
        Of the streams that say which.
    """

    chances: np.ndarray
    key: np.ndarray


class Availability(Options):
    """Base of all kinds of availability: when agents are offline, and what happens meanwhile.

    A kind of your own is a subclass with a ``kind``, its own keys, and ``start``, ``misses`` or both.

    An agent that is away does not wake, send or commit. Its Poisson clock ticks on, unheard: it has no memory, so that
    a clock that stood still meanwhile would give the same distribution of wakes.

    Attributes
    ----------
    kind : str
        The name, as ``kind: Literal["pareto"] = "pareto"``.
    ideal : bool
        Whether nobody is ever offline and no wake is missed.
    has_spans : bool
        Whether agents are offline for spans of time; otherwise they only miss wakes.

    Choices
    -------
    messages: lost
        it is dropped
    messages: held
        it waits until the agent is back
    rejoin: stale
        the one that it had
    rejoin: reset
        the one that it started from
    rejoin: fetch
        the learner's, or that of a neighbour drawn at random, of that moment
    """

    part_kind: ClassVar[str] = "availability"

    # Subclasses declare it with a Literal.
    kind: Any

    messages: Literal["lost", "held"] = Field(
        "lost", description="what becomes of a message that reaches an agent that is away"
    )
    rejoin: Literal["stale", "reset", "fetch"] = Field(
        "stale", description="which model an agent has when it comes back"
    )
    ideal: ClassVar[bool] = False
    has_spans: ClassVar[bool] = True

    @property
    def reasons(self) -> Sequence["Availability"]:
        """The reasons for which agents are away or miss wakes: itself, or several parts."""
        return (self,)

    @property
    def turns_alone(self) -> bool:
        """Whether no agents leave and come back together, which is known of p2psim's kinds."""
        return place_of(self) is None

    @abstractmethod
    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Begin to change who is online: call ``world.presence.alternate`` for agents; called once, before time runs.

        Parameters
        ----------
        world : RunningNetwork
            ``world.links`` and ``world.members`` say who the agents are.
        streams : Streams
            The only source of random numbers: ``streams.generator("availability", agent)`` is the stream of an agent.
        """

    def misses(self, world: RunningNetwork, streams: Streams) -> Sequence[Callable[[], bool]] | None:
        """For each agent, a function that says whether it misses its next wake; called once for each of its wakes.

        None where no wake of an agent that is online is missed. Parameters are those of ``start``.
        """
        return None

    def missed(self, members: Members, links: Graph, streams: Streams) -> list[MissedWakes]:
        """The same for the compiled engine, one for each reason; of p2psim's kinds."""
        return []

    def check_names(self, members: Members) -> None:
        """Raise a MeaningError if a file or a list names an agent that there is not."""

    def shares(self, members: Members, links: Graph) -> np.ndarray:
        """Share of its ticks that each agent hears in the long run, shape (n,), between 0 and 1.

        NaN where it changes with time for good, or cannot be said, as here.

        Raises
        ------
        MeaningError
            If a value names no agent and no group, or needs what is not known of the agents.
        """
        return np.full(links.agents, np.nan)


class Misses:
    """Independent answers to whether an agent misses a wake, drawn in blocks from its own stream."""

    def __init__(self, streams: Streams, agent: int, chance: float):
        self._chance = chance
        self._draws = _blocks(streams.generator("availability", agent))

    def __call__(self) -> bool:
        """Whether the next wake is missed."""
        return next(self._draws) < self._chance


def _blocks(random: np.random.Generator) -> Iterator[float]:
    while True:
        yield from random.random(64).tolist()


class Depends(Options):
    """Multiplies each agent's odds of being away by exp(strength·z), and all odds by what keeps the mean share.

    z is standardised over the agents: of the logarithm of degree or records, of the mean label as it is. A positive
    strength sends those away who have many.

    Choices
    -------
    on: degree
        number of links
    on: records
        number of records
    on: label
        mean label
    """

    on: Literal["degree", "records", "label"] = Field(description="what absence depends on")
    strength: float = Field(1.0, description="per standard deviation, on the logarithm of the odds")


def tilted(away: np.ndarray, depends: Depends | None, members: Members, links: Graph) -> np.ndarray:
    """Shares of time away, changed as ``depends`` says, with the same mean; shape (n,).

    Parameters
    ----------
    away : ndarray, shape (n,)
        In [0, 1].
    depends : Depends or None
    members, links

    Raises
    ------
    MeaningError
        If the number is not known of the agents, or is not positive where its logarithm is taken.
    """
    if depends is None:
        return away
    from scipy.optimize import brentq
    from scipy.special import expit, logit

    z = standardised(depends.on, members, links)
    some = (away > 0) & (away < 1)
    if not some.any() or not z.any():
        return away
    base = logit(away[some]) + depends.strength * z[some]

    def excess(shift: float) -> float:
        return float(expit(base + shift).mean() - away[some].mean())

    reach = float(np.abs(base).max()) + float(np.abs(logit(away[some])).max()) + 1.0
    changed = away.copy()
    changed[some] = expit(base + brentq(excess, -reach, reach, xtol=1e-14, rtol=1e-14))
    return changed


def standardised(name: str, members: Members, links: Graph) -> np.ndarray:
    """Standardised number of each agent, shape (n,); zeros where all agents are alike."""
    values = np.diff(links.indptr) if name == "degree" else members.number(name, f"{KEY}.depends.on")
    # Without records or links an agent counts as if it had one.
    x = np.asarray(values, dtype=float) if name == "label" else np.log(np.maximum(values, 1))
    spread = x.std()
    return (x - x.mean()) / spread if spread > 1e-12 * max(1.0, float(np.abs(x).max())) else np.zeros(x.size)
