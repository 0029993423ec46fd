"""Where nodes of a network stand on a page: the same links give the same places."""

import math

import numpy as np

#: Nodes up to which all distances count; above, springs.
_FEW = 120
#: Nodes above which agents stand in a grid, without their links.
MOST_NODES = 2_000
_SEED = 20_260


def layout(agents: int, a: np.ndarray, b: np.ndarray, star: bool) -> np.ndarray:
    """Places of agents in the unit square.

    Parameters
    ----------
    agents : int
    a, b : ndarray of int, shape (m,)
        Ends of links.
    star : bool
        Whether all are linked with a learner, who stands in the middle.

    Returns
    -------
    ndarray of float32, shape (agents, 2)
    """
    if agents > MOST_NODES:
        side = math.ceil(math.sqrt(agents))
        grid = np.stack(np.divmod(np.arange(agents), side)[::-1], axis=1)
        return ((grid + 0.5) / side).astype(np.float32)
    around = np.arange(agents) * (2 * math.pi / agents) - math.pi / 2
    circle = np.stack([np.cos(around), np.sin(around)], axis=1)
    return _in_square(circle if star else _of_graph(agents, a, b, circle))


def _of_graph(agents: int, a: np.ndarray, b: np.ndarray, circle: np.ndarray) -> np.ndarray:
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(agents))
    graph.add_edges_from(zip(a.tolist(), b.tolist(), strict=True))
    dense = graph.number_of_edges() > 0.4 * agents * (agents - 1) / 2
    if agents < 4 or dense or not graph.number_of_edges():
        return circle
    first = dict(enumerate(circle))
    if agents <= _FEW and nx.is_connected(graph):
        places = nx.kamada_kawai_layout(graph, pos=first, weight=None)
    else:
        few = agents <= 500
        places = nx.spring_layout(graph, pos=first if few else None, weight=None, seed=_SEED, iterations=60)
    return np.array([places[node] for node in range(agents)])


def _in_square(places: np.ndarray) -> np.ndarray:
    """Places between 0 and 1, rounded, so that their last digits do not matter."""
    low, span = places.min(axis=0), np.ptp(places, axis=0).max()
    if not span:
        return np.full(places.shape, 0.5, np.float32)
    centred = (places - low - np.ptp(places, axis=0) / 2) / span + 0.5
    return np.round(centred, 3).astype(np.float32)
