"""What happens to a message on its way: airtime, collisions, delay, loss, and sending it again.

A channel is opened on a world and gives a medium (:mod:`p2psim.network.channels.medium`); callers know no more of it.
"""

from p2psim.network.channels.channel import Channel
from p2psim.network.channels.draws import EdgeValue
from p2psim.network.channels.effects import Blackout, ChannelEffect, Delivery
from p2psim.network.channels.loss import GilbertElliott
from p2psim.network.channels.retransmission import NoRetransmission, ResendFresh, ResendSame

__all__ = [
    "Blackout",
    "Channel",
    "ChannelEffect",
    "Delivery",
    "EdgeValue",
    "GilbertElliott",
    "NoRetransmission",
    "ResendFresh",
    "ResendSame",
]
