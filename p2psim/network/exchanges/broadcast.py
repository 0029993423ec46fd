from typing import Literal
from p2psim.options import Options

class Broadcast(Options):
    """On waking an agent updates its model and sends it to all its neighbours."""

    kind: Literal["broadcast"] = "broadcast"
