"""Checks that tell whether a part of your own keeps the protocol of its kind."""

from p2psim.testing.checks import PartError, check_part

__all__ = ["PartError", "check_part"]
