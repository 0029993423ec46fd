"""Parts of somebody who is not p2psim: one file a part, registered by importing this package."""

from p2psim_example_parts import caveman, huber

__all__ = ["caveman", "huber"]
