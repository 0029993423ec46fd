"""Drawing random graphs: pairs with equal chances, and once more until everyone is joined."""

from collections.abc import Callable

import numpy as np

from p2psim.errors import MeaningError
from p2psim.network.links import Links, components, from_edges, without_links

#: The most graphs that are drawn before giving up, and the most links in all of them (but always five graphs).
MOST_DRAWS = 100
_MOST_LINKS = 20_000_000

Ends = tuple[np.ndarray, np.ndarray]


def pair_keys(agents: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One number for each link, whichever way it is written."""
    return np.minimum(a, b) * agents + np.maximum(a, b)


def is_first(values: np.ndarray) -> np.ndarray:
    """Whether each value is the first of its kind."""
    first = np.zeros(values.size, dtype=bool)
    first[np.unique(values, return_index=True)[1]] = True
    return first


def draw_until_joined(agents: int, draw: Callable[[], Ends], allow_disconnected: bool, advice: str) -> Links:
    """Draw graphs until one is connected, or, where parts are allowed, leaves nobody alone.

    So the graph has the distribution that `draw` gives, conditioned on being such.

    Parameters
    ----------
    agents : int
    draw : callable
        Gives both ends of each link of a simple graph.
    allow_disconnected : bool
    advice : str
        What would help, for the error.

    Raises
    ------
    MeaningError
        If none of up to 100 graphs (fewer when they are large) was such.
    """
    drawn = links_drawn = 0
    while drawn < MOST_DRAWS and (drawn < 5 or links_drawn < _MOST_LINKS):
        a, b = draw()
        drawn += 1
        links_drawn += a.size
        if a.size == 0:
            continue
        links = from_edges(agents, a, b)
        if not without_links(links).size and (allow_disconnected or components(links) == 1):
            return links
    wanted = "left nobody alone" if allow_disconnected else "was connected"
    raise MeaningError("network.topology", f"none of {drawn} graphs drawn {wanted}; {advice}")


def chosen(count: int, probability: float, random: np.random.Generator) -> np.ndarray:
    """Choose each of the numbers 0 … count − 1 independently with the same probability, in rising order.

    Jumps from one chosen number to the next are geometric: time and memory are those of what is chosen.
    """
    if probability == 0 or count == 0:
        return np.zeros(0, dtype=np.int64)
    mean = count * probability
    block = int(mean + 4 * np.sqrt(mean)) + 10
    found, last = [], -1
    while last < count:
        jumps = np.minimum(random.geometric(probability, block), count + 1)  # sums then cannot overflow
        places = last + np.cumsum(jumps)
        found.append(places)
        last = int(places[-1])
    every = np.concatenate(found)
    return every[: np.searchsorted(every, count)]


def pairs_within(agents: int, probability: float, random: np.random.Generator) -> Ends:
    """Choose each of the agents' n(n − 1)/2 pairs with the same probability."""
    place = chosen(agents * (agents - 1) // 2, probability, random)
    # Pair (a, b), b < a, stands at place a(a − 1)/2 + b; the root may be one off in floating point.
    a = ((1 + np.sqrt(1 + 8 * place.astype(np.float64))) / 2).astype(np.int64)
    a -= a * (a - 1) // 2 > place
    a += a * (a + 1) // 2 <= place
    return a, place - a * (a - 1) // 2


def pairs_between(first: int, second: int, probability: float, random: np.random.Generator) -> Ends:
    """Choose pairs of one of 0 … first − 1 and one of first … first + second − 1, with the same probability."""
    place = chosen(first * second, probability, random)
    return place // second, first + place % second
