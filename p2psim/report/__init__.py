"""Figures from a run folder. Matplotlib and seaborn are loaded when something is drawn."""

from p2psim.report.drawing import draw

__all__ = ["draw"]
