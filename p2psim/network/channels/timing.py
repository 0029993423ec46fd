"""How long a message is on the air."""

from __future__ import annotations

from collections.abc import Callable

from p2psim.network.events import NONE

#: Airtime of a message, by the version that it carries: −1 is a question, which carries no model.
Airtime = Callable[[int], float]


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
    loaded = overhead + (vectors / bandwidth if bandwidth is not None else 0.0)
    return lambda version: overhead if version == NONE else loaded
