"""A metric of models on a graph."""

import numpy as np

import p2psim
from p2psim.learning.graph.metrics import Snapshot


@p2psim.register
class MedianAccuracy(p2psim.GraphMetric):
    """Median over agents of the test accuracy."""

    name = "median_accuracy"
    meaning = "median over agents of the test accuracy"
    label = "median test accuracy (fraction)"
    rises = True
    needs_tests = True

    @staticmethod
    def measure(seen: Snapshot) -> float:
        """Agents without records held out have none."""
        return float(np.nanmedian(seen.problem.test_accuracy(seen.theta)))
