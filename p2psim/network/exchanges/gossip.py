from typing import Literal
from p2psim.options import Options

class Gossip(Options):
    """On waking an agent sends its model to one random neighbour."""

    kind: Literal["gossip"] = "gossip"
    mode: Literal["push"] = "push"
