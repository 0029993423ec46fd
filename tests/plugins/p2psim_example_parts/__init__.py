"""Parts of somebody who is not p2psim: one file a part, registered by importing this package."""

from p2psim_example_parts import (
    arff,
    caveman,
    fourier,
    gdp,
    geometric,
    halving,
    histogram,
    huber,
    median_accuracy,
    staircase,
)

__all__ = [
    "arff",
    "caveman",
    "fourier",
    "gdp",
    "geometric",
    "halving",
    "histogram",
    "huber",
    "median_accuracy",
    "staircase",
]
