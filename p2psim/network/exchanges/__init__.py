"""Exchange patterns: what agents do when their clock ticks, or a message reaches them.

A pattern is a small frozen class; see :mod:`p2psim.network.exchanges.protocol` for what it must offer.
"""

from typing import Annotated

from pydantic import Field

from p2psim.core.options import BY_NAME
from p2psim.network.exchanges.gossip import Broadcast, Gossip
from p2psim.network.exchanges.poll import Poll
from p2psim.network.exchanges.request import Request
from p2psim.network.exchanges.rounds import Round

Exchange = Annotated[Request | Poll | Round | Broadcast | Gossip, Field(discriminator="kind"), BY_NAME]

__all__ = ["Broadcast", "Exchange", "Gossip", "Poll", "Request", "Round"]
