"""Features: maps that are fitted without owners' records, and factors of rated items."""

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from p2psim.core.errors import MeaningError
from p2psim.core.options import AS_LIST, BY_NAME
from p2psim.core.part_types import AnyOf
from p2psim.core.randomness import generator
from p2psim.core.registry import declare, parts
from p2psim.data.features.maps import Feature
from p2psim.data.records import FACTORS, Held

__getattr__ = declare(
    "feature",
    __name__,
    {
        "standardise": "maps:Standardise",
        "pca": "maps:PCA",
        "whiten": "maps:Whiten",
        "random-fourier": "maps:RandomFourier",
        "als": "als:ALS",
    },
)

#: Any feature that is registered.
AnyFeature = Annotated[Feature, AnyOf("feature"), BY_NAME]

#: Steps in order; a single one needs no list.
Features = Annotated[list[AnyFeature], AS_LIST]


def apply_features(
    steps: Sequence[Feature], held: Held, key: np.ndarray, source: str = "the source"
) -> tuple[Held, list[dict[str, object]]]:
    """Carry out the features, one after the other; factors of items come first, where rows are ratings.

    Parameters
    ----------
    steps : sequence of Feature
    held : Held
    key : ndarray of uint64, shape (2,)
        Key of the stream of random features; each step has a stream of its own.
    source : str
        Where the records come from, for errors.

    Returns
    -------
    held : Held
        Without ratings.
    fitted : list of dict
        What was fitted in each step, and which columns were dropped, in plain JSON types.

    Raises
    ------
    MeaningError
        If a step needs public rows or ratings and there are none, ratings meet no step that needs them, or a step
        cannot be fitted.
    """
    if held.items is not None and not (steps and steps[0].needs_ratings):
        known = " or ".join(name for name, part in parts("feature").items() if part.needs_ratings)
        message = f"{source} gives ratings, which have no features: begin with {known}"
        raise MeaningError("data.features", message)
    for place, step in enumerate(steps):
        if step.needs_ratings and (place or held.items is None):
            raise MeaningError(f"data.features.{place}", f"{step.kind} needs ratings, and to come first")
    fitted = []
    for place, step in enumerate(steps):
        held, numbers = step.transform(held, f"data.features.{place}", generator(key, FACTORS - place))
        fitted.append(numbers)
    return held, fitted
