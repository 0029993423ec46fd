"""p2psim: discrete-event simulation of machine learning among parties who do not share their data."""

__version__ = "0.1.0"
