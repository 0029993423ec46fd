"""Who is there, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from p2psim.options import Options

if TYPE_CHECKING:
    from p2psim.network.world import World


class Availability(Options):
    """Everyone is there all the time."""

    kind: Literal["always"] = "always"

    @property
    def ideal(self) -> bool:
        """Whether nobody is ever away."""
        return True

    def start(self, world: World) -> None:
        """Begin to change who is present in the world; here nobody ever leaves."""
