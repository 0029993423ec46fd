"""Draws of random quantities, each agent's from streams of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from p2psim.core.distributions import Distribution, sample
from p2psim.core.randomness import Rewound, Streams

#: Random draws are made this many at a time: a draw alone costs more than the event that it serves.
BLOCK = 64


class Drawing:
    """Makes the draws of one replica."""

    def __init__(self, streams: Streams):
        self._streams = streams
        self._rewound: dict[str, Rewound] = {}

    def draws(
        self, purpose: str, agent: int, quantity: float | Distribution, lane: int = 0
    ) -> Iterator[float]:
        """Endless draws of a quantity, from a stream of a purpose and an agent; made in blocks."""
        if not isinstance(quantity, Distribution):
            yield from itertools.repeat(quantity)
        # Many make a few draws, and some make many: the first ones need no generator of their own.
        if purpose not in self._rewound:
            self._rewound[purpose] = Rewound(self._streams.key(purpose))
        yield from sample(quantity, self._rewound[purpose].at(agent, lane), BLOCK).tolist()
        random = self._streams.generator(purpose, agent, lane)
        sample(quantity, random, BLOCK)
        while True:
            yield from sample(quantity, random, BLOCK).tolist()
