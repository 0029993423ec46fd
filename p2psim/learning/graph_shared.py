"""What the cells and replicas of a study that share a problem compute only once in a process."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

import numpy as np

from p2psim.learning.graph_problem import GraphProblem

_Rest = ParamSpec("_Rest")

#: Problems whose models are kept. Cells of one replica follow each other.
_KEPT = 16


def once_a_problem(
    function: Callable[Concatenate[GraphProblem, _Rest], np.ndarray],
) -> Callable[Concatenate[GraphProblem, _Rest], np.ndarray]:
    """Decorator: keep the models that a function of a problem, and of things that can be hashed, gives.

    Problems are told apart by their contents. The models cannot be written to.
    """
    kept: OrderedDict[object, np.ndarray] = OrderedDict()

    @wraps(function)
    def shared(problem: GraphProblem, /, *rest: _Rest.args, **named: _Rest.kwargs) -> np.ndarray:
        key = problem.digest, rest, tuple(sorted(named.items()))
        if key not in kept:
            kept[key] = function(problem, *rest, **named)
            kept[key].flags.writeable = False
        kept.move_to_end(key)
        while len(kept) > _KEPT:
            kept.popitem(last=False)
        return kept[key]

    return shared
