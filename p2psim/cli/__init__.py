"""The command ``p2psim``."""
