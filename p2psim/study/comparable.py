"""Which metrics can be compared between the cells of a sweep."""

from collections.abc import Collection

#: Sums over agents and links, which grow with the graph and its weights.
_OF_THE_GRAPH = ("objective", "objective_gap")


def comparability(metrics: Collection[str], swept: Collection[str]) -> list[str]:
    """Notes on metrics that differ between the cells because the graphs do.

    Parameters
    ----------
    metrics : collection of str
        Recorded, or drawn.
    swept : collection of str
        Dotted keys that differ between the cells.
    """
    grown = [name for name in _OF_THE_GRAPH if name in metrics]
    if not grown or not any(key.startswith("network.topology") for key in swept):
        return []
    return [
        f"{' and '.join(grown)} {'grow' if len(grown) > 1 else 'grows'} with the number of links and their weights, "
        "so that cells with different graphs cannot be compared by that; record mean_objective_gap"
    ]
