"""Counts releases that have reached nobody and never will, and the deliveries that failed."""

from __future__ import annotations

import numpy as np

from p2psim.network.events import DROP
from p2psim.network.exchanges import Broadcast, Gossip
from p2psim.network.simulation import Network


class LostReleases:
    """Reads a stream of events, piece by piece.

    A release is lost when every message with it has failed at each receiver, and no other will have it. One that is on
    its way at the end, held for who is away, or in a model that may still be asked for, is not.

    Parameters
    ----------
    network : Network
    limits : ndarray of int, shape (n,), optional
        Most releases of each agent; no limit when left out.
    """

    def __init__(self, network: Network, limits: np.ndarray | None = None):
        links, exchange = network.links, network.exchange
        self._receivers = (
            np.diff(links.indptr) if isinstance(exchange, Broadcast) else np.ones(links.agents, int)
        )
        self._failed = np.zeros((links.agents, 1), np.int64)
        self._tally = None
        tells = isinstance(exchange, Gossip) and exchange.mode == "push" and network.updates == "wake"
        releases = limits is None or bool(limits.any())
        if isinstance(exchange, Gossip) and not network.by_edge and not tells and releases:
            # Messages name no release: it is in the version of the model.
            from p2psim.network.tally import Tally

            self._tally = Tally(links)

    def read(self, events: np.ndarray) -> None:
        """Read the next piece of the stream."""
        if self._tally is not None:
            self._tally.count(events)
            return
        drops = events[events["kind"] == DROP]
        drops = drops[(drops["release"] >= 0) & (drops["peer"] >= 0)]
        if drops.size:
            more = int(drops["release"].max()) + 1 - self._failed.shape[1]
            if more > 0:
                self._failed = np.pad(self._failed, ((0, 0), (0, max(more, self._failed.shape[1]))))
            np.add.at(self._failed, (drops["peer"], drops["release"]), 1)

    @property
    def releases(self) -> np.ndarray:
        """Releases of each agent that are lost, shape (n,)."""
        if self._tally is not None:
            return self._tally.lost_releases
        return np.asarray((self._failed == self._receivers[:, None]).sum(axis=1))

    @property
    def deliveries(self) -> np.ndarray:
        """Deliveries of each agent's releases that failed, shape (n,)."""
        return self._tally.failed if self._tally is not None else np.asarray(self._failed.sum(axis=1))
