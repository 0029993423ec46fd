"""Parts of somebody who is not p2psim: one file a part, registered by importing this package."""

from p2psim_example_parts import (
    arff,
    caveman,
    factorisation,
    fourier,
    gdp,
    geometric,
    gossip_sgd,
    halving,
    histogram,
    huber,
    jamming,
    median_accuracy,
    pareto,
    round_robin,
    staircase,
)

__all__ = [
    "arff",
    "caveman",
    "factorisation",
    "fourier",
    "gdp",
    "geometric",
    "gossip_sgd",
    "halving",
    "histogram",
    "huber",
    "jamming",
    "median_accuracy",
    "pareto",
    "round_robin",
    "staircase",
]
