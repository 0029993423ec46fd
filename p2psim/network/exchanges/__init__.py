"""Exchanges: what agents do when their clock ticks, or a message reaches them."""

from typing import Annotated

from p2psim.core.options import BY_NAME
from p2psim.core.registry import AnyOf, register_all
from p2psim.network.exchanges.gossip import Broadcast, Gossip
from p2psim.network.exchanges.poll import Poll
from p2psim.network.exchanges.protocol import Exchange
from p2psim.network.exchanges.request import Request
from p2psim.network.exchanges.rounds import Round
from p2psim.network.exchanges.synchronous import Synchronous

register_all([Request, Poll, Round, Broadcast, Gossip, Synchronous])

#: Any exchange that is registered.
AnyExchange = Annotated[Exchange, AnyOf("exchange"), BY_NAME]

__all__ = ["AnyExchange", "Broadcast", "Exchange", "Gossip", "Poll", "Request", "Round", "Synchronous"]
