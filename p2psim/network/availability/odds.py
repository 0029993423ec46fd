"""Absence that depends on what an agent is: on its degree, its records, or its data."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from p2psim.network.availability.absence import KEY
from p2psim.network.links import Links
from p2psim.network.members import Members
from p2psim.options import Options


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
