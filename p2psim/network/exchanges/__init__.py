"""Exchanges: what agents do when their clock ticks, or a message reaches them."""

from typing import Annotated

from p2psim.core.options import BY_NAME
from p2psim.core.part_types import AnyOf
from p2psim.core.registry import declare
from p2psim.network.exchanges.protocol import Exchange

__getattr__ = declare(
    "exchange",
    __name__,
    {
        "request": "request:Request",
        "poll": "rounds:Poll",
        "round": "rounds:Round",
        "broadcast": "synchronous:Broadcast",
        "gossip": "gossip:Gossip",
        "synchronous": "synchronous:Synchronous",
    },
)

#: Any exchange that is registered.
AnyExchange = Annotated[Exchange, AnyOf("exchange"), BY_NAME]

__all__ = ["AnyExchange", "Exchange"]
