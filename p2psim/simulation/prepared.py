"""Prepared data: what simulations of one scenario in one replica share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from p2psim.data.classes import SIGNS
from p2psim.network.graph import Graph

Made = TypeVar("Made")

#: Things that cells of a case have computed and share, the oldest of which go.
_MOST_SHARED = 256

#: Graphs that a case keeps, and neighbours in all of them: cells of a replica follow each other, so that few do.
#: A graph that has more is drawn anew for every cell.
MOST_GRAPHS, MOST_NEIGHBOURS = 16, 2**21


class DrawnGraphs:
    """Graphs drawn between the agents of one case: cells that differ in other things have the same."""

    def __init__(self) -> None:
        self._kept: list[tuple[tuple[object, ...], Graph]] = []

    def get(self, drawn_by: tuple[object, ...], draw: Callable[[], Graph]) -> Graph:
        """Graph that is determined by some values, which are compared with ``==``."""
        for known, graph in self._kept:
            if known == drawn_by:
                return graph
        graph = draw()
        self._kept.append((drawn_by, graph))
        del self._kept[:-MOST_GRAPHS]
        while sum(graph.indices.size for _, graph in self._kept) > MOST_NEIGHBOURS:
            del self._kept[0]
        return graph


@dataclass(frozen=True)
class PreparedData:
    """Prepared data as the algorithm needs them, and what is publicly known of those who hold them.

    Attributes
    ----------
    problem_id : str
        Hash of all that determines it.
    arrays : dict of ndarray
        Of the algorithm's adapter.
    labels : tuple of str
    groups : tuple of str or None
    x_l1, x_max, y_max : float or None
        Public bounds on ‖x‖₁, |x_j| and |y|, the intercept not counted.
    fitted : dict
        What the preparation found, in plain JSON types.
    warnings : tuple of str
    graphs : DrawnGraphs
        Between its agents.
    shared : dict
        What cells of the case have computed of it, by name.
    """

    problem_id: str
    arrays: dict[str, np.ndarray]
    labels: tuple[str, ...]
    groups: tuple[str, ...] | None
    x_l1: float | None
    x_max: float | None
    y_max: float | None
    fitted: dict[str, Any]
    warnings: tuple[str, ...]
    graphs: DrawnGraphs = field(default_factory=DrawnGraphs, repr=False, compare=False)
    # Not taken over by `dataclasses.replace`: of other arrays other things are computed.
    shared: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    _made: dict[Any, tuple[Any, Any]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, name: str, depends: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        """What follows from this case and some objects, computed anew only where one of these is another object.

        Cells that differ in one section of a scenario have all other sections, and what follows from them, in common.
        Numbers, texts and None are compared by their value.
        """
        plain = (bool, int, float, str, type(None))
        key = name, *(one if isinstance(one, plain) else (id(one),) for one in depends)
        if key not in self._made:
            # Objects are kept, so that their ids stay their own.
            self._made[key] = depends, make()
            while len(self._made) > _MOST_SHARED:
                del self._made[next(iter(self._made))]
        return self._made[key][1]

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, as `p2psim.data.prepare.Prepared` has them; none where labels are numbers."""
        if "classes" in self.arrays:
            return tuple(self.arrays["classes"].tolist())
        tests = self.arrays.get("test_y", np.empty(0))
        return SIGNS if all((np.abs(y) == 1).all() for y in (self.arrays["y"], tests)) else ()

    @property
    def class_count(self) -> int:
        """Number C of classes: 0 where labels are numbers, 2 where they are ±1."""
        return len(self.class_names)
