"""What all kinds of availability share.

Absence that depends on what an agent is: on its degree, its records, or its data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from pydantic import Field

from p2psim.core.options import Options
from p2psim.core.randomness import Streams
from p2psim.network.graph import Links
from p2psim.network.members import Members

if TYPE_CHECKING:
    from p2psim.network.spec import RunningNetwork

#: Where the keys of this part stand in a scenario.
KEY = "network.availability"


class Absence(Options):
    """What happens while an agent is away, and when it comes back; each kind says when that is.

    An agent that is away does not wake, send or commit. Its Poisson clock ticks on, unheard: having no memory, one that
    stood still meanwhile would give the same law of wakes.
    """

    messages: Literal["lost", "held"] = Field(
        "lost", description="what becomes of a message that reaches an agent that is away"
    )
    rejoin: Literal["stale", "reset", "fetch"] = Field(
        "stale", description="which model an agent has when it comes back"
    )
    #: Whether nobody is ever away and no wake is missed.
    ideal: ClassVar[bool] = False
    #: Whether agents are away for spans of time; otherwise they only miss wakes.
    has_spans: ClassVar[bool] = True

    def start(self, world: RunningNetwork, streams: Streams) -> None:
        """Begin to change who is there (`Presence.alternate`), with draws from ``streams``; called before time runs."""
        raise NotImplementedError

    def misses(self, world: RunningNetwork, streams: Streams) -> list[Misses] | None:
        """For each agent, whether it misses its next wake; None where no wake of an agent that is there is missed."""
        return None

    def shares(self, members: Members, links: Links) -> np.ndarray:
        """Share of its ticks that each agent is there for in the long run, shape (n,).

        NaN where it changes with time for good, or cannot be said.

        Raises
        ------
        MeaningError
            If a value names no agent and no group, or needs what is not known of the agents.
        """
        raise NotImplementedError


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
    """

    on: Literal["degree", "records", "label"] = Field(description="what absence depends on")
    strength: float = Field(1.0, description="per standard deviation, on the logarithm of the odds")


def tilted(away: np.ndarray, depends: Depends | None, members: Members, links: Links) -> np.ndarray:
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


def standardised(name: str, members: Members, links: Links) -> np.ndarray:
    """Standardised number of each agent, shape (n,); zeros where all agents are alike."""
    values = np.diff(links.indptr) if name == "degree" else members.number(name, f"{KEY}.depends.on")
    # Without records or links an agent counts as if it had one.
    x = np.asarray(values, dtype=float) if name == "label" else np.log(np.maximum(values, 1))
    spread = x.std()
    return (x - x.mean()) / spread if spread > 1e-12 * max(1.0, float(np.abs(x).max())) else np.zeros(x.size)
