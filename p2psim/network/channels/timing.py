"""How long a message is on the air."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Airtime:
    """Airtime of messages.

    Attributes
    ----------
    question : float
        Of one that carries no model (its version is −1).
    loaded : float
        Of one that carries a model or an answer: the longest.
    """

    question: float
    loaded: float


def airtime_of(overhead: float, bandwidth: float | None, vectors: int) -> Airtime:
    """Airtime of messages.

    Parameters
    ----------
    overhead : float
        Airtime of every message, whatever it carries.
    bandwidth : float, optional
        p-vectors per unit of time; without limit when left out.
    vectors : int
        p-vectors in a message that carries a model or an answer.
    """
    return Airtime(overhead, overhead + (vectors / bandwidth if bandwidth is not None else 0.0))
