"""Who is linked with whom at a moment, by the plain rule, for tests that look at events one by one."""

from itertools import islice

from p2psim.network.graph import Graph


class Neighbours:
    """Changes of links at or before a moment, in order; moments are asked for in order too."""

    def __init__(self, graph: Graph):
        self._ends = [(a, b) for a in range(graph.agents) for b in graph.of(a).tolist()]
        self._near: dict[int, set[int]] = {agent: set() for agent in range(graph.agents)}
        if graph.changes is None:
            for a, b in self._ends:
                self._near[a].add(b)
        self._changes = islice(graph.changes.read(graph), 1000) if graph.changes is not None else iter(())
        self._next = next(self._changes, None)
        self._time = 0.0

    def at(self, time: float, agent: int) -> set[int]:
        assert time >= self._time
        self._time = time
        while self._next is not None and self._next.time <= time:
            for place in self._next.comes.tolist():
                self._near[self._ends[place][0]].add(self._ends[place][1])
            for place in self._next.goes.tolist():
                self._near[self._ends[place][0]].discard(self._ends[place][1])
            self._next = next(self._changes, None)
        return self._near[agent]
