"""Who is there, and when: one kind a file, or a family of kinds."""

from typing import Annotated

from pydantic import Field

from p2psim.core.options import BY_NAME
from p2psim.network.availability.absence import Absence, Misses
from p2psim.network.availability.departures import Join, Leave, Remove
from p2psim.network.availability.renewal import LearnerOutage, Outage, Renewal
from p2psim.network.availability.schedules import Diurnal, Scripted
from p2psim.network.availability.simple import AllOf, Always, Bernoulli

AnyAvailability = (
    Always | Bernoulli | Renewal | Outage | LearnerOutage | Diurnal | Scripted | Leave | Join | Remove | AllOf
)
Availability = Annotated[AnyAvailability, Field(discriminator="kind"), BY_NAME]

__all__ = [
    "Absence",
    "AllOf",
    "Always",
    "AnyAvailability",
    "Availability",
    "Bernoulli",
    "Diurnal",
    "Join",
    "LearnerOutage",
    "Leave",
    "Misses",
    "Outage",
    "Remove",
    "Renewal",
    "Scripted",
]
