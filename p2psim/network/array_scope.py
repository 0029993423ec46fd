"""What the array engine can make: networks in which messages take no time, and are lost or not independently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p2psim.network.channels.loss import GilbertElliott
from p2psim.network.channels.retransmission import NoRetransmission

if TYPE_CHECKING:
    from p2psim.network.availability import AnyAvailability
    from p2psim.network.channels import Channel
    from p2psim.network.exchanges.protocol import ExchangePattern


def beyond_arrays(exchange: ExchangePattern, channel: Channel, availability: AnyAvailability) -> list[str]:
    """Keys of a scenario whose values the array engine cannot follow; empty where it makes all events.

    Independent losses and missed wakes are only masks. What takes time, or depends on what happened before, needs
    SimPy.
    """
    needs_simpy = {
        "exchange": exchange.array_code is None,
        "channel.latency": channel.latency != 0,
        "channel.airtime": channel.airtime != 0,
        "channel.bandwidth": channel.bandwidth is not None,
        "channel.loss": isinstance(channel.loss, GilbertElliott),
        "channel.retransmit": not isinstance(channel.retransmit, NoRetransmission),
        "availability": availability.has_spans,
    }
    return [f"network.{key}" for key, needs in needs_simpy.items() if needs]


def scope_message(beyond: list[str]) -> str:
    """Why the array engine is refused."""
    return (
        "the array engine knows no service or response time, latency, airtime, bursts of losses, retransmission, nor "
        f"agents that are away for spans of time; given by {', '.join(beyond)}"
    )
