"""The data of personalised models on a graph, and the graph itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from p2psim.errors import MeaningError
from p2psim.network.graphs import Given, Links, draw_links
from p2psim.study.families.agents import names_of
from p2psim.study.streams import streams_of

if TYPE_CHECKING:
    from p2psim.data.prepare import Prepared
    from p2psim.study.scenario import Scenario


def identify(scenario: Scenario) -> dict[str, Any]:
    """Return what determines the arrays of a case, beside the data section."""
    loss = scenario.learning.loss
    return {"intercept": loss.intercept, "classes": loss.needs_classes}


def arrays(scenario: Scenario, prepared: Prepared) -> tuple[dict[str, np.ndarray], tuple[str, ...]]:
    """Records, held-out records, public bounds, and what neighbours are found by."""
    loss = scenario.learning.loss
    if loss.needs_classes and not prepared.classes:
        raise MeaningError("learning.loss", f"{loss.kind} needs labels that are +1 or −1; these are not")
    bounds = [np.nan if bound is None else bound for bound in (prepared.x_l1, prepared.x_max, prepared.y_max)]
    made = {
        "X": _with_intercept(prepared.X, loss.intercept),
        "y": prepared.y,
        "offsets": prepared.offsets,
        "test_X": _with_intercept(prepared.test_X, loss.intercept),
        "test_y": prepared.test_y,
        "test_offsets": prepared.test_offsets,
        "bounds": np.array(bounds),
        "data_dependent": np.array(bool(prepared.data_dependent)),
        **names_of(prepared),
    }
    if prepared.targets is not None:
        made["targets"] = prepared.targets
    if prepared.profiles is not None:
        made["profiles_data"], made["profiles_indices"] = prepared.profiles.data, prepared.profiles.indices
        made["profiles_indptr"], made["profiles_shape"] = (
            prepared.profiles.indptr,
            np.array(prepared.profiles.shape),
        )
    return made, ()


def _with_intercept(X: np.ndarray, intercept: bool) -> np.ndarray:
    return np.ascontiguousarray(np.column_stack([X, np.ones(len(X))]) if intercept else X)


def links_of(scenario: Scenario, arrays: Mapping[str, np.ndarray], replica: int) -> Links:
    """Who is linked with whom in a replica."""
    profiles = None
    if "profiles_data" in arrays:
        from scipy.sparse import csr_array

        parts = arrays["profiles_data"], arrays["profiles_indices"], arrays["profiles_indptr"]
        profiles = csr_array(parts, shape=tuple(arrays["profiles_shape"]))
    labels = arrays["labels"].tolist() if "labels" in arrays else None
    given = Given(arrays["offsets"].size - 1, profiles, arrays.get("targets"), labels)
    streams = streams_of(scenario, replica)
    variant = streams.variants.get("topology", "")
    return draw_links(scenario.network.topology, given, seed=streams.seed, replica=replica, variant=variant)
