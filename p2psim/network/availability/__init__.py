"""When agents are online."""

from typing import Annotated

from p2psim.core.options import BY_NAME
from p2psim.core.registry import AnyOf
from p2psim.network.availability.absence import Availability, Misses
from p2psim.network.availability.departures import Join, Leave, Remove
from p2psim.network.availability.renewal import LearnerOutage, Outage, Renewal
from p2psim.network.availability.schedules import Diurnal, Scripted
from p2psim.network.availability.simple import AllOf, Always, Bernoulli

#: Any kind of availability that is registered.
AnyAvailability = Annotated[Availability | Always, AnyOf("availability"), BY_NAME]

__all__ = [
    "AllOf", "Always", "AnyAvailability", "Availability", "Bernoulli", "Diurnal", "Join", "LearnerOutage",
    "Leave", "Misses", "Outage", "Remove", "Renewal", "Scripted",
]  # fmt: skip
