"""Every random number has an address: (seed, replica, purpose, agent) and its place in that stream.

The first three are hashed to the key of a Philox counter-based generator; the agent and the place are
its counter. So a draw depends on nothing but its address: not on which other draws were made, nor on the
number of workers, nor on the size of chunks. See :mod:`p2psim.core.philox` for the compiled side.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Written in front of what is hashed; changes only when streams change on purpose.
STREAM_VERSION = "p2psim-stream-1"

#: What random numbers are drawn for. ``independent:`` in a scenario takes these names.
PURPOSES = (
    "clocks", "peers", "latency", "loss", "link-state", "capture", "backoff", "retransmit",
    "acknowledgement", "effects", "response", "service", "compute", "participants", "availability",
    "rejoin", "topology", "data", "noise", "batches", "start", "baselines",
)  # fmt: skip


def stream_key(seed: int, replica: int | None, purpose: str, variant: str = "") -> np.ndarray:
    """Key of the stream of one purpose in one replica.

    Parameters
    ----------
    seed : int
        Seed of the study, any integer.
    replica : int or None
        ``None`` for what all replicas share.
    purpose : str
        One of `PURPOSES`.
    variant : str
        Tells apart cells that shall not share this purpose's draws; empty when they do.

    Returns
    -------
    ndarray of uint64, shape (2,)

    Raises
    ------
    ValueError
        If the purpose is not known.
    """
    if purpose not in PURPOSES:
        raise ValueError(f"unknown purpose {purpose!r}; known: {', '.join(PURPOSES)}")
    drawn_by = "" if replica is None else replica
    address = f"{STREAM_VERSION}\x1f{seed}\x1f{drawn_by}\x1f{purpose}\x1f{variant}"
    return np.frombuffer(hashlib.blake2b(address.encode(), digest_size=16).digest(), dtype="<u8").astype(
        np.uint64
    )


class _NoSeed(np.random.bit_generator.ISeedSequence):
    """Stands where NumPy would else ask the operating system for a seed, which takes longer than all the rest."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> np.ndarray:
        """Zeros, which the key and the counter then replace."""
        return np.zeros(n_words, dtype)


_NO_SEED = _NoSeed()
_EMPTY = np.zeros(4, dtype=np.uint64)


class Rewound:
    """NumPy's generator that is set to the beginning of one stream after the other, which is faster than making one.

    Parameters
    ----------
    key : ndarray of uint64, shape (2,)
        From `stream_key`.
    """

    def __init__(self, key: np.ndarray):
        # NumPy takes any ISeedSequence, though its annotations do not say so.
        self._bits = np.random.Philox(_NO_SEED)  # type: ignore[arg-type]
        self._random = np.random.Generator(self._bits)
        self._counter = np.zeros(4, dtype=np.uint64)
        self._state: dict[str, Any] = {
            "bit_generator": "Philox",
            "state": {"counter": self._counter, "key": key},
            "buffer": _EMPTY,
            "buffer_pos": 4,
        }

    def at(self, agent: int = 0, lane: int = 0, words: int = 0, half: int = -1) -> np.random.Generator:
        """The generator at the beginning of an agent's stream (`generator`), or at a later place of it.

        The next call moves it.

        Parameters
        ----------
        agent, lane : int
        words, half : int
            Where the stream goes on, as `place` gives it.
        """
        counter, state = self._counter, self._state
        counter[0], counter[2], counter[3] = words >> 2, int(agent) % 2**64, lane
        state["has_uint32"], state["uinteger"] = int(half >= 0), max(half, 0)
        self._bits.state = state  # type: ignore[assignment]
        if words & 3:
            self._bits.random_raw(words & 3, output=False)
        return self._random

    def place(self) -> tuple[int, int]:
        """Where the generator is in its stream: words that were taken, and a half of a word that is left, or −1."""
        state = self._bits.state
        words = 4 * int(state["state"]["counter"][0]) - (4 - state["buffer_pos"])
        return words, state["uinteger"] if state["has_uint32"] else -1


def generator(key: np.ndarray, agent: int = 0, lane: int = 0) -> np.random.Generator:
    """Return NumPy's generator at the beginning of an agent's stream.

    Its ``random()`` draws are those of :func:`p2psim.core.philox.uniform` at places 0, 1, 2, …

    Parameters
    ----------
    key : ndarray of uint64, shape (2,)
        From `stream_key`.
    agent : int
        −1 is the learner.
    lane : int
        Tells apart streams that an agent has for one purpose, so that what is drawn in one moves no draw of another.
    """
    return Rewound(key).at(agent, lane)


@dataclass(frozen=True)
class Streams:
    """All random streams of one replica.

    Attributes
    ----------
    seed : int
        Seed of the study.
    replica : int or None
        ``None`` for what all replicas share.
    variants : mapping
        From a purpose to what tells a cell's draws apart from those of other cells.
    """

    seed: int = 0
    replica: int | None = 0
    variants: Mapping[str, str] = field(default_factory=dict)

    def key(self, purpose: str) -> np.ndarray:
        """Key of a purpose's stream, shape (2,)."""
        return stream_key(self.seed, self.replica, purpose, self.variants.get(purpose, ""))

    def generator(self, purpose: str, agent: int = 0, lane: int = 0) -> np.random.Generator:
        """NumPy's generator at the beginning of an agent's stream."""
        return generator(self.key(purpose), agent, lane)
