"""Who is there, and when."""

from typing import Literal

from p2psim.options import Options


class Availability(Options):
    """Everyone is there all the time."""

    kind: Literal["always"] = "always"
