"""The version of p2psim."""

__version__ = "0.1.0"
